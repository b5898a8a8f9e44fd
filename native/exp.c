/* Powers, fixed-base tables, products and Horner on batches of packed rows, on top of any backend. */
#include "mont.h"

#include <string.h>

static size_t padded(size_t words) { return (words + 7) / 8 * 8; }

/* How a batch function lays out its work space: scratch of the kernels, a row where idle lanes are written, vectors. */
typedef struct {
  uint64_t *scratch, *spare, *vectors;
  size_t size; /* of one vector */
} layout;

size_t mont_work(const mont_ring *ring, size_t vectors) {
  return padded(ring->ops->scratch(ring)) + padded(2 * ring->w.words) + vectors * 2 * ring->half;
}

static layout lay_out(const mont_ring *ring, uint64_t *work) {
  layout at = {.scratch = work, .size = 2 * ring->half};
  at.spare = work + padded(ring->ops->scratch(ring));
  at.vectors = at.spare + padded(2 * ring->w.words);
  return at;
}

static uint64_t *vector(const layout *at, size_t i) { return at->vectors + i * at->size; }

/* Rows first, first + 1, ... of x, one per lane; idle lanes read the Montgomery one. */
static void load_rows(const mont_ring *ring, uint64_t *vec, const uint64_t *x, size_t step, size_t first,
                      size_t count, const layout *at) {
  const uint64_t *rows[MONT_MAX_LANES];
  for (size_t l = 0; l < ring->ops->lanes; l++)
    rows[l] = first + l < count ? x + (first + l) * step : ring->one;
  ring->ops->load(ring, vec, rows, at->scratch);
}

static void store_rows(const mont_ring *ring, uint64_t *out, const uint64_t *vec, size_t first, size_t count,
                       const layout *at) {
  uint64_t *rows[MONT_MAX_LANES];
  size_t step = 2 * (size_t)ring->w.words;
  for (size_t l = 0; l < ring->ops->lanes; l++)
    rows[l] = first + l < count ? out + (first + l) * step : at->spare;
  ring->ops->store(ring, rows, vec, at->scratch);
}

static void load_same(const mont_ring *ring, uint64_t *vec, const uint64_t *row, const layout *at) {
  load_rows(ring, vec, row, 0, 0, ring->ops->lanes, at);
}

/* Rows first .. first + lanes - 1 as far as there are any: to be read soon, or to be written. Arrays beyond the caches
 * would otherwise be waited for. */
static void prefetch_read(const mont_ring *ring, const uint64_t *x, size_t step, size_t first, size_t count) {
  size_t end = first + ring->ops->lanes < count ? first + ring->ops->lanes : count;
  for (size_t i = first * step; i < end * step; i += 8) __builtin_prefetch(x + i, 0, 2);
}

static void prefetch_write(const mont_ring *ring, const uint64_t *x, size_t step, size_t first,
                           size_t count) {
  size_t end = first + ring->ops->lanes < count ? first + ring->ops->lanes : count;
  for (size_t i = first * step; i < end * step; i += 8) __builtin_prefetch(x + i, 1, 2);
}

void mont_batch_mul(const mont_ring *ring, uint64_t *out, const uint64_t *a, size_t a_step, const uint64_t *b,
                    size_t b_step, size_t count, uint64_t *work) {
  const mont_ops *ops = ring->ops;
  layout at = lay_out(ring, work);
  uint64_t *x = vector(&at, 0), *y = vector(&at, 1), *z = vector(&at, 2);
  if (b_step == 0) load_same(ring, y, b, &at);
  for (size_t i = 0; i < count; i += ops->lanes) {
    load_rows(ring, x, a, a_step, i, count, &at);
    if (b_step != 0) load_rows(ring, y, b, b_step, i, count, &at);
    prefetch_read(ring, a, a_step, i + ops->lanes, count);
    prefetch_read(ring, b, b_step, i + ops->lanes, count);
    prefetch_write(ring, out, 2 * (size_t)ring->w.words, i, count);
    ops->mul(ring, z, x, y, at.scratch);
    store_rows(ring, out, z, i, count, &at);
  }
}

