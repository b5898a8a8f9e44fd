/* The readable backend: 64-bit words, products of two words in unsigned __int128, one number at a time. Every result is
 * canonical. See mont.h for what each function promises. */
#include "mont.h"

#include <string.h>

typedef unsigned __int128 u128;
enum { MAX_WORDS = MONT_MAX_BITS / 64 };

/* One column of a product, sum of a[i] b[k-i]: low and high words of the products are summed apart, so no carry has to
 * travel inside the loop. lo and hi stay below 2^64 times the number of terms. */
typedef struct {
  u128 lo, hi;
} column;

static inline void column_add(column *c, const uint64_t *a, const uint64_t *b, size_t k, size_t first,
                              size_t end) {
  u128 lo = c->lo, hi = c->hi;
#pragma GCC unroll 8
  for (size_t i = first; i < end; i++) {
    u128 p = (u128)a[i] * b[k - i];
    lo += (uint64_t)p;
    hi += (uint64_t)(p >> 64);
  }
  c->lo = lo;
  c->hi = hi;
}

static inline void column_add_twice(column *c, const uint64_t *a, const uint64_t *b, size_t k, size_t first,
                                    size_t end) {
  column d = {0, 0};
  column_add(&d, a, b, k, first, end);
  c->lo += 2 * d.lo;
  c->hi += 2 * d.hi;
}

/* The lowest word of the column leaves; the next column begins. */
static inline uint64_t column_shift(column *c) {
  uint64_t word = (uint64_t)c->lo;
  c->lo = (c->lo >> 64) + c->hi;
  c->hi = 0;
  return word;
}

/* Column k < n of a reduction: chooses q[k] so that the lowest word becomes zero. */
static inline void column_reduce(column *c, uint64_t *q, const uint64_t *m, uint64_t n0, size_t k) {
  column_add(c, q, m, k, 0, k);
  q[k] = (uint64_t)c->lo * n0;
  column_add(c, q, m, k, k, k + 1);
  VERIFY((uint64_t)c->lo == 0);
}

static inline size_t first_of(size_t k, size_t n) { return k < n ? 0 : k - n + 1; }
static inline size_t end_of(size_t k, size_t n) { return k < n ? k + 1 : n; }

uint64_t mont_words_cond_sub(uint64_t *x, uint64_t *top, const uint64_t *m, size_t n) {
  uint64_t borrow = 0;
  for (size_t i = 0; i < n; i++) borrow = (uint64_t)(((u128)x[i] - m[i] - borrow) >> 64) & 1;
  uint64_t fits = 1 ^ (borrow & (uint64_t)((((u128)*top - borrow) >> 64) & 1)); /* 0: x < m */
  uint64_t mask = 0 - fits;
  borrow = 0;
  for (size_t i = 0; i < n; i++) {
    u128 d = (u128)x[i] - (m[i] & mask) - borrow;
    x[i] = (uint64_t)d;
    borrow = (uint64_t)(d >> 64) & 1;
  }
  *top -= borrow;
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
  column s = {0, 0};
  for (size_t k = 0; k < na + nb; k++) {
    if (k + 1 < na + nb) column_add(&s, a, b, k, first_of(k, nb), end_of(k, na));
    if (k < nc) s.lo += c[k];
    out[k] = column_shift(&s);
  }
  VERIFY(s.lo == 0);
}

/* t = the upper words of a b + (q so that the sum is a multiple of R64) m, and the carry out of them; a b/R64 mod m up
 * to one m. */
static uint64_t mul_reduce(const mont_words *w, uint64_t *t, uint64_t *q, const uint64_t *a,
                           const uint64_t *b) {
  size_t n = w->words;
  column c = {0, 0};
  for (size_t k = 0; k < n; k++) {
    column_add(&c, a, b, k, 0, k + 1);
    column_reduce(&c, q, w->m, w->n0, k);
    column_shift(&c);
  }
  for (size_t k = n; k < 2 * n - 1; k++) {
    column_add(&c, a, b, k, k - n + 1, n);
    column_add(&c, q, w->m, k, k - n + 1, n);
    t[k - n] = column_shift(&c);
  }
  t[n - 1] = column_shift(&c);
  return (uint64_t)c.lo;
}

void mont_words_mul(const mont_words *w, uint64_t *out, const uint64_t *a, const uint64_t *b) {
  uint64_t q[MAX_WORDS], t[MAX_WORDS];
  uint64_t top = mul_reduce(w, t, q, a, b);
  mont_words_cond_sub(t, &top, w->m, w->words);
  VERIFY(top == 0);
  memcpy(out, t, w->words * sizeof *t);
  mont_clear(q, w->words * sizeof *q);
  mont_clear(t, w->words * sizeof *t);
}

void mont_words_redc(const mont_words *w, uint64_t *out, const uint64_t *x) {
  size_t n = w->words;
  uint64_t q[MAX_WORDS];
  column c = {0, 0};
  for (size_t k = 0; k < n; k++) {
    c.lo += x[k];
    column_reduce(&c, q, w->m, w->n0, k);
    column_shift(&c);
  }
  for (size_t k = n; k < 2 * n; k++) {
    c.lo += x[k];
    column_add(&c, q, w->m, k, k - n + 1, n);
    out[k - n] = column_shift(&c);
  }
  uint64_t top = (uint64_t)c.lo;
  mont_words_cond_sub(out, &top, w->m, n);
  VERIFY(top == 0);
  mont_clear(q, n * sizeof *q);
}

