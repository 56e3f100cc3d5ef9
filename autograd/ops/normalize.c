/* Layer normalisation and root-mean-square normalisation over the last axis. */
#include <rapt/ops.h>

#include <float.h>
#include <math.h>
#include <string.h>

#include "autograd/checks.h"
#include "normalize.h"
#include "reduction.h"
#include "tensor/kernels.h"
#include "tensor/memory.h"
#include "tensor/parallel.h"

typedef struct normalize_options {
    double epsilon;
} normalize_options;

bool rapt_check_normalize_parameter(const char *op, const char *name, const rapt_tensor *x,
                                    const rapt_tensor *parameter, int number, const char *axis)
{
    if (!parameter) return true;
    if (parameter->dtype != x->dtype)
        return rapt_fail(RAPT_ERROR_DTYPE, op, "%s is %s, x is %s; one dtype expected " RAPT_CAST_CURE, name,
                         rapt_dtype_name(parameter->dtype), rapt_dtype_name(x->dtype));
    const int64_t size = x->shape[number];
    if (parameter->rank == 1 && parameter->shape[0] == size) return true;
    char text[RAPT_SHAPE_TEXT];
    return rapt_fail(RAPT_ERROR_SHAPE, op, "%s has shape %s; [%lld], %s of x, expected", name,
                     rapt_shape_text(parameter->rank, parameter->shape, text), (long long)size, axis);
}

bool rapt_check_epsilon(const char *op, double epsilon)
{
    return (epsilon >= 0 && epsilon <= (double)FLT_MAX) ||
           rapt_fail(RAPT_ERROR_VALUE, op, "epsilon %g; a finite number of at least 0 expected, also as float32",
                     epsilon);
}

static bool check_parameter(const char *op, const char *name, const rapt_tensor *x, const rapt_tensor *parameter)
{
    return rapt_check_normalize_parameter(op, name, x, parameter, x->rank - 1, "the last axis");
}

static bool check_input(const char *op, const rapt_tensor *x, double epsilon)
{
    if (!rapt_check_floating(op, x)) return false;
    if (x->rank == 0) return rapt_fail(RAPT_ERROR_SHAPE, op, "a scalar has no last axis");
    return rapt_check_epsilon(op, epsilon);
}

/* A row of what is NULL is NULL. */
static char *row_of(const rapt_tensor *tensor, int64_t row, int64_t length)
{
    return tensor ? rapt_data_at(tensor, row * length) : NULL;
}

/* The row's mean or scale. */
static double *statistic_of(const rapt_tensor *tensor, int64_t row)
{
    return (double *)(void *)row_of(tensor, row, 1);
}

static bool make_contiguous(const rapt_tensor **tensor)
{
    return !*tensor || (*tensor = rapt_as_contiguous(*tensor)) != NULL;
}

typedef struct forward_work {
    int64_t n;
    double epsilon;
    const rapt_tensor *x, *weight, *bias;
    rapt_tensor *mean, *scale, *y;
} forward_work;

static void forward_rows(void *context, int64_t first, int64_t last)
{
    const forward_work *w = context;
    rapt_kernel.normalize.forward[w->y->dtype](last - first, w->n, w->epsilon, row_of(w->x, first, w->n),
                                               row_of(w->weight, 0, 0), row_of(w->bias, 0, 0),
                                               statistic_of(w->mean, first), statistic_of(w->scale, first),
                                               row_of(w->y, first, w->n));
}

/* Fills y, and scale and mean, which are float64 (mean NULL: rows are not centered). False after an error. */
static bool normalize_rows(double epsilon, const rapt_tensor *x, const rapt_tensor *weight, const rapt_tensor *bias,
                           rapt_tensor *mean, rapt_tensor *scale, rapt_tensor *y)
{
    forward_work w = {x->shape[x->rank - 1], epsilon, x, weight, bias, mean, scale, y};
    if (!make_contiguous(&w.x) || !make_contiguous(&w.weight) || !make_contiguous(&w.bias)) return false;
    rapt_parallel_evenly(scale->count, rapt_grain(4 * w.n), forward_rows, &w);
    return true;
}