void mont_batch_add(const mont_ring *ring, uint64_t *out, const uint64_t *a, const uint64_t *b, size_t count,
                    uint64_t *work) {
  layout at = lay_out(ring, work);
  uint64_t *x = vector(&at, 0), *y = vector(&at, 1);
  size_t step = 2 * (size_t)ring->w.words;
  for (size_t i = 0; i < count; i += ring->ops->lanes) {
    load_rows(ring, x, a, step, i, count, &at);
    load_rows(ring, y, b, step, i, count, &at);
    ring->ops->add(ring, x, x, y, at.scratch);
    store_rows(ring, out, x, i, count, &at);
  }
}

void mont_batch_message(const mont_ring *ring, uint64_t *out, const uint64_t *x, size_t x_step,
                        const uint64_t *k, size_t count, uint64_t *work) {
  const mont_ops *ops = ring->ops;
  layout at = lay_out(ring, work);
  uint64_t *v = vector(&at, 0), *rr = vector(&at, 1), *y = vector(&at, 2);
  load_same(ring, rr, ring->rr, &at); /* its first half is R^2 mod m */
  for (size_t i = 0; i < count; i += ops->lanes) {
    const uint64_t *rows[MONT_MAX_LANES];
    for (size_t l = 0; l < ops->lanes; l++)
      rows[l] = i + l < count ? k + (i + l) * ring->w.words : ring->unit;
    ops->half_load(ring, y, rows, at.scratch);
    ops->half_mul(ring, y, y, rr, at.scratch); /* k R */
    load_rows(ring, v, x, x_step, i, count, &at);
    ops->half_mul(ring, y, y, v, at.scratch); /* x0 k R, x0 being the one of x R */
    ops->half_add(ring, v + ring->half, v + ring->half, y, at.scratch);
    store_rows(ring, out, v, i, count, &at);
  }
}

/* Bits position .. position + window - 1 of e. */
static uint32_t digit_at(const uint64_t *e, size_t e_words, size_t position, unsigned window) {
  size_t word = position / 64, shift = position % 64;
  uint64_t low = word < e_words ? e[word] >> shift : 0;
  uint64_t high = shift + window > 64 && word + 1 < e_words ? e[word + 1] << (64 - shift) : 0;
  return (uint32_t)((low | high) & (((uint64_t)1 << window) - 1));
}

/* table[j] = x^j for j below 2^window. */
static void powers(const mont_ring *ring, const layout *at, const uint64_t *x, unsigned window) {
  const mont_ops *ops = ring->ops;
  load_same(ring, vector(at, 0), ring->one, at);
  memcpy(vector(at, 1), x, at->size * sizeof *x);
  for (size_t j = 2; j < (size_t)1 << window; j++) {
    if (j % 2 == 0) ops->sqr(ring, vector(at, j), vector(at, j / 2), at->scratch);
    else ops->mul(ring, vector(at, j), vector(at, j - 1), vector(at, 1), at->scratch);
  }
}

void mont_batch_pow_vartime(const mont_ring *ring, uint64_t *out, const uint64_t *x, size_t x_step,
                            const uint64_t *e, size_t e_words, size_t e_step, unsigned bits, unsigned window,
                            size_t count, uint64_t *work) {
  const mont_ops *ops = ring->ops;
  layout at = lay_out(ring, work);
  uint64_t *acc = vector(&at, (size_t)1 << window), *factor = vector(&at, ((size_t)1 << window) + 1);
  unsigned windows = (bits + window - 1) / window;
  for (size_t i = 0; i < count; i += ops->lanes) {
    load_rows(ring, acc, x, x_step, i, count, &at);
    powers(ring, &at, acc, window);
    memcpy(acc, vector(&at, 0), at.size * sizeof *acc);
    for (unsigned w = windows; w-- > 0;) {
      uint32_t digits[MONT_MAX_LANES] = {0}, any = 0;
      for (size_t l = 0; l < ops->lanes && i + l < count; l++) {
        digits[l] = digit_at(e + (i + l) * e_step, e_words, (size_t)w * window, window);
        any |= digits[l];
      }
      if (w + 1 == windows) { /* no need to square a one */
        ops->pick_vartime(ring, acc, at.vectors, digits);
        continue;
      }
      for (unsigned s = 0; s < window; s++) ops->sqr(ring, acc, acc, at.scratch);
      if (any == 0) continue;
      ops->pick_vartime(ring, factor, at.vectors, digits);
      ops->mul(ring, acc, acc, factor, at.scratch);
    }
    store_rows(ring, out, acc, i, count, &at);
  }
}

