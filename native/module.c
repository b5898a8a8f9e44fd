/* The binding, and the only file that includes Python.h: checks every size, allocates, releases the GIL around a batch,
 * clears the work space, and turns a failure into an exception. Arrays come in and go out through the buffer protocol:
 * C-contiguous, 64-bit items; results are written into arrays that Python has made. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdlib.h>
#include <string.h>

#include "mont.h"

enum { MAX_VIEWS = 7, MAX_POW_WINDOW = 6, MAX_WRAPS = 64, MAX_SHIFT = 1 << 20 };

typedef struct {
  PyObject_HEAD
  mont_ring ring;
  uint64_t *block;
  size_t block_words;
} RingObject;

/* ---- memory ---- */

static uint64_t *new_words(size_t words) {
  void *p = NULL;
  if (words > SIZE_MAX / 16 || posix_memalign(&p, 64, words * sizeof(uint64_t) + 64) != 0) {
    PyErr_NoMemory();
    return NULL;
  }
  return p;
}

static void clear_words(uint64_t *p, size_t words) {
  if (p == NULL) return;
  mont_clear(p, words * sizeof *p);
  free(p);
}

/* ---- arguments ---- */

typedef struct {
  Py_buffer view[MAX_VIEWS];
  int used;
} views;

static void release(views *v) {
  while (v->used > 0) PyBuffer_Release(&v->view[--v->used]);
}

static int right_items(const Py_buffer *b, char kind) {
  const char *f = b->format ? b->format : "B";
  if (*f == '<' || *f == '=' || *f == '@') f++;
  if (f[0] == 0 || f[1] != 0) return 0;
  switch (kind) {
    case 'b': return b->itemsize == 1 && *f == 'B';
    case 'i': return b->itemsize == 8 && strchr("lqn", *f) != NULL;
    default: return b->itemsize == 8 && strchr("LQN", *f) != NULL;
  }
}

/* Takes the leading arguments as arrays, one letter each: w writable uint64, r uint64, i int64, b uint8; a capital
 * letter also takes None (an empty view). Returns 0, or -1 with an exception and nothing held. */
static int take(views *v, PyObject *const *args, Py_ssize_t nargs, Py_ssize_t expected, const char *kinds) {
  v->used = 0;
  if (nargs != expected) {
    PyErr_Format(PyExc_TypeError, "expected %zd arguments, got %zd", expected, nargs);
    return -1;
  }
  for (int i = 0; kinds[i]; i++) {
    Py_buffer *b = &v->view[i];
    char kind = (char)Py_TOLOWER(kinds[i]);
    if (kind != kinds[i] && args[i] == Py_None) {
      memset(b, 0, sizeof *b);
    } else {
      int flags = PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | (kind == 'w' ? PyBUF_WRITABLE : 0);
      if (PyObject_GetBuffer(args[i], b, flags) < 0) goto fail;
      v->used = i + 1;
      if (right_items(b, kind) && (uintptr_t)b->buf % (size_t)b->itemsize == 0) continue;
      PyErr_Format(PyExc_TypeError, "argument %d: expected an aligned array of %s", i + 1,
                   kind == 'b'   ? "uint8"
                   : kind == 'i' ? "int64"
                                 : "uint64");
      goto fail;
    }
    v->used = i + 1;
  }
  return 0;
fail:
  release(v);
  return -1;
}

static size_t length_of(const views *v, int i) {
  const Py_buffer *b = &v->view[i];
  return b->buf == NULL ? 0 : (size_t)(b->len / b->itemsize);
}

static uint64_t *words_of(const views *v, int i) { return v->view[i].buf; }

static int size_error(int argument, size_t expected, size_t got) {
  PyErr_Format(PyExc_ValueError, "argument %d: expected %zu items, got %zu", argument + 1, expected, got);
  return -1;
}

