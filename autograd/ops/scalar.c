/* A tensor and a number: x + value, x · value, x ^ exponent. */
#include <rapt/ops.h>

#include "elementwise.h"

/* False and an error when x has an integer dtype that cannot hold the number. No op here is defined for bool. */
static bool check_number(const char *op, const rapt_tensor *x, double value)
{
    return x->dtype == RAPT_BOOL || rapt_check_number(op, x, value);
}

/* d(x + c) = dx */
static rapt_tensor *add_scalar_forward(rapt_call *call)
{
    const double *value = rapt_call_options(call);
    if (!check_number("add_scalar", rapt_call_input(call, 0), *value)) return NULL;
    return rapt_elementwise_call(call, rapt_kernel.elementwise.shift, 1);
}

static bool add_scalar_vjp(rapt_call *call)
{
    return rapt_call_give(call, 0, rapt_call_gradient(call, 0));
}

static const rapt_op add_scalar = {.name = "add_scalar",
                                   .forward = add_scalar_forward,
                                   .vjp = add_scalar_vjp,
                                   .options_size = sizeof(double)};

rapt_tensor *rapt_add_scalar(rapt_tensor *x, double value)
{
    return RAPT_APPLY(&add_scalar, &value, x);
}

/* d(c x) = c dx */
static rapt_tensor *mul_scalar_forward(rapt_call *call)
{
    const double *value = rapt_call_options(call);
    if (!check_number("mul_scalar", rapt_call_input(call, 0), *value)) return NULL;
    return rapt_elementwise_call(call, rapt_kernel.elementwise.scale, 1);
}

static bool mul_scalar_vjp(rapt_call *call)
{
    const double *value = rapt_call_options(call);
    return rapt_call_give(call, 0, rapt_mul_scalar(rapt_call_last_gradient(call, 0), *value));
}

static const rapt_op mul_scalar = {.name = "mul_scalar",
                                   .forward = mul_scalar_forward,
                                   .vjp = mul_scalar_vjp,
                                   .options_size = sizeof(double)};

rapt_tensor *rapt_mul_scalar(rapt_tensor *x, double value)
{
    return RAPT_APPLY(&mul_scalar, &value, x);
}

/* d(x^c) = c x^(c − 1) dx; for c = 0 that is 0, also at x = 0 */
static rapt_tensor *pow_scalar_forward(rapt_call *call)
{
    double exponent = *(const double *)rapt_call_options(call);
    rapt_call_save(call, exponent != 0 ? rapt_call_input(call, 0) : NULL);
    if (exponent == 2) return rapt_elementwise_call(call, rapt_kernel.unary.square, 1);
    if (exponent == 3) return rapt_elementwise_call(call, rapt_kernel.unary.cube, 1);
    if (exponent == -1) return rapt_elementwise_call(call, rapt_kernel.unary.reciprocal, 2);
    return rapt_elementwise_call(call, rapt_kernel.unary.power, 16);
}

static bool pow_scalar_vjp(rapt_call *call)
{
    double exponent = *(const double *)rapt_call_options(call);
    rapt_tensor *g = rapt_call_gradient(call, 0);
    if (exponent == 0) return rapt_call_give(call, 0, rapt_zeros_like(g));
    rapt_tensor *x = rapt_call_saved(call, 0);
    /* twice the product: twice g, or twice x where g is a share of a mean, may overflow where that does not */
    if (exponent == 2) return rapt_call_give(call, 0, rapt_mul_scalar(rapt_mul(g, x), 2));
    rapt_tensor *slope = rapt_mul_scalar(rapt_pow_scalar(x, exponent - 1), exponent);
    return rapt_call_give(call, 0, rapt_mul(g, slope));
}

static const rapt_op pow_scalar = {.name = "pow_scalar",
                                   .forward = pow_scalar_forward,
                                   .vjp = pow_scalar_vjp,
                                   .options_size = sizeof(double)};

rapt_tensor *rapt_pow_scalar(rapt_tensor *x, double exponent)
{
    return RAPT_APPLY(&pow_scalar, &exponent, x);
}
