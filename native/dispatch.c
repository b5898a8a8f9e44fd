/* Which backends exist, which run here, and the constants of a modulus. */
#include "mont.h"

#include <string.h>

#ifdef __x86_64__
#include <cpuid.h>

typedef struct {
  const char *name;
  int bit; /* of EBX of leaf 7 */
} feature;

static const feature features[] = {{"avx512f", 16},  {"avx512dq", 17}, {"avx512ifma", 21}, {"avx512bw", 30},
                                   {"avx512vl", 31}, {"bmi2", 8},      {"adx", 19},        {"avx2", 5}};
enum {
  N_FEATURES = sizeof features / sizeof *features,
  IFMA_END = 6,
  ADX_FROM = 5,
  ADX_END = 7,
  AVX2_FROM = 7
};

/* Features first .. end - 1. */
static int has_all(int first, int end) {
  unsigned eax, ebx, ecx, edx;
  if (!__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx)) return 0;
  for (int i = first; i < end; i++)
    if (!(ebx >> features[i].bit & 1)) return 0;
  return 1;
}

/* The operating system must save the vector registers, too: XMM and YMM; for ZMM the mask registers and both its parts. */
enum { XCR0_YMM = 0x06, XCR0_ZMM = 0xe6 };

static int os_saves(unsigned needed) {
  enum { OSXSAVE = 1 << 27 };
  unsigned eax, ebx, ecx, edx, low, high;
  if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx) || !(ecx & OSXSAVE)) return 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (low & needed) == needed;
}

static size_t append(char *out, size_t size, size_t used, const char *word) {
  size_t length = strlen(word);
  if (used + length + 2 > size) return used;
  if (used) out[used++] = ' ';
  memcpy(out + used, word, length);
  return used + length;
}

size_t mont_cpu_features(char *out, size_t size) {
  size_t used = 0;
  for (int i = 0; i < N_FEATURES; i++)
    if (has_all(i, i + 1)) used = append(out, size, used, features[i].name);
  if (os_saves(XCR0_YMM)) used = append(out, size, used, "os-ymm");
  return os_saves(XCR0_ZMM) ? append(out, size, used, "os-zmm") : used;
}
#else
size_t mont_cpu_features(char *out, size_t size) {
  (void)out, (void)size;
  return 0;
}
#endif

/* The readable backend, with the best row that runs here. */
static const mont_ops *portable(void) {
#ifdef VFL_HAVE_ADX
  if (has_all(ADX_FROM, ADX_END)) return &mont_portable_adx;
#endif
  return &mont_portable;
}

/* Best first. One is used only where mont_runs() says so and mont_self_test() gives the known answer. */
const mont_ops *mont_backend(size_t index) {
#ifdef VFL_HAVE_IFMA
  if (index-- == 0) return &mont_ifma;
#endif
#ifdef VFL_HAVE_AVX2
  if (index-- == 0) return &mont_avx2;
#endif
  return index == 0 ? portable() : NULL;
}

int mont_runs(const mont_ops *ops) {
#if defined VFL_HAVE_IFMA && !defined VFL_EMULATE_IFMA
  if (ops == &mont_ifma) return has_all(0, IFMA_END) && os_saves(XCR0_ZMM);
#endif
#ifdef VFL_HAVE_AVX2
  if (ops == &mont_avx2) return has_all(AVX2_FROM, N_FEATURES) && os_saves(XCR0_YMM);
#endif
  (void)ops;
  return 1;
}

static size_t padded(size_t words) { return (words + 7) / 8 * 8; } /* whole cache lines */

static uint32_t limbs_of(const mont_ops *ops, uint32_t bits) {
  uint32_t limbs = (bits + ops->spare_bits + ops->limb_bits - 1) / ops->limb_bits;
  return (limbs + ops->limb_block - 1) / ops->limb_block * ops->limb_block;
}

