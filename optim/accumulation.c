/* Gradients added over the parts of a batch. */
#include <math.h>

#include <rapt/average.h>

#include "core.h"
#include "tensor/core.h"
#include "tensor/debug.h"

bool rapt_accumulate(rapt_accumulation *accumulation, rapt_tensor *loss, double weight)
{
    const char *op = "accumulate";
    if (!accumulation || !loss) return rapt_fail_null(op, accumulation ? "loss" : "accumulation");
    if (!(weight > 0 && isfinite(weight)))
        return rapt_fail(RAPT_ERROR_VALUE, op, "the weight is %g; a finite number above 0 expected", weight);
    if (loss->count != 1) {
        char found[RAPT_SHAPE_TEXT + 16];
        return rapt_fail(RAPT_ERROR_SHAPE, op, "the loss is %s; one number expected",
                         rapt_describe(loss, found, sizeof found));
    }
    RAPT_SCOPE;
    rapt_tensor *seed = rapt_full(loss->dtype, loss->rank, loss->shape, weight);
    const double value = rapt_item(loss);
    if (!seed || !rapt_backward_from(1, &loss, &seed, 0)) return false;
    accumulation->weight += weight;
    accumulation->loss += weight * value;
    return true;
}

bool rapt_accumulation_end(rapt_accumulation *accumulation, rapt_optimizer *optimizer, double *loss)
{
    const char *op = "accumulation_end";
    if (!accumulation || !optimizer) return rapt_fail_null(op, accumulation ? "optimizer" : "accumulation");
    if (rapt_was_freed(op, optimizer)) return false;
    if (!(accumulation->weight > 0))
        return rapt_fail(RAPT_ERROR_VALUE, op, "there was no part; rapt_accumulate expected before it");
    for (int i = 0; i < optimizer->count; i++)
        if (!rapt_own_gradient(optimizer->slots[i].parameter)) return false;
    for (int i = 0; i < optimizer->count; i++) {
        rapt_tensor *gradient = rapt_gradient(optimizer->slots[i].parameter);
        if (gradient && !rapt_scale_in_place(gradient, 1 / accumulation->weight)) return false;
    }
    if (loss) *loss = accumulation->loss / accumulation->weight;
    *accumulation = (rapt_accumulation){0};
    return true;
}
