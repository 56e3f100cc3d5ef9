/* The indices that an op takes, checked and as one dtype. */
#include "indices.h"

#include "tensor/map.h"

static bool check_range(const char *op, const rapt_tensor *dense, int64_t size)
{
    const int64_t *index = (const int64_t *)(const void *)dense->data;
    for (int64_t i = 0; i < dense->count; i++) {
        if (index[i] >= 0 && index[i] < size) continue;
        int64_t position[RAPT_MAX_RANK], rest = i;
        for (int axis = dense->rank - 1; axis >= 0; axis--) {
            position[axis] = rest % dense->shape[axis];
            rest /= dense->shape[axis];
        }
        char text[RAPT_SHAPE_TEXT];
        return rapt_fail(RAPT_ERROR_VALUE, op, "index %lld at position %s is out of range; %lld places to choose from",
                         (long long)index[i], rapt_shape_text(dense->rank, position, text), (long long)size);
    }
    return true;
}

rapt_tensor *rapt_checked_indices(const char *op, const rapt_tensor *indices, int64_t size)
{
    if (!rapt_is_integer(indices)) {
        rapt_fail(RAPT_ERROR_DTYPE, op, "indices are %s; int64 or int32 expected (rapt_cast converts)",
                  rapt_dtype_name(indices->dtype));
        return NULL;
    }
    const rapt_tensor *once = rapt_without_repeats(indices, indices->rank);
    if (!once) return NULL;
    if (once->dtype != RAPT_INT64 || !once->contiguous) {
        rapt_tensor *converted = rapt_new(op, RAPT_INT64, once->rank, once->shape);
        if (!converted) return NULL;
        rapt_map(rapt_kernel.elementwise.cast[RAPT_INT64][once->dtype], NULL, 1, 2,
                 (const rapt_tensor *[]){converted, once});
        once = converted;
    }
    if (!check_range(op, once, size)) return NULL;
    int64_t strides[RAPT_MAX_RANK];
    rapt_broadcast_strides(once, indices->rank, indices->shape, strides);
    return rapt_new_view(once, once->data, indices->rank, indices->shape, strides);
}