/* y = (x − mean) · scale · weight + bias, scale = 1 / √(var + epsilon); without mean: scale = 1 / √(mean x² +
 * epsilon) */
static rapt_tensor *forward(rapt_call *call, bool centered)
{
    const char *op = rapt_call_op(call)->name;
    double epsilon = ((const normalize_options *)rapt_call_options(call))->epsilon;
    rapt_tensor *x = rapt_call_input(call, 0), *weight = rapt_call_input(call, 1), *bias = rapt_call_input(call, 2);
    if (!check_input(op, x, epsilon) || !check_parameter(op, "weight", x, weight) ||
        !check_parameter(op, "bias", x, bias))
        return NULL;
    rapt_tensor *y = rapt_new(op, x->dtype, x->rank, x->shape);
    rapt_tensor *scale = rapt_new(op, RAPT_FLOAT64, x->rank - 1, x->shape);
    rapt_tensor *mean = centered ? rapt_new(op, RAPT_FLOAT64, x->rank - 1, x->shape) : NULL;
    if (!y || !scale || (centered && !mean) || !normalize_rows(epsilon, x, weight, bias, mean, scale, y)) return NULL;
    bool needs_x = rapt_call_wants(call, 0) || rapt_call_wants(call, 1);
    rapt_call_save(call, needs_x ? x : NULL);
    rapt_call_save(call, weight);
    rapt_call_save_constant(call, scale); /* the backward op makes them from x again where it is differentiated */
    rapt_call_save_constant(call, mean);
    return y;
}

/* Rows whose share of dweight and dbias is summed in the tensor's own dtype; the shares are then summed in double. */
enum { rows_a_slice = 32 };

typedef struct backward_work {
    int64_t n, rows;
    const rapt_tensor *g, *x, *weight, *scale, *mean;
    rapt_tensor *dx;
    char *shares; /* for each slice n of dweight and n of dbias; NULL when they are not wanted */
    size_t share_bytes;
} backward_work;

static void backward_slices(void *context, int64_t first, int64_t last)
{
    const backward_work *w = context;
    for (int64_t slice = first; slice < last; slice++) {
        int64_t row = slice * rows_a_slice, rest = w->rows - row;
        char *share = w->shares ? w->shares + (size_t)slice * w->share_bytes : NULL;
        if (share) memset(share, 0, w->share_bytes);
        rapt_kernel.normalize.backward[w->dx->dtype](rest < rows_a_slice ? rest : rows_a_slice, w->n,
                                                     row_of(w->g, row, w->n), row_of(w->x, row, w->n),
                                                     row_of(w->weight, 0, 0), statistic_of(w->mean, row),
                                                     statistic_of(w->scale, row), row_of(w->dx, row, w->n), share,
                                                     share ? share + w->share_bytes / 2 : NULL);
    }
}

/* Sums what the slices found, in double. */
static void sum_shares(const backward_work *w, int64_t slices, double *sums, rapt_tensor *dweight, rapt_tensor *dbias)
{
    rapt_dtype dtype = w->dx->dtype;
    int64_t size = (int64_t)rapt_dtype_size(dtype), strides[] = {size, sizeof *sums};
    for (int64_t i = 0; i < 2 * w->n; i++) sums[i] = 0;
    rapt_kernel.reduce.sum.columns[dtype](2 * w->n, size, slices, (int64_t)w->share_bytes, w->shares, sums, NULL);
    rapt_loop *convert = rapt_kernel.elementwise.cast[dtype][RAPT_FLOAT64];
    convert(w->n, (char *[]){dweight->data, (char *)sums}, strides, NULL);
    convert(w->n, (char *[]){dbias->data, (char *)(sums + w->n)}, strides, NULL);
}

