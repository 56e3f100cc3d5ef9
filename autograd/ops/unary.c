/* Functions of one tensor: sign, exponential, logarithm, roots, sine and cosine, erf, clamp. */
#include <math.h>

#include <rapt/ops.h>

#include "elementwise.h"

/* d(−x) = −dx */
static rapt_tensor *neg_forward(rapt_call *call)
{
    return rapt_elementwise_call(call, rapt_kernel.unary.neg, 1);
}

static bool neg_vjp(rapt_call *call)
{
    return rapt_call_give(call, 0, rapt_neg(rapt_call_gradient(call, 0)));
}

static const rapt_op neg = {.name = "neg", .forward = neg_forward, .vjp = neg_vjp};

rapt_tensor *rapt_neg(rapt_tensor *x)
{
    return RAPT_APPLY(&neg, NULL, x);
}

/* The gradient of |x|, g sign(x), and its own: that in g is the same again, that in x is 0. */
static rapt_tensor *abs_backward_forward(rapt_call *call)
{
    rapt_call_save(call, rapt_call_input(call, 1));
    return rapt_elementwise_call(call, rapt_kernel.unary.abs_backward, 1);
}

static bool abs_backward_vjp(rapt_call *call);

static const rapt_op abs_backward = {.name = "abs_backward", .forward = abs_backward_forward, .vjp = abs_backward_vjp};

static bool abs_backward_vjp(rapt_call *call)
{
    if (!rapt_call_wants(call, 0)) return true;
    return rapt_call_give(call, 0,
                          RAPT_APPLY(&abs_backward, NULL, rapt_call_gradient(call, 0), rapt_call_saved(call, 0)));
}

/* d|x| = sign(x) dx */
static rapt_tensor *abs_forward(rapt_call *call)
{
    rapt_call_save(call, rapt_call_input(call, 0));
    return rapt_elementwise_call(call, rapt_kernel.unary.abs, 1);
}

static const rapt_op absolute = {.name = "abs", .forward = abs_forward, .vjp = abs_backward_vjp};

rapt_tensor *rapt_abs(rapt_tensor *x)
{
    return RAPT_APPLY(&absolute, NULL, x);
}

/* y = e^x, dy = y dx */
static rapt_tensor *exp_forward(rapt_call *call)
{
    rapt_tensor *y = rapt_elementwise_call(call, rapt_kernel.unary.exp, 4);
    rapt_call_save(call, y);
    return y;
}

static bool exp_vjp(rapt_call *call)
{
    return rapt_call_give(call, 0, rapt_mul(rapt_call_gradient(call, 0), rapt_call_saved(call, 0)));
}

static const rapt_op exponential = {.name = "exp", .forward = exp_forward, .vjp = exp_vjp};

rapt_tensor *rapt_exp(rapt_tensor *x)
{
    return RAPT_APPLY(&exponential, NULL, x);
}

/* d log x = dx / x */
static rapt_tensor *log_forward(rapt_call *call)
{
    rapt_call_save(call, rapt_call_input(call, 0));
    return rapt_elementwise_call(call, rapt_kernel.unary.log, 4);
}

static bool log_vjp(rapt_call *call)
{
    return rapt_call_give(call, 0, rapt_div(rapt_call_gradient(call, 0), rapt_call_saved(call, 0)));
}

static const rapt_op logarithm = {.name = "log", .forward = log_forward, .vjp = log_vjp};

rapt_tensor *rapt_log(rapt_tensor *x)
{
    return RAPT_APPLY(&logarithm, NULL, x);
}

/* y = √x, dy = ½ dx / y */
static rapt_tensor *sqrt_forward(rapt_call *call)
{
    rapt_tensor *y = rapt_elementwise_call(call, rapt_kernel.unary.sqrt, 2);
    rapt_call_save(call, y);
    return y;
}

static bool sqrt_vjp(rapt_call *call)
{
    rapt_tensor *half = rapt_mul_scalar(rapt_call_gradient(call, 0), 0.5);
    return rapt_call_give(call, 0, rapt_div(half, rapt_call_saved(call, 0)));
}

static const rapt_op square_root = {.name = "sqrt", .forward = sqrt_forward, .vjp = sqrt_vjp};

rapt_tensor *rapt_sqrt(rapt_tensor *x)
{
    return RAPT_APPLY(&square_root, NULL, x);
}

/* y = 1 / √x, dy = −½ y³ dx */
static rapt_tensor *rsqrt_forward(rapt_call *call)
{
    rapt_tensor *y = rapt_elementwise_call(call, rapt_kernel.unary.rsqrt, 3);
    rapt_call_save(call, y);
    return y;
}

