/* Layer normalisation and root-mean-square normalisation over the last axis. */
#include <rapt/ops.h>

#include <math.h>

#include "autograd/node.h"
#include "autograd/normalize.h"
#include "autograd/reduction.h"

typedef struct normalize_options {
    double epsilon;
} normalize_options;

static bool check_parameter(const char *op, const char *name, const rapt_tensor *x, const rapt_tensor *parameter)
{
    if (!parameter) return true;
    if (parameter->dtype != x->dtype)
        return rapt_fail(RAPT_ERROR_DTYPE, op, "%s is %s, x is %s; one dtype expected", name,
                         rapt_dtype_name((rapt_dtype)parameter->dtype), rapt_dtype_name((rapt_dtype)x->dtype));
    int64_t n = x->shape[x->rank - 1];
    if (parameter->rank == 1 && parameter->shape[0] == n) return true;
    char text[RAPT_SHAPE_TEXT];
    return rapt_fail(RAPT_ERROR_SHAPE, op, "%s has shape %s; [%lld], the last axis of x, expected", name,
                     rapt_shape_text(parameter->rank, parameter->shape, text), (long long)n);
}

static bool check_input(const char *op, const rapt_tensor *x, double epsilon)
{
    if (!rapt_is_floating(x))
        return rapt_fail(RAPT_ERROR_DTYPE, op, "not defined for %s; float32 or float64 expected",
                         rapt_dtype_name((rapt_dtype)x->dtype));
    if (x->rank == 0) return rapt_fail(RAPT_ERROR_SHAPE, op, "a scalar has no last axis");
    if (!(epsilon >= 0) || isinf(epsilon))
        return rapt_fail(RAPT_ERROR_VALUE, op, "epsilon %g; a finite number of at least 0 expected", epsilon);
    return true;
}

/* y = (x − mean) · scale · weight + bias, scale = 1 / √(var + epsilon); without mean: scale = 1 / √(mean x² + epsilon) */
static rapt_tensor *forward(rapt_call *call, bool centered)
{
    const char *op = call->op->name;
    double epsilon = ((const normalize_options *)rapt_call_options(call))->epsilon;
    rapt_tensor *x = rapt_call_input(call, 0), *weight = rapt_call_input(call, 1), *bias = rapt_call_input(call, 2);
    if (!check_input(op, x, epsilon) || !check_parameter(op, "weight", x, weight) ||
        !check_parameter(op, "bias", x, bias))
        return NULL;
    rapt_tensor *y = rapt_new(op, (rapt_dtype)x->dtype, x->rank, x->shape);
    rapt_tensor *scale = rapt_new(op, RAPT_FLOAT64, x->rank - 1, x->shape);
    rapt_tensor *mean = centered ? rapt_new(op, RAPT_FLOAT64, x->rank - 1, x->shape) : NULL;
    if (!y || !scale || (centered && !mean) || !rapt_normalize_rows(epsilon, x, weight, bias, mean, scale, y))
        return NULL;
    bool needs_x = rapt_call_wants(call, 0) || rapt_call_wants(call, 1);
    rapt_call_save(call, needs_x ? x : NULL);
    rapt_call_save(call, weight);
    rapt_call_save_constant(call, scale); /* the backward op makes them from x again where it is differentiated */
    rapt_call_save_constant(call, mean);
    return y;
}

/* Inputs g, x, weight, scale, mean; outputs dx and, where they are wanted, dweight and dbias. The formulas are the
 * kernel's. */
static rapt_tensor *backward_forward(rapt_call *call)
{
    const rapt_tensor *inputs[5];
    for (int i = 0; i < 5; i++) inputs[i] = rapt_call_input(call, i);
    for (int i = 0; i < 3; i++) rapt_call_save(call, rapt_call_input(call, i));
    rapt_call_save(call, rapt_call_input(call, 4));
    rapt_tensor *parameters[2] = {NULL, NULL};
    rapt_tensor *dx = rapt_new("normalize_backward", (rapt_dtype)inputs[1]->dtype, inputs[1]->rank, inputs[1]->shape);
    if (!dx) return NULL;
    for (int k = 1; k < rapt_call_output_count(call); k++) {
        parameters[k - 1] = rapt_new("normalize_backward", (rapt_dtype)dx->dtype, 1, &dx->shape[dx->rank - 1]);
        rapt_call_set_output(call, k, parameters[k - 1]);
        if (!parameters[k - 1]) return NULL;
    }
    return rapt_normalize_rows_backward(inputs, dx, parameters[0], parameters[1]) ? dx : NULL;
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
