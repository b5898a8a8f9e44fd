/* The same functions eight numbers at a time: AVX-512 IFMA, radix 2^52, lane l of every vector register belongs to number
 * l. Limbs come in blocks of five, so that the columns of a block product stay in registers. Halves are lazily
 * reduced (below 2m, R >= 16m); load takes canonical rows, store gives them back. See mont.h for the contracts. Only this
 * file is compiled with AVX-512 flags; on other machines it is empty, or, for tests, emulated. */
#include "mont.h"

#ifdef VFL_HAVE_IFMA

#ifdef VFL_EMULATE_IFMA
#include "check/emulated_avx512.h"
#define UNROLL /* registers are not short there, and compiling would take a minute */
#else
#include <immintrin.h>
#define UNROLL _Pragma("GCC unroll 16")
#endif
#include <string.h>

typedef __m512i V;

enum { BLOCK = 5, COLUMNS = 2 * BLOCK, LIMB_BITS = 52, LANES = 8, SPARE_BITS = 4 };

#define INLINE        static inline __attribute__((always_inline))
#define LOW(c, a, b)  _mm512_madd52lo_epu64(c, a, b)
#define HIGH(c, a, b) _mm512_madd52hi_epu64(c, a, b)
#define ADD(a, b)     _mm512_add_epi64(a, b)
#define SUB(a, b)     _mm512_sub_epi64(a, b)
#define ALL(x)        _mm512_set1_epi64((long long)(x))
#define ZERO          _mm512_setzero_si512()
#define MASK52        (((uint64_t)1 << LIMB_BITS) - 1)

/* Ten columns of limb products in registers. The upper halves wait apart, one column further left than they are kept:
 * no multiply-add then has to wait for another one. A column takes at most 6 * limbs terms below 2^52, so 64 bits are
 * enough for any size here. */
typedef struct {
  V low[COLUMNS + 1], high[COLUMNS - 1]; /* high[t] belongs to column t + 1 */
} columns;

INLINE void clear_columns(columns *c) {
  UNROLL for (int t = 0; t < COLUMNS + 1; t++) c->low[t] = ZERO;
  UNROLL for (int t = 0; t < COLUMNS - 1; t++) c->high[t] = ZERO;
}

/* c += a[0..4] b[0..4] */
INLINE void block_mul(columns *c, const V *a, const V *b) {
  V x[BLOCK];
  UNROLL for (int i = 0; i < BLOCK; i++) x[i] = a[i];
  UNROLL for (int j = 0; j < BLOCK; j++) {
    V y = b[j];
    UNROLL for (int i = 0; i < BLOCK; i++) c->low[i + j] = LOW(c->low[i + j], x[i], y);
    UNROLL for (int i = 0; i < BLOCK; i++) c->high[i + j] = HIGH(c->high[i + j], x[i], y);
  }
}

/* The same with limbs that all lanes share. */
INLINE void block_mul_shared(columns *c, const V *a, const uint64_t *m) {
  V x[BLOCK];
  UNROLL for (int i = 0; i < BLOCK; i++) x[i] = a[i];
  UNROLL for (int j = 0; j < BLOCK; j++) {
    V y = ALL(m[j]);
    UNROLL for (int i = 0; i < BLOCK; i++) c->low[i + j] = LOW(c->low[i + j], x[i], y);
    UNROLL for (int i = 0; i < BLOCK; i++) c->high[i + j] = HIGH(c->high[i + j], x[i], y);
  }
}

/* What waited joins the columns. */
INLINE void gather(columns *c) {
  UNROLL for (int t = 0; t < COLUMNS - 1; t++) {
    c->low[t + 1] = ADD(c->low[t + 1], c->high[t]);
    c->high[t] = ZERO;
  }
}

/* The block on the diagonal of a reduction: q[0..4] such that the columns + q m begin with five zero limbs. */
INLINE void block_reduce(V *low, V *q, const uint64_t *m, V n0) {
  UNROLL for (int t = 0; t < BLOCK; t++) {
    V digit = LOW(ZERO, low[t], n0);
    q[t] = digit;
    low[t] = LOW(low[t], digit, ALL(m[0]));
    low[t + 1] = HIGH(low[t + 1], digit, ALL(m[0]));
    low[t + 1] = ADD(low[t + 1], _mm512_srli_epi64(low[t], LIMB_BITS));
    UNROLL for (int j = 1; j < BLOCK; j++) low[t + j] = LOW(low[t + j], digit, ALL(m[j]));
    UNROLL for (int j = 1; j < BLOCK; j++) low[t + j + 1] = HIGH(low[t + j + 1], digit, ALL(m[j]));
  }
}

