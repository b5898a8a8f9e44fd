/* The same functions four numbers at a time: AVX2, radix 2^29, lane l of every vector register belongs to number l. A limb
 * has 64 bits to itself; products of two limbs are summed there sixty at a time before carries move on. Halves are
 * lazily reduced (below 2m, R >= 16m); load takes canonical rows, store gives them back. See mont.h for the contracts. Only
 * this file is compiled with AVX2 flags; on other machines it is empty. */
#include "mont.h"

#ifdef VFL_HAVE_AVX2

#include <immintrin.h>
#include <string.h>

typedef __m256i V;

enum { BLOCK = 4, COLUMNS = 2 * BLOCK, LIMB_BITS = 29, LANES = 4, SPARE_BITS = 4, MOST_BLOCKS = 15 };

#define INLINE         static inline __attribute__((always_inline))
#define UNROLL         _Pragma("GCC unroll 16")
#define UNROLL64       _Pragma("GCC unroll 64")
#define MUL(a, b)      _mm256_mul_epu32(a, b)
#define ADD(a, b)      _mm256_add_epi64(a, b)
#define SUB(a, b)      _mm256_sub_epi64(a, b)
#define AND(a, b)      _mm256_and_si256(a, b)
#define OR(a, b)       _mm256_or_si256(a, b)
#define RIGHT(a, bits) _mm256_srli_epi64(a, (int)(bits)) /* zero from 64 bits on, and so is LEFT */
#define LEFT(a, bits)  _mm256_slli_epi64(a, (int)(bits))
#define ALL(x)         _mm256_set1_epi64x((long long)(x))
#define ZERO           _mm256_setzero_si256()
#define MASK29         (((uint64_t)1 << LIMB_BITS) - 1)

/* Eight columns of limb products in registers. A block adds at most four products below 2^58 to a column, so that after
 * `blocks` of them every column is below (blocks + 1) 2^60; the last one takes carries alone. */
typedef struct {
  V at[COLUMNS];
  int blocks;
} columns;

INLINE void clear_columns(columns *c) {
  UNROLL for (int t = 0; t < COLUMNS; t++) c->at[t] = ZERO;
  c->blocks = 0;
}

/* All but 29 bits of every column go to the next. */
static inline void carry_on(columns *c) {
  V carry[COLUMNS - 1];
  UNROLL for (int t = 0; t < COLUMNS - 1; t++) {
    carry[t] = RIGHT(c->at[t], LIMB_BITS);
    c->at[t] = AND(c->at[t], ALL(MASK29));
  }
  UNROLL for (int t = 0; t < COLUMNS - 1; t++) c->at[t + 1] = ADD(c->at[t + 1], carry[t]);
  c->blocks = 0;
}

/* Takes room for up to `count` blocks that weigh as many as `weight` do, and says for how many. */
INLINE int make_room(columns *c, int count, int weight) {
  if (c->blocks + weight > MOST_BLOCKS) carry_on(c);
  int room = (MOST_BLOCKS - c->blocks) / weight;
  if (count > room) count = room;
  c->blocks += count * weight;
  return count;
}

/* c += a[0..3] b[0..3] + a[4..7] b[-4..-1] + ..., `count` such blocks. weight : 2 where limbs of a have 30 bits. */
INLINE void blocks_mul(columns *c, const V *a, const V *b, int count, int weight) {
  for (int done = 0, end; done < count; done = end) {
    end = done + make_room(c, count - done, weight);
    for (int k = done; k < end; k++) {
      V x[BLOCK];
      UNROLL for (int i = 0; i < BLOCK; i++) x[i] = a[BLOCK * k + i];
      UNROLL for (int j = 0; j < BLOCK; j++) {
        V y = b[j - BLOCK * k];
        UNROLL for (int i = 0; i < BLOCK; i++) c->at[i + j] = ADD(c->at[i + j], MUL(x[i], y));
      }
    }
  }
}

/* The same with limbs that all lanes share. */
INLINE void blocks_mul_shared(columns *c, const V *a, const uint64_t *m, int count) {
  for (int done = 0, end; done < count; done = end) {
    end = done + make_room(c, count - done, 1);
    for (int k = done; k < end; k++) {
      V x[BLOCK];
      UNROLL for (int i = 0; i < BLOCK; i++) x[i] = a[BLOCK * k + i];
      UNROLL for (int j = 0; j < BLOCK; j++) {
        V y = ALL(m[j - BLOCK * k]);
        UNROLL for (int i = 0; i < BLOCK; i++) c->at[i + j] = ADD(c->at[i + j], MUL(x[i], y));
      }
    }
  }
}

