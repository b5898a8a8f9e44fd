/* Kernels that mont_avx2.c and mont_ifma.c have in common: everything that is made of their own vectors' mul_reduce,
 * second_half, add_reduce, half_load and write_half. Included by both behind these; KERNEL(name) is the backend's name of a
 * kernel. See mont.h for the contracts. */

#ifdef VFL_VERIFY
/* Limbs of LIMB_BITS bits and the half below 2m, in every lane. */
static void verify_half(const mont_ring *ring, const V *x) {
  for (int l = 0; l < LANES; l++) {
    int64_t difference = 0;
    for (uint32_t i = 0; i < ring->limbs; i++) {
      uint64_t limb = ((const uint64_t *)x)[i * LANES + (uint32_t)l];
      VERIFY(limb >> LIMB_BITS == 0);
      difference = (difference + (int64_t)limb - 2 * (int64_t)ring->m[i]) >> LIMB_BITS;
    }
    VERIFY(difference < 0);
  }
}
#else
#define verify_half(ring, x) ((void)0)
#endif

/* Four halves for a square (q, w, x0, and x0 or x1 twice); three and what write_half needs to store. */
static size_t KERNEL(scratch)(const mont_ring *ring) { return 4 * padded_limbs(ring) * LANES; }

static void KERNEL(mul)(const mont_ring *ring, uint64_t *out, const uint64_t *a, const uint64_t *b,
                        uint64_t *work) {
  size_t limbs = ring->limbs;
  V *q = (V *)work, *w = q + limbs, *first = w + limbs;
  const V *a0 = (const V *)a, *b0 = (const V *)b, *a1 = a0 + limbs, *b1 = b0 + limbs;
  V *r = (V *)out;
  verify_half(ring, a0), verify_half(ring, a1), verify_half(ring, b0), verify_half(ring, b1);
  mul_reduce(first, q, a0, b0, ring->m, ALL(ring->n0), (int)limbs / BLOCK);
  second_half(r + limbs, w, a0, b1, a1, b0, q, ring);
  for (size_t i = 0; i < limbs; i++) r[i] = first[i];
  verify_half(ring, r), verify_half(ring, r + limbs);
}

static void KERNEL(half_mul)(const mont_ring *ring, uint64_t *out, const uint64_t *a, const uint64_t *b,
                             uint64_t *work) {
  mul_reduce((V *)out, (V *)work, (const V *)a, (const V *)b, ring->m, ALL(ring->n0),
             (int)ring->limbs / BLOCK);
  verify_half(ring, (V *)out);
}

static void KERNEL(half_add)(const mont_ring *ring, uint64_t *out, const uint64_t *a, const uint64_t *b,
                             uint64_t *work) {
  add_reduce(ring, (V *)out, (const V *)a, (const V *)b, ZERO, 2, 1, (V *)work);
  verify_half(ring, (V *)out);
}

static void KERNEL(add)(const mont_ring *ring, uint64_t *out, const uint64_t *a, const uint64_t *b,
                        uint64_t *work) {
  size_t half = ring->half;
  V lost = add_reduce(ring, (V *)out, (const V *)a, (const V *)b, ZERO, 2, 1, (V *)work);
  add_reduce(ring, (V *)(out + half), (const V *)(a + half), (const V *)(b + half), ADD(lost, lost), 2, 2,
             (V *)work);
  verify_half(ring, (V *)out), verify_half(ring, (V *)(out + half));
}

static void KERNEL(load)(const mont_ring *ring, uint64_t *vector, const uint64_t *const *rows,
                         uint64_t *work) {
  const uint64_t *second[LANES];
  for (int l = 0; l < LANES; l++) second[l] = rows[l] + ring->w.words;
  KERNEL(half_load)(ring, vector, rows, work);
  KERNEL(half_load)(ring, vector + ring->half, second, work);
}

static void KERNEL(half_store)(const mont_ring *ring, uint64_t *const *rows, const uint64_t *half,
                               uint64_t *work) {
  V *canonical = (V *)work, *spare = canonical + padded_limbs(ring);
  add_reduce(ring, canonical, (const V *)half, NULL, ZERO, 1, 1, spare);
  write_half(ring, rows, 0, canonical, spare);
}

static void KERNEL(store)(const mont_ring *ring, uint64_t *const *rows, const uint64_t *vector,
                          uint64_t *work) {
  V *canonical = (V *)work, *spare = canonical + padded_limbs(ring);
  V lost = add_reduce(ring, canonical, (const V *)vector, NULL, ZERO, 1, 1, spare);
  write_half(ring, rows, 0, canonical, spare);
  add_reduce(ring, canonical, (const V *)(vector + ring->half), NULL, lost, 1, 2, spare); /* at most 2m */
  write_half(ring, rows, ring->w.words, canonical, spare);
}
