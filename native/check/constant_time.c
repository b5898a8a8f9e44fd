/* Runs the portable kernels, with every kind of row, or those with AVX2, or the emulated IFMA ones, on secrets that
 * valgrind's memcheck takes for undefined memory, so that it reports every branch and every address that depends on one.
 * tests/crypto/test_kernels_constant_time.py builds and runs it. With an argument it branches on a secret on purpose, to
 * see that the method finds that.
 *
 * Secret here: the factor p of a ring, exponents, the bits of the extra row, messages. Public: sizes, and whether a
 * number was in range. */
#include "mont.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <valgrind/memcheck.h>

enum {
  P_WORDS = 9, /* one more than a row takes at a time */
  N_WORDS = 18,
  COUNT = 3,
  E_WORDS = 2,
  WINDOW = 5,
  ROWS = 64 * E_WORDS / WINDOW,
  WORK = 1 << 16
};

static const mont_ops *ops;

static void hide(void *memory, size_t words) { (void)VALGRIND_MAKE_MEM_UNDEFINED(memory, words * 8); }
static void show(void *memory, size_t words) { (void)VALGRIND_MAKE_MEM_DEFINED(memory, words * 8); }

static uint64_t *filled(size_t words) {
  uint64_t *p = aligned_alloc(64, (words + 7) / 8 * 64), x = 0x9e3779b97f4a7c15;
  for (size_t i = 0; i < words; i++) p[i] = x = (x ^ x >> 29) * 0xbf58476d1ce4e5b9 + i;
  return p;
}

/* Packed rows: halves below 2^(64 words - 1). */
static uint64_t *elements(size_t words, size_t count) {
  uint64_t *p = filled(2 * words * count);
  for (size_t i = words - 1; i < 2 * words * count; i += words) p[i] >>= 1;
  return p;
}

static mont_ring ring_of(uint32_t words, int secret) {
  mont_ring ring;
  uint64_t *m = filled(words), *block = filled(mont_ring_words(ops, words, 64 * words));
  m[0] |= 1, m[words - 1] |= (uint64_t)1 << 63;
  if (secret) hide(m, words);
  mont_ring_init(&ring, ops, m, words, 64 * words, block);
  return ring;
}

static void decrypt(uint64_t *work) {
  mont_ring p = ring_of(P_WORDS, 1);
  uint64_t *x = elements(N_WORDS, COUNT), *q_rr = elements(P_WORDS, 1), *change = elements(P_WORDS, 1);
  uint64_t *a = elements(P_WORDS, COUNT), *b = elements(P_WORDS, COUNT), *out = filled(COUNT * N_WORDS);
  uint64_t *e = filled(P_WORDS);
  hide(q_rr, P_WORDS), hide(change, 2 * P_WORDS), hide(e, P_WORDS);
  mont_batch_reduce(&p, a, x, N_WORDS, q_rr, change, COUNT, work);
  mont_batch_pow_secret(&p, b, a, e, P_WORDS, 64 * P_WORDS, 4, COUNT, work);
  size_t bad = mont_batch_log(&p, a, b, q_rr, COUNT, work);
  show(&bad, 1);
  mont_batch_garner(&p, out, N_WORDS, a, b, change, q_rr, COUNT);
}

static void draw_exponents(uint64_t *work) {
  mont_ring order = ring_of(P_WORDS, 1);
  uint64_t *x = elements(P_WORDS, COUNT), *out = filled(COUNT * P_WORDS);
  (void)work;
  hide(x, 2 * P_WORDS * COUNT);
  size_t bad = mont_batch_redc(&order, out, x, COUNT);
  show(&bad, 1);
}

static void join(uint64_t *work) {
  mont_ring n = ring_of(N_WORDS, 0);
  uint64_t *xp = elements(P_WORDS, COUNT), *factor = filled(P_WORDS), *scale = elements(N_WORDS, 1);
  uint64_t *a = elements(N_WORDS, COUNT), *b = elements(N_WORDS, COUNT);
  hide(xp, 2 * P_WORDS * COUNT), hide(factor, P_WORDS), hide(scale, 2 * N_WORDS);
  mont_batch_embed(&n, a, xp, factor, P_WORDS, 1, COUNT);
  mont_batch_mul(&n, b, a, 2 * N_WORDS, scale, 0, COUNT, work);
  mont_batch_add(&n, a, a, b, COUNT, work);
  mont_batch_to_plain(&n, b, a, COUNT, work);
}

static void encrypt(uint64_t *work) {
  mont_ring n = ring_of(N_WORDS, 0);
  size_t row = ops->row_words(&n, 1 << WINDOW);
  uint64_t *bases = elements(N_WORDS, ROWS), *table = filled(ROWS * row), *extra = filled(row);
  uint64_t *e = filled(E_WORDS * COUNT), *noise = elements(N_WORDS, COUNT), *out = elements(N_WORDS, COUNT);
  uint64_t *k = filled(N_WORDS * COUNT);
  uint8_t *bits = calloc(COUNT, 1);
  mont_table_build(&n, table, bases, ROWS, WINDOW, work);
  memcpy(extra, table, row * 8);
  hide(e, E_WORDS * COUNT), hide(k, N_WORDS * COUNT);
  (void)VALGRIND_MAKE_MEM_UNDEFINED(bits, COUNT);
  mont_table_power(&n, noise, table, ROWS, WINDOW, extra, e, E_WORDS, bits, COUNT, work);
  size_t bad = mont_first_not_below(&n, k, COUNT);
  show(&bad, 1);
  mont_batch_message(&n, out, noise, 2 * N_WORDS, k, COUNT, work);
}

static void run_all(const mont_ops *kind, uint64_t *work) {
  void (*const paths[])(uint64_t *) = {decrypt, join, encrypt, draw_exponents};
  ops = kind;
  puts(ops->name);
  for (int i = 0; i < 4; i++) {
    paths[i](work);
    show(work, WORK);
  }
}

int main(int argc, char **argv) {
  uint64_t *work = filled(WORK);
  (void)argv;
#ifdef VFL_EMULATE_IFMA
  run_all(&mont_ifma, work);
#elif defined VFL_HAVE_AVX2
  run_all(&mont_avx2, work);
#else
  run_all(&mont_portable, work);
#ifdef VFL_HAVE_ADX
  run_all(&mont_portable_adx, work); /* valgrind has these instructions, whatever the CPU */
#endif
#endif
  if (argc > 1) {
    uint64_t *secret = filled(1);
    hide(secret, 1);
    if (*secret & 1) puts("odd");
  }
  return 0;
}
