/* The readable backend: 64-bit words, one number at a time, everything made of rows t += a y. Every result is canonical. On
 * x86-64 with BMI2 and ADX the same code runs on a row of two chains of carries; elsewhere, and where bounds are
 * checked, on unsigned __int128. See mont.h for what each function promises. */
#include "mont.h"

#include <string.h>

typedef unsigned __int128 u128;
enum { MAX_WORDS = MONT_MAX_BITS / 64, SELECTED = 16 };

/* A kernel is written once and compiled for every row primitive there is. */
#define INLINE static inline __attribute__((always_inline))

/* t[0..n) += a[0..n) y. Returns the word that leaves. */
typedef uint64_t row_add(uint64_t *t, const uint64_t *a, uint64_t y, size_t n);

INLINE uint64_t row_add_plain(uint64_t *t, const uint64_t *a, uint64_t y, size_t n) {
  uint64_t carry = 0;
#pragma GCC unroll 4
  for (size_t i = 0; i < n; i++) {
    u128 s = (u128)a[i] * y + t[i] + carry; /* at most (2^64-1)^2 + 2 (2^64-1), just below 2^128 */
    t[i] = (uint64_t)s;
    carry = (uint64_t)(s >> 64);
  }
  return carry;
}

#ifdef VFL_HAVE_ADX
/* Limb i of eight: the low word of the product joins the high word before it on one chain of carries, the word of t on the
 * other. */
#define ADX_STEP(i, high, before)                \
  "mulxq " #i "*8(%[a]), %%rax, %[" high "]\n\t" \
  "adcxq %[" before "], %%rax\n\t"               \
  "adoxq " #i "*8(%[t]), %%rax\n\t"              \
  "movq %%rax, " #i "*8(%[t])\n\t"

INLINE uint64_t row_add_adx(uint64_t *t, const uint64_t *a, uint64_t y, size_t n) {
  size_t few = n % 8;
  uint64_t carry = row_add_plain(t, a, y, few), other;
  if (n < 8) return carry;
  size_t groups = n / 8;
  a += few, t += few;
  __asm__("xorl %%eax, %%eax\n\t" /* clears both carries */
          "1:\n\t" ADX_STEP(0, "other", "carry") ADX_STEP(1, "carry", "other") ADX_STEP(2, "other", "carry")
              ADX_STEP(3, "carry", "other") ADX_STEP(4, "other", "carry") ADX_STEP(5, "carry", "other")
                  ADX_STEP(6, "other", "carry") ADX_STEP(7, "carry", "other") "leaq 64(%[a]), %[a]\n\t"
                                                                              "leaq 64(%[t]), %[t]\n\t"
                                                                              "leaq -1(%%rcx), %%rcx\n\t"
                                                                              "jrcxz 2f\n\tjmp 1b\n"
                                                                              "2: movl $0, %%eax\n\t"
                                                                              "adcxq %%rax, %[carry]\n\t"
                                                                              "adoxq %%rax, %[carry]\n\t"
          : [carry] "+&r"(carry), [other] "=&r"(other), [a] "+&r"(a), [t] "+&r"(t), "+&c"(groups)
          : "d"(y)
          : "rax", "cc", "memory");
  return carry;
}
#endif

uint64_t mont_words_cond_sub(uint64_t *x, uint64_t *top, const uint64_t *m, size_t n) {
  uint64_t less[MAX_WORDS], borrow = 0;
  for (size_t i = 0; i < n; i++) {
    uint64_t d = x[i] - m[i];
    less[i] = d - borrow;
    borrow = (x[i] < m[i]) | (d < borrow);
  }
  uint64_t fits = 1 ^ ((uint64_t)(((u128)*top - borrow) >> 64) & 1); /* 0: x < m */
  uint64_t mask = mont_mask(fits);
  for (size_t i = 0; i < n; i++) x[i] ^= (x[i] ^ less[i]) & mask;
  *top -= borrow & fits;
  mont_clear(less, n * sizeof *less);
  return fits;
}