void mont_batch_pow_secret(const mont_ring *ring, uint64_t *out, const uint64_t *x, const uint64_t *e,
                           size_t e_words, unsigned bits, unsigned window, size_t count, uint64_t *work) {
  const mont_ops *ops = ring->ops;
  layout at = lay_out(ring, work);
  size_t entries = (size_t)1 << window;
  uint64_t *acc = vector(&at, entries), *factor = vector(&at, entries + 1);
  unsigned windows = (bits + window - 1) / window;
  for (size_t i = 0; i < count; i += ops->lanes) {
    load_rows(ring, acc, x, 2 * (size_t)ring->w.words, i, count, &at);
    powers(ring, &at, acc, window);
    memcpy(acc, vector(&at, 0), at.size * sizeof *acc);
    for (unsigned w = windows; w-- > 0;) {
      uint32_t digit = digit_at(e, e_words, (size_t)w * window, window);
      if (w + 1 < windows)
        for (unsigned s = 0; s < window; s++) ops->sqr(ring, acc, acc, at.scratch);
      ops->select(ring, factor, at.vectors, entries, digit);
      ops->mul(ring, acc, acc, factor, at.scratch);
    }
    store_rows(ring, out, acc, i, count, &at);
  }
}

/* What mont_batch_products reads: rows of x, and from number x_rows on rows of `more`. */
typedef struct {
  const mont_ring *ring;
  const uint64_t *x, *more;
  size_t x_rows;
  const int64_t *indices, *start, *length;
  size_t units;
} segments;

/* The row that step t of a unit multiplies in; a unit that has ended, or is none, reads the Montgomery one. */
static const uint64_t *segment_row(const segments *s, size_t unit, int64_t t) {
  if (unit >= s->units || t >= s->length[unit]) return s->ring->one;
  size_t i = (size_t)s->indices[s->start[unit] + t], step = 2 * (size_t)s->ring->w.words;
  return i < s->x_rows ? s->x + i * step : s->more + (i - s->x_rows) * step;
}

/* Step t of the vector of units that begins at `unit` will be read soon. */
static void prefetch_step(const segments *s, size_t unit, int64_t t) {
  size_t step = 2 * (size_t)s->ring->w.words;
  for (size_t l = 0; l < s->ring->ops->lanes; l++)
    prefetch_read(s->ring, segment_row(s, unit + l, t), step, 0, 1);
}

static int64_t longest(const int64_t *length, size_t units) {
  int64_t longest = 0;
  for (size_t l = 0; l < units; l++) longest = length[l] > longest ? length[l] : longest;
  return longest;
}

static int64_t shortest(const int64_t *length, size_t units) {
  int64_t shortest = length[0];
  for (size_t l = 1; l < units; l++) shortest = length[l] < shortest ? length[l] : shortest;
  return shortest;
}

static void store_places(const mont_ring *ring, uint64_t *out, const uint64_t *vec, const int64_t *place,
                         size_t units, const layout *at) {
  uint64_t *rows[MONT_MAX_LANES];
  for (size_t l = 0; l < ring->ops->lanes; l++)
    rows[l] = l < units ? out + (size_t)place[l] * 2 * ring->w.words : at->spare;
  ring->ops->store(ring, rows, vec, at->scratch);
}

