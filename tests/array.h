/* Plain arrays of doubles in row-major order, for the references of the op table: slow, and simple enough to be
 * believed. */
#ifndef RAPT_TESTS_ARRAY_H
#define RAPT_TESTS_ARRAY_H

#include <rapt.h>

typedef struct array {
    int rank;
    int64_t shape[RAPT_MAX_RANK];
    int64_t count;
    double *data;
} array;

/* Zeros. Freed by array_free. */
array array_new(int rank, const int64_t *shape);
void array_free(array *a);

/* A copy of a tensor's elements, of any dtype and strides. */
array array_read(const rapt_tensor *tensor);

/* The element at those indices. Axes that `index` has too many of, at the front, are left out, and an axis of size 1
 * is read at 0 always: broadcasting. */
double *array_at(const array *a, int rank, const int64_t *index);

/* Steps to the next index in row-major order; false after the last. `for (bool more = a.count > 0; more; more =
 * array_next(…))` */
bool array_next(int rank, const int64_t *shape, int64_t *index);

/* A walk over all indices of a shape; `index` starts at zeros and `more` ends it. */
typedef struct array_walk {
    int64_t index[RAPT_MAX_RANK];
    bool more;
} array_walk;
#define ARRAY_EACH(a, w)                                                                                               \
    for (array_walk w = {.more = (a).count > 0}; w.more; w.more = array_next((a).rank, (a).shape, w.index))

#endif
