/* Plain arrays of doubles for the references of the op table. */
#include "array.h"

#include <stdlib.h>
#include <string.h>

array array_new(int rank, const int64_t *shape)
{
    array a = {.rank = rank, .count = 1};
    for (int axis = 0; axis < rank; axis++) {
        a.shape[axis] = shape[axis];
        a.count *= shape[axis];
    }
    a.data = calloc((size_t)a.count + 1, sizeof *a.data);
    if (!a.data) abort();
    return a;
}

void array_free(array *a)
{
    free(a->data);
    a->data = NULL;
}

array array_read(const rapt_tensor *tensor)
{
    array a = array_new(rapt_rank(tensor), rapt_shape(tensor));
    double *to = a.data;
    ARRAY_EACH(a, w) *to++ = rapt_at(tensor, w.index);
    return a;
}

double *array_at(const array *a, int rank, const int64_t *index)
{
    int64_t offset = 0;
    index += rank - a->rank;
    for (int axis = 0; axis < a->rank; axis++)
        offset = offset * a->shape[axis] + (a->shape[axis] == 1 ? 0 : index[axis]);
    return a->data + offset;
}

bool array_next(int rank, const int64_t *shape, int64_t *index)
{
    for (int axis = rank - 1; axis >= 0; axis--) {
        if (++index[axis] < shape[axis]) return true;
        index[axis] = 0;
    }
    return false;
}