/* Argument i has exactly rows * row items; the product is never formed, so it cannot overflow. */
static int has_rows(const views *v, int i, size_t row, size_t rows) {
  size_t length = length_of(v, i);
  if (row != 0 && length % row == 0 && length / row == rows) return 0;
  PyErr_Format(PyExc_ValueError, "argument %d: expected %zu rows of %zu items, got %zu items", i + 1, rows,
               row, length);
  return -1;
}

/* The number of rows of argument i, or -1. */
static Py_ssize_t rows_of(const views *v, int i, size_t row) {
  size_t length = length_of(v, i);
  if (row != 0 && length % row == 0) return (Py_ssize_t)(length / row);
  PyErr_Format(PyExc_ValueError, "argument %d: %zu items are no whole number of rows of %zu", i + 1, length,
               row);
  return -1;
}

/* Argument i has `rows` rows, or one that serves all: *step becomes 0 then. */
static int has_rows_or_one(const views *v, int i, size_t row, size_t rows, size_t *step) {
  *step = length_of(v, i) == row ? 0 : row;
  return *step == 0 ? 0 : has_rows(v, i, row, rows);
}

/* A small integer argument within limits, or -1. */
static long small_int(PyObject *o, const char *name, long low, long high) {
  long value = PyLong_AsLong(o);
  if (value == -1 && PyErr_Occurred()) return -1;
  if (value >= low && value <= high) return value;
  PyErr_Format(PyExc_ValueError, "%s must be between %ld and %ld, got %ld", name, low, high, value);
  return -1;
}

static size_t row_of(const RingObject *self) { return 2 * (size_t)self->ring.w.words; }

/* Runs a batch with work space for `vectors` vectors, without the GIL, and clears the space. */
#define RUN(self, vectors, statement)                        \
  do {                                                       \
    size_t work_words = mont_work(&(self)->ring, (vectors)); \
    uint64_t *work = new_words(work_words);                  \
    if (work == NULL) goto done;                             \
    Py_BEGIN_ALLOW_THREADS;                                  \
    statement;                                               \
    clear_words(work, work_words);                           \
    Py_END_ALLOW_THREADS;                                    \
    result = Py_NewRef(Py_None);                             \
  } while (0)

#define METHOD(name) static PyObject *ring_##name(RingObject *self, PyObject *const *args, Py_ssize_t nargs)

/* ---- products and sums ---- */

METHOD(mul) {
  views v;
  PyObject *result = NULL;
  size_t row = row_of(self), a_step, b_step;
  Py_ssize_t count;
  if (take(&v, args, nargs, 3, "wrr") < 0) return NULL;
  if ((count = rows_of(&v, 0, row)) < 0 || has_rows_or_one(&v, 1, row, (size_t)count, &a_step) < 0 ||
      has_rows_or_one(&v, 2, row, (size_t)count, &b_step) < 0)
    goto done;
  RUN(self, MONT_VECTORS_MUL,
      mont_batch_mul(&self->ring, words_of(&v, 0), words_of(&v, 1), a_step, words_of(&v, 2), b_step,
                     (size_t)count, work));
done:
  release(&v);
  return result;
}

METHOD(add) {
  views v;
  PyObject *result = NULL;
  size_t row = row_of(self);
  Py_ssize_t count;
  if (take(&v, args, nargs, 3, "wrr") < 0) return NULL;
  if ((count = rows_of(&v, 0, row)) < 0 || has_rows(&v, 1, row, (size_t)count) < 0 ||
      has_rows(&v, 2, row, (size_t)count) < 0)
    goto done;
  RUN(self, MONT_VECTORS_MUL,
      mont_batch_add(&self->ring, words_of(&v, 0), words_of(&v, 1), words_of(&v, 2), (size_t)count, work));
done:
  release(&v);
  return result;
}