void mont_batch_products(const mont_ring *ring, uint64_t *out, const uint64_t *x, size_t x_rows,
                         const uint64_t *more, const int64_t *indices, const int64_t *start,
                         const int64_t *length, const int64_t *place, size_t units, uint64_t *work) {
  const mont_ops *ops = ring->ops;
  const segments s = {ring, x, more, x_rows, indices, start, length, units};
  size_t step = 2 * (size_t)ring->w.words;
  layout at = lay_out(ring, work);
  uint64_t *acc = vector(&at, 0), *factor = vector(&at, 1);
  const uint64_t *rows[MONT_MAX_LANES];
  for (size_t u = 0; u < units; u += ops->lanes) {
    size_t used = units - u < ops->lanes ? units - u : ops->lanes;
    int64_t steps = longest(length + u, used);
    for (size_t l = 0; l < used; l++) prefetch_write(ring, out + (size_t)place[u + l] * step, step, 0, 1);
    if (steps == 1 && shortest(length + u, used) == 1) { /* nothing to multiply */
      prefetch_step(&s, u + ops->lanes, 0);
      for (size_t l = 0; l < used; l++)
        memmove(out + (size_t)place[u + l] * step, segment_row(&s, u + l, 0), step * sizeof *out);
      continue;
    }
    for (int64_t t = 0; t == 0 || t < steps; t++) {
      /* A product's time is enough to fetch the next rows; the next units begin with two loads in a row. */
      if (t + 1 < steps) prefetch_step(&s, u, t + 1);
      else
        for (int64_t next = 0; next < 2; next++) prefetch_step(&s, u + ops->lanes, next);
      for (size_t l = 0; l < ops->lanes; l++) rows[l] = segment_row(&s, u + l, t);
      ops->load(ring, t ? factor : acc, rows, at.scratch);
      if (t) ops->mul(ring, acc, acc, factor, at.scratch);
    }
    store_places(ring, out, acc, place + u, used, &at);
  }
}

void mont_batch_horner(const mont_ring *ring, uint64_t *out, const uint64_t *x, const int64_t *start,
                       const int64_t *length, const int64_t *place, size_t units, unsigned shift,
                       uint64_t *work) {
  const mont_ops *ops = ring->ops;
  layout at = lay_out(ring, work);
  uint64_t *acc = vector(&at, 0), *factor = vector(&at, 1);
  size_t step = 2 * (size_t)ring->w.words;
  for (size_t u = 0; u < units; u += ops->lanes) {
    size_t used = units - u < ops->lanes ? units - u : ops->lanes;
    int64_t steps = longest(length + u, used);
    load_same(ring, acc, ring->one, &at);
    for (int64_t t = 0; t < steps; t++) {
      const uint64_t *rows[MONT_MAX_LANES];
      for (size_t l = 0; l < ops->lanes; l++) { /* short units join late: a power of one is one */
        int64_t own = l < used ? t - (steps - length[u + l]) : -1;
        rows[l] = own >= 0 ? x + (size_t)(start[u + l] + own) * step : ring->one;
      }
      ops->load(ring, t ? factor : acc, rows, at.scratch);
      if (t == 0) continue;
      for (unsigned s = 0; s < shift; s++) ops->sqr(ring, acc, acc, at.scratch);
      ops->mul(ring, acc, acc, factor, at.scratch);
    }
    store_places(ring, out, acc, place + u, used, &at);
  }
}

void mont_powers_of_two(const mont_ring *ring, uint64_t *out, const uint64_t *x, unsigned step, size_t count,
                        uint64_t *work) {
  layout at = lay_out(ring, work);
  uint64_t *acc = vector(&at, 0);
  load_rows(ring, acc, x, 0, 0, 1, &at);
  for (size_t i = 0; i < count; i++) {
    store_rows(ring, out + i * 2 * ring->w.words, acc, 0, 1, &at);
    for (unsigned s = 0; s < step && i + 1 < count; s++) ring->ops->sqr(ring, acc, acc, at.scratch);
  }
}