static bool rsqrt_vjp(rapt_call *call)
{
    rapt_tensor *half = rapt_mul_scalar(rapt_call_gradient(call, 0), -0.5);
    return rapt_call_give(call, 0, rapt_mul(half, rapt_pow_scalar(rapt_call_saved(call, 0), 3)));
}

static const rapt_op reciprocal_root = {.name = "rsqrt", .forward = rsqrt_forward, .vjp = rsqrt_vjp};

rapt_tensor *rapt_rsqrt(rapt_tensor *x)
{
    return RAPT_APPLY(&reciprocal_root, NULL, x);
}

/* d sin x = cos(x) dx */
static rapt_tensor *sin_forward(rapt_call *call)
{
    rapt_call_save(call, rapt_call_input(call, 0));
    return rapt_elementwise_call(call, rapt_kernel.unary.sin, 8);
}

static bool sin_vjp(rapt_call *call)
{
    return rapt_call_give(call, 0, rapt_mul(rapt_call_gradient(call, 0), rapt_cos(rapt_call_saved(call, 0))));
}

static const rapt_op sine = {.name = "sin", .forward = sin_forward, .vjp = sin_vjp};

rapt_tensor *rapt_sin(rapt_tensor *x)
{
    return RAPT_APPLY(&sine, NULL, x);
}

/* d cos x = −sin(x) dx */
static rapt_tensor *cos_forward(rapt_call *call)
{
    rapt_call_save(call, rapt_call_input(call, 0));
    return rapt_elementwise_call(call, rapt_kernel.unary.cos, 8);
}

static bool cos_vjp(rapt_call *call)
{
    return rapt_call_give(call, 0, rapt_neg(rapt_mul(rapt_call_gradient(call, 0), rapt_sin(rapt_call_saved(call, 0)))));
}

static const rapt_op cosine = {.name = "cos", .forward = cos_forward, .vjp = cos_vjp};

rapt_tensor *rapt_cos(rapt_tensor *x)
{
    return RAPT_APPLY(&cosine, NULL, x);
}

/* d erf x = 2/√π e^(−x²) dx */
static rapt_tensor *erf_forward(rapt_call *call)
{
    rapt_call_save(call, rapt_call_input(call, 0));
    return rapt_elementwise_call(call, rapt_kernel.unary.erf, 6);
}

static bool erf_vjp(rapt_call *call)
{
    rapt_tensor *bell = rapt_exp(rapt_neg(rapt_pow_scalar(rapt_call_saved(call, 0), 2)));
    return rapt_call_give(call, 0, rapt_mul(rapt_call_gradient(call, 0), rapt_mul_scalar(bell, M_2_SQRTPI)));
}

static const rapt_op error_function = {.name = "erf", .forward = erf_forward, .vjp = erf_vjp};

rapt_tensor *rapt_erf(rapt_tensor *x)
{
    return RAPT_APPLY(&error_function, NULL, x);
}

typedef struct clamp_options {
    double low, high;
} clamp_options;

/* The gradient of clamp, g where low ≤ x ≤ high, else 0; its own in g is the same again, in x it is 0. */
static rapt_tensor *clamp_backward_forward(rapt_call *call)
{
    rapt_call_save(call, rapt_call_input(call, 1));
    return rapt_elementwise_call(call, rapt_kernel.unary.clamp_backward, 1);
}

static bool clamp_backward_vjp(rapt_call *call);

static const rapt_op clamp_backward = {.name = "clamp_backward",
                                       .forward = clamp_backward_forward,
                                       .vjp = clamp_backward_vjp,
                                       .options_size = sizeof(clamp_options)};

static bool clamp_backward_vjp(rapt_call *call)
{
    if (!rapt_call_wants(call, 0)) return true;
    rapt_tensor *g = rapt_call_gradient(call, 0), *x = rapt_call_saved(call, 0);
    return rapt_call_give(call, 0, RAPT_APPLY(&clamp_backward, rapt_call_options(call), g, x));
}

/* y = min(max(x, low), high), dy = dx where low ≤ x ≤ high, else 0 */
static rapt_tensor *clamp_forward(rapt_call *call)
{
    const clamp_options *options = rapt_call_options(call);
    if (!(options->low <= options->high)) {
        rapt_fail(RAPT_ERROR_VALUE, "clamp", "low %g and high %g; low ≤ high expected", options->low, options->high);
        return NULL;
    }
    rapt_call_save(call, rapt_call_input(call, 0));
    return rapt_elementwise_call(call, rapt_kernel.unary.clamp, 1);
}

static const rapt_op clamp = {.name = "clamp",
                              .forward = clamp_forward,
                              .vjp = clamp_backward_vjp,
                              .options_size = sizeof(clamp_options)};

rapt_tensor *rapt_clamp(rapt_tensor *x, double low, double high)
{
    return RAPT_APPLY(&clamp, &((clamp_options){low, high}), x);
}
