/* Batch normalisation: over all axes but axis 1, the channels. */
#include <rapt/ops.h>

#include <math.h>

#include "autograd/checks.h"
#include "batch_channels.h"
#include "normalize.h"
#include "reduction.h"
#include "tensor/kernels.h"
#include "tensor/parallel.h"
#include "tensor/scratch.h"

typedef rapt_channels channels;
typedef rapt_channels_work work;
typedef rapt_channels_steps steps;

typedef struct normalize_options {
    double epsilon;
} normalize_options;

static const rapt_tensor *lay_out(const channels *c, const rapt_tensor *x)
{
    if (!c->come_first) return rapt_as_contiguous(x);
    return rapt_contiguous(rapt_transpose((rapt_tensor *)(uintptr_t)x, 0, 1));
}

/* A result, for the time of work with its axes as lay_out has them. */
static rapt_tensor *result_new(const char *op, const channels *c, const rapt_tensor *x)
{
    int64_t shape[RAPT_MAX_RANK];
    memcpy(shape, x->shape, x->rank * sizeof *shape);
    if (c->come_first) {
        shape[0] = x->shape[1];
        shape[1] = x->shape[0];
    }
    return rapt_new(op, x->dtype, x->rank, shape);
}

static rapt_tensor *result_end(const channels *c, rapt_tensor *y)
{
    return c->come_first ? rapt_contiguous(rapt_transpose(y, 0, 1)) : y;
}

/* A parameter as dense doubles in *numbers, which stays NULL where there is none; false after an error. */
static bool read_parameter(rapt_tensor *parameter, const double **numbers)
{
    if (!parameter) return true;
    const rapt_tensor *wide = rapt_as_contiguous(rapt_cast(parameter, RAPT_FLOAT64));
    if (wide) *numbers = (const double *)(const void *)wide->data;
    return wide != NULL;
}

/* A channel's mean as a number of x's dtype: what is left of it, the second part, is taken away after that, for one
 * rounding would lose the digits of channels that lie far from 0. */
static double center_of(const work *w, int64_t channel)
{
    return w->x->dtype == RAPT_FLOAT32 ? (double)(float)w->mean[channel] : w->mean[channel];
}

/* The numbers of a channel, to divide by. */
static double count_of(const work *w)
{
    const int64_t numbers = w->channels.lines * w->channels.n;
    return numbers > 0 ? (double)numbers : 1;
}

/* y = (x − center) · slope + rest */
static void find_forward(const work *w, int64_t i, double *numbers)
{
    const double center = center_of(w, i), slope = w->scale[i] * (w->weight ? w->weight[i] : 1);
    numbers[0] = center;
    numbers[1] = slope;
    numbers[2] = (w->bias ? w->bias[i] : 0) - (w->mean[i] - center) * slope;
}

static const steps forward_steps = {find_forward,
                                    3,
                                    3,
                                    {rapt_kernel.elementwise.sub, rapt_kernel.elementwise.mul,
                                     rapt_kernel.elementwise.add},
                                    {0, 1, 2}};

static void set_statistics(const work *w, int64_t i, double mean, double squares)
{
    const double variance = squares / count_of(w);
    w->mean[i] = mean;
    w->scale[i] = 1 / sqrt(variance + w->epsilon);
    rapt_write_element(w->average->dtype, mean, rapt_data_at(w->average, i));
    rapt_write_element(w->variance->dtype, variance, rapt_data_at(w->variance, i));
}

static void forward_channels(void *context, int64_t first, int64_t last)
{
    const work *w = context;
    for (int64_t i = first; i < last; i++) {
        const double mean = rapt_channels_fold(w, &rapt_kernel.reduce.sum, w->x, i, 0) / count_of(w);
        set_statistics(w, i, mean, rapt_channels_fold(w, &rapt_kernel.reduce.squares, w->x, i, mean));
        rapt_channels_run(w, &forward_steps, i);
    }
}

static bool forward_side_by_side(work *w, const char *op)
{
    const int64_t count = w->channels.count;
    rapt_accumulator *means = rapt_scratch_list(op, 2 * count, sizeof *means), *squares = means + count;
    if (!means || !rapt_channels_fold_side_by_side(w, op, &rapt_kernel.reduce.sum, w->x, NULL, means)) return false;
    for (int64_t i = 0; i < count; i++) means[i].number /= count_of(w);
    if (!rapt_channels_fold_side_by_side(w, op, &rapt_kernel.reduce.squares, w->x, means, squares)) return false;
    for (int64_t i = 0; i < count; i++) set_statistics(w, i, means[i].number, squares[i].number);
    return rapt_channels_run_side_by_side(w, op, &forward_steps);
}

static bool check_parameter(const char *name, const rapt_tensor *x, const rapt_tensor *parameter)
{
    return rapt_check_normalize_parameter("batch_normalize", name, x, parameter, 1, "axis 1");
}

