/* log Σ exp x over any axes, stable for every x. */
#include <rapt/ops.h>

#include <float.h>
#include <math.h>

#include "reduction.h"

/* y = m + log Σ exp(x − m) with m = max x (0 where that is infinite): dx = exp(x − m) / Σ exp(x − m) · dy */
static rapt_tensor *logsumexp_forward(rapt_call *call)
{
    const rapt_reduce_kernels *folds = &rapt_kernel.reduce;
    rapt_folding r;
    if (!rapt_folding_begin(&r, call, true)) return NULL;
    rapt_accumulator *center = rapt_folding_run(&r, &folds->max, &folds->max, NULL), *sums = NULL;
    for (int64_t i = 0; center && i < r.shape.count; i++)
        if (isinf(center[i].number)) center[i].number = 0;
    if (center) sums = rapt_folding_run(&r, &folds->exponentials, &folds->sum, center);
    if (sums) {
        const double *centers = &center->number;
        rapt_change_accumulators(rapt_kernel.unary.log[RAPT_FLOAT64], r.shape.count, sums, NULL, 0);
        rapt_change_accumulators(rapt_kernel.elementwise.add[RAPT_FLOAT64], r.shape.count, sums, centers, sizeof *sums);
    }
    rapt_tensor *y = rapt_folding_end(&r, r.x->dtype, sums);
    rapt_call_save(call, rapt_call_input(call, 0));
    rapt_call_save(call, y);
    return y;
}

/* y serves as m, for the quotient is the same with any number near it. It must be one near it, though: y itself is
 * rounded, and exp(x − y), which the derivative would be, loses the digits that y lost. */
static bool logsumexp_vjp(rapt_call *call)
{
    const rapt_reduction_options *o = rapt_call_options(call);
    rapt_tensor *x = rapt_call_saved(call, 0), *y = rapt_detach(rapt_call_saved(call, 1));
    if (!x || !y) return false;
    /* where y is −∞, so is every x: exp(x − y) would be NaN; and there, and where y is +∞, nothing is to be divided */
    double lowest = y->dtype == RAPT_FLOAT32 ? -(double)FLT_MAX : -DBL_MAX;
    rapt_tensor *one = rapt_scalar(y->dtype, 1), *infinity = rapt_scalar(y->dtype, INFINITY);
    rapt_tensor *shift = rapt_reduction_unfold(call, y), *finite = rapt_less(rapt_abs(shift), infinity);
    rapt_tensor *exponentials = rapt_exp(rapt_sub(x, rapt_clamp(shift, lowest, INFINITY)));
    rapt_tensor *sum = rapt_sum(exponentials, o->axis_count, o->axes, true);
    rapt_tensor *g = rapt_reduction_unfold(call, rapt_call_gradient(call, 0));
    g = rapt_div(g, rapt_where(finite, sum, one));
    return rapt_call_give(call, 0, rapt_mul(exponentials, g));
}

static const rapt_op logsumexp = {.name = "logsumexp",
                                  .forward = logsumexp_forward,
                                  .vjp = logsumexp_vjp,
                                  .options_size = sizeof(rapt_reduction_options)};

rapt_tensor *rapt_logsumexp(rapt_tensor *x, int axis_count, const int *axes, bool keep)
{
    return rapt_reduction_apply(&logsumexp, x, axis_count, axes, keep, 0);
}