/* What the work names, dx, and dweight and dbias unless they are NULL. False after an error. */
static bool normalize_rows_backward(backward_work *w, rapt_tensor *dweight, rapt_tensor *dbias)
{
    if (!make_contiguous(&w->g) || !make_contiguous(&w->x) || !make_contiguous(&w->weight)) return false;
    int64_t slices = (w->rows + rows_a_slice - 1) / rows_a_slice;
    w->share_bytes = 2 * (size_t)w->n * rapt_dtype_size(w->dx->dtype);
    size_t sum_bytes = 2 * (size_t)w->n * sizeof(double), capacity;
    char *block = NULL;
    if (dweight) {
        block = rapt_block_take("normalize_backward", sum_bytes + (size_t)slices * w->share_bytes, &capacity);
        if (!block) return false;
        w->shares = block + sum_bytes;
    }
    rapt_parallel_evenly(slices, rapt_grain(6 * w->n * rows_a_slice), backward_slices, w);
    if (dweight) {
        sum_shares(w, slices, (double *)(void *)block, dweight, dbias);
        rapt_block_give(block, capacity);
    }
    return true;
}

/* Inputs g, x, weight, scale, mean; outputs dx and, where they are wanted, dweight and dbias. The formulas are the
 * kernel's. */
static rapt_tensor *backward_forward(rapt_call *call)
{
    rapt_tensor *g = rapt_call_input(call, 0), *x = rapt_call_input(call, 1), *weight = rapt_call_input(call, 2);
    rapt_tensor *scale = rapt_call_input(call, 3), *mean = rapt_call_input(call, 4);
    rapt_call_save(call, g);
    rapt_call_save(call, x);
    rapt_call_save(call, weight);
    rapt_call_save(call, mean);
    const int64_t n = x->shape[x->rank - 1];
    rapt_tensor *parameters[2] = {NULL, NULL};
    rapt_tensor *dx = rapt_new("normalize_backward", x->dtype, x->rank, x->shape);
    if (!dx) return NULL;
    for (int k = 1; k < rapt_call_output_count(call); k++) {
        parameters[k - 1] = rapt_new("normalize_backward", x->dtype, 1, &n);
        rapt_call_set_output(call, k, parameters[k - 1]);
        if (!parameters[k - 1]) return NULL;
    }
    backward_work w =
        {.n = n, .rows = scale->count, .g = g, .x = x, .weight = weight, .scale = scale, .mean = mean, .dx = dx};
    return normalize_rows_backward(&w, parameters[0], parameters[1]) ? dx : NULL;
}

static rapt_tensor *row_means(rapt_tensor *x)
{
    return rapt_mean(x, RAPT_AXES(-1), true);
}

/* The derivative of ŷ = (x − mean) · scale, a symmetric matrix, times z: (z − mean z − ŷ mean(z ŷ)) · scale */
static rapt_tensor *through(rapt_tensor *z, rapt_tensor *y, rapt_tensor *scale, bool centered)
{
    rapt_tensor *rest = centered ? rapt_sub(z, row_means(z)) : z;
    return rapt_mul(rapt_sub(rest, rapt_mul(y, row_means(rapt_mul(z, y)))), scale);
}

/* Σ u dx + Σ v dweight + Σ t dbias for h = g · weight, dx = J h, p = J u:
 *   dg = weight p + v ŷ + t,   dweight = g p,
 *   dx = J(v g) − scale (scale ŷ (mean(u h) − mean u mean h − mean(u ŷ) mean(h ŷ)) + mean(h ŷ) p + mean(u ŷ) J h) */
