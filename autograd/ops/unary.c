/* Functions of one tensor: those of functions.def, which one engine runs and differentiates, and those that numbers
 * belong to: clamp, leaky_relu and elu. */
#include <math.h>

#include "activation.h"
#include "elementwise.h"

/* 1 + factor · x */
static rapt_tensor *one_plus(double factor, rapt_tensor *x)
{
    return rapt_add_scalar(rapt_mul_scalar(x, factor), 1);
}

/* Of x σ(v): σ' (2 v' + x v'' + x (1 − 2σ) v'²) with σ' = σ(v) σ(−v), where 1 − σ would have no digits left */
static rapt_tensor *gelu_tanh_curve(rapt_tensor *x)
{
    const double slope = 2 * M_SQRT2 * M_2_SQRTPI * 0.5, cubic = 0.044715;
    rapt_tensor *square = rapt_pow_scalar(x, 2);
    rapt_tensor *v = rapt_mul_scalar(rapt_mul(x, one_plus(cubic, square)), slope), *s = rapt_sigmoid(v);
    rapt_tensor *v1 = rapt_mul_scalar(one_plus(3 * cubic, square), slope);
    rapt_tensor *x_v2 = rapt_mul_scalar(square, 6 * cubic * slope);
    rapt_tensor *bend = rapt_mul(rapt_mul(x, one_plus(-2, s)), rapt_pow_scalar(v1, 2));
    rapt_tensor *sum = rapt_add(rapt_add(rapt_mul_scalar(v1, 2), x_v2), bend);
    return rapt_mul(rapt_mul(s, rapt_sigmoid(rapt_neg(v))), sum);
}

/* σ (1 − t²) (2 + x (1 − σ (1 + 2t))) */
static rapt_tensor *mish_curve(rapt_tensor *x)
{
    rapt_tensor *s = rapt_sigmoid(x), *t = rapt_tanh(rapt_softplus(x));
    rapt_tensor *slope = rapt_mul(s, one_plus(-1, rapt_pow_scalar(t, 2)));
    rapt_tensor *bend = rapt_mul(rapt_mul(slope, x), one_plus(-1, rapt_mul(s, one_plus(2, t))));
    return rapt_add(rapt_mul_scalar(slope, 2), bend);
}

/* --- the engine --- */

/* An op of functions.def, or a fused gradient, the op g f'(s) of the inputs g and s. Begins with the op, so that a
 * call's op tells its function. */
typedef struct function {
    rapt_op op;
    rapt_loop *const *loops;
    int64_t cost;
    enum { saves_nothing, saves_x, saves_y } saved;               /* s, which the gradient is a function of */
    rapt_tensor *(*gradient)(rapt_tensor *g, rapt_tensor *saved); /* g f'(s) */
    rapt_tensor *(*curve)(rapt_tensor *saved);                    /* of a fused gradient: f''(s); NULL: 0 */
} function;

static const function *function_of(const rapt_call *call)
{
    return (const function *)rapt_call_op(call);
}

static rapt_tensor *forward(rapt_call *call)
{
    const function *f = function_of(call);
    if (f->saved == saves_x) rapt_call_save(call, rapt_call_input(call, 0));
    if (f->saved == saves_y) rapt_call_save_output(call, 0);
    return rapt_elementwise_call(call, f->loops, f->cost);
}

static bool vjp(rapt_call *call)
{
    const function *f = function_of(call);
    rapt_tensor *saved = f->saved == saves_nothing ? NULL : rapt_call_saved(call, 0);
    return rapt_call_give(call, 0, f->gradient(rapt_call_last_gradient(call, 0), saved));
}

static bool steps_vjp(rapt_call *call)
{
    return rapt_call_give(call, 0, rapt_zeros_like(rapt_call_gradient(call, 0)));
}

static rapt_tensor *fused_forward(rapt_call *call)
{
    const function *f = function_of(call);
    rapt_call_save(call, rapt_call_input(call, 1));
    rapt_call_save(call, f->curve && rapt_call_wants(call, 1) ? rapt_call_input(call, 0) : NULL);
    return rapt_elementwise_call(call, f->loops, f->cost);
}

