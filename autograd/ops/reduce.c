/* Sum, mean, variance and deviation over any axes; any and all. */
#include <rapt/ops.h>

#include <math.h>

#include "reduction.h"
#include "tensor/debug.h"

#define SUM &rapt_kernel.reduce.sum

/* y = Σ x: dx = dy along the folded axes */
static rapt_tensor *sum_forward(rapt_call *call)
{
    rapt_folding r;
    if (!rapt_folding_begin(&r, call, false)) return NULL;
    rapt_accumulator *total = rapt_folding_run(&r, SUM, SUM, NULL);
    return rapt_folding_end(&r, rapt_is_floating(r.x) ? r.x->dtype : RAPT_INT64, total);
}

static bool sum_vjp(rapt_call *call)
{
    int rank;
    const int64_t *shape = rapt_call_input_shape(call, 0, &rank);
    rapt_tensor *g = rapt_reduction_unfold(call, rapt_call_gradient(call, 0));
    return rapt_call_give(call, 0, rapt_expand(g, rank, shape));
}

static const rapt_op sum = {.name = "sum",
                            .forward = sum_forward,
                            .vjp = sum_vjp,
                            .options_size = sizeof(rapt_reduction_options)};

rapt_tensor *rapt_sum(rapt_tensor *x, int axis_count, const int *axes, bool keep)
{
    return rapt_reduction_apply(&sum, x, axis_count, axes, keep, 0);
}

static void divide(rapt_accumulator *results, int64_t count, double divisor)
{
    rapt_change_accumulators(rapt_kernel.elementwise.div[RAPT_FLOAT64], count, results, &divisor, 0);
}

/* y = Σ x / n: dx = dy / n */
static rapt_tensor *mean_forward(rapt_call *call)
{
    rapt_folding r;
    if (!rapt_folding_begin(&r, call, true)) return NULL;
    rapt_accumulator *mean = rapt_folding_run(&r, SUM, SUM, NULL);
    divide(mean, r.shape.count, (double)r.shape.folded);
    return rapt_folding_end(&r, r.x->dtype, mean);
}

static bool mean_vjp(rapt_call *call)
{
    int rank;
    const int64_t *shape = rapt_call_input_shape(call, 0, &rank);
    rapt_tensor *g = rapt_mul_scalar(rapt_call_gradient(call, 0), 1 / (double)rapt_reduction_folded(call));
    return rapt_call_give(call, 0, rapt_expand(rapt_reduction_unfold(call, g), rank, shape));
}

static const rapt_op mean = {.name = "mean",
                             .forward = mean_forward,
                             .vjp = mean_vjp,
                             .options_size = sizeof(rapt_reduction_options)};

rapt_tensor *rapt_mean(rapt_tensor *x, int axis_count, const int *axes, bool keep)
{
    if (x && !rapt_check_alive("mean", "x", x)) return NULL;
    if (x && !rapt_is_floating(x)) /* summed in float64, where no sum of integers wraps around */
        return rapt_cast(rapt_mean(rapt_cast(x, RAPT_FLOAT64), axis_count, axes, keep), RAPT_FLOAT32);
    return rapt_reduction_apply(&mean, x, axis_count, axes, keep, 0);
}

/* Twice, for the first mean is rounded: far from 0 that costs the digits of what is left, whose own mean is near 0;
 * it is left alone where it is not finite. */
rapt_tensor *rapt_center(rapt_tensor *x, int axis_count, const int *axes)
{
    x = rapt_sub(x, rapt_mean(x, axis_count, axes, true));
    rapt_tensor *rest = rapt_mean(x, axis_count, axes, true);
    if (!rest) return NULL;
    rapt_dtype dtype = rest->dtype;
    rapt_tensor *finite = rapt_less(rapt_abs(rest), rapt_scalar(dtype, INFINITY));
    return rapt_sub(x, rapt_where(finite, rest, rapt_scalar(dtype, 0)));
}

/* n − correction: nothing is left of fewer elements. */
static double degrees(double folded, const rapt_reduction_options *options)
{
    return folded > options->number ? folded - options->number : 0;
}