METHOD(message) {
  views v;
  PyObject *result = NULL;
  size_t row = row_of(self), step;
  Py_ssize_t count;
  if (take(&v, args, nargs, 3, "wrr") < 0) return NULL;
  if ((count = rows_of(&v, 0, row)) < 0 || has_rows_or_one(&v, 1, row, (size_t)count, &step) < 0 ||
      has_rows(&v, 2, row / 2, (size_t)count) < 0)
    goto done;
  if (mont_first_not_below(&self->ring, words_of(&v, 2), (size_t)count) < (size_t)count) {
    PyErr_SetString(PyExc_ValueError, "a message is not below the modulus");
    goto done;
  }
  RUN(self, MONT_VECTORS_MUL,
      mont_batch_message(&self->ring, words_of(&v, 0), words_of(&v, 1), step, words_of(&v, 2), (size_t)count,
                         work));
done:
  release(&v);
  return result;
}

/* ---- powers ---- */

METHOD(pow_vartime) {
  views v;
  PyObject *result = NULL;
  size_t row = row_of(self), x_step, e_step, e_words = 0;
  Py_ssize_t count;
  long bits, window, shared;
  if (take(&v, args, nargs, 6, "wrr") < 0) return NULL;
  if ((count = rows_of(&v, 0, row)) < 0 || has_rows_or_one(&v, 1, row, (size_t)count, &x_step) < 0 ||
      (shared = small_int(args[3], "shared", 0, 1)) < 0 ||
      (bits = small_int(args[4], "bits", 0, INT_MAX / 2)) < 0 ||
      (window = small_int(args[5], "window", 1, MAX_POW_WINDOW)) < 0)
    goto done;
  e_words = ((size_t)bits + 63) / 64;
  e_step = shared ? 0 : e_words;
  if (e_words && has_rows(&v, 2, e_words, shared ? 1 : (size_t)count) < 0) goto done;
  RUN(self, MONT_VECTORS_POW(window),
      mont_batch_pow_vartime(&self->ring, words_of(&v, 0), words_of(&v, 1), x_step, words_of(&v, 2), e_words,
                             e_step, (unsigned)bits, (unsigned)window, (size_t)count, work));
done:
  release(&v);
  return result;
}

METHOD(pow_secret) {
  views v;
  PyObject *result = NULL;
  size_t row = row_of(self);
  Py_ssize_t count;
  long bits, window;
  if (take(&v, args, nargs, 5, "wrr") < 0) return NULL;
  if ((count = rows_of(&v, 0, row)) < 0 || has_rows(&v, 1, row, (size_t)count) < 0 ||
      (bits = small_int(args[3], "bits", 0, INT_MAX / 2)) < 0 ||
      (window = small_int(args[4], "window", 1, MAX_POW_WINDOW)) < 0)
    goto done;
  if (length_of(&v, 2) != ((size_t)bits + 63) / 64) {
    size_error(2, ((size_t)bits + 63) / 64, length_of(&v, 2));
    goto done;
  }
  RUN(self, MONT_VECTORS_POW(window),
      mont_batch_pow_secret(&self->ring, words_of(&v, 0), words_of(&v, 1), words_of(&v, 2), length_of(&v, 2),
                            (unsigned)bits, (unsigned)window, (size_t)count, work));
done:
  release(&v);
  return result;
}

METHOD(powers_of_two) {
  views v;
  PyObject *result = NULL;
  size_t row = row_of(self);
  Py_ssize_t count;
  long step;
  if (take(&v, args, nargs, 3, "wr") < 0) return NULL;
  if ((count = rows_of(&v, 0, row)) < 0 || has_rows(&v, 1, row, 1) < 0 ||
      (step = small_int(args[2], "step", 0, MAX_SHIFT)) < 0)
    goto done;
  RUN(self, 1,
      mont_powers_of_two(&self->ring, words_of(&v, 0), words_of(&v, 1), (unsigned)step, (size_t)count, work));
done:
  release(&v);
  return result;
}

/* ---- segments ---- */

