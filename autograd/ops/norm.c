/* Norms over any axes: (Σ |x|^order)^(1 / order), and their limits for the orders 0 and ±∞. */
#include <rapt/ops.h>

#include <math.h>

#include "reduction.h"
#include "tensor/scratch.h"

/* Squares are of distances, here to zeros. */
static rapt_tensor *euclidean(rapt_folding *r)
{
    const rapt_accumulator *zeros = rapt_scratch_list("norm", r->shape.count + 1, sizeof *zeros);
    if (!zeros) return NULL;
    rapt_accumulator *norm = rapt_folding_run(r, &rapt_kernel.reduce.squares, &rapt_kernel.reduce.sum, zeros);
    rapt_change_accumulators(rapt_kernel.unary.sqrt[RAPT_FLOAT64], r->shape.count, norm, NULL, 0);
    return rapt_folding_end(r, r->x->dtype, norm);
}

/* The largest magnitude, or for negative orders the smallest, where it is a number to divide by, else 1. */
static rapt_tensor *scale_of(rapt_tensor *magnitudes, const rapt_reduction_options *o)
{
    rapt_tensor *extreme = (o->number > 0 ? rapt_max : rapt_min)(magnitudes, o->axis_count, o->axes, true);
    rapt_tensor *divides = rapt_logical_and(rapt_isfinite(extreme), rapt_not_equal_scalar(extreme, 0));
    return rapt_where(divides, extreme, rapt_ones(RAPT_FLOAT64, 0, NULL));
}

/* s (Σ |x / s|^p)^(1/p), in which no power overflows that need not. */
static rapt_tensor *of_powers(const rapt_folding *r, rapt_tensor *x)
{
    const rapt_reduction_options *o = r->options;
    rapt_tensor *magnitudes = rapt_abs(rapt_cast(x, RAPT_FLOAT64));
    rapt_tensor *scale = r->shape.folded > 0 ? scale_of(magnitudes, o) : rapt_ones(RAPT_FLOAT64, 0, NULL);
    rapt_tensor *powers = rapt_pow_scalar(rapt_div(magnitudes, scale), o->number);
    rapt_tensor *y = rapt_pow_scalar(rapt_sum(powers, o->axis_count, o->axes, true), 1 / o->number);
    y = rapt_cast(rapt_mul(y, scale), x->dtype);
    return o->keep ? y : rapt_reshape(y, r->shape.rank, r->shape.shape);
}

/* y = (Σ |x|^p)^(1/p): with t = x / y, dx = sign t · |t|^(p − 1) dy, 0 where y is */
static rapt_tensor *norm_forward(rapt_call *call)
{
    rapt_folding r;
    if (!rapt_folding_begin(&r, call, true)) return NULL;
    rapt_tensor *x = rapt_call_input(call, 0);
    rapt_call_save(call, x);
    rapt_call_save_output(call, 0);
    return r.options->number == 2 ? euclidean(&r) : of_powers(&r, x);
}

static bool norm_vjp(rapt_call *call)
{
    const double order = ((const rapt_reduction_options *)rapt_call_options(call))->number;
    rapt_tensor *x = rapt_call_saved(call, 0), *y = rapt_reduction_unfold(call, rapt_call_saved(call, 1));
    rapt_tensor *g = rapt_reduction_unfold(call, rapt_call_gradient(call, 0));
    rapt_tensor *is_zero = rapt_equal_scalar(y, 0);
    rapt_tensor *t = rapt_div(x, rapt_masked_fill(y, is_zero, order < 1 ? 1 : (double)INFINITY));
    if (order != 2) t = rapt_mul(rapt_sign(x), rapt_pow_scalar(rapt_abs(t), order - 1));
    if (order < 1) t = rapt_masked_fill(t, rapt_logical_or(rapt_equal_scalar(x, 0), is_zero), 0);
    return rapt_call_give(call, 0, rapt_mul(g, t));
}

static const rapt_op norm = {.name = "norm",
                             .forward = norm_forward,
                             .vjp = norm_vjp,
                             .options_size = sizeof(rapt_reduction_options)};

rapt_tensor *rapt_norm(rapt_tensor *x, double order, int axis_count, const int *axes, bool keep)
{
    rapt_reduction_shape shape;
    if (!x) return rapt_fail_null("norm", "x"), NULL;
    if (!rapt_check_floating("norm", x) || !rapt_check_axes("norm", x, axis_count, axes, &shape)) return NULL;
    if (isnan(order)) {
        rapt_fail(RAPT_ERROR_VALUE, "norm", "the order is NaN; a number or an infinity expected");
        return NULL;
    }
    if (isinf(order) && shape.folded == 0) {
        rapt_fail(RAPT_ERROR_SHAPE, "norm", "no elements along the axes; at least one expected for the order %g",
                  order);
        return NULL;
    }
    if (order == 0) {
        rapt_tensor *numbers = rapt_masked_fill(x, rapt_not_equal(x, x), 1); /* NaN is not 0, of which its sign is */
        return rapt_sum(rapt_abs(rapt_sign(numbers)), axis_count, axes, keep);
    }
    if (order == 1) return rapt_sum(rapt_abs(x), axis_count, axes, keep);
    if (isinf(order)) return (order > 0 ? rapt_max : rapt_min)(rapt_abs(x), axis_count, axes, keep);
    return rapt_reduction_apply(&norm, x, axis_count, axes, keep, order);
}