static bool backward_vjp(rapt_call *call)
{
    const normalize_options *o = rapt_call_options(call);
    rapt_tensor *g = rapt_call_saved(call, 0), *x = rapt_call_saved(call, 1), *weight = rapt_call_saved(call, 2);
    if (!g || !x) return false;
    bool centered = rapt_call_saved(call, 3) != NULL;
    const bool parameters = rapt_call_output_count(call) > 1;
    rapt_tensor *u = rapt_call_gradient(call, 0), *v = parameters ? rapt_call_gradient(call, 1) : NULL,
                *t = parameters ? rapt_call_gradient(call, 2) : NULL;
    if (!u && !(u = rapt_zeros_like(x))) return false;

    rapt_tensor *centered_x = centered ? rapt_center(x, RAPT_AXES(-1)) : x;
    rapt_tensor *variance = row_means(rapt_mul(centered_x, centered_x));
    rapt_tensor *scale = rapt_rsqrt(rapt_add_scalar(variance, o->epsilon)), *y = rapt_mul(centered_x, scale);
    rapt_tensor *h = weight ? rapt_mul(g, weight) : g;
    rapt_tensor *p = through(u, y, scale, centered), *q = through(h, y, scale, centered);

    rapt_tensor *dg = weight ? rapt_mul(weight, p) : p;
    if (v) dg = rapt_add(dg, rapt_mul(v, y));
    if (t) dg = rapt_add(dg, t);
    if (!rapt_call_give(call, 0, dg) || (weight && !rapt_call_give(call, 2, rapt_mul(g, p)))) return false;
    if (!rapt_call_wants(call, 1)) return true;

    rapt_tensor *uy = row_means(rapt_mul(u, y)), *hy = row_means(rapt_mul(h, y));
    rapt_tensor *covariance = rapt_sub(row_means(rapt_mul(u, h)), rapt_mul(uy, hy));
    if (centered) covariance = rapt_sub(covariance, rapt_mul(row_means(u), row_means(h)));
    rapt_tensor *sum = rapt_mul(rapt_mul(scale, y), covariance);
    sum = rapt_add(rapt_add(sum, rapt_mul(hy, p)), rapt_mul(uy, q));
    rapt_tensor *dx = rapt_neg(rapt_mul(scale, sum));
    if (v) dx = rapt_add(dx, through(rapt_mul(v, g), y, scale, centered));
    return rapt_call_give(call, 1, dx);
}

static const rapt_op backward = {.name = "normalize_backward",
                                 .forward = backward_forward,
                                 .vjp = backward_vjp,
                                 .options_size = sizeof(normalize_options),
                                 .optional = 1 << 2 | 1 << 4};

static bool vjp(rapt_call *call)
{
    rapt_tensor *g = rapt_call_gradient(call, 0);
    if (rapt_call_wants(call, 0) || rapt_call_wants(call, 1)) {
        rapt_tensor *inputs[] = {g, rapt_call_saved(call, 0), rapt_call_saved(call, 1), rapt_call_saved(call, 2),
                                 rapt_call_saved(call, 3)};
        rapt_tensor *outputs[3];
        bool parameters = rapt_call_wants(call, 1);
        if (!inputs[1] || !inputs[3] ||
            !rapt_apply_counted(&backward, rapt_call_options(call), 5, inputs, parameters ? 3 : 1, outputs))
            return false;
        rapt_call_give(call, 0, outputs[0]);
        if (parameters) {
            rapt_call_give(call, 1, outputs[1]);
            return rapt_call_give(call, 2, outputs[2]);
        }
    }
    return rapt_call_give(call, 2, g);
}

static rapt_tensor *layer_forward(rapt_call *call)
{
    return forward(call, true);
}

static const rapt_op layer_normalize = {.name = "layer_normalize",
                                        .forward = layer_forward,
                                        .vjp = vjp,
                                        .options_size = sizeof(normalize_options),
                                        .optional = 1 << 1 | 1 << 2};

rapt_tensor *rapt_layer_normalize(rapt_tensor *x, rapt_tensor *weight, rapt_tensor *bias, double epsilon)
{
    normalize_options options = {epsilon};
    return RAPT_APPLY(&layer_normalize, &options, x, weight, bias);
}

static rapt_tensor *rms_forward(rapt_call *call)
{
    return forward(call, false);
}

static const rapt_op rms_normalize = {.name = "rms_normalize",
                                      .forward = rms_forward,
                                      .vjp = vjp,
                                      .options_size = sizeof(normalize_options),
                                      .optional = 1 << 1 | 1 << 2};

rapt_tensor *rapt_rms_normalize(rapt_tensor *x, rapt_tensor *weight, double epsilon)
{
    normalize_options options = {epsilon};
    return RAPT_APPLY(&rms_normalize, &options, x, weight, NULL);
}