/* start, length, place (arguments first .. first + 2): one item per unit, inside `limit` items and `places` rows. */
static int good_units(const views *v, int first, size_t limit, size_t places) {
  size_t units = length_of(v, first);
  const int64_t *start = v->view[first].buf, *length = v->view[first + 1].buf,
                *place = v->view[first + 2].buf;
  if (has_rows(v, first + 1, 1, units) < 0 || has_rows(v, first + 2, 1, units) < 0) return -1;
  for (size_t u = 0; u < units; u++) {
    int inside = start[u] >= 0 && length[u] >= 0 && (uint64_t)start[u] <= limit &&
                 (uint64_t)length[u] <= limit - (size_t)start[u];
    if (inside && place[u] >= 0 && (uint64_t)place[u] < places) continue;
    PyErr_Format(PyExc_ValueError,
                 "segment %zu: %lld items from %lld do not lie in %zu items, or row %lld in %zu", u,
                 (long long)length[u], (long long)start[u], limit, (long long)place[u], places);
    return -1;
  }
  return 0;
}

/* products(out, x, more, ...): indices number the rows of x, then those of `more`, which may be `out` or None. */
METHOD(products) {
  views v;
  PyObject *result = NULL;
  size_t row = row_of(self), limit;
  Py_ssize_t places, count, others;
  if (take(&v, args, nargs, 7, "wrRiiii") < 0) return NULL;
  if ((places = rows_of(&v, 0, row)) < 0 || (count = rows_of(&v, 1, row)) < 0 ||
      (others = rows_of(&v, 2, row)) < 0 || good_units(&v, 4, length_of(&v, 3), (size_t)places) < 0)
    goto done;
  limit = (size_t)count + (size_t)others;
  const int64_t *indices = v.view[3].buf, *start = v.view[4].buf, *length = v.view[5].buf;
  for (size_t u = 0; u < length_of(&v, 4); u++)
    for (int64_t i = start[u]; i < start[u] + length[u]; i++)
      if (indices[i] < 0 || (uint64_t)indices[i] >= limit) {
        PyErr_Format(PyExc_ValueError, "index %lld at position %lld is out of range for %zu rows",
                     (long long)indices[i], (long long)i, limit);
        goto done;
      }
  RUN(self, MONT_VECTORS_PRODUCTS,
      mont_batch_products(&self->ring, words_of(&v, 0), words_of(&v, 1), (size_t)count, words_of(&v, 2),
                          indices, start, length, v.view[6].buf, length_of(&v, 4), work));
done:
  release(&v);
  return result;
}

METHOD(horner) {
  views v;
  PyObject *result = NULL;
  size_t row = row_of(self);
  Py_ssize_t places, count;
  long shift;
  if (take(&v, args, nargs, 6, "wriii") < 0) return NULL;
  if ((places = rows_of(&v, 0, row)) < 0 || (count = rows_of(&v, 1, row)) < 0 ||
      (shift = small_int(args[5], "shift", 0, MAX_SHIFT)) < 0 ||
      good_units(&v, 2, (size_t)count, (size_t)places) < 0)
    goto done;
  RUN(self, MONT_VECTORS_HORNER,
      mont_batch_horner(&self->ring, words_of(&v, 0), words_of(&v, 1), v.view[2].buf, v.view[3].buf,
                        v.view[4].buf, length_of(&v, 2), (unsigned)shift, work));
done:
  release(&v);
  return result;
}

/* ---- fixed-base tables ---- */

static size_t table_row(const RingObject *self, long window) {
  return self->ring.ops->row_words(&self->ring, (size_t)1 << window);
}

METHOD(table_row_words) {
  long window;
  if (nargs != 1) return PyErr_Format(PyExc_TypeError, "expected 1 argument, got %zd", nargs);
  if ((window = small_int(args[0], "window", MONT_MIN_WINDOW, MONT_MAX_WINDOW)) < 0) return NULL;
  return PyLong_FromSize_t(table_row(self, window));
}

