/* Plain numbers in and out, and the key owner's glue between n and its factors. Everything here runs one number at a
 * time on 64-bit words; only the products that end or begin a conversion run on the backend. Constant time. */
#include "mont.h"

#include <string.h>

enum { MAX_WORDS = MONT_MAX_BITS / 64 };

static size_t smaller(size_t a, size_t b) { return a < b ? a : b; }

/* x of 2n words -> row: x mod 2^bits in its first half, x div 2^bits (below m) in its second. */
static void cut(uint64_t *row, const uint64_t *x, size_t n, unsigned bits) {
  unsigned shift = bits % 64;
  size_t at = bits / 64; /* n, or n - 1 with a shift */
  for (size_t i = 0; i < n; i++) {
    row[i] = x[i];
    row[n + i] = shift ? x[at + i] >> shift | x[at + i + 1] << (64 - shift) : x[n + i];
  }
  if (shift) row[n - 1] &= ((uint64_t)1 << shift) - 1;
}

size_t mont_batch_from_plain(const mont_ring *ring, uint64_t *out, const uint64_t *plain, size_t count,
                             uint64_t *work) {
  const mont_ops *ops = ring->ops;
  size_t n = ring->w.words, size = 2 * ring->half;
  uint64_t *x = work, *rr = x + size, *rr_high = rr + size, *sum = rr_high + size, *scratch = sum + size;
  uint64_t spare[2 * MAX_WORDS];
  const uint64_t *low[MONT_MAX_LANES], *high[MONT_MAX_LANES];
  uint64_t *rows[MONT_MAX_LANES];
  for (size_t i = 0; i < count; i++)
    if (!mont_words_less(plain + i * 2 * n, ring->square, 2 * n)) return i;
  for (size_t l = 0; l < ops->lanes; l++) low[l] = ring->rr, high[l] = ring->rr_high;
  ops->load(ring, rr, low, scratch);
  ops->load(ring, rr_high, high, scratch);
  memset(x, 0, size * sizeof *x);
  for (size_t i = 0; i < count; i += ops->lanes) {
    /* x = low + 2^bits high: both are single halves, low below 2m and high below m, and each finds its own factor. */
    for (size_t l = 0; l < ops->lanes; l++) {
      rows[l] = i + l < count ? out + (i + l) * 2 * n : spare;
      if (i + l < count) cut(rows[l], plain + (i + l) * 2 * n, n, ring->bits);
      low[l] = i + l < count ? rows[l] : ring->one;
      high[l] = i + l < count ? rows[l] + n : ring->one;
    }
    ops->half_load(ring, x, low, scratch);
    ops->mul(ring, sum, x, rr, scratch);
    ops->half_load(ring, x, high, scratch);
    ops->mul(ring, x, x, rr_high, scratch);
    ops->add(ring, sum, sum, x, scratch);
    memset(x + ring->half, 0, ring->half * sizeof *x);
    ops->store(ring, rows, sum, scratch);
  }
  return count;
}

void mont_batch_to_plain(const mont_ring *ring, uint64_t *plain, const uint64_t *x, size_t count,
                         uint64_t *work) {
  size_t n = ring->w.words;
  uint64_t pair[2 * MAX_WORDS];
  mont_batch_mul(ring, plain, x, 2 * n, ring->unit, 0, count, work);
  for (size_t i = 0; i < count; i++, plain += 2 * n) {
    memcpy(pair, plain, 2 * n * sizeof *pair);
    mont_words_mul_add(plain, pair + n, n, ring->w.m, n, pair, n);
  }
  mont_clear(pair, sizeof pair);
}

size_t mont_first_not_below(const mont_ring *ring, const uint64_t *k, size_t count) {
  size_t first = count;
  for (size_t i = count; i-- > 0;) {
    size_t bad = mont_mask(1 ^ mont_words_less(k + i * ring->w.words, ring->w.m, ring->w.words));
    first ^= (first ^ i) & bad;
  }
  return first;
}

size_t mont_batch_redc(const mont_ring *ring, uint64_t *out, const uint64_t *x, size_t count) {
  size_t n = ring->w.words, first = count;
  for (size_t i = count; i-- > 0;) {
    size_t bad = mont_mask(1 ^ mont_words_less(x + (2 * i + 1) * n, ring->w.m, n));
    first ^= (first ^ i) & bad;
    mont_words_redc(&ring->w, out + i * n, x + 2 * i * n);
  }
  return first;
}