size_t mont_ring_words(const mont_ops *ops, uint32_t words, uint32_t bits) {
  return 2 * padded(words) + 2 * padded(limbs_of(ops, bits)) + 5 * padded(2 * (size_t)words);
}

/* x = 2 x mod m^2 on a canonical pair. */
static void pair_double(uint64_t *x, const uint64_t *m, size_t n) {
  uint64_t carry = 0;
  for (int part = 0; part < 2; part++, x += n) {
    uint64_t top = carry;
    for (size_t i = 0; i < n; i++) {
      uint64_t word = x[i];
      x[i] = word << 1 | top;
      top = word >> 63;
    }
    carry = mont_words_cond_sub(x, &top, m, n); /* the m that leaves x0 is a 1 in x1 */
  }
}

void mont_to_limbs(uint64_t *out, size_t step, size_t limbs, unsigned bits, const uint64_t *words, size_t n) {
  for (size_t i = 0; i < limbs; i++) {
    size_t at = i * bits / 64, shift = i * bits % 64;
    uint64_t low = at < n ? words[at] >> shift : 0;
    uint64_t high = at + 1 < n && shift ? words[at + 1] << (64 - shift) : 0;
    out[i * step] = (low | high) & (~(uint64_t)0 >> (64 - bits));
  }
}

/* Powers of two modulo m^2 by doubling: R, R^2 and 2^bits R^2 as pairs and, modulo m, R64^2. */
static void powers_of_radix(const mont_ring *ring, uint64_t *one, uint64_t *rr, uint64_t *rr_high,
                            uint64_t *rr64) {
  size_t n = ring->w.words, bits = (size_t)ring->ops->limb_bits * ring->limbs;
  size_t last = 2 * bits + ring->bits > 128 * n ? 2 * bits + ring->bits : 128 * n;
  uint64_t power[2 * MONT_MAX_BITS / 64] = {1};
  for (size_t e = 1; e <= last; e++) {
    pair_double(power, ring->w.m, n);
    if (e == bits) memcpy(one, power, 2 * n * sizeof *power);
    if (e == 2 * bits) memcpy(rr, power, 2 * n * sizeof *power);
    if (e == 2 * bits + ring->bits) memcpy(rr_high, power, 2 * n * sizeof *power);
    if (e == 128 * n) memcpy(rr64, power, n * sizeof *power);
  }
  mont_clear(power, sizeof power);
}

void mont_ring_init(mont_ring *ring, const mont_ops *ops, const uint64_t *m, uint32_t words, uint32_t bits,
                    uint64_t *block) {
  size_t n = words;
  uint32_t limbs = limbs_of(ops, bits);
  memset(block, 0, mont_ring_words(ops, words, bits) * sizeof *block);
  uint64_t *m64 = block, *rr64 = m64 + padded(n), *m_limbs = rr64 + padded(n),
           *minus_r = m_limbs + padded(limbs);
  uint64_t *one = minus_r + padded(limbs), *rr = one + padded(2 * n), *rr_high = rr + padded(2 * n);
  uint64_t *unit = rr_high + padded(2 * n), *square = unit + padded(2 * n);
  uint64_t inverse = 1, plus_one[MONT_MAX_BITS / 64];
  for (int i = 0; i < 6; i++) inverse *= 2 - m[0] * inverse; /* each step doubles the number of right bits */
  memcpy(m64, m, n * sizeof *m);
  mont_to_limbs(m_limbs, 1, limbs, ops->limb_bits, m, n);
  unit[0] = 1;
  mont_words_mul_add(square, m, n, m, n, NULL, 0);
  *ring = (mont_ring){.ops = ops,
                      .w = {.words = words, .n0 = 0 - inverse, .m = m64, .rr = rr64},
                      .bits = bits,
                      .limbs = limbs,
                      .half = (size_t)limbs * ops->lanes,
                      .n0 = (0 - inverse) & (~(uint64_t)0 >> (64 - ops->limb_bits)),
                      .m = m_limbs,
                      .minus_r = minus_r,
                      .one = one,
                      .rr = rr,
                      .rr_high = rr_high,
                      .unit = unit,
                      .square = square};
  powers_of_radix(ring, one, rr, rr_high, rr64);
  mont_words_negate(&ring->w, plus_one, one);
  uint64_t carry = 1;
  for (size_t i = 0; i < n; i++) {
    unsigned __int128 sum = (unsigned __int128)plus_one[i] + carry;
    plus_one[i] = (uint64_t)sum;
    carry = (uint64_t)(sum >> 64);
  }
  mont_to_limbs(minus_r, 1, limbs, ops->limb_bits, plus_one, n);
}

