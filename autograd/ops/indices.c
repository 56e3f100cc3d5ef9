/* The indices that an op takes, checked and as one dtype. */
#include "indices.h"

#include <stdatomic.h>

#include "tensor/map.h"
#include "tensor/parallel.h"

typedef struct range_check {
    const int64_t *index;
    int64_t size;
    atomic_bool failed;
} range_check;

/* Of an index outside of [0, size), it or size − 1 less it is negative: without a branch for each, which takes longer
 * than to read them. */
static void look_at_range(void *context, int64_t first, int64_t last)
{
    range_check *c = context;
    const uint64_t largest = (uint64_t)c->size - 1;
    uint64_t signs = 0;
    for (int64_t i = first; i < last; i++) signs |= (uint64_t)c->index[i] | (largest - (uint64_t)c->index[i]);
    if (signs >> 63) atomic_store_explicit(&c->failed, true, memory_order_relaxed);
}

static bool check_range(const char *op, const rapt_tensor *dense, int64_t size)
{
    range_check c = {.index = (const int64_t *)(const void *)dense->data, .size = size};
    rapt_parallel_evenly(dense->count, rapt_grain(1), look_at_range, &c);
    if (!atomic_load_explicit(&c.failed, memory_order_relaxed)) return true;
    int64_t i = 0, position[RAPT_MAX_RANK];
    while (c.index[i] >= 0 && c.index[i] < size) i++;
    for (int64_t axis = dense->rank - 1, rest = i; axis >= 0; axis--) {
        position[axis] = rest % dense->shape[axis];
        rest /= dense->shape[axis];
    }
    char text[RAPT_SHAPE_TEXT];
    return rapt_fail(RAPT_ERROR_VALUE, op, "index %lld at position %s is out of range; %lld places to choose from",
                     (long long)c.index[i], rapt_shape_text(dense->rank, position, text), (long long)size);
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
