/* What each query sees under a mask, as one tensor. */
#include "nn/mask.h"

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
