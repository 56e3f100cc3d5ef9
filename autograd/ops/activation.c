/* Activation functions. The derivative of each is one fused op, and has itself a derivative. */
#include <math.h>

#include <rapt/ops.h>

#include "elementwise.h"

enum { cheap = 1, costly = 6 };

/* The forward of a derivative g f'(s): inputs g and s. */
static rapt_tensor *slope_forward(rapt_call *call, const rapt_loops loops, int64_t cost)
{
    rapt_call_save(call, rapt_call_wants(call, 1) ? rapt_call_input(call, 0) : NULL);
    rapt_call_save(call, rapt_call_input(call, 1));
    return rapt_elementwise_call(call, loops, cost);
}

/* Its vjp, h f'(s) to g and h g f''(s) to s; curve computes f''(s). */
static bool slope_vjp(rapt_call *call, const rapt_op *slope, rapt_tensor *(*curve)(rapt_tensor *s))
{
    rapt_tensor *h = rapt_call_gradient(call, 0), *s = rapt_call_saved(call, 1);
    bool good = true;
    if (rapt_call_wants(call, 0)) good = rapt_call_give(call, 0, RAPT_APPLY(slope, NULL, h, s));
    if (rapt_call_wants(call, 1))
        good = good && rapt_call_give(call, 1, rapt_mul(rapt_mul(h, rapt_call_saved(call, 0)), curve(s)));
    return good;
}

/* The vjp of f itself, which has saved s: g f'(s). */
static bool apply_slope(rapt_call *call, const rapt_op *slope)
{
    return rapt_call_give(call, 0, RAPT_APPLY(slope, NULL, rapt_call_gradient(call, 0), rapt_call_saved(call, 0)));
}

/* 1 + factor · x */
static rapt_tensor *one_plus(double factor, rapt_tensor *x)
{
    return rapt_add_scalar(rapt_mul_scalar(x, factor), 1);
}

/* y = tanh x, dy = (1 − y²) dx; and d(1 − y²) = −2y dy */
static rapt_tensor *tanh_curve(rapt_tensor *y)
{
    return rapt_mul_scalar(y, -2);
}

static rapt_tensor *tanh_backward_forward(rapt_call *call)
{
    return slope_forward(call, rapt_kernel.activation.tanh_backward, cheap);
}

static bool tanh_backward_vjp(rapt_call *call);

static const rapt_op tanh_backward = {.name = "tanh_backward",
                                      .forward = tanh_backward_forward,
                                      .vjp = tanh_backward_vjp};

static bool tanh_backward_vjp(rapt_call *call)
{
    return slope_vjp(call, &tanh_backward, tanh_curve);
}

static rapt_tensor *tanh_forward(rapt_call *call)
{
    rapt_tensor *y = rapt_elementwise_call(call, rapt_kernel.activation.tanh, costly);
    rapt_call_save(call, y);
    return y;
}

static bool tanh_vjp(rapt_call *call)
{
    return apply_slope(call, &tanh_backward);
}

static const rapt_op hyperbolic_tangent = {.name = "tanh", .forward = tanh_forward, .vjp = tanh_vjp};

rapt_tensor *rapt_tanh(rapt_tensor *x)
{
    return RAPT_APPLY(&hyperbolic_tangent, NULL, x);
}

/* y = σ(x) = 1 / (1 + e^(−x)), dy = y (1 − y) dx; and d(y (1 − y)) = (1 − 2y) dy */
static rapt_tensor *sigmoid_curve(rapt_tensor *y)
{
    return one_plus(-2, y);
}

static rapt_tensor *sigmoid_backward_forward(rapt_call *call)
{
    return slope_forward(call, rapt_kernel.activation.sigmoid_backward, cheap);
}

static bool sigmoid_backward_vjp(rapt_call *call);

static const rapt_op sigmoid_backward = {.name = "sigmoid_backward",
                                         .forward = sigmoid_backward_forward,
                                         .vjp = sigmoid_backward_vjp};

