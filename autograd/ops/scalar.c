/* A tensor and a number: x + value, x · value, x ^ exponent. */
#include <math.h>

#include <rapt/ops.h>

#include "autograd/elementwise.h"

/* False and an error when x has an integer dtype that cannot hold the number. */
static bool check_number(const char *op, const rapt_tensor *x, double value)
{
    static const double low[RAPT_DTYPE_COUNT] = {[RAPT_INT64] = INT64_MIN, [RAPT_INT32] = INT32_MIN};
    static const double beyond[RAPT_DTYPE_COUNT] = {[RAPT_INT64] = 0x1p63, [RAPT_INT32] = 0x1p31, [RAPT_UINT8] = 256};
    if (rapt_is_floating(x) || x->dtype == RAPT_BOOL) return true;
    if (value == floor(value) && value >= low[x->dtype] && value < beyond[x->dtype]) return true;
    return rapt_fail(RAPT_ERROR_VALUE, op, "%g is not a number of type %s, which the tensor has", value,
                     rapt_dtype_name((rapt_dtype)x->dtype));
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
    return rapt_call_give(call, 0, rapt_mul_scalar(rapt_call_gradient(call, 0), *value));
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
    if (exponent == 0) return rapt_call_give(call, 0, rapt_zeros((rapt_dtype)g->dtype, g->rank, g->shape));
    rapt_tensor *x = rapt_call_saved(call, 0);
    rapt_tensor *slope = rapt_mul_scalar(exponent == 2 ? x : rapt_pow_scalar(x, exponent - 1), exponent);
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