uint64_t mont_words_less(const uint64_t *a, const uint64_t *b, size_t n) {
  uint64_t borrow = 0;
  for (size_t i = 0; i < n; i++) borrow = (uint64_t)(((u128)a[i] - b[i] - borrow) >> 64) & 1;
  return borrow;
}

void mont_words_add(const mont_words *w, uint64_t *out, const uint64_t *a, const uint64_t *b) {
  uint64_t carry = 0;
  for (size_t i = 0; i < w->words; i++) {
    u128 s = (u128)a[i] + b[i] + carry;
    out[i] = (uint64_t)s;
    carry = (uint64_t)(s >> 64);
  }
  mont_words_cond_sub(out, &carry, w->m, w->words);
}

void mont_words_negate(const mont_words *w, uint64_t *out, const uint64_t *a) {
  uint64_t borrow = 0, top = 0;
  for (size_t i = 0; i < w->words; i++) {
    u128 d = (u128)w->m[i] - a[i] - borrow;
    out[i] = (uint64_t)d;
    borrow = (uint64_t)(d >> 64) & 1;
  }
  mont_words_cond_sub(out, &top, w->m, w->words); /* -0 is m so far */
}

void mont_words_mul_add(uint64_t *out, const uint64_t *a, size_t na, const uint64_t *b, size_t nb,
                        const uint64_t *c, size_t nc) {
  uint64_t top = 0;
  for (size_t i = 0; i < na + nb; i++) out[i] = i < nc ? c[i] : 0;
  for (size_t i = 0; i < na; i++) {
    u128 s = (u128)row_add_plain(out + i, b, a[i], nb) + out[i + nb] + top;
    out[i + nb] = (uint64_t)s;
    top = (uint64_t)(s >> 64);
  }
  VERIFY(top == 0);
}

/* Word i of v (2*words words, less than all below 2^64) becomes zero: q m is added at i. Returns the carry out of word
 * i + words, which v[i + words] and `top`, at most 4, join. */
INLINE uint64_t reduce_row(const mont_words *w, uint64_t *v, uint64_t *q, size_t i, u128 top, row_add row) {
  size_t n = w->words;
  q[i] = v[i] * w->n0;
  top += row(v + i, w->m, q[i], n);
  v[i + n] = (uint64_t)top;
  VERIFY(v[i] == 0);
  return (uint64_t)(top >> 64);
}

/* v[words..] = (a b + q m)/R64 for the q that makes it whole, and the carry out of it; below m + a b/R64. The first half of
 * v is work space. */
INLINE uint64_t mul_reduce(const mont_words *w, uint64_t *v, uint64_t *q, const uint64_t *a,
                           const uint64_t *b, row_add row) {
  size_t n = w->words;
  uint64_t top = 0;
  memset(v, 0, n * sizeof *v);
  for (size_t i = 0; i < n; i++) top = reduce_row(w, v, q, i, (u128)top + row(v + i, b, a[i], n), row);
  return top;
}

INLINE void half_mul(const mont_words *w, uint64_t *out, const uint64_t *a, const uint64_t *b, row_add row) {
  uint64_t q[MAX_WORDS], v[2 * MAX_WORDS];
  size_t n = w->words;
  uint64_t top = mul_reduce(w, v, q, a, b, row);
  mont_words_cond_sub(v + n, &top, w->m, n);
  VERIFY(top == 0);
  memcpy(out, v + n, n * sizeof *v);
  mont_clear(q, n * sizeof *q);
  mont_clear(v, 2 * n * sizeof *v);
}

void mont_words_mul(const mont_words *w, uint64_t *out, const uint64_t *a, const uint64_t *b) {
  half_mul(w, out, a, b, row_add_plain);
}