/* The block on the diagonal of a reduction: q[0..3] such that the columns + q m begin with four zero limbs. */
INLINE void block_reduce(columns *c, V *q, const uint64_t *m, V n0) {
  make_room(c, 1, 1);
  UNROLL for (int t = 0; t < BLOCK; t++) {
    V digit = AND(MUL(c->at[t], n0), ALL(MASK29));
    q[t] = digit;
    UNROLL for (int j = 0; j < BLOCK; j++) c->at[t + j] = ADD(c->at[t + j], MUL(digit, ALL(m[j])));
    c->at[t + 1] = ADD(c->at[t + 1], RIGHT(c->at[t], LIMB_BITS));
  }
}

/* Four finished limbs leave. */
INLINE void block_out(columns *c, V *out) {
  UNROLL for (int t = 0; t < BLOCK; t++) {
    c->at[t + 1] = ADD(c->at[t + 1], RIGHT(c->at[t], LIMB_BITS));
    out[t] = AND(c->at[t], ALL(MASK29));
  }
}

/* The reduction's part of block column k, and what leaves: q while it is being chosen, later four limbs of out. */
INLINE void finish_column(columns *c, V *q, V *out, const uint64_t *m, V n0, int k, int blocks) {
  int first = k < blocks ? 0 : k - blocks + 1, end = k < blocks ? k : blocks;
  blocks_mul_shared(c, q + BLOCK * first, m + BLOCK * (k - first), end - first);
  if (k < blocks) block_reduce(c, q + BLOCK * k, m, n0);
  else block_out(c, out + BLOCK * (k - blocks));
  UNROLL for (int t = 0; t < BLOCK; t++) {
    c->at[t] = c->at[t + BLOCK];
    c->at[t + BLOCK] = ZERO;
  }
}

/* out = (a b + q m) / R, leaving q. out may be a or b: a block of it is written when that block has been used up. */
INLINE void mul_reduce(V *out, V *q, const V *a, const V *b, const uint64_t *m, V n0, int blocks) {
  columns c;
  clear_columns(&c);
  for (int k = 0; k < 2 * blocks - 1; k++) {
    int first = k < blocks ? 0 : k - blocks + 1, end = k < blocks ? k + 1 : blocks;
    blocks_mul(&c, a + BLOCK * first, b + BLOCK * (k - first), end - first, 1);
    finish_column(&c, q, out, m, n0, k, blocks);
  }
  block_out(&c, out + BLOCK * (blocks - 1));
}

/* The same for a a; products of different blocks are computed once, with limbs of 2 a. */
INLINE void sqr_reduce(V *out, V *q, const V *a, const V *twice, const uint64_t *m, V n0, int blocks) {
  columns c;
  clear_columns(&c);
  for (int k = 0; k < 2 * blocks - 1; k++) {
    int first = k < blocks ? 0 : k - blocks + 1, middle = (k + 1) / 2;
    blocks_mul(&c, twice + BLOCK * first, a + BLOCK * (k - first), middle - first, 2);
    if (k % 2 == 0) blocks_mul(&c, a + BLOCK * middle, a + BLOCK * middle, 1, 1);
    finish_column(&c, q, out, m, n0, k, blocks);
  }
  block_out(&c, out + BLOCK * (blocks - 1));
}

/* out = (a0 b1 + a1 b0 - q + w m) / R; a1 NULL: a0 b1 alone, where limbs of a0 have 30 bits. -q = (R - 1 - q) + minus_r
 * modulo m. The sum is below 8 m^2 + R + m + R m, so out is below 2m for R >= 16m. out may be a1 or b1. */