void mont_words_divide(const mont_words *w, uint64_t *quotient, uint64_t *remainder, const uint64_t *x) {
  size_t n = w->words;
  mont_words_redc(w, remainder, x);
  mont_words_mul(w, remainder, remainder, w->rr);
  /* x - remainder is a multiple of m and the quotient is below R64, so it is found modulo R64, from the low end
   * (Hensel): the q that reduces remainder - x is exactly (x - remainder)/m. */
  column c = {0, 0};
  uint64_t borrow = 0;
  for (size_t k = 0; k < n; k++) {
    u128 d = (u128)remainder[k] - x[k] - borrow;
    borrow = (uint64_t)(d >> 64) & 1;
    c.lo += (uint64_t)d;
    column_reduce(&c, quotient, w->m, w->n0, k);
    column_shift(&c);
  }
}

/* ---- pairs; a vector is one packed row ---- */

static size_t scratch_portable(const mont_ring *ring) { return 4 * (size_t)ring->w.words; }

/* As mul_reduce with b = a, every product of two different words computed once. */
static uint64_t sqr_reduce(const mont_words *w, uint64_t *t, uint64_t *q, const uint64_t *a) {
  size_t n = w->words;
  column c = {0, 0};
  for (size_t k = 0; k < 2 * n - 1; k++) {
    column_add_twice(&c, a, a, k, first_of(k, n), (k + 1) / 2);
    if (k % 2 == 0) column_add(&c, a, a, k, k / 2, k / 2 + 1);
    if (k < n) {
      column_reduce(&c, q, w->m, w->n0, k);
      column_shift(&c);
    } else {
      column_add(&c, q, w->m, k, k - n + 1, n);
      t[k - n] = column_shift(&c);
    }
  }
  t[n - 1] = column_shift(&c);
  return (uint64_t)c.lo;
}

/* out = REDC(a0 b1 + a1 b0 - q) + lost mod m; a1 == NULL stands for a square, 2 a0 b1. `lost` (0 or 1) is the m that was
 * taken off x0. Before the subtractions it is below 2(m-1)^2/R + (R - 1 - q + minus_r)/R + m + 1 < 3m + 1. */
static inline void second_half(const mont_ring *ring, uint64_t *out, const uint64_t *a0, const uint64_t *b1,
                               const uint64_t *a1, const uint64_t *b0, const uint64_t *q, uint64_t lost,
                               uint64_t *w) {
  size_t n = ring->w.words;
  const uint64_t *m = ring->w.m;
  column c = {0, 0};
  for (size_t k = 0; k < 2 * n - 1; k++) {
    size_t first = first_of(k, n), end = end_of(k, n);
    if (a1 == NULL) {
      column_add_twice(&c, a0, b1, k, first, end);
    } else {
      column_add(&c, a0, b1, k, first, end);
      column_add(&c, a1, b0, k, first, end);
    }
    if (k < n) {
      c.lo += ~q[k];
      c.lo += ring->minus_r[k];
      column_reduce(&c, w, m, ring->w.n0, k);
      column_shift(&c);
    } else {
      column_add(&c, w, m, k, first, end);
      out[k - n] = column_shift(&c);
    }
    if (k == n - 1) c.lo += lost;
  }
  out[n - 1] = column_shift(&c);
  uint64_t top = (uint64_t)c.lo;
  for (int i = 0; i < 3; i++) mont_words_cond_sub(out, &top, m, n);
  VERIFY(top == 0 && mont_words_less(out, m, n));
}

static void mul_portable(const mont_ring *ring, uint64_t *out, const uint64_t *a, const uint64_t *b,
                         uint64_t *work) {
  size_t n = ring->w.words;
  uint64_t *q = work, *w = work + n, *t = work + 2 * n;
  uint64_t top = mul_reduce(&ring->w, t, q, a, b);
  uint64_t lost = mont_words_cond_sub(t, &top, ring->w.m, n);
  second_half(ring, t + n, a, b + n, a + n, b, q, lost, w);
  memcpy(out, t, 2 * n * sizeof *t);
}

static void sqr_portable(const mont_ring *ring, uint64_t *out, const uint64_t *a, uint64_t *work) {
  size_t n = ring->w.words;
  uint64_t *q = work, *w = work + n, *t = work + 2 * n;
  uint64_t top = sqr_reduce(&ring->w, t, q, a);
  uint64_t lost = mont_words_cond_sub(t, &top, ring->w.m, n);
  second_half(ring, t + n, a, a + n, NULL, NULL, q, lost, w);
  memcpy(out, t, 2 * n * sizeof *t);
}

static void half_mul_portable(const mont_ring *ring, uint64_t *out, const uint64_t *a, const uint64_t *b,
                              uint64_t *work) {
  (void)work;
  mont_words_mul(&ring->w, out, a, b);
}

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
  return ((d | (0 - d)) >> 63) - 1;
}

static void select_portable(const mont_ring *ring, uint64_t *out, const uint64_t *table, size_t count,
                            uint64_t digit) {
  size_t size = 2 * ring->half;
  memset(out, 0, size * sizeof *out);
  for (size_t entry = 0; entry < count; entry++) {
    uint64_t mask = equal_mask(digit, entry);
    for (size_t i = 0; i < size; i++) out[i] |= table[entry * size + i] & mask;
  }
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

const mont_ops mont_portable = {
    .name = "portable",
    .lanes = 1,
    .limb_bits = 64,
    .limb_block = 1,
    .spare_bits = 0,
    .bound = 1,
    .scratch = scratch_portable,
    .mul = mul_portable,
    .sqr = sqr_portable,
    .add = add_portable,
    .half_mul = half_mul_portable,
    .half_add = half_add_portable,
    .half_load = half_load_portable,
    .half_store = half_store_portable,
    .load = load_portable,
    .store = store_portable,
    .select = select_portable,
    .pick_vartime = pick_portable_vartime,
    .row_words = row_words_portable,
    .row_put = row_put_portable,
    .row_get = row_get_portable,
};