void mont_words_redc(const mont_words *w, uint64_t *out, const uint64_t *x) {
  size_t n = w->words;
  uint64_t q[MAX_WORDS], v[2 * MAX_WORDS], top = 0;
  memcpy(v, x, 2 * n * sizeof *v);
  for (size_t i = 0; i < n; i++) top = reduce_row(w, v, q, i, (u128)top + v[i + n], row_add_plain);
  mont_words_cond_sub(v + n, &top, w->m, n);
  VERIFY(top == 0);
  memcpy(out, v + n, n * sizeof *v);
  mont_clear(q, n * sizeof *q);
  mont_clear(v, 2 * n * sizeof *v);
}

void mont_words_divide(const mont_words *w, uint64_t *quotient, uint64_t *remainder, const uint64_t *x) {
  size_t n = w->words;
  uint64_t v[MAX_WORDS], borrow = 0;
  mont_words_redc(w, remainder, x);
  mont_words_mul(w, remainder, remainder, w->rr);
  /* x - remainder is a multiple of m and the quotient is below R64, so it is found modulo R64, from the low end
   * (Hensel): the q that reduces remainder - x is exactly (x - remainder)/m. */
  for (size_t i = 0; i < n; i++) {
    u128 d = (u128)remainder[i] - x[i] - borrow;
    v[i] = (uint64_t)d;
    borrow = (uint64_t)(d >> 64) & 1;
  }
  for (size_t i = 0; i < n; i++) {
    quotient[i] = v[i] * w->n0;
    row_add_plain(v + i, w->m, quotient[i], n - i);
  }
  mont_clear(v, n * sizeof *v);
}

/* ---- pairs; a vector is one packed row ---- */

static size_t scratch_portable(const mont_ring *ring) { return 6 * (size_t)ring->w.words; }

/* v = R - 1 - q + minus_r, `words` words; returns the carry. Modulo m that is -q. */
INLINE uint64_t minus_q(const mont_ring *ring, uint64_t *v, const uint64_t *q) {
  uint64_t carry = 0;
  for (size_t i = 0; i < ring->w.words; i++) {
    u128 s = (u128)~q[i] + ring->minus_r[i] + carry;
    v[i] = (uint64_t)s;
    carry = (uint64_t)(s >> 64);
  }
  return carry;
}

/* out = 2 a; returns the bit that leaves. */
INLINE uint64_t twice(uint64_t *out, const uint64_t *a, size_t n) {
  uint64_t bit = 0;
  for (size_t i = 0; i < n; i++) {
    out[i] = a[i] << 1 | bit;
    bit = a[i] >> 63;
  }
  return bit;
}

/* The half that was reduced, v[words..], to canonical: below (most + 1) m. */
INLINE void finish_half(const mont_ring *ring, uint64_t *out, const uint64_t *v, uint64_t top, int most) {
  size_t n = ring->w.words;
  memcpy(out, v + n, n * sizeof *out);
  for (int i = 0; i < most; i++) mont_words_cond_sub(out, &top, ring->w.m, n);
  VERIFY(top == 0 && mont_words_less(out, ring->w.m, n));
}

/* Both halves of a product. The first half may lose an m in becoming canonical; that is R on the way to the second, which
 * is below 2(m-1)^2/R + (R - 1 - q + minus_r)/R + m + 1 < 3m + 1 before its subtractions. */
INLINE void pair_mul(const mont_ring *ring, uint64_t *out, const uint64_t *a, const uint64_t *b,
                     uint64_t *work, row_add row) {
  size_t n = ring->w.words;
  uint64_t *q = work, *v = work + n, *t = work + 3 * n;
  uint64_t top = mul_reduce(&ring->w, v, q, a, b, row);
  uint64_t lost = mont_words_cond_sub(v + n, &top, ring->w.m, n);
  memcpy(t, v + n, n * sizeof *t);
  top = minus_q(ring, v, q) + lost;
  for (size_t i = 0; i < n; i++) {
    u128 s = (u128)top + row(v + i, b + n, a[i], n);
    s += row(v + i, b, a[n + i], n);
    top = reduce_row(&ring->w, v, q, i, s, row);
  }
  finish_half(ring, t + n, v, top, 3);
  memcpy(out, t, 2 * n * sizeof *t);
}

