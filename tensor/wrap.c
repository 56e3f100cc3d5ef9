/* Memory of others as tensors. */
#include <rapt/wrap.h>

#include "tensor/core.h"

static bool check_place(const char *op, rapt_dtype dtype, int64_t count, const void *data)
{
    if (count == 0) return true;
    if (!data) return rapt_fail_null(op, "data");
    const size_t alignment = rapt_element_bytes[dtype];
    return (uintptr_t)data % alignment == 0 ||
           rapt_fail(RAPT_ERROR_VALUE, op,
                     "data at %p is not aligned: %s expects a multiple of %zu bytes; copy it with rapt_from", data,
                     rapt_dtype_name(dtype), alignment);
}

/* Axes that have more than one place, by falling stride; returns how many. */
static int order_axes(int rank, const int64_t *shape, const int64_t *strides, int order[RAPT_MAX_RANK])
{
    int count = 0;
    for (int axis = 0; axis < rank; axis++) {
        if (shape[axis] <= 1) continue;
        int place = count++;
        for (; place > 0 && strides[order[place - 1]] < strides[axis]; place--) order[place] = order[place - 1];
        order[place] = axis;
    }
    return count;
}

static bool fail_overlap(const char *op, int axis, int64_t stride, int64_t elements)
{
    return rapt_fail(RAPT_ERROR_VALUE, op,
                     "stride %lld of axis %d is smaller than the %lld elements between the first and the last of the "
                     "axes inside it, so that elements overlap; 0 repeats an element, else copy the array first",
                     (long long)stride, axis, (long long)elements);
}

/* Each step along an axis leads past all that the axes with smaller strides reach, and the last byte has an address. */
static bool check_strides(const char *op, rapt_dtype dtype, int rank, const int64_t *shape, const int64_t *strides,
                          const void *data)
{
    int order[RAPT_MAX_RANK];
    for (int axis = 0; axis < rank; axis++)
        if (shape[axis] > 1 && strides[axis] < 0)
            return rapt_fail(RAPT_ERROR_VALUE, op, "stride %lld of axis %d is negative; copy the array first",
                             (long long)strides[axis], axis);
    int64_t elements = 1, bytes; /* up to the last that was reached so far */
    for (int i = order_axes(rank, shape, strides, order) - 1; i >= 0; i--) {
        const int axis = order[i];
        if (strides[axis] == 0) continue;
        if (strides[axis] < elements) return fail_overlap(op, axis, strides[axis], elements);
        int64_t reach;
        if (__builtin_mul_overflow(shape[axis] - 1, strides[axis], &reach) ||
            __builtin_add_overflow(elements, reach, &elements) ||
            __builtin_mul_overflow(elements, (int64_t)rapt_element_bytes[dtype], &bytes) || bytes > PTRDIFF_MAX / 2 ||
            (uintptr_t)data > UINTPTR_MAX - (uintptr_t)bytes)
            return rapt_fail(RAPT_ERROR_VALUE, op, "stride %lld of axis %d leads beyond all memory",
                             (long long)strides[axis], axis);
    }
    return true;
}

rapt_tensor *rapt_new_wrapped(const char *op, rapt_dtype dtype, int rank, const int64_t *shape, const int64_t *strides,
                              const void *data, bool is_read_only, void (*release)(void *), void *owner)
{
    int64_t count;
    if (!rapt_check_shape(op, dtype, rank, shape, &count) || !check_place(op, dtype, count, data)) return NULL;
    const bool is_strided = strides && count > 0;
    if (is_strided && !check_strides(op, dtype, rank, shape, strides, data)) return NULL;
    static char nothing[1];
    rapt_tensor *tensor =
        rapt_new_foreign(op, dtype, rank, shape, data ? (void *)(uintptr_t)data : nothing, release, owner);
    if (!tensor) return NULL;
    tensor->storage->is_read_only = is_read_only;
    if (is_strided) rapt_set_strides(tensor, strides);
    return tensor;
}

rapt_tensor *rapt_wrap(rapt_dtype dtype, int rank, const int64_t *shape, const int64_t *strides, void *data,
                       void (*release)(void *owner), void *owner)
{
    return rapt_new_wrapped("wrap", dtype, rank, shape, strides, data, false, release, owner);
}

rapt_tensor *rapt_wrap_read_only(rapt_dtype dtype, int rank, const int64_t *shape, const int64_t *strides,
                                 const void *data, void (*release)(void *owner), void *owner)
{
    return rapt_new_wrapped("wrap_read_only", dtype, rank, shape, strides, data, true, release, owner);
}