static bool check(const rapt_tensor *x, const rapt_tensor *weight, const rapt_tensor *bias, double epsilon)
{
    const char *op = "batch_normalize";
    if (!rapt_check_floating(op, x)) return false;
    if (x->rank < 2)
        return rapt_fail(RAPT_ERROR_SHAPE, op, "x has rank %d; items, channels and perhaps more axes expected",
                         x->rank);
    return rapt_check_epsilon(op, epsilon) && check_parameter("weight", x, weight) && check_parameter("bias", x, bias);
}

/* y = (x − mean) · scale · weight + bias, scale = 1 / √(var + epsilon); outputs y, mean and var */
static rapt_tensor *forward(rapt_call *call)
{
    RAPT_SCOPE;
    const char *op = "batch_normalize";
    rapt_tensor *x = rapt_call_input(call, 0), *weight = rapt_call_input(call, 1), *bias = rapt_call_input(call, 2);
    const double epsilon = ((const normalize_options *)rapt_call_options(call))->epsilon;
    if (!check(x, weight, bias, epsilon)) return NULL;
    work w = {.channels = rapt_channels_of(x), .epsilon = epsilon};
    const int64_t count = w.channels.count;
    rapt_tensor *statistics[2];
    for (int k = 0; k < 2; k++) statistics[k] = rapt_new(op, RAPT_FLOAT64, 1, &count);
    w.average = rapt_new(op, x->dtype, 1, &count);
    w.variance = rapt_new(op, x->dtype, 1, &count);
    w.y = result_new(op, &w.channels, x);
    if (!statistics[0] || !statistics[1] || !w.average || !w.variance || !w.y || !(w.x = lay_out(&w.channels, x)) ||
        !read_parameter(weight, &w.weight) || !read_parameter(bias, &w.bias))
        return NULL;
    w.mean = (double *)(void *)statistics[0]->data;
    w.scale = (double *)(void *)statistics[1]->data;
    if (w.channels.side_by_side && !forward_side_by_side(&w, op)) return NULL;
    if (!w.channels.side_by_side)
        rapt_parallel_evenly(count, rapt_grain(4 * w.channels.lines * w.channels.n), forward_channels, &w);
    rapt_tensor *y = rapt_keep(result_end(&w.channels, w.y));
    if (!y) return NULL;
    rapt_call_save(call, x);
    rapt_call_save(call, weight);
    rapt_call_save(call, bias);
    for (int k = 0; k < 2; k++) rapt_call_save_constant(call, statistics[k]);
    rapt_call_set_output(call, 1, rapt_keep(w.average));
    rapt_call_set_output(call, 2, rapt_keep(w.variance));
    return y;
}

/* dx is the room for (x − center) · g. */
static void find_center(const work *w, int64_t i, double *numbers)
{
    numbers[0] = center_of(w, i);
}

static const steps product_steps = {find_center,
                                    1,
                                    2,
                                    {rapt_kernel.elementwise.sub, rapt_kernel.elementwise.mul},
                                    {0, rapt_of_g}};

/* With y = (x − mean) · scale: dx = (g − mean g − y · mean(g y)) · scale · weight, dweight = Σ g y, dbias = Σ g.
 * dx = ((x − center) · slope + g + shift) · outer */
static void find_backward(const work *w, int64_t i, double *numbers)
{
    const double center = center_of(w, i), rest = w->mean[i] - center, scale = w->scale[i], count = count_of(w);
    const double sum = w->sums[i].number, product = w->sums[w->channels.count + i].number;
    const double dweight = (product - rest * sum) * scale, slope = -scale * dweight / count;
    numbers[0] = center;
    numbers[1] = slope;
    numbers[2] = -sum / count - rest * slope;
    numbers[3] = scale * (w->weight ? w->weight[i] : 1);
    rapt_write_element(w->dweight->dtype, dweight, rapt_data_at(w->dweight, i));
    rapt_write_element(w->dbias->dtype, sum, rapt_data_at(w->dbias, i));
}

static const steps backward_steps = {find_backward,
                                     4,
                                     5,
                                     {rapt_kernel.elementwise.sub, rapt_kernel.elementwise.mul,
                                      rapt_kernel.elementwise.add, rapt_kernel.elementwise.add,
                                      rapt_kernel.elementwise.mul},
                                     {0, 1, rapt_of_g, 2, 3}};

static void backward_channels(void *context, int64_t first, int64_t last)
{
    const work *w = context;
    for (int64_t i = first; i < last; i++) {
        rapt_channels_run(w, &product_steps, i);
        w->sums[i].number = rapt_channels_fold(w, &rapt_kernel.reduce.sum, w->g, i, 0);
        w->sums[w->channels.count + i].number = rapt_channels_fold(w, &rapt_kernel.reduce.sum, w->y, i, 0);
        rapt_channels_run(w, &backward_steps, i);
    }
}

