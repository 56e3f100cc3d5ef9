/* What is seen under a mask that is resolved: by each query, and by any. */
#include "nn/mask.h"

#include <string.h>

#include "tensor/core.h"

/* The tensor with a size of 1 where an axis only repeats. */
static rapt_tensor *once(rapt_tensor *tensor)
{
    for (int axis = 0; tensor && axis < tensor->rank; axis++)
        if (tensor->strides[axis] == 0 && tensor->shape[axis] > 1) tensor = rapt_slice(tensor, axis, 0, 1, 1);
    return tensor;
}

bool rapt_join_seen(rapt_tensor *ranges, rapt_tensor *seen, int64_t keys, rapt_tensor **joined)
{
    RAPT_NO_GRADIENT;
    *joined = NULL;
    if (!ranges && !seen) return true;
    rapt_tensor *inside = NULL;
    if (ranges) { /* first ≤ j and j < last: (B or 1, 1, Q, K) */
        rapt_tensor *key = rapt_arange(RAPT_INT64, 0, (double)keys, 1), *row = rapt_unsqueeze(ranges, 1);
        inside = rapt_logical_and(rapt_less_equal(rapt_slice(row, -1, 0, 1, 1), key),
                                  rapt_less(key, rapt_slice(row, -1, 1, 2, 1)));
    }
    if (seen) seen = once(seen);
    *joined = ranges && seen ? rapt_logical_and(inside, seen) : ranges ? inside : seen;
    return *joined != NULL;
}

/* bool (items, 1, K): the union of the intervals of an item's queries, by how many of them begin and end before a key. */
static rapt_tensor *join_ranges(const rapt_resolved_mask *r)
{
    const int64_t items = r->ranges->shape[0], *range = (const int64_t *)(const void *)r->ranges->data;
    rapt_tensor *any = rapt_empty(RAPT_BOOL, RAPT_SHAPE(items, 1, r->keys)),
                *changes = rapt_empty(RAPT_INT64, RAPT_SHAPE(r->keys + 1));
    if (!any || !changes) return NULL;
    int64_t *change = (int64_t *)(void *)changes->data;
    for (int64_t item = 0; item < items; item++) {
        memset(change, 0, (size_t)(r->keys + 1) * sizeof *change);
        for (int64_t query = 0; query < r->queries; query++, range += 2) {
            change[range[0]]++;
            change[range[1]]--;
        }
        int64_t open = 0;
        for (int64_t key = 0; key < r->keys; key++) any->data[item * r->keys + key] = (open += change[key]) > 0;
    }
    return any;
}

/* bool (B or 1, groups or 1, K or 1) */
static rapt_tensor *join_queries(const rapt_resolved_mask *r, int64_t groups)
{
    rapt_tensor *seen;
    if (!r->seen) return join_ranges(r);
    if (!rapt_join_seen(r->ranges, r->seen, r->keys, &seen)) return NULL;
    int64_t of_group = seen->shape[1] == 1 ? 1 : r->heads / groups, lines = of_group * seen->shape[2];
    seen = rapt_reshape(seen, RAPT_SHAPE(seen->shape[0], seen->shape[1] / of_group, lines, seen->shape[3]));
    return rapt_greater(rapt_sum(seen, RAPT_AXES(2), false), rapt_scalar(RAPT_INT64, 0));
}

bool rapt_mask_any_seen(const rapt_resolved_mask *r, int64_t groups, rapt_tensor **any)
{
    RAPT_NO_GRADIENT;
    *any = NULL;
    if (r->queries == 0) return (*any = rapt_zeros(RAPT_BOOL, RAPT_SHAPE(r->batch, groups, r->keys, 1))) != NULL;
    if ((!r->ranges && !r->seen) || r->batch * groups * r->keys == 0) return true;
    rapt_tensor *joined = join_queries(r, groups), *count = rapt_sum(joined, RAPT_ALL_AXES, false);
    if (!count) return false;
    if ((int64_t)rapt_item(count) == joined->count) return true;
    *any = rapt_unsqueeze(rapt_expand(joined, RAPT_SHAPE(r->batch, groups, r->keys)), -1);
    return *any != NULL;
}

rapt_tensor *rapt_hide_unseen(rapt_tensor *x, rapt_tensor *any)
{
    if (!x || !any) return x;
    return rapt_where(x->rank == 3 ? rapt_squeeze(any, 1) : any, x, rapt_zeros((rapt_dtype)x->dtype, 0, NULL));
}

rapt_tensor *rapt_mask_seen(const rapt_mask *mask, const rapt_tensor *scores)
{
    rapt_resolved_mask r;
    rapt_tensor *seen;
    RAPT_SCOPE;
    if (!rapt_resolve_mask_for("mask_seen", mask, scores, &r) || !rapt_join_seen(r.ranges, r.seen, r.keys, &seen))
        return NULL;
    if (!seen) return rapt_keep(rapt_ones(RAPT_BOOL, 0, NULL));
    return rapt_keep(scores->rank == 3 && seen->rank == 4 ? rapt_squeeze(seen, 1) : seen);
}
