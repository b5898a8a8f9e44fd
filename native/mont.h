/* Arithmetic modulo m^2 on pairs: types, bounds, and the contract of every kernel.
 *
 * A residue x modulo m^2 (m odd, m >= 3) is kept as the pair (x0, x1) with x = x0 + m x1, in Montgomery form: the pair
 * stands for x R mod m^2, where R is a power of two that belongs to the backend. One product modulo m^2 is then five
 * half-size products instead of eight:
 *
 *     u = x0 y0,  q = -u/m mod R,  t = (u + q m)/R
 *     (x0 + m x1)(y0 + m y1)/R  =  t + m REDC(x0 y1 + x1 y0 - q)     (mod m^2)
 *
 * because u/R = t - (q/R) m. README.md derives it again in Python.
 *
 * Three shapes of the same number
 *   plain    the integer, little-endian 64-bit words
 *   packed   a row of 2*words 64-bit words: x0, then x1, both canonical (below m); what Python stores
 *   vector   what a backend computes on: `lanes` numbers at once, limb i of lane l at [i*lanes + l], first every limb of
 *            x0, then every limb of x1. Halves may be lazily reduced: below `bound` times m.
 *
 * Kernels own nothing: no malloc, no threads, no randomness, no Python. Work space comes from the caller, 64-byte
 * aligned, and the caller clears it. Unless a name ends in _vartime, no branch and no address depends on a value or
 * on the modulus; sizes are public. */
#ifndef VFL_MONT_H
#define VFL_MONT_H

#include <stddef.h>
#include <stdint.h>

enum {
  MONT_MAX_BITS = 8192, /* of m */
  MONT_MAX_LANES = 8,
  MONT_MIN_WINDOW = 4, /* of a fixed-base table: the IFMA look-up takes sixteen entries a time */
  MONT_MAX_WINDOW = 8,
  MONT_TABLE_GROUPS = 8, /* vectors that share one pass over a table row */
};

