/* Batch normalisation: over all axes but axis 1, the channels. */
#include <rapt/ops.h>

#include <math.h>

#include "autograd/checks.h"
#include "normalize.h"
#include "reduction.h"
#include "tensor/kernels.h"
#include "tensor/parallel.h"

typedef struct normalize_options {
    double epsilon;
} normalize_options;

/* How the numbers of a channel lie: in lines, each dense. Where these would be short, channels are put first. */
typedef struct channels {
    int64_t count, lines, n;     /* n numbers a line */
    int64_t stride, line_stride; /* of channels and of a channel's lines, in elements */
    bool come_first;
} channels;

static channels channels_of(const rapt_tensor *x)
{
    enum { short_line = 16 };
    const int64_t items = x->shape[0], count = x->shape[1];
    const int64_t n = x->count > 0 ? x->count / (items * count) : 0;
    if (n < short_line && items > 1)
        return (channels){.count = count, .lines = 1, .n = items * n, .stride = items * n, .come_first = true};
    return (channels){.count = count, .lines = items, .n = n, .stride = n, .line_stride = count * n};
}

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

typedef struct work {
    channels channels;
    double epsilon;
    const rapt_tensor *g, *x;
    const double *weight, *bias; /* of each channel; NULL: there are none */
    double *mean, *scale;
    rapt_tensor *variance, *average; /* of x's dtype, as the caller gets them */
    rapt_tensor *y;                  /* or dx */
    rapt_tensor *dweight, *dbias;
} work;

static char *at(const rapt_tensor *tensor, int64_t element)
{
    return tensor->data + element * (int64_t)rapt_dtype_size(tensor->dtype);
}

/* A parameter as dense doubles in *numbers, which stays NULL where there is none; false after an error. */
static bool read_parameter(rapt_tensor *parameter, const double **numbers)
{
    if (!parameter) return true;
    const rapt_tensor *wide = rapt_as_contiguous(rapt_cast(parameter, RAPT_FLOAT64));
    if (wide) *numbers = (const double *)(const void *)wide->data;
    return wide != NULL;
}

static int64_t first_of(const work *w, int64_t channel, int64_t line)
{
    return channel * w->channels.stride + line * w->channels.line_stride;
}

/* Adds to *sum what the fold makes of each number of a line. */
static void fold_line(const work *w, const rapt_fold *fold, const char *line, const double *center, double *sum)
{
    const rapt_dtype dtype = w->x->dtype;
    fold->rows[dtype](1, 0, w->channels.n, (int64_t)rapt_dtype_size(dtype), line, sum, center);
}

/* Σ over a channel of x. */
static double fold_channel(const work *w, const rapt_fold *fold, const rapt_tensor *x, int64_t channel, double center)
{
    double sum = 0;
    for (int64_t line = 0; line < w->channels.lines; line++)
        fold_line(w, fold, at(x, first_of(w, channel, line)), &center, &sum);
    return sum;
}

