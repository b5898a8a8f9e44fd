/* The AVX-512 instructions that mont_ifma.c uses, in plain C with GCC's vectors: slow, and for tests. With it the IFMA
 * kernels run on any CPU, under sanitizers and under valgrind, and give the bytes that they give on theirs. Every name is
 * Intel's; what each does stands in the Intel Intrinsics Guide. No function branches on the content of a vector. */
#ifndef EMULATED_AVX512_H
#define EMULATED_AVX512_H

#include <stdint.h>

typedef uint64_t __m512i __attribute__((vector_size(64), may_alias));
typedef int64_t emulated_signed __attribute__((vector_size(64)));
typedef uint64_t emulated_unaligned __attribute__((vector_size(64), aligned(8), may_alias));
typedef uint32_t __m256i __attribute__((vector_size(32), aligned(4), may_alias));
typedef uint8_t __mmask8;

#define EMULATED static inline __attribute__((always_inline))

/* ---- lanes alike ---- */

EMULATED __m512i _mm512_set1_epi64(long long x) { return (__m512i){0} + (uint64_t)x; }
EMULATED __m512i _mm512_setzero_si512(void) { return (__m512i){0}; }
EMULATED __m512i _mm512_add_epi64(__m512i a, __m512i b) { return a + b; }
EMULATED __m512i _mm512_sub_epi64(__m512i a, __m512i b) { return a - b; }
EMULATED __m512i _mm512_and_si512(__m512i a, __m512i b) { return a & b; }
EMULATED __m512i _mm512_or_si512(__m512i a, __m512i b) { return a | b; }

/* A shift by 64 and more gives zero (arithmetic: the sign), where C says nothing. */
EMULATED __m512i _mm512_srli_epi64(__m512i a, unsigned n) { return n < 64 ? a >> n : (__m512i){0}; }
EMULATED __m512i _mm512_slli_epi64(__m512i a, unsigned n) { return n < 64 ? a << n : (__m512i){0}; }
EMULATED __m512i _mm512_srai_epi64(__m512i a, unsigned n) {
  return (__m512i)((emulated_signed)a >> (n < 64 ? n : 63));
}

/* c + the lower or the upper 52 bits of the product of the lower 52 bits of a and b. */
EMULATED unsigned __int128 emulated_product(uint64_t a, uint64_t b) {
  const uint64_t mask = ((uint64_t)1 << 52) - 1;
  return (unsigned __int128)(a & mask) * (b & mask);
}

EMULATED __m512i _mm512_madd52lo_epu64(__m512i c, __m512i a, __m512i b) {
  for (int l = 0; l < 8; l++) c[l] += (uint64_t)emulated_product(a[l], b[l]) & (((uint64_t)1 << 52) - 1);
  return c;
}

EMULATED __m512i _mm512_madd52hi_epu64(__m512i c, __m512i a, __m512i b) {
  for (int l = 0; l < 8; l++) c[l] += (uint64_t)(emulated_product(a[l], b[l]) >> 52);
  return c;
}

/* ---- lanes by a mask, of which bit l belongs to lane l ---- */

EMULATED __mmask8 emulated_mask(__m512i full) {
  unsigned mask = 0;
  for (int l = 0; l < 8; l++) mask |= (unsigned)(full[l] & 1) << l;
  return (__mmask8)mask;
}

EMULATED __m512i emulated_full(__mmask8 mask) {
  __m512i full = {0};
  for (int l = 0; l < 8; l++) full[l] = -(uint64_t)(mask >> l & 1);
  return full;
}

EMULATED __mmask8 _mm512_cmpge_epi64_mask(__m512i a, __m512i b) {
  return emulated_mask((__m512i)((emulated_signed)a >= (emulated_signed)b));
}
EMULATED __mmask8 _mm512_cmpeq_epi64_mask(__m512i a, __m512i b) { return emulated_mask((__m512i)(a == b)); }

EMULATED __m512i _mm512_mask_mov_epi64(__m512i otherwise, __mmask8 mask, __m512i a) {
  __m512i full = emulated_full(mask);
  return (a & full) | (otherwise & ~full);
}
EMULATED __m512i _mm512_maskz_mov_epi64(__mmask8 mask, __m512i a) { return a & emulated_full(mask); }

/* ---- memory; what a mask leaves out is not touched ---- */

EMULATED __m512i _mm512_loadu_si512(const void *from) { return (__m512i) * (const emulated_unaligned *)from; }
EMULATED __m256i _mm256_loadu_si256(const __m256i *from) { return *from; }

EMULATED __m512i _mm512_maskz_loadu_epi64(__mmask8 mask, const void *from) {
  __m512i a = {0};
  for (int l = 0; l < 8; l++)
    if (mask >> l & 1) a[l] = ((const uint64_t *)from)[l];
  return a;
}

EMULATED void _mm512_mask_storeu_epi64(void *to, __mmask8 mask, __m512i a) {
  for (int l = 0; l < 8; l++)
    if (mask >> l & 1) ((uint64_t *)to)[l] = a[l];
}

EMULATED __m512i _mm512_i64gather_epi64(__m512i index, const void *base, int scale) {
  __m512i a = {0};
  for (int l = 0; l < 8; l++) a[l] = *(const uint64_t *)((const char *)base + (int64_t)index[l] * scale);
  return a;
}

/* ---- lanes in another order ---- */

EMULATED __m512i _mm512_cvtepu32_epi64(__m256i a) {
  __m512i wide = {0};
  for (int l = 0; l < 8; l++) wide[l] = a[l];
  return wide;
}
EMULATED __m512i _mm512_unpacklo_epi64(__m512i a, __m512i b) {
  return (__m512i){a[0], b[0], a[2], b[2], a[4], b[4], a[6], b[6]};
}
EMULATED __m512i _mm512_unpackhi_epi64(__m512i a, __m512i b) {
  return (__m512i){a[1], b[1], a[3], b[3], a[5], b[5], a[7], b[7]};
}

/* Quarters: two of a, then two of b, two bits of `which` each. */
EMULATED __m512i _mm512_shuffle_i64x2(__m512i a, __m512i b, int which) {
  __m512i out = {0};
  for (int quarter = 0; quarter < 4; quarter++) {
    int from = which >> (2 * quarter) & 3;
    for (int l = 0; l < 2; l++) out[2 * quarter + l] = quarter < 2 ? a[2 * from + l] : b[2 * from + l];
  }
  return out;
}

/* Lane l is lane index[l] % 8 of a, or of b where bit 3 of the index is set; both are read whole. */
EMULATED __m512i _mm512_permutex2var_epi64(__m512i a, __m512i index, __m512i b) {
  __m512i out = {0};
  for (unsigned from = 0; from < 16; from++)
    out |= (__m512i)((index & 15) == from) & (from < 8 ? a[from] : b[from - 8]);
  return out;
}

#undef EMULATED
#endif
