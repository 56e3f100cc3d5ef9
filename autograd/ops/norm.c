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
    for (int64_t i = 0; norm && i < r->shape.count; i++) norm[i].number = sqrt(norm[i].number);
    return rapt_folding_end(r, r->x->dtype, norm);
}

/* y = (Σ |x|^p)^(1/p): with t = x / y, dx = sign t · |t|^(p − 1) dy, 0 where y is */
static rapt_tensor *norm_forward(rapt_call *call)
{
    rapt_folding r;
    if (!rapt_folding_begin(&r, call, true)) return NULL;
    const rapt_reduction_options *o = r.options;
    rapt_tensor *x = rapt_call_input(call, 0);
    rapt_call_save(call, x);
    rapt_call_save_output(call, 0);
    if (o->number == 2) return euclidean(&r);
    rapt_tensor *powers = rapt_pow_scalar(rapt_abs(rapt_cast(x, RAPT_FLOAT64)), o->number);
    rapt_tensor *y = rapt_pow_scalar(rapt_sum(powers, o->axis_count, o->axes, o->keep), 1 / o->number);
    return rapt_cast(y, x->dtype);
}

static bool norm_vjp(rapt_call *call)
{
    const double order = ((const rapt_reduction_options *)rapt_call_options(call))->number;
    rapt_tensor *x = rapt_call_saved(call, 0), *y = rapt_reduction_unfold(call, rapt_call_saved(call, 1));
    rapt_tensor *g = rapt_reduction_unfold(call, rapt_call_gradient(call, 0));
    rapt_tensor *t = rapt_div(x, rapt_masked_fill(y, rapt_equal_scalar(y, 0), (double)INFINITY));
    if (order > 2) t = rapt_mul(t, rapt_pow_scalar(rapt_abs(t), order - 2));
    if (order < 2) t = rapt_mul(rapt_sign(x), rapt_pow_scalar(rapt_abs(t), order - 1));
    if (order < 1) t = rapt_masked_fill(t, rapt_equal_scalar(x, 0), 0);
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
    if (order == 0) return rapt_sum(rapt_abs(rapt_sign(x)), axis_count, axes, keep);
    if (order == 1) return rapt_sum(rapt_abs(x), axis_count, axes, keep);
    if (isinf(order)) return (order > 0 ? rapt_max : rapt_min)(rapt_abs(x), axis_count, axes, keep);
    return rapt_reduction_apply(&norm, x, axis_count, axes, keep, order);
}