/* The same for a a, with 2 x1 in place of x1: one product less. */
INLINE void pair_sqr(const mont_ring *ring, uint64_t *out, const uint64_t *a, uint64_t *work, row_add row) {
  size_t n = ring->w.words;
  uint64_t *q = work, *v = work + n, *t = work + 3 * n, *doubled = work + 5 * n;
  uint64_t top = mul_reduce(&ring->w, v, q, a, a, row);
  uint64_t lost = mont_words_cond_sub(v + n, &top, ring->w.m, n);
  memcpy(t, v + n, n * sizeof *t);
  uint64_t highest = 0 - twice(doubled, a + n, n); /* a mask: its product with a[i] is a[i] or nothing */
  top = minus_q(ring, v, q) + lost;
  for (size_t i = 0; i < n; i++) {
    u128 s = (u128)top + row(v + i, doubled, a[i], n) + (a[i] & highest);
    top = reduce_row(&ring->w, v, q, i, s, row);
  }
  finish_half(ring, t + n, v, top, 3);
  memcpy(out, t, 2 * n * sizeof *t);
}

static void mul_portable(const mont_ring *ring, uint64_t *out, const uint64_t *a, const uint64_t *b,
                         uint64_t *work) {
  pair_mul(ring, out, a, b, work, row_add_plain);
}

static void sqr_portable(const mont_ring *ring, uint64_t *out, const uint64_t *a, uint64_t *work) {
  pair_sqr(ring, out, a, work, row_add_plain);
}

static void half_mul_portable(const mont_ring *ring, uint64_t *out, const uint64_t *a, const uint64_t *b,
                              uint64_t *work) {
  (void)work;
  half_mul(&ring->w, out, a, b, row_add_plain);
}

#ifdef VFL_HAVE_ADX
static void mul_adx(const mont_ring *ring, uint64_t *out, const uint64_t *a, const uint64_t *b,
                    uint64_t *work) {
  pair_mul(ring, out, a, b, work, row_add_adx);
}

static void sqr_adx(const mont_ring *ring, uint64_t *out, const uint64_t *a, uint64_t *work) {
  pair_sqr(ring, out, a, work, row_add_adx);
}

static void half_mul_adx(const mont_ring *ring, uint64_t *out, const uint64_t *a, const uint64_t *b,
                         uint64_t *work) {
  (void)work;
  half_mul(&ring->w, out, a, b, row_add_adx);
}
#endif

static void half_add_portable(const mont_ring *ring, uint64_t *out, const uint64_t *a, const uint64_t *b,
                              uint64_t *work) {
  (void)work;
  mont_words_add(&ring->w, out, a, b);
}

static void add_portable(const mont_ring *ring, uint64_t *out, const uint64_t *a, const uint64_t *b,
                         uint64_t *work) {
  size_t n = ring->w.words;
  uint64_t carry = 0;
  for (size_t i = 0; i < n; i++) {
    u128 s = (u128)a[i] + b[i] + carry;
    work[i] = (uint64_t)s;
    carry = (uint64_t)(s >> 64);
  }
  memset(work + n, 0, n * sizeof *work); /* the m that leaves x0 is a 1 in x1 */
  work[n] = mont_words_cond_sub(work, &carry, ring->w.m, n);
  mont_words_add(&ring->w, work + n, work + n, a + n);
  mont_words_add(&ring->w, out + n, work + n, b + n);
  memcpy(out, work, n * sizeof *out);
}

static void half_load_portable(const mont_ring *ring, uint64_t *half, const uint64_t *const *rows,
                               uint64_t *work) {
  (void)work;
  memcpy(half, rows[0], ring->w.words * sizeof *half);
}