INLINE void second_half(V *out, V *w, const V *a0, const V *b1, const V *a1, const V *b0, const V *q,
                        const mont_ring *ring) {
  int blocks = (int)ring->limbs / BLOCK;
  columns c;
  V n0 = ALL(ring->n0);
  clear_columns(&c);
  for (int k = 0; k < 2 * blocks - 1; k++) {
    int first = k < blocks ? 0 : k - blocks + 1, count = (k < blocks ? k + 1 : blocks) - first;
    if (k < blocks) UNROLL for (int t = 0; t < BLOCK; t++) {
        V minus_q = ADD(SUB(ALL(MASK29), q[BLOCK * k + t]), ALL(ring->minus_r[BLOCK * k + t]));
        c.at[t] = ADD(c.at[t], minus_q);
      }
    blocks_mul(&c, a0 + BLOCK * first, b1 + BLOCK * (k - first), count, a1 == NULL ? 2 : 1);
    if (a1 != NULL) blocks_mul(&c, a1 + BLOCK * first, b0 + BLOCK * (k - first), count, 1);
    finish_column(&c, w, out, ring->m, n0, k, blocks);
  }
  block_out(&c, out + BLOCK * (blocks - 1));
}

/* a >> 29 with the sign, for |a| < 2^40. */
INLINE V carry_of(V a) {
  const uint64_t bias = (uint64_t)1 << 40;
  return SUB(RIGHT(ADD(a, ALL(bias)), LIMB_BITS), ALL(bias >> LIMB_BITS));
}

/* out = a + b + carry (lane by lane) minus i * step * m for the largest i <= most (1 or 2) that leaves it non-negative; b
 * may be NULL. Returns i in every lane. The candidates are computed side by side. out may be a or b. */
INLINE V add_reduce(const mont_ring *ring, V *out, const V *a, const V *b, V carry, int step, int most,
                    V *work) {
  int limbs = (int)ring->limbs;
  V *once = work, *twice = work + limbs;
  V c0 = carry, c1 = carry, c2 = carry, mask = ALL(MASK29);
  for (int i = 0; i < limbs; i++) {
    V m = ALL(ring->m[i] * (uint64_t)step), s = b ? ADD(a[i], b[i]) : a[i];
    c0 = ADD(c0, s);
    out[i] = AND(c0, mask);
    c0 = carry_of(c0);
    c1 = ADD(c1, SUB(s, m));
    once[i] = AND(c1, mask);
    c1 = carry_of(c1);
    if (most < 2) continue;
    c2 = ADD(c2, SUB(s, ADD(m, m)));
    twice[i] = AND(c2, mask);
    c2 = carry_of(c2);
  }
  V less1 = _mm256_cmpgt_epi64(ZERO, c1), less2 = most < 2 ? ALL(-1) : _mm256_cmpgt_epi64(ZERO, c2);
  for (int i = 0; i < limbs; i++) {
    out[i] = _mm256_blendv_epi8(once[i], out[i], less1);
    if (most == 2) out[i] = _mm256_blendv_epi8(twice[i], out[i], less2);
  }
  return _mm256_blendv_epi8(ALL(2), _mm256_andnot_si256(less1, ALL(1)), less2);
}

/* Room for the limbs of a half, or for its words before and behind a transposition; and zeros that are read beyond. */
static size_t padded_limbs(const mont_ring *ring) { return (size_t)ring->limbs + 8; }

/* ---- rows of 64-bit words and vectors of 29-bit limbs ---- */

/* Word j of row i <-> lane i of vector j: a 4 x 4 transpose, its own inverse. */
INLINE void transpose(V *x) {
  V a = _mm256_unpacklo_epi64(x[0], x[1]), b = _mm256_unpackhi_epi64(x[0], x[1]);
  V c = _mm256_unpacklo_epi64(x[2], x[3]), d = _mm256_unpackhi_epi64(x[2], x[3]);
  x[0] = _mm256_permute2x128_si256(a, c, 0x20);
  x[1] = _mm256_permute2x128_si256(b, d, 0x20);
  x[2] = _mm256_permute2x128_si256(a, c, 0x31);
  x[3] = _mm256_permute2x128_si256(b, d, 0x31);
}

/* All ones in the first min(count, 4) lanes. */
INLINE V first_lanes(size_t count) { return _mm256_cmpgt_epi64(ALL(count), _mm256_set_epi64x(3, 2, 1, 0)); }

/* Twenty-nine words are sixty-four limbs; inside such a stretch every shift is known to the compiler. */
enum { STRETCH_WORDS = LIMB_BITS, STRETCH_LIMBS = 64 };

