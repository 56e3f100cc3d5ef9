/* Arithmetic of two tensors, element by element: a + b, a − b, a · b, a / b, a ^ b, the larger and the smaller. */
#include <math.h>
#include <string.h>

#include <rapt/ops.h>

#include "elementwise.h"

/* d(a + b) = da + db */
static rapt_tensor *add_forward(rapt_call *call)
{
    return rapt_elementwise_call(call, rapt_kernel.elementwise.add, 1);
}

static bool add_vjp(rapt_call *call)
{
    rapt_tensor *g = rapt_call_gradient(call, 0);
    return rapt_call_give(call, 0, g) && rapt_call_give(call, 1, g);
}

static const rapt_op add = {.name = "add", .forward = add_forward, .vjp = add_vjp};

rapt_tensor *rapt_add(rapt_tensor *a, rapt_tensor *b)
{
    return RAPT_APPLY(&add, NULL, a, b);
}

/* d(a − b) = da − db */
static rapt_tensor *sub_forward(rapt_call *call)
{
    return rapt_elementwise_call(call, rapt_kernel.elementwise.sub, 1);
}

static bool sub_vjp(rapt_call *call)
{
    rapt_tensor *g = rapt_call_gradient(call, 0);
    return rapt_call_give(call, 0, g) && (!rapt_call_wants(call, 1) || rapt_call_give(call, 1, rapt_neg(g)));
}

static const rapt_op sub = {.name = "sub", .forward = sub_forward, .vjp = sub_vjp};

rapt_tensor *rapt_sub(rapt_tensor *a, rapt_tensor *b)
{
    return RAPT_APPLY(&sub, NULL, a, b);
}

/* d(a · b) = b da + a db */
static rapt_tensor *mul_forward(rapt_call *call)
{
    rapt_call_save(call, rapt_call_wants(call, 1) ? rapt_call_input(call, 0) : NULL);
    rapt_call_save(call, rapt_call_wants(call, 0) ? rapt_call_input(call, 1) : NULL);
    return rapt_elementwise_call(call, rapt_kernel.elementwise.mul, 1);
}

static bool mul_vjp(rapt_call *call)
{
    const bool wants_b = rapt_call_wants(call, 1);
    if (rapt_call_wants(call, 0)) {
        rapt_tensor *g = wants_b ? rapt_call_gradient(call, 0) : rapt_call_last_gradient(call, 0);
        if (!rapt_call_give(call, 0, rapt_mul(g, rapt_call_saved(call, 1)))) return false;
    }
    return !wants_b || rapt_call_give(call, 1, rapt_mul(rapt_call_last_gradient(call, 0), rapt_call_saved(call, 0)));
}

static const rapt_op mul = {.name = "mul", .forward = mul_forward, .vjp = mul_vjp};

rapt_tensor *rapt_mul(rapt_tensor *a, rapt_tensor *b)
{
    return RAPT_APPLY(&mul, NULL, a, b);
}

/* False and an error when an integer tensor contains a 0. */
static bool check_divisor(const rapt_tensor *divisor)
{
    static const char zero[sizeof(int64_t)];
    size_t size = rapt_dtype_size(divisor->dtype);
    divisor = rapt_as_contiguous(divisor);
    for (int64_t i = 0; divisor && i < divisor->count; i++)
        if (memcmp(divisor->data + (size_t)i * size, zero, size) == 0)
            return rapt_fail(RAPT_ERROR_VALUE, "div", "an integer is divided by 0 (element %lld of the divisor)",
                             (long long)i);
    return divisor != NULL;
}

/* y = a / b, dy = da / b − y db / b */
static rapt_tensor *div_forward(rapt_call *call)
{
    rapt_tensor *b = rapt_call_input(call, 1);
    if (!rapt_is_floating(b) && b->dtype != RAPT_BOOL && !check_divisor(b)) return NULL;
    rapt_tensor *y = rapt_elementwise_call(call, rapt_kernel.elementwise.div, 2);
    rapt_call_save(call, b);
    rapt_call_save(call, rapt_call_wants(call, 1) ? y : NULL);
    return y;
}

static bool div_vjp(rapt_call *call)
{
    rapt_tensor *g = rapt_call_gradient(call, 0), *b = rapt_call_saved(call, 0);
    if (rapt_call_wants(call, 0) && !rapt_call_give(call, 0, rapt_div(g, b))) return false;
    if (!rapt_call_wants(call, 1)) return true;
    return rapt_call_give(call, 1, rapt_neg(rapt_mul(g, rapt_div(rapt_call_saved(call, 1), b))));
}

static const rapt_op division = {.name = "div", .forward = div_forward, .vjp = div_vjp};

rapt_tensor *rapt_div(rapt_tensor *a, rapt_tensor *b)
{
    return RAPT_APPLY(&division, NULL, a, b);
}

/* y = a^b, dy = b a^(b − 1) da + y log(a) db */
static rapt_tensor *pow_forward(rapt_call *call)
{
    rapt_tensor *y = rapt_elementwise_call(call, rapt_kernel.elementwise.pow, 16);
    rapt_call_save(call, rapt_call_input(call, 0));
    rapt_call_save(call, rapt_call_input(call, 1));
    rapt_call_save(call, rapt_call_wants(call, 1) ? y : NULL);
    return y;
}

