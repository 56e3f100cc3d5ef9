/* Clipping: gradients that are too long, or have elements too large, are cut before the step. */
#include <math.h>

#include "autograd/observe.h"
#include "core.h"
#include "tensor/debug.h"
#include "tensor/map.h"

bool rapt_check_clipping(const char *op, const rapt_optimizer *optimizer, double limit)
{
    if (!optimizer) return rapt_fail_null(op, "optimizer");
    if (rapt_was_freed(op, optimizer)) return false;
    return limit > 0 || rapt_fail(RAPT_ERROR_VALUE, op, "the limit is %g; a number above 0 expected", limit);
}

bool rapt_own_gradients(const rapt_optimizer *optimizer)
{
    for (int i = 0; i < optimizer->count; i++)
        if (!rapt_own_gradient(optimizer->slots[i].parameter)) return false;
    return true;
}

bool rapt_gradient_norm(const char *op, const rapt_optimizer *optimizer, double *norm)
{
    double sum = 0;
    for (int i = 0; i < optimizer->count; i++) {
        const rapt_slot *slot = &optimizer->slots[i];
        const rapt_tensor *gradient = rapt_gradient(slot->parameter);
        if (!gradient) continue;
        if (!rapt_add_squares(op, gradient, &sum)) return false;
        if (!isfinite(sum))
            return rapt_fail(
                RAPT_ERROR_VALUE, op,
                "the norm is %g, from the gradient of '%s' on; a finite one expected (rapt_hunt_not_finite finds the "
                "op, rapt_optimizer_clear_gradients skips the batch)",
                sqrt(sum), slot->name);
    }
    *norm = sqrt(sum);
    return true;
}

bool rapt_scale_gradients(const rapt_optimizer *optimizer, double factor)
{
    if (!rapt_own_gradients(optimizer)) return false;
    for (int i = 0; i < optimizer->count; i++) {
        rapt_tensor *gradient = rapt_gradient(optimizer->slots[i].parameter);
        if (gradient && !rapt_scale_in_place(gradient, factor)) return false;
    }
    return true;
}

bool rapt_clip_gradient_norm(rapt_optimizer *optimizer, double limit, double *norm)
{
    const char *op = "clip_gradient_norm";
    if (!rapt_check_clipping(op, optimizer, limit)) return false;
    RAPT_REGION(RAPT_DOING_STEP, op);
    double length;
    if (!rapt_gradient_norm(op, optimizer, &length)) return false;
    /* g · limit / norm */
    if (length > limit && !rapt_scale_gradients(optimizer, limit / length)) return false;
    if (norm) *norm = length;
    return true;
}

bool rapt_clip_gradient_value(rapt_optimizer *optimizer, double limit)
{
    const char *op = "clip_gradient_value";
    RAPT_REGION(RAPT_DOING_STEP, op);
    if (!rapt_check_clipping(op, optimizer, limit) || !rapt_own_gradients(optimizer)) return false;
    const double bounds[] = {-limit, limit};
    for (int i = 0; i < optimizer->count; i++) {
        rapt_tensor *gradient = rapt_gradient(optimizer->slots[i].parameter);
        if (!gradient) continue;
        if (!rapt_begin_writing(op, gradient)) return false;
        rapt_map(rapt_kernel.unary.clamp[gradient->dtype], bounds, 1, 2, (const rapt_tensor *[]){gradient, gradient});
    }
    return true;
}
