/* Shapes and axes: the checks and the broadcasting that all ops share. */
#include <stdio.h>
#include <string.h>

#include <rapt/print.h>

#include "tensor/core.h"

const uint8_t rapt_element_bytes[RAPT_DTYPE_COUNT] = {
    [RAPT_FLOAT32] = 4, [RAPT_FLOAT64] = 8, [RAPT_INT64] = 8, [RAPT_INT32] = 4, [RAPT_UINT8] = 1, [RAPT_BOOL] = 1,
};

static const char *const names[RAPT_DTYPE_COUNT] = {
    [RAPT_FLOAT32] = "float32", [RAPT_FLOAT64] = "float64", [RAPT_INT64] = "int64",
    [RAPT_INT32] = "int32",     [RAPT_UINT8] = "uint8",     [RAPT_BOOL] = "bool",
};

static bool is_dtype(rapt_dtype dtype)
{
    return (unsigned)dtype < RAPT_DTYPE_COUNT;
}

size_t rapt_dtype_size(rapt_dtype dtype)
{
    return is_dtype(dtype) ? rapt_element_bytes[dtype] : 0;
}

const char *rapt_dtype_name(rapt_dtype dtype)
{
    return is_dtype(dtype) ? names[dtype] : "invalid";
}

bool rapt_dtype_is_floating(rapt_dtype dtype)
{
    return dtype == RAPT_FLOAT32 || dtype == RAPT_FLOAT64;
}

char *rapt_shape_text(int rank, const int64_t *shape, char buffer[RAPT_SHAPE_TEXT])
{
    int used = snprintf(buffer, RAPT_SHAPE_TEXT, "[");
    for (int axis = 0; axis < rank; axis++)
        used += snprintf(buffer + used, (size_t)(RAPT_SHAPE_TEXT - used), "%s%lld", axis ? ", " : "",
                         (long long)shape[axis]);
    snprintf(buffer + used, (size_t)(RAPT_SHAPE_TEXT - used), "]");
    return buffer;
}

bool rapt_check_floating(const char *op, const rapt_tensor *tensor)
{
    return rapt_is_floating(tensor) ||
           rapt_fail(RAPT_ERROR_DTYPE, op, "not defined for %s; float32 or float64 expected (rapt_cast converts)",
                     rapt_dtype_name(tensor->dtype));
}

bool rapt_check_probability(const char *op, const char *what, double probability)
{
    return (probability >= 0 && probability <= 1) ||
           rapt_fail(RAPT_ERROR_VALUE, op, "%s %g; 0 to 1 expected", what, probability);
}

bool rapt_check_shape(const char *op, rapt_dtype dtype, int rank, const int64_t *shape, int64_t *count)
{
    if (!is_dtype(dtype)) return rapt_fail(RAPT_ERROR_DTYPE, op, "%d is not a dtype", (int)dtype);
    if (rank < 0 || rank > RAPT_MAX_RANK)
        return rapt_fail(RAPT_ERROR_SHAPE, op, "rank %d; 0 to %d expected", rank, RAPT_MAX_RANK);
    if (rank > 0 && !shape) return rapt_fail_null(op, "shape");
    ptrdiff_t bytes = (ptrdiff_t)rapt_dtype_size(dtype); /* with every 0 taken for 1, so that strides cannot overflow */
    *count = 1;
    for (int axis = 0; axis < rank; axis++) {
        if (shape[axis] < 0)
            return rapt_fail(RAPT_ERROR_SHAPE, op, "size %lld of axis %d is negative", (long long)shape[axis], axis);
        *count *= shape[axis] == 0 || *count == 0 ? 0 : 1;
        if (__builtin_mul_overflow(bytes, shape[axis] ? shape[axis] : 1, &bytes)) {
            char text[RAPT_SHAPE_TEXT];
            return rapt_fail(RAPT_ERROR_MEMORY, op, "a tensor of shape %s has more bytes than %d bits can count",
                             rapt_shape_text(rank, shape, text), (int)(8 * sizeof bytes));
        }
    }
    if (*count) *count = bytes / (int64_t)rapt_dtype_size(dtype);
    return true;
}

int rapt_check_axis(const char *op, int axis, int rank, int extra)
{
    int places = rank + extra;
    if (axis < -places || axis >= places) {
        if (places == 0)
            rapt_fail(RAPT_ERROR_SHAPE, op, "axis %d of a tensor of rank 0, which has none", axis);
        else
            rapt_fail(RAPT_ERROR_SHAPE, op, "axis %d of a tensor of rank %d; %d to %d expected", axis, rank, -places,
                      places - 1);
        return -1;
    }
    return axis < 0 ? axis + places : axis;
}

const char *rapt_batch_cure(const rapt_tensor *x, int rank)
{
    return x->rank == rank - 1 ? "; a batch of one has an axis, too (rapt_unsqueeze)" : "";
}

/* Has the one, with fewer axes, the sizes of the other's first axes? Then it was meant to stand for these. */
static bool is_front_of(const rapt_tensor *front, const rapt_tensor *x)
{
    return front->rank > 0 && front->rank < x->rank &&
           memcmp(front->shape, x->shape, (size_t)front->rank * sizeof *x->shape) == 0;
}

int rapt_broadcast(const char *op, const rapt_tensor *a, const rapt_tensor *b, int64_t shape[RAPT_MAX_RANK])
{
    int rank = a->rank > b->rank ? a->rank : b->rank;
    for (int i = 1; i <= rank; i++) {
        int64_t size_a = i <= a->rank ? a->shape[a->rank - i] : 1;
        int64_t size_b = i <= b->rank ? b->shape[b->rank - i] : 1;
        if (size_a != size_b && size_a != 1 && size_b != 1) {
            char text_a[RAPT_SHAPE_TEXT], text_b[RAPT_SHAPE_TEXT];
            rapt_fail(RAPT_ERROR_SHAPE, op,
                      "shapes %s and %s do not broadcast: sizes %lld and %lld, %d from the last axis%s",
                      rapt_shape_text(a->rank, a->shape, text_a), rapt_shape_text(b->rank, b->shape, text_b),
                      (long long)size_a, (long long)size_b, i - 1,
                      is_front_of(a, b) || is_front_of(b, a)
                          ? "; axes of size 1 behind the shorter shape make it fit (rapt_unsqueeze)"
                          : "");
            return -1;
        }
        shape[rank - i] = size_a == 1 ? size_b : size_a;
    }
    return rank;
}

void rapt_broadcast_strides(const rapt_tensor *tensor, int rank, const int64_t *shape, int64_t strides[RAPT_MAX_RANK])
{
    int missing = rank - tensor->rank;
    for (int axis = 0; axis < rank; axis++) {
        bool repeats = axis < missing || (tensor->shape[axis - missing] == 1 && shape[axis] != 1);
        strides[axis] = repeats ? 0 : tensor->strides[axis - missing];
    }
}

char *rapt_describe(const rapt_tensor *tensor, char *buffer, size_t size)
{
    char shape[RAPT_SHAPE_TEXT];
    if (!buffer || size == 0) return buffer;
    if (!tensor)
        snprintf(buffer, size, "NULL");
    else
        snprintf(buffer, size, "%s %s", rapt_dtype_name(tensor->dtype),
                 rapt_shape_text(tensor->rank, tensor->shape, shape));
    return buffer;
}