static rapt_accumulator *variance(rapt_folding *r)
{
    rapt_accumulator *center = rapt_folding_run(r, SUM, SUM, NULL), *squares = NULL;
    divide(center, r->shape.count, (double)r->shape.folded);
    if (center) squares = rapt_folding_run(r, &rapt_kernel.reduce.squares, SUM, center);
    divide(squares, r->shape.count, degrees((double)r->shape.folded, r->options));
    return squares;
}

/* 2 (x − x̄) / (n − correction) · dv for the gradient dv of the variance */
static bool give_from_variance(rapt_call *call, rapt_tensor *g)
{
    const rapt_reduction_options *o = rapt_call_options(call);
    rapt_tensor *centered = rapt_center(rapt_call_saved(call, 0), o->axis_count, o->axes);
    g = rapt_mul_scalar(g, 2 / degrees((double)rapt_reduction_folded(call), o));
    return rapt_call_give(call, 0, rapt_mul(centered, rapt_reduction_unfold(call, g)));
}

/* y = Σ (x − x̄)² / (n − correction) */
static rapt_tensor *var_forward(rapt_call *call)
{
    rapt_folding r;
    if (!rapt_folding_begin(&r, call, true)) return NULL;
    rapt_call_save(call, rapt_call_input(call, 0));
    return rapt_folding_end(&r, r.x->dtype, variance(&r));
}

static bool var_vjp(rapt_call *call)
{
    return give_from_variance(call, rapt_call_gradient(call, 0));
}

static const rapt_op var = {.name = "var",
                            .forward = var_forward,
                            .vjp = var_vjp,
                            .options_size = sizeof(rapt_reduction_options)};

rapt_tensor *rapt_var(rapt_tensor *x, int axis_count, const int *axes, bool keep, int correction)
{
    return rapt_reduction_apply(&var, x, axis_count, axes, keep, correction);
}

/* y = √v: dv = dy / 2y, 0 where y is, by a divisor of ∞ */
static rapt_tensor *std_forward(rapt_call *call)
{
    rapt_folding r;
    if (!rapt_folding_begin(&r, call, true)) return NULL;
    rapt_call_save(call, rapt_call_input(call, 0));
    rapt_call_save_output(call, 0);
    rapt_accumulator *deviation = variance(&r);
    rapt_change_accumulators(rapt_kernel.unary.sqrt[RAPT_FLOAT64], r.shape.count, deviation, NULL, 0);
    return rapt_folding_end(&r, r.x->dtype, deviation);
}

static bool std_vjp(rapt_call *call)
{
    rapt_tensor *y = rapt_call_saved(call, 1);
    rapt_tensor *divisor = rapt_masked_fill(y, rapt_equal_scalar(y, 0), (double)INFINITY);
    return give_from_variance(call, rapt_div(rapt_mul_scalar(rapt_call_gradient(call, 0), 0.5), divisor));
}

static const rapt_op std = {.name = "std",
                            .forward = std_forward,
                            .vjp = std_vjp,
                            .options_size = sizeof(rapt_reduction_options)};

rapt_tensor *rapt_std(rapt_tensor *x, int axis_count, const int *axes, bool keep, int correction)
{
    return rapt_reduction_apply(&std, x, axis_count, axes, keep, correction);
}

static bool check_reduction(const char *op, const rapt_tensor *x, int axis_count, const int *axes)
{
    rapt_reduction_shape shape;
    return x ? rapt_check_axes(op, x, axis_count, axes, &shape) : rapt_fail_null(op, "x");
}

/* Counted, so that nothing seen is false and all of nothing is true. */
rapt_tensor *rapt_any(rapt_tensor *x, int axis_count, const int *axes, bool keep)
{
    if (!check_reduction("any", x, axis_count, axes)) return NULL;
    return rapt_not_equal_scalar(rapt_sum(rapt_not_equal_scalar(x, 0), axis_count, axes, keep), 0);
}

rapt_tensor *rapt_all(rapt_tensor *x, int axis_count, const int *axes, bool keep)
{
    if (!check_reduction("all", x, axis_count, axes)) return NULL;
    return rapt_equal_scalar(rapt_sum(rapt_equal_scalar(x, 0), axis_count, axes, keep), 0);
}
