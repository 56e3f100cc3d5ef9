/* Running sums and products along an axis, and recurrences, of which the gradients of running products are made. */
#include "scan.h"

#include <rapt/ops.h>

#include "tensor/map.h"

typedef struct scan_options {
    int64_t axis;
    int64_t reverse; /* from the last to the first */
} scan_options;

/* An op that runs a loop along an axis; begins with the op, so that a call leads to it. */
typedef struct scan {
    rapt_op op;
    const rapt_loops *loops;
} scan;

/* y from the inputs, x and perhaps a factor, of one shape; integers become int64. */
static rapt_tensor *forward(rapt_call *call)
{
    const scan *s = (const scan *)(const void *)rapt_call_op(call);
    const scan_options *o = rapt_call_options(call);
    const rapt_tensor *x = rapt_call_input(call, 0);
    const rapt_tensor *factor = rapt_call_count(call) > 1 ? rapt_call_input(call, 1) : NULL;
    const int axis = rapt_check_axis(s->op.name, (int)o->axis, x->rank, 0);
    if (axis < 0) return NULL;
    const rapt_dtype dtype = rapt_is_floating(x) ? x->dtype : RAPT_INT64;
    rapt_tensor *y = rapt_new(s->op.name, dtype, x->rank, x->shape);
    if (!y || y->count == 0) return y;
    const int64_t bytes = rapt_element_bytes[x->dtype];
    rapt_scan_options options = {.count = x->shape[axis],
                                 .out_stride = y->strides[axis] * rapt_element_bytes[dtype],
                                 .in_stride = x->strides[axis] * bytes,
                                 .factor_stride = factor ? factor->strides[axis] * bytes : 0,
                                 .reverse = o->reverse};
    int64_t cost =
        axis == x->rank - 1 ? 2 * options.count : options.count / 32; /* columns are best cut in wide pieces */
    rapt_map_along(axis, (*s->loops)[x->dtype], &options, cost, factor ? 3 : 2, (const rapt_tensor *[]){y, x, factor});
    return y;
}

static const scan_options *options_of(const rapt_call *call)
{
    return rapt_call_options(call);
}

static scan_options reversed(const rapt_call *call)
{
    return (scan_options){options_of(call)->axis, !options_of(call)->reverse};
}

/* Element i is x's i − 1 (i + 1 in reverse); the value where there is none. */
static rapt_tensor *shift(rapt_tensor *x, const scan_options *o, double value)
{
    if (!x) return NULL;
    const int axis = (int)o->axis;
    const int64_t size = x->shape[axis < 0 ? axis + x->rank : axis];
    if (size == 0) return x;
    return o->reverse ? rapt_pad(rapt_slice(x, axis, 1, size, 1), axis, 0, 1, value)
                      : rapt_pad(rapt_slice(x, axis, 0, size - 1, 1), axis, 1, 0, value);
}

/* yᵢ = Σ xₖ over k ≤ i: dxₖ = Σ dyᵢ over i ≥ k */
static bool cumsum_vjp(rapt_call *call);

static const scan cumsum =
    {.op = {.name = "cumsum", .forward = forward, .vjp = cumsum_vjp, .options_size = sizeof(scan_options)},
     .loops = &rapt_kernel.scan.cumsum};

static bool cumsum_vjp(rapt_call *call)
{
    const scan_options back = reversed(call);
    return rapt_call_give(call, 0, RAPT_APPLY(&cumsum.op, &back, rapt_call_gradient(call, 0)));
}

rapt_tensor *rapt_cumsum(rapt_tensor *x, int axis)
{
    scan_options options = {.axis = axis};
    return RAPT_APPLY(&cumsum.op, &options, x);
}

/* yᵢ = xᵢ + aᵢ yᵢ₋₁, y₀ = x₀: dxᵢ = dyᵢ + aᵢ₊₁ dxᵢ₊₁ and daᵢ = dxᵢ yᵢ₋₁ */
static rapt_tensor *recurrence_forward(rapt_call *call)
{
    rapt_call_save(call, rapt_call_input(call, 1));
    rapt_call_save_output(call, 0);
    return forward(call);
}

static bool recurrence_vjp(rapt_call *call);

static const scan recurrence = {.op = {.name = "recurrence",
                                       .forward = recurrence_forward,
                                       .vjp = recurrence_vjp,
                                       .options_size = sizeof(scan_options)},
                                .loops = &rapt_kernel.scan.recurrence};

static bool recurrence_vjp(rapt_call *call)
{
    const scan_options back = reversed(call);
    rapt_tensor *next_factor = shift(rapt_call_saved(call, 0), &back, 0);
    rapt_tensor *dx = RAPT_APPLY(&recurrence.op, &back, rapt_call_gradient(call, 0), next_factor);
    if (!rapt_call_give(call, 0, dx)) return false;
    return rapt_call_give(call, 1, rapt_mul(dx, shift(rapt_call_saved(call, 1), options_of(call), 0)));
}

/* yᵢ = Π xₖ over k ≤ i: dxₖ = sₖ yₖ₋₁ with sₖ = dyₖ + xₖ₊₁ sₖ₊₁, where nothing is divided by a zero */
static rapt_tensor *cumprod_forward(rapt_call *call)
{
    rapt_call_save(call, rapt_call_input(call, 0));
    rapt_call_save_output(call, 0);
    return forward(call);
}

static bool cumprod_vjp(rapt_call *call)
{
    const scan_options back = reversed(call);
    rapt_tensor *next = shift(rapt_call_saved(call, 0), &back, 0);
    rapt_tensor *s = RAPT_APPLY(&recurrence.op, &back, rapt_call_gradient(call, 0), next);
    return rapt_call_give(call, 0, rapt_mul(s, shift(rapt_call_saved(call, 1), options_of(call), 1)));
}

static const scan cumprod =
    {.op = {.name = "cumprod", .forward = cumprod_forward, .vjp = cumprod_vjp, .options_size = sizeof(scan_options)},
     .loops = &rapt_kernel.scan.cumprod};

rapt_tensor *rapt_cumprod(rapt_tensor *x, int axis)
{
    scan_options options = {.axis = axis};
    return RAPT_APPLY(&cumprod.op, &options, x);
}

rapt_tensor *rapt_product_of_others(rapt_tensor *x, int axis)
{
    const scan_options options = {.axis = axis}, back = {.axis = axis, .reverse = true};
    rapt_tensor *before = shift(RAPT_APPLY(&cumprod.op, &options, x), &options, 1);
    rapt_tensor *behind = shift(RAPT_APPLY(&cumprod.op, &back, x), &back, 1);
    return rapt_mul(before, behind);
}