METHOD(table_build) {
  views v;
  PyObject *result = NULL;
  Py_ssize_t rows;
  long window;
  if (take(&v, args, nargs, 3, "wr") < 0) return NULL;
  if ((window = small_int(args[2], "window", MONT_MIN_WINDOW, MONT_MAX_WINDOW)) < 0 ||
      (rows = rows_of(&v, 1, row_of(self))) < 0 || has_rows(&v, 0, table_row(self, window), (size_t)rows) < 0)
    goto done;
  RUN(self, MONT_VECTORS_TABLE,
      mont_table_build(&self->ring, words_of(&v, 0), words_of(&v, 1), (size_t)rows, (unsigned)window, work));
done:
  release(&v);
  return result;
}

/* table_choice(row, x, window): a row with entry 1 = x and every other entry one. */
METHOD(table_choice) {
  views v;
  PyObject *result = NULL;
  long window;
  if (take(&v, args, nargs, 3, "wr") < 0) return NULL;
  if ((window = small_int(args[2], "window", MONT_MIN_WINDOW, MONT_MAX_WINDOW)) < 0 ||
      has_rows(&v, 1, row_of(self), 1) < 0 || has_rows(&v, 0, table_row(self, window), 1) < 0)
    goto done;
  for (size_t entry = 0; entry < (size_t)1 << window; entry++)
    self->ring.ops->row_put(&self->ring, words_of(&v, 0), (size_t)1 << window, entry,
                            entry == 1 ? words_of(&v, 1) : self->ring.one);
  result = Py_NewRef(Py_None);
done:
  release(&v);
  return result;
}

METHOD(table_power) {
  views v;
  PyObject *result = NULL;
  Py_ssize_t count, rows;
  long window;
  if (take(&v, args, nargs, 6, "wrrRB") < 0) return NULL;
  if ((window = small_int(args[5], "window", MONT_MIN_WINDOW, MONT_MAX_WINDOW)) < 0 ||
      (count = rows_of(&v, 0, row_of(self))) < 0 || (rows = rows_of(&v, 1, table_row(self, window))) < 0)
    goto done;
  size_t e_words = ((size_t)rows * (size_t)window + 63) / 64;
  if (e_words && has_rows(&v, 2, e_words, (size_t)count) < 0) goto done;
  int extra = v.view[3].buf != NULL;
  if (extra && (has_rows(&v, 3, table_row(self, window), 1) < 0 || has_rows(&v, 4, 1, (size_t)count) < 0))
    goto done;
  RUN(self, MONT_VECTORS_TABLE,
      mont_table_power(&self->ring, words_of(&v, 0), words_of(&v, 1), (size_t)rows, (unsigned)window,
                       v.view[3].buf, words_of(&v, 2), e_words, v.view[4].buf, (size_t)count, work));
done:
  release(&v);
  return result;
}

/* ---- conversions ---- */

METHOD(one) {
  views v;
  PyObject *result = NULL;
  if (take(&v, args, nargs, 1, "w") < 0) return NULL;
  if (has_rows(&v, 0, row_of(self), 1) < 0) goto done;
  memcpy(words_of(&v, 0), self->ring.one, row_of(self) * sizeof(uint64_t));
  result = Py_NewRef(Py_None);
done:
  release(&v);
  return result;
}

/* Functions that report an index return it: the number of rows when all is well. */
METHOD(from_plain) {
  views v;
  PyObject *result = NULL;
  Py_ssize_t count;
  size_t good = 0;
  if (take(&v, args, nargs, 2, "wr") < 0) return NULL;
  if ((count = rows_of(&v, 0, row_of(self))) < 0 || has_rows(&v, 1, row_of(self), (size_t)count) < 0)
    goto done;
  RUN(self, MONT_VECTORS_CONVERT,
      good = mont_batch_from_plain(&self->ring, words_of(&v, 0), words_of(&v, 1), (size_t)count, work));
  Py_SETREF(result, PyLong_FromSize_t(good));
done:
  release(&v);
  return result;
}