/* Writes lane l of a vector as entry `entry` of table row first + l. */
static void put_entries(const mont_ring *ring, uint64_t *table, size_t first, size_t rows, size_t entries,
                        size_t entry, const uint64_t *vec, uint64_t *packed, const layout *at) {
  size_t row_words = ring->ops->row_words(ring, entries), step = 2 * (size_t)ring->w.words;
  size_t used = rows - first < ring->ops->lanes ? rows - first : ring->ops->lanes;
  store_rows(ring, packed, vec, 0, used, at);
  for (size_t l = 0; l < used; l++)
    ring->ops->row_put(ring, table + (first + l) * row_words, entries, entry, packed + l * step);
}

void mont_table_build(const mont_ring *ring, uint64_t *table, const uint64_t *bases, size_t rows,
                      unsigned window, uint64_t *work) {
  const mont_ops *ops = ring->ops;
  layout at = lay_out(ring, work);
  size_t entries = (size_t)1 << window, step = 2 * (size_t)ring->w.words;
  uint64_t *base = vector(&at, 0), *power = vector(&at, 1), *packed = vector(&at, 2);
  for (size_t r = 0; r < rows; r += ops->lanes) {
    load_rows(ring, base, bases, step, r, rows, &at);
    load_same(ring, power, ring->one, &at);
    for (size_t entry = 0; entry < entries; entry++) {
      put_entries(ring, table, r, rows, entries, entry, power, packed, &at);
      ops->mul(ring, power, power, base, at.scratch);
    }
  }
}

void mont_table_power(const mont_ring *ring, uint64_t *out, const uint64_t *table, size_t rows,
                      unsigned window, const uint64_t *extra, const uint64_t *e, size_t e_words,
                      const uint8_t *extra_bits, size_t count, uint64_t *work) {
  const mont_ops *ops = ring->ops;
  layout at = lay_out(ring, work);
  size_t entries = (size_t)1 << window, row_words = ops->row_words(ring, entries);
  uint64_t *factors = vector(&at, MONT_TABLE_GROUPS);
  uint32_t digits[MONT_MAX_LANES] = {0};
  size_t at_once = (size_t)ops->row_vectors * ops->lanes; /* that a look-up reads out */
  VERIFY(ops->row_vectors <= 2 && at_once <= MONT_MAX_LANES);
  size_t together =
      (size_t)MONT_TABLE_GROUPS * ops->lanes; /* a table row comes from far; many numbers share the trip */
  for (size_t first = 0; first < count; first += together) {
    size_t end = count - first < together ? count : first + together;
    size_t groups = (end - first + ops->lanes - 1) / ops->lanes;
    for (size_t g = 0; g < groups; g++) load_same(ring, vector(&at, g), ring->one, &at);
    for (size_t r = 0; r < rows + (extra != NULL); r++) {
      const uint64_t *row = r < rows ? table + r * row_words : extra;
      for (size_t g = 0; g < groups; g += ops->row_vectors) {
        for (size_t l = 0; l < at_once; l++) {
          size_t i = first + g * ops->lanes + l;
          if (i >= end) digits[l] = 0;
          else
            digits[l] = r < rows ? digit_at(e + i * e_words, e_words, r * window, window) : extra_bits[i] & 1;
        }
        ops->row_get(ring, r ? factors : vector(&at, g), row, entries, digits);
        for (size_t v = 0; r && v < ops->row_vectors && g + v < groups; v++)
          ops->mul(ring, vector(&at, g + v), vector(&at, g + v), factors + v * at.size, at.scratch);
      }
    }
    for (size_t g = 0; g < groups; g++)
      store_rows(ring, out, vector(&at, g), first + g * ops->lanes, end, &at);
  }
  mont_clear(digits, sizeof digits);
}