void mont_batch_reduce(const mont_ring *ring, uint64_t *out, const uint64_t *x, size_t x_words,
                       const uint64_t *q_rr, const uint64_t *change, size_t count, uint64_t *work) {
  const mont_words *w = &ring->w;
  size_t n = w->words;
  uint64_t wide[2 * MAX_WORDS] = {0}, quotient[MAX_WORDS], rest[MAX_WORDS];
  for (size_t i = 0; i < count; i++) {
    /* x0 + p q x1 = rest + p (quotient + q x1)   with   x0 = rest + p quotient */
    memcpy(wide, x + (2 * i + 1) * x_words, x_words * sizeof *x);
    mont_words_redc(w, rest, wide);
    uint64_t *x0 = out + 2 * i * n, *x1 = x0 + n;
    mont_words_mul(w, x1, rest, q_rr); /* x1 q */
    memcpy(wide, x + 2 * i * x_words, x_words * sizeof *x);
    mont_words_divide(w, quotient, x0, wide);
    mont_words_mul(w, quotient, quotient, w->rr);
    mont_words_mul(w, quotient, quotient, ring->unit);
    mont_words_add(w, x1, x1, quotient);
  }
  mont_batch_mul(ring, out, out, 2 * n, change, 0, count, work);
  mont_clear(wide, sizeof wide);
  mont_clear(quotient, sizeof quotient);
  mont_clear(rest, sizeof rest);
}

void mont_batch_embed(const mont_ring *ring, uint64_t *out, const uint64_t *x, const uint64_t *f,
                      size_t f_words, unsigned wraps, size_t count) {
  size_t n = ring->w.words;
  uint64_t wide[2 * MAX_WORDS + 2];
  for (size_t i = 0; i < count; i++) {
    uint64_t *row = out + 2 * i * n, top;
    const uint64_t *pair = x + 2 * i * f_words;
    memset(wide, 0, sizeof wide);
    mont_words_mul_add(wide, pair + f_words, f_words, f, f_words, pair, f_words);
    top = wide[n];
    memset(row + n, 0, n * sizeof *row);
    for (unsigned k = 0; k < wraps; k++) row[n] += mont_words_cond_sub(wide, &top, ring->w.m, n);
    memcpy(row, wide, n * sizeof *row);
  }
  mont_clear(wide, sizeof wide);
}

/* Index of the first row whose first half is not `half`, or count; only the result depends on the numbers. */
static size_t first_other_half(const uint64_t *x, const uint64_t *half, size_t n, size_t count) {
  size_t first = count;
  for (size_t i = count; i-- > 0;) {
    uint64_t different = 0;
    for (size_t k = 0; k < n; k++) different |= x[2 * i * n + k] ^ half[k];
    size_t bad = mont_mask((different | (0 - different)) >> 63);
    first ^= (first ^ i) & bad;
  }
  return first;
}

size_t mont_batch_log(const mont_ring *ring, uint64_t *out, const uint64_t *x, const uint64_t *h,
                      size_t count, uint64_t *work) {
  /* x R = (1 + m L) R = (r0 + m r1) + m L r0 mod m^2 with (r0, r1) = R mod m^2, and r0 = R mod m. So the first half is
   * r0, and (x1 - r1) h / R is L h: one half product. */
  const mont_words *w = &ring->w;
  const mont_ops *ops = ring->ops;
  size_t n = w->words;
  uint64_t minus_r1[MAX_WORDS], difference[MONT_MAX_LANES][MAX_WORDS], spare[MAX_WORDS];
  uint64_t *a = work, *b = a + ring->half, *scratch = b + ring->half;
  mont_words_negate(w, minus_r1, ring->one + n);
  const uint64_t *in[MONT_MAX_LANES];
  uint64_t *to[MONT_MAX_LANES];
  for (size_t l = 0; l < ops->lanes; l++) in[l] = h;
  ops->half_load(ring, b, in, scratch);
  for (size_t i = 0; i < count; i += ops->lanes) {
    for (size_t l = 0; l < ops->lanes; l++) {
      in[l] = i + l < count ? difference[l] : ring->one;
      to[l] = i + l < count ? out + (i + l) * n : spare;
      if (i + l >= count) continue;
      mont_words_add(w, difference[l], x + (2 * (i + l) + 1) * n, minus_r1);
    }
    ops->half_load(ring, a, in, scratch);
    ops->half_mul(ring, a, a, b, scratch);
    ops->half_store(ring, to, a, scratch);
  }
  mont_clear(difference, sizeof difference);
  return first_other_half(x, ring->one, n, count);
}

void mont_batch_garner(const mont_ring *ring, uint64_t *out, size_t out_words, const uint64_t *a,
                       const uint64_t *b, const uint64_t *q, const uint64_t *q_inv_r, size_t count) {
  const mont_words *w = &ring->w;
  size_t n = w->words;
  uint64_t t[MAX_WORDS], u[MAX_WORDS], wide[2 * MAX_WORDS];
  for (size_t i = 0; i < count; i++) {
    mont_words_mul(w, t, a + i * n, q_inv_r); /* a/q mod p */
    mont_words_mul(w, u, b + i * n, q_inv_r);
    mont_words_negate(w, u, u);
    mont_words_add(w, t, t, u);
    mont_words_mul_add(wide, t, n, q, n, b + i * n, n); /* b + q ((a - b)/q mod p) */
    memcpy(out + i * out_words, wide, smaller(out_words, 2 * n) * sizeof *out);
  }
  mont_clear(t, sizeof t);
  mont_clear(u, sizeof u);
  mont_clear(wide, sizeof wide);
}
