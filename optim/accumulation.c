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
    /* the sum's reciprocal has to have all its digits, too */
    const double least = rapt_least_normal(loss->dtype), most = 1 / least;
    if (weight < least || weight > most)
        return rapt_fail(RAPT_ERROR_VALUE, op, "the weight is %g; %g to %g expected for a loss of %s", weight, least,
                         most, rapt_dtype_name(loss->dtype));
    if (accumulation->weight + weight > most)
        return rapt_fail(RAPT_ERROR_VALUE, op, "the weights sum to %g; at most %g expected for a loss of %s",
                         accumulation->weight + weight, most, rapt_dtype_name(loss->dtype));
    RAPT_SCOPE;
    rapt_tensor *seed = rapt_full(loss->dtype, loss->rank, loss->shape, weight);
    const double value = rapt_item(loss);
    if (!seed || !rapt_backward_from(1, &loss, &seed, 0)) return false;
    accumulation->weight += weight;
    accumulation->loss += weight * value;
    return true;
}

static bool check_end(const char *op, const rapt_accumulation *accumulation, int count,
                      rapt_optimizer *const *optimizers)
{
    if (!accumulation || !optimizers) return rapt_fail_null(op, accumulation ? "optimizers" : "accumulation");
    if (count < 1) return rapt_fail(RAPT_ERROR_VALUE, op, "%d optimizers; 1 or more expected", count);
    for (int k = 0; k < count; k++) {
        if (!optimizers[k]) return rapt_fail_null(op, "optimizer");
        if (rapt_was_freed(op, optimizers[k])) return false;
    }
    return accumulation->weight > 0 ||
           rapt_fail(RAPT_ERROR_VALUE, op, "there was no part; rapt_accumulate expected before it");
}

/* The gradient of a parameter, NULL where an optimizer before that one has it, too. */
static rapt_tensor *first_gradient(rapt_optimizer *const *optimizers, int number, const rapt_tensor *parameter)
{
    for (int k = 0; k < number; k++)
        if (rapt_pointer_set_find(&optimizers[k]->parameters, parameter) >= 0) return NULL;
    return rapt_gradient(parameter);
}

static bool end(const char *op, rapt_accumulation *accumulation, int count, rapt_optimizer *const *optimizers,
                double *loss)
{
    if (!check_end(op, accumulation, count, optimizers)) return false;
    for (int k = 0; k < count; k++)
        if (!rapt_own_gradients(optimizers[k])) return false;
    for (int k = 0; k < count; k++)
        for (int i = 0; i < optimizers[k]->count; i++) {
            rapt_tensor *gradient = first_gradient(optimizers, k, optimizers[k]->slots[i].parameter);
            if (gradient && !rapt_scale_in_place(gradient, 1 / accumulation->weight)) return false;
        }
    if (loss) *loss = accumulation->loss / accumulation->weight;
    *accumulation = (rapt_accumulation){0};
    return true;
}

bool rapt_accumulation_end(rapt_accumulation *accumulation, rapt_optimizer *optimizer, double *loss)
{
    return end("accumulation_end", accumulation, 1, &optimizer, loss);
}

bool rapt_accumulation_end_many(rapt_accumulation *accumulation, int count, rapt_optimizer *const *optimizers,
                                double *loss)
{
    return end("accumulation_end_many", accumulation, count, optimizers, loss);
}