/* out = what an elementwise loop makes of a, perhaps b, and perhaps a number. */
static void run_line(const work *w, rapt_loop *const *loops, char *out, const char *a, const char *b,
                     const double *number)
{
    const int64_t size = (int64_t)rapt_dtype_size(w->x->dtype), strides[] = {size, size, size};
    char *data[] = {out, (char *)(uintptr_t)a, (char *)(uintptr_t)b};
    loops[w->x->dtype](w->channels.n, data, strides, number);
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

static void forward_channels(void *context, int64_t first, int64_t last)
{
    const work *w = context;
    const rapt_elementwise_kernels *k = &rapt_kernel.elementwise;
    const double count = count_of(w);
    for (int64_t i = first; i < last; i++) {
        const double mean = fold_channel(w, &rapt_kernel.reduce.sum, w->x, i, 0) / count;
        const double variance = fold_channel(w, &rapt_kernel.reduce.squares, w->x, i, mean) / count;
        w->mean[i] = mean;
        w->scale[i] = 1 / sqrt(variance + w->epsilon);
        rapt_write_element(w->average->dtype, mean, at(w->average, i));
        rapt_write_element(w->variance->dtype, variance, at(w->variance, i));
        const double center = -center_of(w, i), slope = w->scale[i] * (w->weight ? w->weight[i] : 1);
        const double rest = (w->bias ? w->bias[i] : 0) - (mean + center) * slope;
        for (int64_t line = 0; line < w->channels.lines; line++) {
            const char *x = at(w->x, first_of(w, i, line));
            char *y = at(w->y, first_of(w, i, line));
            run_line(w, k->shift, y, x, NULL, &center);
            run_line(w, k->scale, y, y, NULL, &slope);
            run_line(w, k->shift, y, y, NULL, &rest);
        }
    }
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
    work w = {.channels = channels_of(x), .epsilon = epsilon};
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

/* With y = (x − mean) · scale: dx = (g − mean g − y · mean(g y)) · scale · weight, dweight = Σ g y, dbias = Σ g. dx is
 * the room for what lies between. */
static void backward_channels(void *context, int64_t first, int64_t last)
{
    const work *w = context;
    const rapt_elementwise_kernels *k = &rapt_kernel.elementwise;
    const double count = count_of(w);
    for (int64_t i = first; i < last; i++) {
        const double center = -center_of(w, i), rest = w->mean[i] + center, scale = w->scale[i];
        const double sum = fold_channel(w, &rapt_kernel.reduce.sum, w->g, i, 0);
        double product = 0;
        for (int64_t line = 0; line < w->channels.lines; line++) {
            char *dx = at(w->y, first_of(w, i, line));
            run_line(w, k->shift, dx, at(w->x, first_of(w, i, line)), NULL, &center);
            run_line(w, k->mul, dx, dx, at(w->g, first_of(w, i, line)), NULL);
            fold_line(w, &rapt_kernel.reduce.sum, dx, NULL, &product);
        }
        const double dweight = (product - rest * sum) * scale, slope = -scale * dweight / count;
        const double shift = -sum / count - rest * slope, outer = scale * (w->weight ? w->weight[i] : 1);
        for (int64_t line = 0; line < w->channels.lines; line++) {
            char *dx = at(w->y, first_of(w, i, line));
            run_line(w, k->shift, dx, at(w->x, first_of(w, i, line)), NULL, &center);
            run_line(w, k->add_scaled, dx, at(w->g, first_of(w, i, line)), dx, &slope);
            run_line(w, k->shift, dx, dx, NULL, &shift);
            run_line(w, k->scale, dx, dx, NULL, &outer);
        }
        rapt_write_element(w->dweight->dtype, dweight, at(w->dweight, i));
        rapt_write_element(w->dbias->dtype, sum, at(w->dbias, i));
    }
}

/* Inputs g, x, weight, mean, scale; outputs dx, dweight and dbias. */
static rapt_tensor *backward_forward(rapt_call *call)
{
    RAPT_SCOPE;
    const char *op = "batch_normalize_backward";
    const rapt_tensor *x = rapt_call_input(call, 1);
    work w = {.channels = channels_of(x),
              .mean = (double *)(void *)rapt_call_input(call, 3)->data,
              .scale = (double *)(void *)rapt_call_input(call, 4)->data};
    const int64_t count = w.channels.count;
    w.dweight = rapt_new(op, x->dtype, 1, &count);
    w.dbias = rapt_new(op, x->dtype, 1, &count);
    w.y = result_new(op, &w.channels, x);
    if (!w.dweight || !w.dbias || !w.y || !(w.x = lay_out(&w.channels, x)) ||
        !(w.g = lay_out(&w.channels, rapt_call_input(call, 0))) || !read_parameter(rapt_call_input(call, 2), &w.weight))
        return NULL;
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