/* Five finished limbs leave. */
INLINE void block_out(V *low, V *out) {
  UNROLL for (int t = 0; t < BLOCK; t++) {
    low[t + 1] = ADD(low[t + 1], _mm512_srli_epi64(low[t], LIMB_BITS));
    out[t] = _mm512_and_si512(low[t], ALL(MASK52));
  }
}

INLINE void block_shift(V *low) {
  UNROLL for (int t = 0; t < BLOCK; t++) {
    low[t] = low[t + BLOCK];
    low[t + BLOCK] = ZERO;
  }
}

/* The reduction's part of block column k, and what leaves: q while it is being chosen, later five limbs of out. */
INLINE void finish_column(columns *c, V *q, V *out, const uint64_t *m, V n0, int k, int blocks) {
  int first = k < blocks ? 0 : k - blocks + 1, end = k < blocks ? k : blocks;
  for (int i = first; i < end; i++) block_mul_shared(c, q + BLOCK * i, m + BLOCK * (k - i));
  gather(c);
  if (k < blocks) block_reduce(c->low, q + BLOCK * k, m, n0);
  else block_out(c->low, out + BLOCK * (k - blocks));
}

/* out = (a b + q m) / R, leaving q. out may be a or b: a block of it is written when that block has been used up. */
INLINE void mul_reduce(V *out, V *q, const V *a, const V *b, const uint64_t *m, V n0, int blocks) {
  columns c;
  clear_columns(&c);
  for (int k = 0; k < 2 * blocks - 1; k++) {
    int first = k < blocks ? 0 : k - blocks + 1, last = k < blocks ? k : blocks - 1;
    for (int i = first; i <= last; i++) block_mul(&c, a + BLOCK * i, b + BLOCK * (k - i));
    finish_column(&c, q, out, m, n0, k, blocks);
    block_shift(c.low);
  }
  block_out(c.low, out + BLOCK * (blocks - 1));
}

/* The same for a a; products of different blocks are computed once and doubled in the columns. */
INLINE void sqr_reduce(V *out, V *q, const V *a, const uint64_t *m, V n0, int blocks) {
  columns c;
  V carry[BLOCK + 1];
  UNROLL for (int t = 0; t < BLOCK + 1; t++) carry[t] = ZERO;
  for (int k = 0; k < 2 * blocks - 1; k++) {
    clear_columns(&c);
    for (int i = k < blocks ? 0 : k - blocks + 1; 2 * i < k; i++)
      block_mul(&c, a + BLOCK * i, a + BLOCK * (k - i));
    gather(&c);
    UNROLL for (int t = 0; t < COLUMNS; t++) c.low[t] = ADD(c.low[t], c.low[t]);
    UNROLL for (int t = 0; t < BLOCK; t++) c.low[t] = ADD(c.low[t], carry[t]);
    if (k % 2 == 0) block_mul(&c, a + BLOCK * (k / 2), a + BLOCK * (k / 2));
    finish_column(&c, q, out, m, n0, k, blocks);
    UNROLL for (int t = 0; t < BLOCK; t++) carry[t] = c.low[t + BLOCK];
  }
  block_out(carry, out + BLOCK * (blocks - 1));
}

/* out = (a0 b1 + a1 b0 - q + w m) / R; a1 NULL: a0 b1 alone. -q = (R - 1 - q) + minus_r modulo m. With all factors below
 * 2m (b1 below 4m where it stands alone) the sum is below 8 m^2 + R + m + R m, so out is below 2m for R >= 16m. out may
 * be a1 or b1. */