static bool sigmoid_backward_vjp(rapt_call *call)
{
    return slope_vjp(call, &sigmoid_backward, sigmoid_curve);
}

static rapt_tensor *sigmoid_forward(rapt_call *call)
{
    rapt_tensor *y = rapt_elementwise_call(call, rapt_kernel.activation.sigmoid, costly);
    rapt_call_save(call, y);
    return y;
}

static bool sigmoid_vjp(rapt_call *call)
{
    return apply_slope(call, &sigmoid_backward);
}

static const rapt_op sigmoid = {.name = "sigmoid", .forward = sigmoid_forward, .vjp = sigmoid_vjp};

rapt_tensor *rapt_sigmoid(rapt_tensor *x)
{
    return RAPT_APPLY(&sigmoid, NULL, x);
}

/* y = max(x, 0), dy = dx where y > 0, else 0; constant in y */
static rapt_tensor *relu_backward_forward(rapt_call *call)
{
    rapt_call_save(call, rapt_call_input(call, 1));
    return rapt_elementwise_call(call, rapt_kernel.activation.relu_backward, cheap);
}

static bool relu_backward_vjp(rapt_call *call);

static const rapt_op relu_backward = {.name = "relu_backward",
                                      .forward = relu_backward_forward,
                                      .vjp = relu_backward_vjp};

static bool relu_backward_vjp(rapt_call *call)
{
    return !rapt_call_wants(call, 0) || apply_slope(call, &relu_backward);
}

static rapt_tensor *relu_forward(rapt_call *call)
{
    rapt_tensor *y = rapt_elementwise_call(call, rapt_kernel.activation.relu, cheap);
    rapt_call_save(call, y);
    return y;
}

static bool relu_vjp(rapt_call *call)
{
    return apply_slope(call, &relu_backward);
}

static const rapt_op relu = {.name = "relu", .forward = relu_forward, .vjp = relu_vjp};

rapt_tensor *rapt_relu(rapt_tensor *x)
{
    return RAPT_APPLY(&relu, NULL, x);
}

/* y = x Φ(x), dy = (Φ + x φ) dx; and d(Φ + x φ) = φ (2 − x²) dx with the normal density φ = e^(−x²/2) / √(2π) */
static rapt_tensor *gelu_curve(rapt_tensor *x)
{
    rapt_tensor *square = rapt_pow_scalar(x, 2);
    rapt_tensor *bell = rapt_exp(rapt_mul_scalar(square, -0.5));
    return rapt_mul(bell, rapt_mul_scalar(one_plus(-0.5, square), M_SQRT1_2 * M_2_SQRTPI));
}

static rapt_tensor *gelu_backward_forward(rapt_call *call)
{
    return slope_forward(call, rapt_kernel.activation.gelu_backward, 2 * costly);
}

static bool gelu_backward_vjp(rapt_call *call);

static const rapt_op gelu_backward = {.name = "gelu_backward",
                                      .forward = gelu_backward_forward,
                                      .vjp = gelu_backward_vjp};

static bool gelu_backward_vjp(rapt_call *call)
{
    return slope_vjp(call, &gelu_backward, gelu_curve);
}

static rapt_tensor *gelu_forward(rapt_call *call)
{
    rapt_call_save(call, rapt_call_input(call, 0));
    return rapt_elementwise_call(call, rapt_kernel.activation.gelu, costly);
}

static bool gelu_vjp(rapt_call *call)
{
    return apply_slope(call, &gelu_backward);
}

static const rapt_op gelu = {.name = "gelu", .forward = gelu_forward, .vjp = gelu_vjp};

rapt_tensor *rapt_gelu(rapt_tensor *x)
{
    return RAPT_APPLY(&gelu, NULL, x);
}

/* y = ½ x (1 + tanh u) = x σ(v) with v = 2u = 2 √(2/π) (x + 0.044715 x³), dy = (σ + x σ' v') dx;
 * and d(σ + x σ' v') = σ' (2 v' + x v'' + x (1 − 2σ) v'²) dx with σ' = σ (1 − σ) */