static void half_load_avx2(const mont_ring *ring, uint64_t *half, const uint64_t *const *rows,
                           uint64_t *work) {
  size_t n = ring->w.words, limbs = ring->limbs, read = limbs * LIMB_BITS / 64 + 2;
  V *words = (V *)work, *out = (V *)half;
  for (size_t j = 0; j < n; j += 4) {
    V inside = first_lanes(n - j);
    for (size_t i = 0; i < 4; i++)
      words[j + i] = _mm256_maskload_epi64((const long long *)(rows[i] + j), inside);
    transpose(words + j);
  }
  for (size_t j = (n + 3) / 4 * 4; j < read; j++) words[j] = ZERO;
  for (size_t at = 0; at < limbs; at += STRETCH_LIMBS, words += STRETCH_WORDS)
    UNROLL64 for (int i = 0; i < STRETCH_LIMBS; i++) {
      if (i % BLOCK == 0 && at + (size_t)i >= limbs) return;
      int j = i * LIMB_BITS / 64, shift = i * LIMB_BITS % 64;
      V limb = RIGHT(words[j], shift);
      if (shift + LIMB_BITS > 64) limb = OR(limb, LEFT(words[j + 1], 64 - shift));
      out[at + (size_t)i] = AND(limb, ALL(MASK29));
    }
}

/* Canonical limbs to rows. The limbs are followed by room for zeros. */
static void write_half(const mont_ring *ring, uint64_t *const *rows, size_t offset, V *limbs, V *words) {
  size_t n = ring->w.words;
  for (size_t i = ring->limbs; i < padded_limbs(ring); i++) limbs[i] = ZERO;
  V *word = words;
  for (size_t at = 0; at < n; at += STRETCH_WORDS, limbs += STRETCH_LIMBS, word += STRETCH_WORDS)
    UNROLL64 for (int j = 0; j < STRETCH_WORDS; j++) {
      if (at + (size_t)j >= n) break;
      int i = j * 64 / LIMB_BITS, shift = j * 64 % LIMB_BITS;
      word[j] = OR(OR(RIGHT(limbs[i], shift), LEFT(limbs[i + 1], LIMB_BITS - shift)),
                   LEFT(limbs[i + 2], 2 * LIMB_BITS - shift));
      if (3 * LIMB_BITS - shift < 64) word[j] = OR(word[j], LEFT(limbs[i + 3], 3 * LIMB_BITS - shift));
    }
  for (size_t j = 0; j < n; j += 4) {
    V inside = first_lanes(n - j);
    transpose(words + j);
    for (size_t i = 0; i < 4; i++)
      _mm256_maskstore_epi64((long long *)(rows[i] + offset + j), inside, words[j + i]);
  }
}

#define KERNEL(name) name##_avx2
#include "mont_lanes.h"

static void sqr_avx2(const mont_ring *ring, uint64_t *out, const uint64_t *a, uint64_t *work) {
  size_t limbs = ring->limbs;
  V *q = (V *)work, *w = q + limbs, *first = w + limbs, *twice = first + limbs;
  const V *a0 = (const V *)a, *a1 = a0 + limbs;
  V *r = (V *)out;
  verify_half(ring, a0), verify_half(ring, a1);
  for (size_t i = 0; i < limbs; i++) twice[i] = ADD(a0[i], a0[i]);
  sqr_reduce(first, q, a0, twice, ring->m, ALL(ring->n0), (int)limbs / BLOCK);
  second_half(r + limbs, w, twice, a1, NULL, NULL, q, ring);
  for (size_t i = 0; i < limbs; i++) r[i] = first[i];
  verify_half(ring, r), verify_half(ring, r + limbs);
}

/* ---- tables ---- */

static void select_avx2(const mont_ring *ring, uint64_t *out, const uint64_t *table, size_t count,
                        uint64_t digit) {
  enum { AT_ONCE = 8 };
  size_t size = 2 * (size_t)ring->limbs;
  V wanted = ALL(digit);
  for (size_t first = 0; first < size; first += AT_ONCE) { /* limbs are a multiple of four */
    V found[AT_ONCE];
    UNROLL for (int i = 0; i < AT_ONCE; i++) found[i] = ZERO;
    for (size_t entry = 0; entry < count; entry++) {
      const V *row = (const V *)table + entry * size + first;
      V hit = _mm256_cmpeq_epi64(wanted, ALL(entry));
      UNROLL for (int i = 0; i < AT_ONCE; i++) found[i] = OR(found[i], AND(row[i], hit));
    }
    UNROLL for (int i = 0; i < AT_ONCE; i++)((V *)out)[first + i] = found[i];
  }
}

