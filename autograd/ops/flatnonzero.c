/* Where a tensor is not zero. */
#include <rapt/ops.h>

#include "tensor/core.h"

static rapt_tensor *flatnonzero_forward(rapt_call *call)
{
    rapt_tensor *x = rapt_call_input(call, 0);
    rapt_tensor *found = rapt_contiguous(x->dtype == RAPT_BOOL ? x : rapt_not_equal_scalar(x, 0));
    if (!found) return NULL;
    const uint8_t *is_found = (const uint8_t *)found->data;
    int64_t count = 0;
    for (int64_t i = 0; i < found->count; i++) count += is_found[i] != 0;
    rapt_tensor *places = rapt_new("flatnonzero", RAPT_INT64, RAPT_SHAPE(count));
    int64_t *place = places ? (int64_t *)(void *)places->data : NULL;
    for (int64_t i = 0, k = 0; place && k < count; i++) { /* without a branch, which is mispredicted half of the time */
        place[k] = i;
        k += is_found[i] != 0;
    }
    return places;
}

static const rapt_op flatnonzero = {.name = "flatnonzero",
                                    .forward = flatnonzero_forward,
                                    .no_gradient =
                                        "an index has no derivative; the elements that index_select takes at "
                                        "these indices have one"};

rapt_tensor *rapt_flatnonzero(rapt_tensor *x)
{
    return RAPT_APPLY(&flatnonzero, NULL, x);
}