/* With e_i = exponent >> i: (3^e_0 4^e_1 ... 10^e_7)^exponent mod m^2, by every kind of kernel, every lane with a number
 * and an exponent of its own. Made with Python: pow(math.prod(pow(3 + i, e >> i, m * m) for i in range(8)), e, m * m). */
int mont_self_test(const mont_ops *ops) {
  enum { WORDS = 9, BITS = 576, COUNT = 8, WINDOW = 4 };
  static const uint64_t m[WORDS] = {0xe485b576625e7ec7, 0x4fe1356d6d51c245, 0x302b0a6df25f1437,
                                    0xef9519b3cd3a431b, 0x514a08798e3404dd, 0x020bbea63b139b22,
                                    0x29024e088a67cc74, 0xc4c6628b80dc1cd1, 0xc90fdaa22168c234};
  static const uint64_t exponent = 0xf3d5b79a1c2e4f60;
  static const uint64_t expected[2 * WORDS] = {
      0x86ea06b3d4f591d5, 0x456f90bd654b10fb, 0x0e08296efc65e711, 0xef342cb6121d63ae, 0xd4a9601feb708dc0,
      0xe61ca447382d1729, 0x323ff4c879c4f4c5, 0xd3e22be8e8ed7dd1, 0x9e08294999cbbb84, 0x328e7a4051d1ceb3,
      0xfe14dd8955650651, 0x42980e4c0e905b96, 0x5c81ae6b1fad10e1, 0xb85ddc0b6d5faa7c, 0x605ab5dcb790823a,
      0x6e640f2324d37bdf, 0x0f3f5da4029c1999, 0x4c32023e87ddcef6};
  static const int64_t indices[COUNT] = {0, 1, 2, 3, 4, 5, 6, 7}, start[1] = {0}, length[1] = {COUNT},
                       place[1] = {0};
  _Alignas(64) uint64_t block[256], work[6144];
  uint64_t x[COUNT * 2 * WORDS] = {0}, y[COUNT * 2 * WORDS], z[2 * WORDS], e[COUNT];
  mont_ring ring;
  if (mont_ring_words(ops, WORDS, BITS) > sizeof block / sizeof *block) return 0;
  mont_ring_init(&ring, ops, m, WORDS, BITS, block);
  if (mont_work(&ring, MONT_VECTORS_POW(WINDOW)) > sizeof work / sizeof *work) return 0;
  for (uint64_t i = 0; i < COUNT; i++) x[i * 2 * WORDS] = 3 + i, e[i] = exponent >> i;
  if (mont_batch_from_plain(&ring, y, x, COUNT, work) != COUNT) return 0;
  mont_batch_pow_vartime(&ring, x, y, 2 * WORDS, e, 1, 1, 64, WINDOW, COUNT, work);
  mont_batch_products(&ring, y, x, COUNT, NULL, indices, start, length, place, 1, work);
  mont_batch_pow_secret(&ring, x, y, &exponent, 1, 64, WINDOW, 1, work);
  mont_batch_to_plain(&ring, z, x, 1, work);
  return memcmp(z, expected, sizeof z) == 0;
}

void mont_clear(void *memory, size_t bytes) {
  memset(memory, 0, bytes);
  __asm__ volatile("" : : "r"(memory) : "memory"); /* the compiler must assume that it is read */
}