METHOD(to_plain) {
  views v;
  PyObject *result = NULL;
  Py_ssize_t count;
  if (take(&v, args, nargs, 2, "wr") < 0) return NULL;
  if ((count = rows_of(&v, 0, row_of(self))) < 0 || has_rows(&v, 1, row_of(self), (size_t)count) < 0)
    goto done;
  RUN(self, MONT_VECTORS_CONVERT,
      mont_batch_to_plain(&self->ring, words_of(&v, 0), words_of(&v, 1), (size_t)count, work));
done:
  release(&v);
  return result;
}

METHOD(redc) {
  views v;
  PyObject *result = NULL;
  size_t good, n = self->ring.w.words;
  Py_ssize_t count;
  if (take(&v, args, nargs, 2, "wr") < 0) return NULL;
  if ((count = rows_of(&v, 0, n)) < 0 || has_rows(&v, 1, 2 * n, (size_t)count) < 0) goto done;
  Py_BEGIN_ALLOW_THREADS;
  good = mont_batch_redc(&self->ring, words_of(&v, 0), words_of(&v, 1), (size_t)count);
  Py_END_ALLOW_THREADS;
  result = PyLong_FromSize_t(good);
done:
  release(&v);
  return result;
}

METHOD(reduce) {
  views v;
  PyObject *result = NULL;
  Py_ssize_t count;
  long x_words;
  size_t n = self->ring.w.words;
  if (take(&v, args, nargs, 5, "wrrr") < 0) return NULL;
  if ((x_words = small_int(args[4], "x_words", 1, 2 * (long)n)) < 0 || (count = rows_of(&v, 0, 2 * n)) < 0 ||
      has_rows(&v, 1, 2 * (size_t)x_words, (size_t)count) < 0 || has_rows(&v, 2, n, 1) < 0 ||
      has_rows(&v, 3, 2 * n, 1) < 0)
    goto done;
  RUN(self, MONT_VECTORS_CONVERT,
      mont_batch_reduce(&self->ring, words_of(&v, 0), words_of(&v, 1), (size_t)x_words, words_of(&v, 2),
                        words_of(&v, 3), (size_t)count, work));
done:
  release(&v);
  return result;
}

METHOD(embed) {
  views v;
  PyObject *result = NULL;
  Py_ssize_t count;
  long wraps;
  if (take(&v, args, nargs, 4, "wrr") < 0) return NULL;
  size_t f_words = length_of(&v, 2), n = self->ring.w.words;
  if ((wraps = small_int(args[3], "wraps", 0, MAX_WRAPS)) < 0 || (count = rows_of(&v, 0, 2 * n)) < 0)
    goto done;
  if (f_words == 0 || (2 * f_words != n && 2 * f_words != n + 1)) {
    size_error(2, (n + 1) / 2, f_words);
    goto done;
  }
  if (has_rows(&v, 1, 2 * f_words, (size_t)count) < 0) goto done;
  Py_BEGIN_ALLOW_THREADS;
  mont_batch_embed(&self->ring, words_of(&v, 0), words_of(&v, 1), words_of(&v, 2), f_words, (unsigned)wraps,
                   (size_t)count);
  Py_END_ALLOW_THREADS;
  result = Py_NewRef(Py_None);
done:
  release(&v);
  return result;
}

METHOD(log) {
  views v;
  PyObject *result = NULL;
  Py_ssize_t count;
  size_t good = 0, n = self->ring.w.words;
  if (take(&v, args, nargs, 3, "wrr") < 0) return NULL;
  if ((count = rows_of(&v, 0, n)) < 0 || has_rows(&v, 1, 2 * n, (size_t)count) < 0 ||
      has_rows(&v, 2, n, 1) < 0)
    goto done;
  RUN(self, MONT_VECTORS_CONVERT,
      good = mont_batch_log(&self->ring, words_of(&v, 0), words_of(&v, 1), words_of(&v, 2), (size_t)count,
                            work));
  Py_SETREF(result, PyLong_FromSize_t(good));
done:
  release(&v);
  return result;
}