static bool backward_side_by_side(work *w, const char *op)
{
    const rapt_fold *sum = &rapt_kernel.reduce.sum;
    return rapt_channels_run_side_by_side(w, op, &product_steps) &&
           rapt_channels_fold_side_by_side(w, op, sum, w->g, NULL, w->sums) &&
           rapt_channels_fold_side_by_side(w, op, sum, w->y, NULL, w->sums + w->channels.count) &&
           rapt_channels_run_side_by_side(w, op, &backward_steps);
}

/* Inputs g, x, weight, mean, scale; outputs dx, dweight and dbias. */
static rapt_tensor *backward_forward(rapt_call *call)
{
    RAPT_SCOPE;
    const char *op = "batch_normalize_backward";
    const rapt_tensor *x = rapt_call_input(call, 1);
    work w = {.channels = rapt_channels_of(x),
              .mean = (double *)(void *)rapt_call_input(call, 3)->data,
              .scale = (double *)(void *)rapt_call_input(call, 4)->data};
    const int64_t count = w.channels.count;
    w.dweight = rapt_new(op, x->dtype, 1, &count);
    w.dbias = rapt_new(op, x->dtype, 1, &count);
    w.y = result_new(op, &w.channels, x);
    if (!w.dweight || !w.dbias || !w.y || !(w.x = lay_out(&w.channels, x)) ||
        !(w.g = lay_out(&w.channels, rapt_call_input(call, 0))) || !read_parameter(rapt_call_input(call, 2), &w.weight))
        return NULL;
    if (!(w.sums = rapt_scratch_list(op, 2 * count, sizeof *w.sums)) ||
        (w.channels.side_by_side && !backward_side_by_side(&w, op)))
        return NULL;
    if (!w.channels.side_by_side)
        rapt_parallel_evenly(count, rapt_grain(6 * w.channels.lines * w.channels.n), backward_channels, &w);
    rapt_tensor *dx = rapt_keep(result_end(&w.channels, w.y));
    rapt_call_set_output(call, 1, rapt_keep(w.dweight));
    rapt_call_set_output(call, 2, rapt_keep(w.dbias));
    return dx;
}

static const rapt_op backward = {.name = "batch_normalize_backward",
                                 .forward = backward_forward,
                                 .optional = 1 << 2,
                                 .outputs = 3};

static bool vjp(rapt_call *call)
{
    rapt_tensor *inputs[] = {rapt_call_gradient(call, 0), rapt_call_saved(call, 0), rapt_call_saved(call, 1),
                             rapt_call_saved(call, 3), rapt_call_saved(call, 4)};
    rapt_tensor *outputs[3];
    if (!inputs[1] || !rapt_apply_many(&backward, NULL, 5, inputs, outputs)) return false;
    for (int k = 0; k < 2; k++) rapt_call_give(call, k, outputs[k]);
    return rapt_call_give(call, 2, outputs[2]);
}

static rapt_tensor *definition(rapt_call *call)
{
    rapt_tensor *x = rapt_call_input(call, 0), *weight = rapt_call_input(call, 1), *bias = rapt_call_input(call, 2);
    int axes[RAPT_MAX_RANK], count = 0;
    int64_t each[RAPT_MAX_RANK];
    for (int axis = 0; axis < x->rank; axis++) {
        if (axis != 1) axes[count++] = axis;
        each[axis] = axis == 1 ? x->shape[1] : 1;
    }
    rapt_tensor *centered = rapt_center(x, count, axes);
    rapt_tensor *variance = rapt_mean(rapt_mul(centered, centered), count, axes, true);
    const double epsilon = ((const normalize_options *)rapt_call_options(call))->epsilon;
    rapt_tensor *y = rapt_mul(centered, rapt_rsqrt(rapt_add_scalar(variance, epsilon)));
    if (weight) y = rapt_mul(y, rapt_reshape(weight, x->rank, each));
    return bias ? rapt_add(y, rapt_reshape(bias, x->rank, each)) : y;
}

static const rapt_op batch_normalize = {.name = "batch_normalize",
                                        .forward = forward,
                                        .vjp = vjp,
                                        .definition = definition,
                                        .options_size = sizeof(normalize_options),
                                        .optional = 1 << 1 | 1 << 2,
                                        .outputs = 3};

rapt_tensor *rapt_batch_normalize(rapt_tensor *x, rapt_tensor *weight, rapt_tensor *bias, double epsilon,
                                  rapt_tensor **mean, rapt_tensor **variance)
{
    normalize_options options = {epsilon};
    rapt_tensor *const inputs[] = {x, weight, bias};
    rapt_tensor *outputs[3];
    const bool good = rapt_apply_many(&batch_normalize, &options, 3, inputs, outputs);
    rapt_tensor *average = good ? rapt_detach(outputs[1]) : NULL, *spread = average ? rapt_detach(outputs[2]) : NULL;
    if (mean) *mean = spread ? average : NULL;
    if (variance) *variance = spread;
    return spread ? outputs[0] : NULL;
}
