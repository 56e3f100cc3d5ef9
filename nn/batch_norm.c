/* BatchNorm: each channel brought to mean 0 and variance 1, by the batch's statistics or by running ones. */
#include <stdio.h>

#include <rapt/layers.h>
#include <rapt/recompute.h>

#include "autograd/checks.h"
#include "nn/entry.h"
#include "nn/options.h"
#include "tensor/core.h"
#include "tensor/lock.h"

/* Threads may share a layer. */
RAPT_LOCK(statistics_lock, STATISTICS)

/* A channel's numbers (C), shaped so that they broadcast to x. */
static rapt_tensor *by_channel(rapt_tensor *numbers, const rapt_tensor *x)
{
    int64_t shape[RAPT_MAX_RANK];
    for (int axis = 0; axis < rapt_rank(x); axis++) shape[axis] = axis == 1 ? rapt_count(numbers) : 1;
    return rapt_reshape(numbers, rapt_rank(x), shape);
}

/* (1 − momentum) · running + momentum · new */
static rapt_tensor *moved(const rapt_tensor *running, double momentum, const rapt_tensor *number, double factor)
{
    rapt_tensor *result = rapt_clone(running);
    return rapt_scale_in_place(result, 1 - momentum) && rapt_add_in_place(result, number, momentum * factor) ? result
                                                                                                             : NULL;
}

/* The running statistics follow the mean and the unbiased variance of n numbers: all, or after an error none. */
static bool follow(rapt_batch_norm *b, rapt_tensor *mean, rapt_tensor *variance, double n)
{
    const double unbiased = n / (n - 1);
    RAPT_NO_GRADIENT;
    rapt_error_hold(); /* its handler may ask for the lock */
    statistics_lock_take();
    const rapt_tensor *new_mean = moved(b->running_mean, b->momentum, mean, 1),
                      *new_variance = moved(b->running_var, b->momentum, variance, unbiased);
    const bool good = new_mean && new_variance && rapt_copy(b->running_mean, new_mean) &&
                      rapt_copy(b->running_var, new_variance) &&
                      rapt_set_at_int64(b->batches, NULL, rapt_item_int64(b->batches) + 1);
    statistics_lock_give();
    rapt_error_release();
    return good;
}

static rapt_tensor *forward_training(rapt_batch_norm *b, rapt_tensor *x)
{
    if (!rapt_check_probability(b->module.kind->name, "momentum", b->momentum)) return NULL;
    RAPT_SCOPE;
    rapt_tensor *mean, *variance, *y = rapt_batch_normalize(x, b->weight, b->bias, b->epsilon, &mean, &variance);
    if (!y) return NULL;
    double n = 1; /* of the other axes: there may be no channel */
    for (int axis = 0; axis < rapt_rank(x); axis++) n *= axis == 1 ? 1 : (double)rapt_size(x, axis);
    if (n < 2) {
        rapt_fail(RAPT_ERROR_VALUE, b->module.kind->name,
                  "%.0f numbers in each channel; 2 or more expected in training (rapt_module_train)", n);
        return NULL;
    }
    return rapt_is_recomputing() || follow(b, mean, variance, n) ? rapt_keep(y) : NULL;
}

/* The difference first, so that numbers far from 0 keep their digits. */
static rapt_tensor *forward_evaluation(rapt_batch_norm *b, rapt_tensor *x)
{
    if (!rapt_check_epsilon(b->module.kind->name, b->epsilon)) return NULL;
    RAPT_SCOPE;
    const int64_t size = rapt_count(b->weight);
    if (rapt_rank(x) < 2 || rapt_size(x, 1) != size) {
        char text[128];
        rapt_fail(RAPT_ERROR_SHAPE, b->module.kind->name, "x (B, %lld, ...) expected, not %s", (long long)size,
                  rapt_describe(x, text, sizeof text));
        return NULL;
    }
    rapt_tensor *scale = rapt_mul(b->weight, rapt_rsqrt(rapt_add_scalar(b->running_var, b->epsilon)));
    rapt_tensor *centered = rapt_sub(x, by_channel(b->running_mean, x));
    return rapt_keep(rapt_add(rapt_mul(centered, by_channel(scale, x)), by_channel(b->bias, x)));
}

static rapt_tensor *forward(rapt_module *module, rapt_tensor *x)
{
    rapt_batch_norm *b = (rapt_batch_norm *)module;
    return module->training ? forward_training(b, x) : forward_evaluation(b, x);
}

static void describe(const rapt_module *module, char *text, size_t size)
{
    const rapt_batch_norm *b = (const rapt_batch_norm *)module;
    snprintf(text, size, "%lld, momentum %g", (long long)rapt_count(b->weight), b->momentum);
}

static const rapt_module_class kind = {.name = "BatchNorm", .forward = forward, .describe = describe};

rapt_batch_norm *rapt_batch_norm_new(int64_t size)
{
    if (!rapt_check_size(kind.name, "size", size)) return NULL;
    RAPT_SCOPE;
    rapt_batch_norm *b = rapt_module_new(sizeof *b, &kind);
    if (!b) return NULL;
    rapt_module *module = &b->module;
    b->epsilon = 1e-5;
    b->momentum = 0.1;
    b->weight = rapt_module_add_parameter(module, "weight", rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(size)));
    b->bias = rapt_module_add_parameter(module, "bias", rapt_zeros(RAPT_FLOAT32, RAPT_SHAPE(size)));
    b->running_mean = rapt_module_add_buffer(module, "running_mean", rapt_zeros(RAPT_FLOAT32, RAPT_SHAPE(size)));
    b->running_var = rapt_module_add_buffer(module, "running_var", rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(size)));
    b->batches = rapt_module_add_buffer(module, "num_batches_tracked", rapt_zeros(RAPT_INT64, 0, NULL));
    return rapt_module_finish(module);
}

rapt_tensor *rapt_batch_norm_forward(rapt_batch_norm *batch_norm, rapt_tensor *x)
{
    return rapt_layer_forward(kind.name, (rapt_module *)batch_norm, x);
}