#ifdef VFL_VERIFY
#include <stdio.h>
#include <stdlib.h>
#define VERIFY(condition)                                                                  \
  do {                                                                                     \
    if (!(condition)) {                                                                    \
      fprintf(stderr, "%s:%d: bound does not hold: %s\n", __FILE__, __LINE__, #condition); \
      abort();                                                                             \
    }                                                                                      \
  } while (0)
#else
#define VERIFY(condition) ((void)0)
#endif

/* The modulus in 64-bit words, for what is done one number at a time (R64 = 2^(64 words)). */
typedef struct {
  uint32_t words;
  uint64_t n0;        /* -1/m mod 2^64 */
  const uint64_t *m;  /* words */
  const uint64_t *rr; /* R64^2 mod m */
} mont_words;

typedef struct mont_ops mont_ops;

/* Everything a kernel needs to know about one modulus on one backend; constant once mont_ring_init returned. */
typedef struct {
  const mont_ops *ops;
  mont_words w;
  uint32_t bits;           /* of m */
  uint32_t limbs;          /* of one half in the backend's radix; R = 2^(limb_bits * limbs) */
  size_t half;             /* uint64 in one half of a vector: limbs * lanes */
  uint64_t n0;             /* -1/m modulo the backend's radix */
  const uint64_t *m;       /* limbs of m */
  const uint64_t *minus_r; /* limbs of (-R mod m) + 1: turns R - 1 - q, which has no negative limb, into -q */
  const uint64_t *one;     /* packed: R mod m^2 */
  const uint64_t *rr;      /* packed: R^2 mod m^2; its first half is R^2 mod m */
  const uint64_t *rr_high; /* packed: 2^bits R^2 mod m^2 */
  const uint64_t *unit;    /* packed: the pair (1, 0), which takes a product out of Montgomery form */
  const uint64_t *square;  /* plain: m^2, 2*words words */
} mont_ring;

/* One backend: a row of the table in dispatch.c. In all of them `work` is scratch(ring) words and `out` may be an input. */
struct mont_ops {
  const char *name;
  unsigned lanes, limb_bits, limb_block; /* limb_block: limbs are a multiple of it */
  unsigned spare_bits;                   /* R >= 2^spare_bits m */
  unsigned bound;                        /* halves of a vector stay below bound * m */
  unsigned
      row_vectors; /* that row_get reads out at once: 1, or 2 if these are MONT_MAX_LANES lanes at most */

  size_t (*scratch)(const mont_ring *ring);

  /* out = a b / R mod m^2.   In, out: halves below bound m. Where a's second half is zero and b is canonical, its first
   * one may be any number below 2^bits. */
  void (*mul)(const mont_ring *ring, uint64_t *out, const uint64_t *a, const uint64_t *b, uint64_t *work);
  /* out = a a / R mod m^2.   Same bounds. */
  void (*sqr)(const mont_ring *ring, uint64_t *out, const uint64_t *a, uint64_t *work);
  /* out = a + b mod m^2.     Same bounds. */
  void (*add)(const mont_ring *ring, uint64_t *out, const uint64_t *a, const uint64_t *b, uint64_t *work);
  /* out = a b / R mod m and out = a + b mod m, on single halves.   Same bounds; of a product, a may be any number
   * below R/2 (a plain message) if b is below m. */
  void (*half_mul)(const mont_ring *ring, uint64_t *out, const uint64_t *a, const uint64_t *b,
                   uint64_t *work);
  void (*half_add)(const mont_ring *ring, uint64_t *out, const uint64_t *a, const uint64_t *b,
                   uint64_t *work);

  /* Packed words to one half of a vector and back; lane l is rows[l], `words` words long. half_store gives the
   * canonical value. */
  void (*half_load)(const mont_ring *ring, uint64_t *half, const uint64_t *const *rows, uint64_t *work);
  void (*half_store)(const mont_ring *ring, uint64_t *const *rows, const uint64_t *half, uint64_t *work);
  /* Whole pairs. store gives the canonical pair: 0 <= x0, x1 < m. */
  void (*load)(const mont_ring *ring, uint64_t *vector, const uint64_t *const *rows, uint64_t *work);
  void (*store)(const mont_ring *ring, uint64_t *const *rows, const uint64_t *vector, uint64_t *work);

  /* out = table[digit], the same digit in every lane; every one of the `count` vectors is read under a mask. */
  void (*select)(const mont_ring *ring, uint64_t *out, const uint64_t *table, size_t count, uint64_t digit);
  /* out lane l = table[digits[l]] lane l, by address. */
  void (*pick_vartime)(const mont_ring *ring, uint64_t *out, const uint64_t *table, const uint32_t *digits);

  /* A row of a fixed-base table: `entries` numbers (a power of two, at least 16) in the backend's own layout.
   * row_put writes a packed number; row_get reads out lane l of vector v = entry digits[v*lanes + l], touching every
   * entry. */
  size_t (*row_words)(const mont_ring *ring, size_t entries);
  void (*row_put)(const mont_ring *ring, uint64_t *row, size_t entries, size_t entry, const uint64_t *packed);
  void (*row_get)(const mont_ring *ring, uint64_t *out, const uint64_t *row, size_t entries,
                  const uint32_t *digits);
};

/* All ones for 1, zero for 0. The compiler cannot see that there are no others, so it cannot make a branch, or a choice of
 * address, of what is done under the mask. */
static inline uint64_t mont_mask(uint64_t bit) {
  uint64_t mask = 0 - bit;
  __asm__("" : "+r"(mask));
  return mask;
}

/* ---- mont_portable.c, mont_avx2.c and mont_ifma.c ---- */

extern const mont_ops mont_portable;
/* Rows with mulx, adcx and adox. Not under VFL_VERIFY: the sanitizers do not see into assembly. */
#if defined __x86_64__ && !defined VFL_VERIFY
#define VFL_HAVE_ADX
extern const mont_ops mont_portable_adx; /* also called "portable": it gives the same bytes */
#endif
/* Set by CMakeLists.txt where the compiler can build them. */
#ifdef VFL_HAVE_AVX2
extern const mont_ops mont_avx2;
#endif
#ifdef VFL_HAVE_IFMA
extern const mont_ops mont_ifma;
#endif

/* One number at a time, 64-bit words, in constant time. */

/* out = a b / R64 mod m, canonical.   a below R64, b below m.   out may be a or b. */
void mont_words_mul(const mont_words *w, uint64_t *out, const uint64_t *a, const uint64_t *b);
/* out = x / R64 mod m, canonical.     x has 2*words words and is below m R64. */
void mont_words_redc(const mont_words *w, uint64_t *out, const uint64_t *x);
/* x = quotient m + remainder, for x of 2*words words below m R64 (so quotient has `words` words). Nothing overlaps. */
void mont_words_divide(const mont_words *w, uint64_t *quotient, uint64_t *remainder, const uint64_t *x);
/* out = a + b mod m and out = -a mod m; canonical in and out. */
void mont_words_add(const mont_words *w, uint64_t *out, const uint64_t *a, const uint64_t *b);
void mont_words_negate(const mont_words *w, uint64_t *out, const uint64_t *a);
/* out = a b + c, out of na + nb words; c of nc <= na + nb words; the sum must fit. out is none of the inputs. */
void mont_words_mul_add(uint64_t *out, const uint64_t *a, size_t na, const uint64_t *b, size_t nb,
                        const uint64_t *c, size_t nc);
/* If top * 2^(64 n) + x >= m: subtract m. Returns how many times it was subtracted (0 or 1) and updates *top. */
uint64_t mont_words_cond_sub(uint64_t *x, uint64_t *top, const uint64_t *m, size_t n);
/* 1 if a < b, else 0. */
uint64_t mont_words_less(const uint64_t *a, const uint64_t *b, size_t n);

/* ---- dispatch.c ---- */

/* The backends best first; NULL past the end. */
const mont_ops *mont_backend(size_t index);
/* Whether CPU and operating system can run it (no instruction of it is executed to find out). */
int mont_runs(const mont_ops *ops);
/* Known answer, computed by this backend: 1 when right. */
int mont_self_test(const mont_ops *ops);
/* A string of the CPU features that matter here, "avx512f avx512ifma ..."; empty elsewhere. */
size_t mont_cpu_features(char *out, size_t size);

/* Words that mont_ring_init needs in `block` (64-byte aligned) for a modulus of `words` words and `bits` bits. */
size_t mont_ring_words(const mont_ops *ops, uint32_t words, uint32_t bits);
/* m: odd, at least 3, its highest word not zero. `block` must live as long as the ring. Constant time in m. */
void mont_ring_init(mont_ring *ring, const mont_ops *ops, const uint64_t *m, uint32_t words, uint32_t bits,
                    uint64_t *block);

/* ---- exp.c: batches of packed rows; `work` is mont_work(ring, vectors) words ---- */

enum {
  MONT_VECTORS_MUL = 3,
  MONT_VECTORS_PRODUCTS = 2,
  MONT_VECTORS_HORNER = 2,
  MONT_VECTORS_CONVERT = 4,
  MONT_VECTORS_TABLE = MONT_TABLE_GROUPS + 2, /* and what a look-up reads out */
};
#define MONT_VECTORS_POW(window) (((size_t)1 << (window)) + 2)
size_t mont_work(const mont_ring *ring, size_t vectors);

/* out[i] = a[i] b[i]. A step is 2*words, or 0 to use row 0 for every i. */
void mont_batch_mul(const mont_ring *ring, uint64_t *out, const uint64_t *a, size_t a_step, const uint64_t *b,
                    size_t b_step, size_t count, uint64_t *work);
/* out[i] = a[i] + b[i]. */
void mont_batch_add(const mont_ring *ring, uint64_t *out, const uint64_t *a, const uint64_t *b, size_t count,
                    uint64_t *work);
/* out[i] = x[i] (1 + m k[i]), k plain numbers below m. */
void mont_batch_message(const mont_ring *ring, uint64_t *out, const uint64_t *x, size_t x_step,
                        const uint64_t *k, size_t count, uint64_t *work);
/* out[i] = x[i]^e[i] for e[i] of `e_words` words below 2^bits. Steps as above. Time follows the exponents. */
void mont_batch_pow_vartime(const mont_ring *ring, uint64_t *out, const uint64_t *x, size_t x_step,
                            const uint64_t *e, size_t e_words, size_t e_step, unsigned bits, unsigned window,
                            size_t count, uint64_t *work);
/* out[i] = x[i]^e for one secret e below 2^bits; bits and window are public. */
void mont_batch_pow_secret(const mont_ring *ring, uint64_t *out, const uint64_t *x, const uint64_t *e,
                           size_t e_words, unsigned bits, unsigned window, size_t count, uint64_t *work);
/* out[place[u]] = product of the rows number indices[start[u] .. start[u] + length[u]], for every unit u. Numbers below
 * x_rows are rows of x, those from there on rows of `more`, which may be `out`: of it only rows that were finished before
 * the call. Time follows the lengths; neighbouring units share a vector, so give them sorted by length. A unit of one row
 * is copied. */
void mont_batch_products(const mont_ring *ring, uint64_t *out, const uint64_t *x, size_t x_rows,
                         const uint64_t *more, const int64_t *indices, const int64_t *start,
                         const int64_t *length, const int64_t *place, size_t units, uint64_t *work);
/* out[place[u]] = x[s]^(2^(k (l-1))) ... x[s+l-2]^(2^k) x[s+l-1] with s = start[u], l = length[u], k = shift. */
void mont_batch_horner(const mont_ring *ring, uint64_t *out, const uint64_t *x, const int64_t *start,
                       const int64_t *length, const int64_t *place, size_t units, unsigned shift,
                       uint64_t *work);
/* out[i] = x^(2^(step i)). */
void mont_powers_of_two(const mont_ring *ring, uint64_t *out, const uint64_t *x, unsigned step, size_t count,
                        uint64_t *work);
/* Row i of the table: base[i]^j at entry j, for j below 2^window. */
void mont_table_build(const mont_ring *ring, uint64_t *table, const uint64_t *bases, size_t rows,
                      unsigned window, uint64_t *work);
/* out[i] = product over r of entry ((e[i] >> window r) mod 2^window) of row r, times entry extra_bits[i] (0 or 1) of
 * the row `extra` unless that is NULL. Secret: e, extra_bits. */
void mont_table_power(const mont_ring *ring, uint64_t *out, const uint64_t *table, size_t rows,
                      unsigned window, const uint64_t *extra, const uint64_t *e, size_t e_words,
                      const uint8_t *extra_bits, size_t count, uint64_t *work);

/* ---- convert.c: plain numbers and the key owner's glue; `work` as above with MONT_VECTORS_CONVERT ---- */

/* plain (2*words words, below m^2) -> packed Montgomery rows. Returns count, or the index of the first number >= m^2. */
size_t mont_batch_from_plain(const mont_ring *ring, uint64_t *out, const uint64_t *plain, size_t count,
                             uint64_t *work);
void mont_batch_to_plain(const mont_ring *ring, uint64_t *plain, const uint64_t *x, size_t count,
                         uint64_t *work);
/* Index of the first k (words words each) not below m, or count. Time does not follow the numbers, only the result. */
size_t mont_first_not_below(const mont_ring *ring, const uint64_t *k, size_t count);
/* out[i] = x[i] / R64 mod m (words words) for x[i] of 2*words words, below m R64. Returns count, or the index of the first
 * that is not; its result is worthless. */
size_t mont_batch_redc(const mont_ring *ring, uint64_t *out, const uint64_t *x, size_t count);
/* ring is modulo p^2; x are packed rows modulo (p q)^2 with x_words words a half; q has ring->w.words words, q_rr is
 * q R64^2 mod p; `change` is the packed constant that replaces the big ring's R by this one's. Needs q < R64. */
void mont_batch_reduce(const mont_ring *ring, uint64_t *out, const uint64_t *x, size_t x_words,
                       const uint64_t *q_rr, const uint64_t *change, size_t count, uint64_t *work);
/* ring is modulo n^2, x are packed rows modulo f^2 with f_words words a half: the same integers as packed pairs modulo
 * n^2, without a division. Needs f^2 < (wraps + 1) n; `wraps` is public. 2 f_words is words or words + 1. */
void mont_batch_embed(const mont_ring *ring, uint64_t *out, const uint64_t *x, const uint64_t *f,
                      size_t f_words, unsigned wraps, size_t count);
/* out[i] = h L(x[i]) mod m (words words each) where x = 1 + m L(x); h plain below m. Returns count, or the index of
 * the first x that is not 1 modulo m. */
size_t mont_batch_log(const mont_ring *ring, uint64_t *out, const uint64_t *x, const uint64_t *h,
                      size_t count, uint64_t *work);
/* The number below p q (out_words words) that is a[i] mod p and b[i] mod q: a below p = ring's m, b below q, all of
 * ring->w.words words; q_inv_r = R64/q mod p. */
void mont_batch_garner(const mont_ring *ring, uint64_t *out, size_t out_words, const uint64_t *a,
                       const uint64_t *b, const uint64_t *q, const uint64_t *q_inv_r, size_t count);

/* 64-bit words to limbs of `bits` bits (64 at most); what does not fit must be zero. Limb i goes to out[i*step]. */
void mont_to_limbs(uint64_t *out, size_t step, size_t limbs, unsigned bits, const uint64_t *words, size_t n);

/* Overwrites memory in a way the compiler keeps. */
void mont_clear(void *memory, size_t bytes);

#endif