static void pick_avx2_vartime(const mont_ring *ring, uint64_t *out, const uint64_t *table,
                              const uint32_t *digits) {
  size_t size = 2 * ring->half;
  for (size_t l = 0; l < LANES; l++)
    for (size_t i = l; i < size; i += LANES) out[i] = table[digits[l] * size + i];
}

/* Limb i of every entry lies together, in 32 bits: row[i*entries + entry]. So a look-up is a permutation of registers, eight
 * entries a time, and reads the whole row whatever the digits are. */
static size_t row_words_avx2(const mont_ring *ring, size_t entries) { return entries * ring->limbs; }

static void row_put_avx2(const mont_ring *ring, uint64_t *row, size_t entries, size_t entry,
                         const uint64_t *packed) {
  enum { MOST_LIMBS = (MONT_MAX_BITS + SPARE_BITS) / LIMB_BITS + BLOCK };
  uint64_t half[MOST_LIMBS];
  uint32_t *out = (uint32_t *)row + entry;
  for (int part = 0; part < 2; part++, packed += ring->w.words) {
    mont_to_limbs(half, 1, ring->limbs, LIMB_BITS, packed, ring->w.words);
    for (size_t i = 0; i < ring->limbs; i++, out += entries) *out = (uint32_t)half[i];
  }
  mont_clear(half, sizeof half);
}

/* Two vectors: the digits and limbs of the second stand in the upper halves of its lanes. */
INLINE void row_get(V *out, const uint32_t *row, int limbs, V digit, int groups) {
  V hit[32], place = AND(digit, _mm256_set1_epi32(7)), group = _mm256_srli_epi32(digit, 3);
  UNROLL for (int g = 0; g < groups; g++) hit[g] = _mm256_cmpeq_epi32(group, _mm256_set1_epi32(g));
  for (int i = 0; i < limbs; i++) {
    V found = ZERO;
    UNROLL for (int g = 0; g < groups; g++, row += 8) {
      V entries = _mm256_loadu_si256((const V *)row);
      found = OR(found, AND(_mm256_permutevar8x32_epi32(entries, place), hit[g]));
    }
    out[i] = AND(found, ALL(UINT32_MAX));
    out[limbs + i] = RIGHT(found, 32);
  }
}

static void row_get_avx2(const mont_ring *ring, uint64_t *out, const uint64_t *row, size_t entries,
                         const uint32_t *digits) {
  V first = _mm256_cvtepu32_epi64(_mm_loadu_si128((const __m128i *)digits));
  V second = _mm256_cvtepu32_epi64(_mm_loadu_si128((const __m128i *)(digits + LANES)));
  V digit = OR(first, LEFT(second, 32));
  const uint32_t *limb = (const uint32_t *)row;
  int limbs = 2 * (int)ring->limbs;
  switch (entries) {
    case 16: row_get((V *)out, limb, limbs, digit, 2); break;
    case 32: row_get((V *)out, limb, limbs, digit, 4); break;
    case 64: row_get((V *)out, limb, limbs, digit, 8); break;
    case 128: row_get((V *)out, limb, limbs, digit, 16); break;
    default: VERIFY(entries == 256); row_get((V *)out, limb, limbs, digit, 32);
  }
}

const mont_ops mont_avx2 = {
    .name = "avx2",
    .lanes = LANES,
    .limb_bits = LIMB_BITS,
    .limb_block = BLOCK,
    .spare_bits = SPARE_BITS,
    .bound = 2,
    .row_vectors = 2,
    .scratch = scratch_avx2,
    .mul = mul_avx2,
    .sqr = sqr_avx2,
    .add = add_avx2,
    .half_mul = half_mul_avx2,
    .half_add = half_add_avx2,
    .half_load = half_load_avx2,
    .half_store = half_store_avx2,
    .load = load_avx2,
    .store = store_avx2,
    .select = select_avx2,
    .pick_vartime = pick_avx2_vartime,
    .row_words = row_words_avx2,
    .row_put = row_put_avx2,
    .row_get = row_get_avx2,
};

#else
typedef int mont_avx2_is_not_for_this_machine; /* an empty file is not C */
#endif
