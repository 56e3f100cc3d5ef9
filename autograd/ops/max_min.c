/* The largest and the smallest element over any axes, and their indices along one. */
#include <rapt/ops.h>

#include <string.h>

#include "reduction.h"
#include "tensor/map.h"

static rapt_tensor *extreme_forward(rapt_call *call, const char *name, const rapt_fold *fold)
{
    rapt_folding r;
    if (!rapt_folding_begin(&r, call, false)) return NULL;
    if (r.shape.folded == 0) {
        char text[RAPT_SHAPE_TEXT];
        rapt_fail(RAPT_ERROR_SHAPE, name, "no elements along the axes of shape %s; at least one expected",
                  rapt_shape_text(r.x->rank, r.x->shape, text));
        return NULL;
    }
    rapt_tensor *y = rapt_folding_end(&r, r.x->dtype, rapt_folding_run(&r, fold, fold, NULL));
    rapt_call_save(call, rapt_call_input(call, 0));
    rapt_call_save(call, y);
    return y;
}

/* y = max x: dx = [x = y] / (how many are) · dy */
static bool extreme_vjp(rapt_call *call)
{
    const rapt_reduction_options *o = rapt_call_options(call);
    rapt_tensor *x = rapt_call_saved(call, 0), *y = rapt_call_saved(call, 1), *g = rapt_call_gradient(call, 0);
    if (!x || !y) return false;
    rapt_tensor *hits = rapt_cast(rapt_equal(x, rapt_reduction_unfold(call, y)), x->dtype);
    rapt_tensor *share = rapt_div(rapt_reduction_unfold(call, g), rapt_sum(hits, o->axis_count, o->axes, true));
    return rapt_call_give(call, 0, rapt_mul(hits, share));
}

static rapt_tensor *max_forward(rapt_call *call)
{
    return extreme_forward(call, "max", &rapt_kernel.reduce.max);
}

static const rapt_op max = {.name = "max",
                            .forward = max_forward,
                            .vjp = extreme_vjp,
                            .options_size = sizeof(rapt_reduction_options)};

rapt_tensor *rapt_max(rapt_tensor *x, int axis_count, const int *axes, bool keep)
{
    return rapt_reduction_apply(&max, x, axis_count, axes, keep, 0);
}

static rapt_tensor *min_forward(rapt_call *call)
{
    return extreme_forward(call, "min", &rapt_kernel.reduce.min);
}

static const rapt_op min = {.name = "min",
                            .forward = min_forward,
                            .vjp = extreme_vjp,
                            .options_size = sizeof(rapt_reduction_options)};

rapt_tensor *rapt_min(rapt_tensor *x, int axis_count, const int *axes, bool keep)
{
    return rapt_reduction_apply(&min, x, axis_count, axes, keep, 0);
}

typedef struct place_options {
    int axis;
    bool keep;
} place_options;

static rapt_tensor *place_forward(rapt_call *call, const rapt_loops loops)
{
    const char *op = rapt_call_op(call)->name;
    const place_options *o = rapt_call_options(call);
    const rapt_tensor *x = rapt_call_input(call, 0);
    rapt_reduction_shape shape;
    int axis = rapt_check_axis(op, o->axis, x->rank, 0);
    if (axis < 0 || !rapt_check_axes(op, x, 1, &axis, &shape)) return NULL;
    if (shape.folded == 0) {
        char text[RAPT_SHAPE_TEXT];
        rapt_fail(RAPT_ERROR_SHAPE, op, "no elements along axis %d of shape %s; at least one expected", axis,
                  rapt_shape_text(x->rank, x->shape, text));
        return NULL;
    }
    rapt_tensor *y = rapt_new(op, RAPT_INT64, x->rank, shape.kept_shape);
    if (!y) return NULL;
    rapt_scan_options options = {.count = shape.folded,
                                 .in_stride = x->strides[axis] * (int64_t)rapt_dtype_size(x->dtype)};
    rapt_map_along(axis, loops[x->dtype], &options, shape.folded, 2, (const rapt_tensor *[]){y, x});
    return o->keep ? y : rapt_reshape(y, shape.rank, shape.shape);
}

static rapt_tensor *apply_place(const rapt_op *op, rapt_tensor *x, int axis, bool keep)
{
    place_options options;
    memset(&options, 0, sizeof options);
    options.axis = axis;
    options.keep = keep;
    return RAPT_APPLY(op, &options, x);
}

static rapt_tensor *argmax_forward(rapt_call *call)
{
    return place_forward(call, rapt_kernel.scan.argmax);
}

static const rapt_op argmax = {.name = "argmax",
                               .forward = argmax_forward,
                               .options_size = sizeof(place_options),
                               .no_gradient = "an index has no derivative"};

rapt_tensor *rapt_argmax(rapt_tensor *x, int axis, bool keep)
{
    return apply_place(&argmax, x, axis, keep);
}

static rapt_tensor *argmin_forward(rapt_call *call)
{
    return place_forward(call, rapt_kernel.scan.argmin);
}

static const rapt_op argmin = {.name = "argmin",
                               .forward = argmin_forward,
                               .options_size = sizeof(place_options),
                               .no_gradient = "an index has no derivative"};

rapt_tensor *rapt_argmin(rapt_tensor *x, int axis, bool keep)
{
    return apply_place(&argmin, x, axis, keep);
}