INLINE void second_half(V *out, V *w, const V *a0, const V *b1, const V *a1, const V *b0, const V *q,
                        const mont_ring *ring) {
  int blocks = (int)ring->limbs / BLOCK;
  columns c;
  V n0 = ALL(ring->n0);
  clear_columns(&c);
  for (int k = 0; k < 2 * blocks - 1; k++) {
    int first = k < blocks ? 0 : k - blocks + 1, last = k < blocks ? k : blocks - 1;
    if (k < blocks) UNROLL for (int t = 0; t < BLOCK; t++) {
        V minus_q = ADD(SUB(ALL(MASK52), q[BLOCK * k + t]), ALL(ring->minus_r[BLOCK * k + t]));
        c.low[t] = ADD(c.low[t], minus_q);
      }
    for (int i = first; i <= last; i++) block_mul(&c, a0 + BLOCK * i, b1 + BLOCK * (k - i));
    if (a1 != NULL)
      for (int i = first; i <= last; i++) block_mul(&c, a1 + BLOCK * i, b0 + BLOCK * (k - i));
    finish_column(&c, w, out, ring->m, n0, k, blocks);
    block_shift(c.low);
  }
  block_out(c.low, out + BLOCK * (blocks - 1));
}

/* out = a + b + carry (lane by lane) minus i * step * m for the largest i <= most (1 or 2) that leaves it non-negative; b
 * may be NULL. Returns i in every lane. The candidates are computed side by side. out may be a or b. */
INLINE V add_reduce(const mont_ring *ring, V *out, const V *a, const V *b, V carry, int step, int most,
                    V *work) {
  int limbs = (int)ring->limbs;
  V *once = work, *twice = work + limbs;
  V c0 = carry, c1 = carry, c2 = carry, mask = ALL(MASK52);
  for (int i = 0; i < limbs; i++) {
    V m = ALL(ring->m[i] * (uint64_t)step), s = b ? ADD(a[i], b[i]) : a[i];
    c0 = ADD(c0, s);
    out[i] = _mm512_and_si512(c0, mask);
    c0 = _mm512_srai_epi64(c0, LIMB_BITS);
    c1 = ADD(c1, SUB(s, m));
    once[i] = _mm512_and_si512(c1, mask);
    c1 = _mm512_srai_epi64(c1, LIMB_BITS);
    if (most < 2) continue;
    c2 = ADD(c2, SUB(s, ADD(m, m)));
    twice[i] = _mm512_and_si512(c2, mask);
    c2 = _mm512_srai_epi64(c2, LIMB_BITS);
  }
  __mmask8 fits1 = _mm512_cmpge_epi64_mask(c1, ZERO),
           fits2 = most < 2 ? 0 : _mm512_cmpge_epi64_mask(c2, ZERO);
  for (int i = 0; i < limbs; i++) {
    out[i] = _mm512_mask_mov_epi64(out[i], fits1, once[i]);
    if (most == 2) out[i] = _mm512_mask_mov_epi64(out[i], fits2, twice[i]);
  }
  return _mm512_mask_mov_epi64(_mm512_maskz_mov_epi64(fits1, ALL(1)), fits2, ALL(2));
}

/* Room for the limbs of a half and the zeros of write_half. */
static size_t padded_limbs(const mont_ring *ring) { return (size_t)ring->limbs + 17; }

/* ---- rows of 64-bit words and vectors of 52-bit limbs ---- */

/* Word j of row i <-> lane i of vector j: an 8 x 8 transpose, its own inverse. */
INLINE void transpose(V *x) {
  V a[8], b[8];
  UNROLL for (int i = 0; i < 8; i += 2) {
    a[i] = _mm512_unpacklo_epi64(x[i], x[i + 1]);
    a[i + 1] = _mm512_unpackhi_epi64(x[i], x[i + 1]);
  }
  UNROLL for (int i = 0; i < 8; i += 4) {
    b[i] = _mm512_shuffle_i64x2(a[i], a[i + 2], 0x88);
    b[i + 1] = _mm512_shuffle_i64x2(a[i + 1], a[i + 3], 0x88);
    b[i + 2] = _mm512_shuffle_i64x2(a[i], a[i + 2], 0xdd);
    b[i + 3] = _mm512_shuffle_i64x2(a[i + 1], a[i + 3], 0xdd);
  }
  UNROLL for (int i = 0; i < 4; i++) {
    x[i] = _mm512_shuffle_i64x2(b[i], b[i + 4], 0x88);
    x[i + 4] = _mm512_shuffle_i64x2(b[i], b[i + 4], 0xdd);
  }
}

/* Thirteen words are sixteen limbs; inside such a stretch every shift is known to the compiler. */
enum { STRETCH_WORDS = 13, STRETCH_LIMBS = 16 };
static size_t stretches(const mont_ring *ring) { return (ring->limbs + STRETCH_LIMBS - 1) / STRETCH_LIMBS; }