static void half_store_portable(const mont_ring *ring, uint64_t *const *rows, const uint64_t *half,
                                uint64_t *work) {
  (void)work;
  memcpy(rows[0], half, ring->w.words * sizeof *half);
}

static void load_portable(const mont_ring *ring, uint64_t *vector, const uint64_t *const *rows,
                          uint64_t *work) {
  (void)work;
  memcpy(vector, rows[0], 2 * ring->w.words * sizeof *vector);
}

static void store_portable(const mont_ring *ring, uint64_t *const *rows, const uint64_t *vector,
                           uint64_t *work) {
  (void)work;
  memcpy(rows[0], vector, 2 * ring->w.words * sizeof *vector);
}

/* All ones where digit == entry, else zero, without a branch. */
static inline uint64_t equal_mask(uint64_t digit, uint64_t entry) {
  uint64_t d = digit ^ entry;
  return mont_mask(1 ^ ((d | (0 - d)) >> 63));
}

/* Words first .. first + width - 1 of the result stay in registers while every entry passes by. */
INLINE void select_some(uint64_t *out, const uint64_t *table, size_t size, size_t count, uint64_t digit,
                        size_t width) {
  uint64_t found[SELECTED] = {0};
  for (size_t entry = 0; entry < count; entry++, table += size) {
    uint64_t mask = equal_mask(digit, entry);
#pragma GCC unroll 16
    for (size_t i = 0; i < width; i++) found[i] |= table[i] & mask;
  }
  memcpy(out, found, width * sizeof *out);
}

static void select_portable(const mont_ring *ring, uint64_t *out, const uint64_t *table, size_t count,
                            uint64_t digit) {
  size_t size = 2 * ring->half, i = 0;
  for (; i + SELECTED <= size; i += SELECTED) select_some(out + i, table + i, size, count, digit, SELECTED);
  for (; i < size; i++) select_some(out + i, table + i, size, count, digit, 1);
}

static void pick_portable_vartime(const mont_ring *ring, uint64_t *out, const uint64_t *table,
                                  const uint32_t *digits) {
  size_t size = 2 * ring->half;
  memcpy(out, table + digits[0] * size, size * sizeof *out);
}

static size_t row_words_portable(const mont_ring *ring, size_t entries) { return entries * 2 * ring->half; }

static void row_put_portable(const mont_ring *ring, uint64_t *row, size_t entries, size_t entry,
                             const uint64_t *packed) {
  (void)entries;
  memcpy(row + entry * 2 * ring->half, packed, 2 * ring->half * sizeof *row);
}

static void row_get_portable(const mont_ring *ring, uint64_t *out, const uint64_t *row, size_t entries,
                             const uint32_t *digits) {
  select_portable(ring, out, row, entries, digits[0]);
}

#define PORTABLE(mul_function, sqr_function, half_mul_function) \
  {                                                             \
      .name = "portable",                                       \
      .lanes = 1,                                               \
      .limb_bits = 64,                                          \
      .limb_block = 1,                                          \
      .spare_bits = 0,                                          \
      .bound = 1,                                               \
      .row_vectors = 1,                                         \
      .scratch = scratch_portable,                              \
      .mul = mul_function,                                      \
      .sqr = sqr_function,                                      \
      .add = add_portable,                                      \
      .half_mul = half_mul_function,                            \
      .half_add = half_add_portable,                            \
      .half_load = half_load_portable,                          \
      .half_store = half_store_portable,                        \
      .load = load_portable,                                    \
      .store = store_portable,                                  \
      .select = select_portable,                                \
      .pick_vartime = pick_portable_vartime,                    \
      .row_words = row_words_portable,                          \
      .row_put = row_put_portable,                              \
      .row_get = row_get_portable,                              \
  }

const mont_ops mont_portable = PORTABLE(mul_portable, sqr_portable, half_mul_portable);
#ifdef VFL_HAVE_ADX
const mont_ops mont_portable_adx = PORTABLE(mul_adx, sqr_adx, half_mul_adx);
#endif