METHOD(garner) {
  views v;
  PyObject *result = NULL;
  Py_ssize_t count;
  size_t n = self->ring.w.words;
  long out_words;
  if (take(&v, args, nargs, 6, "wrrrr") < 0) return NULL;
  if ((out_words = small_int(args[5], "out_words", 1, 2 * (long)n)) < 0 ||
      (count = rows_of(&v, 0, (size_t)out_words)) < 0 || has_rows(&v, 1, n, (size_t)count) < 0 ||
      has_rows(&v, 2, n, (size_t)count) < 0 || has_rows(&v, 3, n, 1) < 0 || has_rows(&v, 4, n, 1) < 0)
    goto done;
  Py_BEGIN_ALLOW_THREADS;
  mont_batch_garner(&self->ring, words_of(&v, 0), (size_t)out_words, words_of(&v, 1), words_of(&v, 2),
                    words_of(&v, 3), words_of(&v, 4), (size_t)count);
  Py_END_ALLOW_THREADS;
  result = Py_NewRef(Py_None);
done:
  release(&v);
  return result;
}

/* ---- the type ---- */

static const mont_ops *find_backend(const char *name) {
  for (size_t i = 0; mont_backend(i) != NULL; i++)
    if (strcmp(mont_backend(i)->name, name) == 0) return mont_backend(i);
  PyErr_Format(PyExc_ValueError, "no backend called '%s'", name);
  return NULL;
}

static unsigned top_bit(uint64_t word) {
  unsigned bits = 0;
  for (; word; word >>= 1) bits++;
  return bits;
}

static PyObject *ring_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
  const char *name;
  Py_buffer m;
  if (kwargs && PyDict_GET_SIZE(kwargs))
    return PyErr_Format(PyExc_TypeError, "Ring takes no keyword arguments");
  if (!PyArg_ParseTuple(args, "sy*:Ring", &name, &m)) return NULL;
  RingObject *self = NULL;
  uint64_t words[MONT_MAX_BITS / 64];
  size_t n = (size_t)m.len / 8;
  const mont_ops *ops = find_backend(name);
  if (ops == NULL) goto done;
  if (!mont_runs(ops)) {
    PyErr_Format(PyExc_ValueError, "backend '%s' does not run on this machine", name);
    goto done;
  }
  if (m.len % 8 != 0 || n == 0 || n > MONT_MAX_BITS / 64) {
    PyErr_Format(PyExc_ValueError, "a modulus has 1 to %d words of 8 bytes, got %zd bytes",
                 MONT_MAX_BITS / 64, m.len);
    goto done;
  }
  memcpy(words, m.buf, n * 8);
  if (words[n - 1] == 0 || !(words[0] & 1) || (n == 1 && words[0] < 3)) {
    PyErr_SetString(PyExc_ValueError, "a modulus is odd, at least 3, and has no leading zero word");
    goto done;
  }
  self = (RingObject *)type->tp_alloc(type, 0);
  if (self == NULL) goto done;
  unsigned bits = (unsigned)(64 * (n - 1)) + top_bit(words[n - 1]);
  self->block_words = mont_ring_words(ops, (uint32_t)n, bits);
  self->block = new_words(self->block_words);
  if (self->block == NULL) {
    Py_CLEAR(self);
    goto done;
  }
  mont_ring_init(&self->ring, ops, words, (uint32_t)n, bits, self->block);
done:
  mont_clear(words, sizeof words);
  PyBuffer_Release(&m);
  return (PyObject *)self;
}

static void ring_dealloc(RingObject *self) {
  PyTypeObject *type = Py_TYPE(self);
  clear_words(self->block, self->block_words);
  type->tp_free(self);
  Py_DECREF(type);
}

static PyObject *ring_get_words(RingObject *self, void *unused) {
  (void)unused;
  return PyLong_FromUnsignedLong(self->ring.w.words);
}

static PyObject *ring_get_lanes(RingObject *self, void *unused) {
  (void)unused;
  return PyLong_FromUnsignedLong(self->ring.ops->lanes);
}