/* h f'(s) to g, and h g f''(s) to s */
static bool fused_vjp(rapt_call *call)
{
    const function *f = function_of(call);
    rapt_tensor *h = rapt_call_gradient(call, 0), *s = rapt_call_saved(call, 0);
    bool good = true;
    if (rapt_call_wants(call, 0)) good = rapt_call_give(call, 0, RAPT_APPLY(&f->op, NULL, h, s));
    if (f->curve && rapt_call_wants(call, 1))
        good = good && rapt_call_give(call, 1, rapt_mul(rapt_mul(h, rapt_call_saved(call, 1)), f->curve(s)));
    return good;
}

/* --- the functions --- */

#define WITH(tensor, name, formula)                                                                                    \
    ({                                                                                                                 \
        rapt_tensor *name = (tensor);                                                                                  \
        formula;                                                                                                       \
    })

#define PUBLIC(name)                                                                                                   \
    rapt_tensor *rapt_##name(rapt_tensor *x)                                                                           \
    {                                                                                                                  \
        return RAPT_APPLY(&name##_function.op, NULL, x);                                                               \
    }

#define FUNCTION(name_, saved_, cost_, value_, gradient_)                                                              \
    static rapt_tensor *name_##_gradient(rapt_tensor *g, rapt_tensor *saved_)                                          \
    {                                                                                                                  \
        (void)saved_;                                                                                                  \
        return gradient_;                                                                                              \
    }                                                                                                                  \
    static const function name_##_function = {.op = {.name = #name_, .forward = forward, .vjp = vjp},                  \
                                              .loops = rapt_kernel.unary.name_,                                        \
                                              .cost = cost_,                                                           \
                                              .saved = saves_##saved_,                                                 \
                                              .gradient = name_##_gradient};                                           \
    PUBLIC(name_)

#define FUSED_GRADIENT(name_, saved_, cost_, gradient_cost_, curve_)                                                   \
    static const function name_##_backward = {.op = {.name = #name_ "_backward",                                       \
                                                     .forward = fused_forward,                                         \
                                                     .vjp = fused_vjp},                                                \
                                              .loops = rapt_kernel.unary.name_##_backward,                             \
                                              .cost = gradient_cost_,                                                  \
                                              .curve = curve_};                                                        \
    FUNCTION(name_, saved_, cost_, , RAPT_APPLY(&name_##_backward.op, NULL, g, saved_))

#define FUSED_STEPS(name, saved, cost, gradient_cost, value, gradient)                                                 \
    FUSED_GRADIENT(name, saved, cost, gradient_cost, NULL)

#define FUSED(name, saved, cost, gradient_cost, value, gradient, curve)                                                \
    static rapt_tensor *name##_second(rapt_tensor *saved)                                                              \
    {                                                                                                                  \
        return curve;                                                                                                  \
    }                                                                                                                  \
    FUSED_GRADIENT(name, saved, cost, gradient_cost, name##_second)

#define STEPS(name_, cost_, value_)                                                                                    \
    static const function name_##_function = {.op = {.name = #name_, .forward = forward, .vjp = steps_vjp},            \
                                              .loops = rapt_kernel.unary.name_,                                        \
                                              .cost = cost_};                                                          \
    PUBLIC(name_)

#define WAVE(name, saved, cost, gradient) FUNCTION(name, saved, cost, , gradient)
#include "tensor/functions.def"

/* --- those that follow a linear layer --- */

static const function *const activations[] = {[RAPT_ACTIVATION_RELU] = &relu_function,
                                              [RAPT_ACTIVATION_GELU] = &gelu_function,
                                              [RAPT_ACTIVATION_GELU_TANH] = &gelu_tanh_function,
                                              [RAPT_ACTIVATION_SILU] = &silu_function};
enum { activation_count = sizeof activations / sizeof *activations };

bool rapt_check_activation(const char *op, rapt_activation activation)
{
    return (unsigned)activation < activation_count ||
           rapt_fail(RAPT_ERROR_VALUE, op, "activation %d is none of rapt_activation", (int)activation);
}

rapt_loop *rapt_activation_loop(rapt_activation activation, rapt_dtype dtype)
{
    return activations[activation]->loops[dtype];
}

bool rapt_activation_saves_output(rapt_activation activation)
{
    return activations[activation]->saved == saves_y;
}

rapt_tensor *rapt_activation_gradient(rapt_activation activation, rapt_tensor *g, rapt_tensor *saved)
{
    return activations[activation]->gradient(g, saved);
}

/* --- those with numbers: clamp, leaky_relu, elu --- */

/* An op with options, or its gradient, the op g f'(x) of the inputs g and x with the same options. Begins with the op,
 * as above. */
typedef struct bent_function {
    rapt_op op;
    rapt_loop *const *loops;
    int64_t cost;
    const rapt_op *gradient;                                      /* a gradient's own in g is the same again */
    rapt_tensor *(*curve)(rapt_tensor *x, const double *options); /* of a gradient: f''(x); NULL: 0 */
} bent_function;

static bool bent_vjp(rapt_call *call)
{
    const bent_function *f = (const bent_function *)rapt_call_op(call);
    const double *options = rapt_call_options(call);
    rapt_tensor *x = rapt_call_saved(call, 0), *g_before = rapt_call_saved(call, 1);
    if (!f->curve) {
        if (!rapt_call_wants(call, 0)) return true;
        return rapt_call_give(call, 0, RAPT_APPLY(f->gradient, options, rapt_call_last_gradient(call, 0), x));
    }
    rapt_tensor *h = rapt_call_gradient(call, 0);
    bool good = true;
    if (rapt_call_wants(call, 0)) good = rapt_call_give(call, 0, RAPT_APPLY(f->gradient, options, h, x));
    if (rapt_call_wants(call, 1))
        good = good && rapt_call_give(call, 1, rapt_mul(rapt_mul(h, g_before), f->curve(x, options)));
    return good;
}

static rapt_tensor *bent_forward(rapt_call *call)
{
    const bent_function *f = (const bent_function *)rapt_call_op(call);
    const int last = rapt_call_count(call) - 1;
    rapt_call_save(call, rapt_call_input(call, last));
    rapt_call_save(call, f->curve && rapt_call_wants(call, last) ? rapt_call_input(call, 0) : NULL);
    return rapt_elementwise_call(call, f->loops, f->cost);
}

#define BENT(name_, forward_, numbers, cost_, curve_)                                                                  \
    static const bent_function name_##_backward = {.op = {.name = #name_ "_backward",                                  \
                                                          .forward = bent_forward,                                     \
                                                          .vjp = bent_vjp,                                             \
                                                          .options_size = (numbers) * sizeof(double)},                 \
                                                   .loops = rapt_kernel.unary.name_##_backward,                        \
                                                   .cost = cost_,                                                      \
                                                   .gradient = &name_##_backward.op,                                   \
                                                   .curve = curve_};                                                   \
    static const bent_function name_##_function =                                                                      \
        {.op = {.name = #name_, .forward = forward_, .vjp = bent_vjp, .options_size = (numbers) * sizeof(double)},     \
         .loops = rapt_kernel.unary.name_,                                                                             \
         .cost = cost_,                                                                                                \
         .gradient = &name_##_backward.op};

/* y = min(max(x, low), high), dy = dx where low ≤ x ≤ high, else 0 */
static rapt_tensor *clamp_forward(rapt_call *call)
{
    const double *low_and_high = rapt_call_options(call);
    if (low_and_high[0] <= low_and_high[1]) return bent_forward(call);
    rapt_fail(RAPT_ERROR_VALUE, "clamp", "low %g and high %g; low ≤ high expected", low_and_high[0], low_and_high[1]);
    return NULL;
}

BENT(clamp, clamp_forward, 2, 1, NULL)

rapt_tensor *rapt_clamp(rapt_tensor *x, double low, double high)
{
    return RAPT_APPLY(&clamp_function.op, ((double[]){low, high}), x);
}

/* y = x where x > 0, else slope · x: dx = dy or slope · dy */
BENT(leaky_relu, bent_forward, 1, 1, NULL)

rapt_tensor *rapt_leaky_relu(rapt_tensor *x, double slope)
{
    return RAPT_APPLY(&leaky_relu_function.op, &slope, x);
}

/* y = x where x > 0, else alpha (e^x − 1): dx = dy or alpha e^x dy, whose derivative is alpha e^x dy or 0 */
static rapt_tensor *elu_curve(rapt_tensor *x, const double *alpha)
{
    rapt_tensor *slope = rapt_mul_scalar(rapt_exp(rapt_clamp(x, -(double)INFINITY, 0)), *alpha);
    return RAPT_APPLY(&clamp_backward.op, ((double[]){-(double)INFINITY, 0}), slope, x);
}

BENT(elu, bent_forward, 1, 6, elu_curve)

rapt_tensor *rapt_elu(rapt_tensor *x, double alpha)
{
    return RAPT_APPLY(&elu_function.op, &alpha, x);
}