static void half_load_ifma(const mont_ring *ring, uint64_t *half, const uint64_t *const *rows,
                           uint64_t *work) {
  size_t n = ring->w.words, words_needed = stretches(ring) * STRETCH_WORDS + 1;
  V *words = (V *)work, *out = (V *)half;
  for (size_t j = 0; j < n; j += 8) {
    __mmask8 inside = n - j < 8 ? (__mmask8)((1u << (n - j)) - 1) : 0xff;
    UNROLL for (int i = 0; i < 8; i++) words[j + i] = _mm512_maskz_loadu_epi64(inside, rows[i] + j);
    transpose(words + j);
  }
  for (size_t j = (n + 7) / 8 * 8; j < words_needed; j++) words[j] = ZERO;
  for (size_t at = 0; at < ring->limbs; at += STRETCH_LIMBS, words += STRETCH_WORDS)
    UNROLL for (int i = 0; i < STRETCH_LIMBS; i++) {
      int j = i * LIMB_BITS / 64, shift = i * LIMB_BITS % 64;
      V limb = _mm512_srli_epi64(words[j], (unsigned)shift);
      if (shift + LIMB_BITS > 64)
        limb = _mm512_or_si512(limb, _mm512_slli_epi64(words[j + 1], (unsigned)(64 - shift)));
      if (at + (size_t)i < ring->limbs) out[at + (size_t)i] = _mm512_and_si512(limb, ALL(MASK52));
    }
}

/* Canonical limbs to rows. The limbs are followed by room for the zeros that fill the last stretch. */
static void write_half(const mont_ring *ring, uint64_t *const *rows, size_t offset, V *limbs, V *words) {
  size_t n = ring->w.words, needed = stretches(ring) * STRETCH_LIMBS + 1;
  for (size_t i = ring->limbs; i < needed; i++) limbs[i] = ZERO;
  V *word = words;
  for (size_t at = 0; at < ring->limbs; at += STRETCH_LIMBS, limbs += STRETCH_LIMBS, word += STRETCH_WORDS)
    UNROLL for (int j = 0; j < STRETCH_WORDS; j++) {
      int i = j * 64 / LIMB_BITS, shift = j * 64 % LIMB_BITS;
      word[j] = _mm512_or_si512(_mm512_srli_epi64(limbs[i], (unsigned)shift),
                                _mm512_slli_epi64(limbs[i + 1], (unsigned)(LIMB_BITS - shift)));
      if (2 * LIMB_BITS - shift < 64)
        word[j] =
            _mm512_or_si512(word[j], _mm512_slli_epi64(limbs[i + 2], (unsigned)(2 * LIMB_BITS - shift)));
    }
  for (size_t j = 0; j < n; j += 8) {
    __mmask8 inside = n - j < 8 ? (__mmask8)((1u << (n - j)) - 1) : 0xff;
    transpose(words + j);
    UNROLL for (int i = 0; i < 8; i++)
        _mm512_mask_storeu_epi64(rows[i] + offset + j, inside, words[j + (size_t)i]);
  }
}

#define KERNEL(name) name##_ifma
#include "mont_lanes.h"

static void sqr_ifma(const mont_ring *ring, uint64_t *out, const uint64_t *a, uint64_t *work) {
  size_t limbs = ring->limbs;
  V *q = (V *)work, *w = q + limbs, *first = w + limbs, *twice = first + limbs;
  const V *a0 = (const V *)a, *a1 = a0 + limbs;
  V *r = (V *)out, carry = ZERO;
  verify_half(ring, a0), verify_half(ring, a1);
  for (size_t i = 0; i < limbs; i++) { /* 2 x1 */
    V s = ADD(ADD(a1[i], a1[i]), carry);
    twice[i] = _mm512_and_si512(s, ALL(MASK52));
    carry = _mm512_srli_epi64(s, LIMB_BITS);
  }
  sqr_reduce(first, q, a0, ring->m, ALL(ring->n0), (int)limbs / BLOCK);
  second_half(r + limbs, w, a0, twice, NULL, NULL, q, ring);
  for (size_t i = 0; i < limbs; i++) r[i] = first[i];
  verify_half(ring, r), verify_half(ring, r + limbs);
}

/* ---- tables ---- */