static PyObject *ring_get_r_bits(RingObject *self, void *unused) {
  (void)unused;
  return PyLong_FromUnsignedLong(self->ring.ops->limb_bits * self->ring.limbs);
}

#define ENTRY(name) {#name, (PyCFunction)(void (*)(void))ring_##name, METH_FASTCALL, NULL}
static PyMethodDef ring_methods[] = {
    ENTRY(mul),           ENTRY(add),           ENTRY(message),         ENTRY(pow_vartime),
    ENTRY(pow_secret),    ENTRY(powers_of_two), ENTRY(products),        ENTRY(horner),
    ENTRY(table_build),   ENTRY(table_choice),  ENTRY(table_row_words), ENTRY(table_power),
    ENTRY(one),           ENTRY(from_plain),    ENTRY(to_plain),        ENTRY(reduce),
    ENTRY(embed),         ENTRY(log),           ENTRY(garner),          ENTRY(redc),
    {NULL, NULL, 0, NULL}};
static PyGetSetDef ring_getset[] = {{"words", (getter)ring_get_words, NULL, NULL, NULL},
                                    {"lanes", (getter)ring_get_lanes, NULL, NULL, NULL},
                                    {"r_bits", (getter)ring_get_r_bits, NULL, NULL, NULL},
                                    {NULL, NULL, NULL, NULL, NULL}};
static PyType_Slot ring_slots[] = {{Py_tp_new, ring_new},
                                   {Py_tp_dealloc, ring_dealloc},
                                   {Py_tp_methods, ring_methods},
                                   {Py_tp_getset, ring_getset},
                                   {0, NULL}};
static PyType_Spec ring_spec = {"vflcrypto._native.Ring", sizeof(RingObject), 0, Py_TPFLAGS_DEFAULT,
                                ring_slots};

/* ---- the module ---- */

/* backends(): [(name, whether CPU and system can run it)], best first. */
static PyObject *module_backends(PyObject *module, PyObject *unused) {
  (void)module, (void)unused;
  PyObject *list = PyList_New(0);
  for (size_t i = 0; list != NULL && mont_backend(i) != NULL; i++) {
    PyObject *pair =
        Py_BuildValue("(sO)", mont_backend(i)->name, mont_runs(mont_backend(i)) ? Py_True : Py_False);
    if (pair == NULL || PyList_Append(list, pair) < 0) Py_CLEAR(list);
    Py_XDECREF(pair);
  }
  return list;
}

static PyObject *module_self_test(PyObject *module, PyObject *name) {
  (void)module;
  const char *text = PyUnicode_AsUTF8(name);
  const mont_ops *ops = text ? find_backend(text) : NULL;
  if (ops == NULL) return NULL;
  return PyBool_FromLong(mont_runs(ops) && mont_self_test(ops));
}

static PyObject *module_cpu_features(PyObject *module, PyObject *unused) {
  (void)module, (void)unused;
  char text[256];
  return PyUnicode_FromStringAndSize(text, (Py_ssize_t)mont_cpu_features(text, sizeof text));
}

static PyMethodDef module_methods[] = {{"backends", module_backends, METH_NOARGS, NULL},
                                       {"self_test", module_self_test, METH_O, NULL},
                                       {"cpu_features", module_cpu_features, METH_NOARGS, NULL},
                                       {NULL, NULL, 0, NULL}};

static int module_exec(PyObject *module) {
  PyObject *type = PyType_FromModuleAndSpec(module, &ring_spec, NULL);
  if (type == NULL) return -1;
  int failed = PyModule_AddObjectRef(module, "Ring", type);
  Py_DECREF(type);
  return failed;
}

static PyModuleDef_Slot module_slots[] = {{Py_mod_exec, module_exec}, {0, NULL}};
static PyModuleDef module_def = {PyModuleDef_HEAD_INIT, "_native", NULL, 0,   module_methods,
                                 module_slots,          NULL,      NULL, NULL};

PyMODINIT_FUNC PyInit__native(void) { return PyModuleDef_Init(&module_def); }