/* Where b = 0, a^b is 1 for every a, and the slope 0 also where a^−1 is infinite or NaN: there 1 stands for a. */
static rapt_tensor *pow_base_slope(rapt_tensor *a, rapt_tensor *b, rapt_tensor *zero, rapt_tensor *one)
{
    rapt_tensor *infinity = rapt_scalar(a->dtype, INFINITY);
    rapt_tensor *inverts = rapt_less(rapt_abs(rapt_pow_scalar(rapt_detach(a), -1)), infinity);
    rapt_tensor *base = rapt_where(rapt_logical_or(inverts, rapt_not_equal(b, zero)), a, one);
    return rapt_mul(b, rapt_pow(base, rapt_add_scalar(b, -1)));
}

/* Where a = 0 and b ≥ 0, y stays as it is when b moves: log(a) counts as log(1). */
static rapt_tensor *pow_exponent_slope(rapt_tensor *a, rapt_tensor *b, rapt_tensor *y, rapt_tensor *zero,
                                       rapt_tensor *one)
{
    rapt_tensor *constant = rapt_logical_and(rapt_equal(a, zero), rapt_greater_equal(b, zero));
    return rapt_mul(y, rapt_log(rapt_where(constant, one, a)));
}

static bool pow_vjp(rapt_call *call)
{
    rapt_tensor *g = rapt_call_gradient(call, 0), *a = rapt_call_saved(call, 0), *b = rapt_call_saved(call, 1);
    if (!a || !b) return false;
    rapt_tensor *zero = rapt_scalar(a->dtype, 0), *one = rapt_scalar(a->dtype, 1);
    bool good = true;
    if (rapt_call_wants(call, 0)) good = rapt_call_give(call, 0, rapt_mul(g, pow_base_slope(a, b, zero, one)));
    if (rapt_call_wants(call, 1))
        good =
            good && rapt_call_give(call, 1, rapt_mul(g, pow_exponent_slope(a, b, rapt_call_saved(call, 2), zero, one)));
    return good;
}

static const rapt_op power = {.name = "pow", .forward = pow_forward, .vjp = pow_vjp};

rapt_tensor *rapt_pow(rapt_tensor *a, rapt_tensor *b)
{
    return RAPT_APPLY(&power, NULL, a, b);
}

/* d max(a, b) = da where a is the larger, db where b is, half of each where they are equal */
static rapt_tensor *maximum_forward(rapt_call *call)
{
    rapt_call_save(call, rapt_call_input(call, 0));
    rapt_call_save(call, rapt_call_input(call, 1));
    return rapt_elementwise_call(call, rapt_kernel.elementwise.maximum, 1);
}

static rapt_tensor *share_of_larger(rapt_tensor *a, rapt_tensor *b)
{
    if (!a || !b) return NULL;
    return rapt_elementwise("share", rapt_kernel.elementwise.share, -1, NULL, 1, 2, (rapt_tensor *[]){a, b});
}

static bool give_shares(rapt_call *call, int larger, int smaller)
{
    rapt_tensor *g = rapt_call_gradient(call, 0), *a = rapt_call_saved(call, 0), *b = rapt_call_saved(call, 1);
    bool good = true;
    if (rapt_call_wants(call, larger)) good = rapt_call_give(call, larger, rapt_mul(g, share_of_larger(a, b)));
    if (rapt_call_wants(call, smaller))
        good = good && rapt_call_give(call, smaller, rapt_mul(g, share_of_larger(b, a)));
    return good;
}

static bool maximum_vjp(rapt_call *call)
{
    return give_shares(call, 0, 1);
}

static const rapt_op maximum = {.name = "maximum", .forward = maximum_forward, .vjp = maximum_vjp};

rapt_tensor *rapt_maximum(rapt_tensor *a, rapt_tensor *b)
{
    return RAPT_APPLY(&maximum, NULL, a, b);
}

/* d min(a, b): as above with the larger and the smaller exchanged */
static rapt_tensor *minimum_forward(rapt_call *call)
{
    rapt_call_save(call, rapt_call_input(call, 0));
    rapt_call_save(call, rapt_call_input(call, 1));
    return rapt_elementwise_call(call, rapt_kernel.elementwise.minimum, 1);
}

static bool minimum_vjp(rapt_call *call)
{
    return give_shares(call, 1, 0);
}

static const rapt_op minimum = {.name = "minimum", .forward = minimum_forward, .vjp = minimum_vjp};

rapt_tensor *rapt_minimum(rapt_tensor *a, rapt_tensor *b)
{
    return RAPT_APPLY(&minimum, NULL, a, b);
}

static rapt_tensor *number_for(const char *op, const rapt_tensor *x, double value)
{
    if (!x || x->dtype != RAPT_BOOL) return rapt_number_like(op, x, value);
    rapt_fail(RAPT_ERROR_DTYPE, op, "not defined for bool (rapt_cast converts)");
    return NULL;
}

rapt_tensor *rapt_maximum_scalar(rapt_tensor *x, double value)
{
    rapt_tensor *number = number_for("maximum_scalar", x, value);
    return number ? rapt_maximum(x, number) : NULL;
}

rapt_tensor *rapt_minimum_scalar(rapt_tensor *x, double value)
{
    rapt_tensor *number = number_for("minimum_scalar", x, value);
    return number ? rapt_minimum(x, number) : NULL;
}
