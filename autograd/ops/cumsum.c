/* Running sums along an axis. */
#include <rapt/ops.h>

#include "tensor/map.h"

typedef struct cumsum_options {
    int64_t axis;
    int64_t reverse; /* from the last to the first */
} cumsum_options;

/* yᵢ = Σ xₖ over k ≤ i: dxₖ = Σ dyᵢ over i ≥ k */
static rapt_tensor *cumsum_forward(rapt_call *call)
{
    const cumsum_options *o = rapt_call_options(call);
    const rapt_tensor *x = rapt_call_input(call, 0);
    int axis = rapt_check_axis("cumsum", (int)o->axis, x->rank, 0);
    if (axis < 0) return NULL;
    rapt_dtype dtype = rapt_is_floating(x) ? x->dtype : RAPT_INT64;
    rapt_tensor *y = rapt_new("cumsum", dtype, x->rank, x->shape);
    if (!y || y->count == 0) return y;
    rapt_scan_options options = {.count = x->shape[axis],
                                 .out_stride = y->strides[axis] * (int64_t)rapt_dtype_size(dtype),
                                 .in_stride = x->strides[axis] * (int64_t)rapt_dtype_size(x->dtype),
                                 .reverse = o->reverse};
    int64_t cost =
        axis == x->rank - 1 ? 2 * options.count : options.count / 32; /* columns are best cut in wide pieces */
    rapt_map_along(axis, rapt_kernel.scan.cumsum[x->dtype], &options, cost, 2, (const rapt_tensor *[]){y, x});
    return y;
}

static bool cumsum_vjp(rapt_call *call);

static const rapt_op cumsum = {.name = "cumsum",
                               .forward = cumsum_forward,
                               .vjp = cumsum_vjp,
                               .options_size = sizeof(cumsum_options)};

static bool cumsum_vjp(rapt_call *call)
{
    const cumsum_options *o = rapt_call_options(call);
    cumsum_options turned = {.axis = o->axis, .reverse = !o->reverse};
    return rapt_call_give(call, 0, RAPT_APPLY(&cumsum, &turned, rapt_call_gradient(call, 0)));
}

rapt_tensor *rapt_cumsum(rapt_tensor *x, int axis)
{
    cumsum_options options = {.axis = axis};
    return RAPT_APPLY(&cumsum, &options, x);
}