static rapt_tensor *gelu_tanh_curve(rapt_tensor *x)
{
    const double slope = 2 * M_SQRT2 * M_2_SQRTPI * 0.5, cubic = 0.044715;
    rapt_tensor *square = rapt_pow_scalar(x, 2);
    rapt_tensor *s = rapt_sigmoid(rapt_mul_scalar(rapt_mul(x, one_plus(cubic, square)), slope));
    rapt_tensor *v1 = rapt_mul_scalar(one_plus(3 * cubic, square), slope);
    rapt_tensor *x_v2 = rapt_mul_scalar(square, 6 * cubic * slope);
    rapt_tensor *bend = rapt_mul(rapt_mul(x, one_plus(-2, s)), rapt_pow_scalar(v1, 2));
    rapt_tensor *sum = rapt_add(rapt_add(rapt_mul_scalar(v1, 2), x_v2), bend);
    return rapt_mul(rapt_mul(s, one_plus(-1, s)), sum);
}

static rapt_tensor *gelu_tanh_backward_forward(rapt_call *call)
{
    return slope_forward(call, rapt_kernel.activation.gelu_tanh_backward, 2 * costly);
}

static bool gelu_tanh_backward_vjp(rapt_call *call);

static const rapt_op gelu_tanh_backward = {.name = "gelu_tanh_backward",
                                           .forward = gelu_tanh_backward_forward,
                                           .vjp = gelu_tanh_backward_vjp};

static bool gelu_tanh_backward_vjp(rapt_call *call)
{
    return slope_vjp(call, &gelu_tanh_backward, gelu_tanh_curve);
}

static rapt_tensor *gelu_tanh_forward(rapt_call *call)
{
    rapt_call_save(call, rapt_call_input(call, 0));
    return rapt_elementwise_call(call, rapt_kernel.activation.gelu_tanh, costly);
}

static bool gelu_tanh_vjp(rapt_call *call)
{
    return apply_slope(call, &gelu_tanh_backward);
}

static const rapt_op gelu_tanh = {.name = "gelu_tanh", .forward = gelu_tanh_forward, .vjp = gelu_tanh_vjp};

rapt_tensor *rapt_gelu_tanh(rapt_tensor *x)
{
    return RAPT_APPLY(&gelu_tanh, NULL, x);
}

/* y = x σ, dy = σ (1 + x (1 − σ)) dx; and d(σ (1 + x (1 − σ))) = σ (1 − σ) (2 + x (1 − 2σ)) dx */
static rapt_tensor *silu_curve(rapt_tensor *x)
{
    rapt_tensor *s = rapt_sigmoid(x);
    rapt_tensor *sum = rapt_add_scalar(rapt_mul(x, one_plus(-2, s)), 2);
    return rapt_mul(rapt_mul(s, one_plus(-1, s)), sum);
}

static rapt_tensor *silu_backward_forward(rapt_call *call)
{
    return slope_forward(call, rapt_kernel.activation.silu_backward, costly);
}

static bool silu_backward_vjp(rapt_call *call);

static const rapt_op silu_backward = {.name = "silu_backward",
                                      .forward = silu_backward_forward,
                                      .vjp = silu_backward_vjp};

static bool silu_backward_vjp(rapt_call *call)
{
    return slope_vjp(call, &silu_backward, silu_curve);
}

static rapt_tensor *silu_forward(rapt_call *call)
{
    rapt_call_save(call, rapt_call_input(call, 0));
    return rapt_elementwise_call(call, rapt_kernel.activation.silu, costly);
}

static bool silu_vjp(rapt_call *call)
{
    return apply_slope(call, &silu_backward);
}

static const rapt_op silu = {.name = "silu", .forward = silu_forward, .vjp = silu_vjp};

rapt_tensor *rapt_silu(rapt_tensor *x)
{
    return RAPT_APPLY(&silu, NULL, x);
}