static void select_ifma(const mont_ring *ring, uint64_t *out, const uint64_t *table, size_t count,
                        uint64_t digit) {
  enum { AT_ONCE = 10 };
  size_t size = 2 * (size_t)ring->limbs;
  V wanted = ALL(digit);
  for (size_t first = 0; first < size; first += AT_ONCE) { /* limbs are a multiple of five */
    V found[AT_ONCE];
    UNROLL for (int i = 0; i < AT_ONCE; i++) found[i] = ZERO;
    for (size_t entry = 0; entry < count; entry++) {
      const V *row = (const V *)table + entry * size + first;
      __mmask8 hit = _mm512_cmpeq_epi64_mask(wanted, ALL(entry));
      UNROLL for (int i = 0; i < AT_ONCE; i++) found[i] = _mm512_mask_mov_epi64(found[i], hit, row[i]);
    }
    UNROLL for (int i = 0; i < AT_ONCE; i++)((V *)out)[first + i] = found[i];
  }
}

static void pick_ifma_vartime(const mont_ring *ring, uint64_t *out, const uint64_t *table,
                              const uint32_t *digits) {
  size_t size = 2 * ring->half;
  uint64_t where[LANES];
  for (size_t l = 0; l < LANES; l++) where[l] = digits[l] * size + l;
  V index = _mm512_loadu_si512(where);
  for (size_t i = 0; i < 2 * (size_t)ring->limbs; i++)
    ((V *)out)[i] = _mm512_i64gather_epi64(index, table + i * LANES, 8);
}

/* Limb i of every entry lies together: row[i*entries + entry]. So a look-up is a permutation of registers, sixteen entries
 * a time, and reads the whole row whatever the digits are. */
static size_t row_words_ifma(const mont_ring *ring, size_t entries) { return entries * 2 * ring->limbs; }

static void row_put_ifma(const mont_ring *ring, uint64_t *row, size_t entries, size_t entry,
                         const uint64_t *packed) {
  size_t n = ring->w.words, limbs = ring->limbs;
  mont_to_limbs(row + entry, entries, limbs, LIMB_BITS, packed, n);
  mont_to_limbs(row + limbs * entries + entry, entries, limbs, LIMB_BITS, packed + n, n);
}

INLINE void row_get(V *out, const uint64_t *row, int limbs, V digit, int groups) {
  __mmask8 hit[16];
  V group = _mm512_srli_epi64(digit, 4);
  UNROLL for (int g = 0; g < groups; g++) hit[g] = _mm512_cmpeq_epi64_mask(group, ALL(g));
  for (int i = 0; i < limbs; i++, row += 16 * groups) {
    V found = ZERO;
    UNROLL for (int g = 0; g < groups; g++) {
      V low = _mm512_loadu_si512(row + 16 * g), high = _mm512_loadu_si512(row + 16 * g + 8);
      found = _mm512_mask_mov_epi64(found, hit[g], _mm512_permutex2var_epi64(low, digit, high));
    }
    out[i] = found;
  }
}

static void row_get_ifma(const mont_ring *ring, uint64_t *out, const uint64_t *row, size_t entries,
                         const uint32_t *digits) {
  V digit = _mm512_cvtepu32_epi64(_mm256_loadu_si256((const __m256i *)digits));
  int limbs = 2 * (int)ring->limbs;
  switch (entries) {
    case 16: row_get((V *)out, row, limbs, digit, 1); break;
    case 32: row_get((V *)out, row, limbs, digit, 2); break;
    case 64: row_get((V *)out, row, limbs, digit, 4); break;
    case 128: row_get((V *)out, row, limbs, digit, 8); break;
    default: VERIFY(entries == 256); row_get((V *)out, row, limbs, digit, 16);
  }
}

const mont_ops mont_ifma = {
    .name = "ifma",
    .lanes = LANES,
    .limb_bits = LIMB_BITS,
    .limb_block = BLOCK,
    .spare_bits = SPARE_BITS,
    .bound = 2,
    .row_vectors = 1,
    .scratch = scratch_ifma,
    .mul = mul_ifma,
    .sqr = sqr_ifma,
    .add = add_ifma,
    .half_mul = half_mul_ifma,
    .half_add = half_add_ifma,
    .half_load = half_load_ifma,
    .half_store = half_store_ifma,
    .load = load_ifma,
    .store = store_ifma,
    .select = select_ifma,
    .pick_vartime = pick_ifma_vartime,
    .row_words = row_words_ifma,
    .row_put = row_put_ifma,
    .row_get = row_get_ifma,
};

#else
typedef int mont_ifma_is_not_for_this_machine; /* an empty file is not C */
#endif
