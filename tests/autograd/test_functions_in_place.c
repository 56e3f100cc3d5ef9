/* Functions of one number that write in the place of a gradient which they read for the last time: the bits that they
 * have elsewhere. */
#include "expect.h"

#include <rapt/autograd.h>
#include <rapt/op.h>

#include <math.h>
#include <string.h>

typedef rapt_tensor *function(rapt_tensor *x);

static rapt_tensor *small_slope(rapt_tensor *x)
{
    return rapt_leaky_relu(x, 0.3);
}

static rapt_tensor *steep(rapt_tensor *x)
{
    return rapt_elu(x, 1.7);
}

static rapt_tensor *between(rapt_tensor *x)
{
    return rapt_clamp(x, -2, 3);
}

static rapt_tensor *root(rapt_tensor *x)
{
    return rapt_pow_scalar(x, 1.5);
}

static const struct {
    const char *name;
    function *apply;
} functions[] = {
    {"neg", rapt_neg},     {"abs", rapt_abs},     {"exp", rapt_exp},           {"log", rapt_log},
    {"expm1", rapt_expm1}, {"log1p", rapt_log1p}, {"sqrt", rapt_sqrt},         {"rsqrt", rapt_rsqrt},
    {"sin", rapt_sin},     {"cos", rapt_cos},     {"tanh", rapt_tanh},         {"sigmoid", rapt_sigmoid},
    {"erf", rapt_erf},     {"sign", rapt_sign},   {"floor", rapt_floor},       {"ceil", rapt_ceil},
    {"round", rapt_round}, {"relu", rapt_relu},   {"gelu", rapt_gelu},         {"gelu_tanh", rapt_gelu_tanh},
    {"silu", rapt_silu},   {"mish", rapt_mish},   {"softplus", rapt_softplus}, {"leaky_relu", small_slope},
    {"elu", steep},        {"clamp", between},    {"pow_scalar", root},
};

/* y = x, whose gradient is a function's of dy: in its place, or not. */
typedef struct options {
    function *apply;
    bool in_place;
} options;

static rapt_tensor *same_forward(rapt_call *call)
{
    return rapt_mul_scalar(rapt_call_input(call, 0), 1);
}

static bool same_vjp(rapt_call *call)
{
    const options *o = rapt_call_options(call);
    rapt_tensor *g = o->in_place ? rapt_call_last_gradient(call, 0) : rapt_call_gradient(call, 0);
    return rapt_call_give(call, 0, o->apply(g));
}

static const rapt_op same = {.name = "same", .forward = same_forward, .vjp = same_vjp, .options_size = sizeof(options)};

/* f(numbers) as a gradient */
static const rapt_tensor *gradient_of(function *apply, bool in_place, rapt_tensor *numbers)
{
    const options o = {apply, in_place};
    rapt_tensor *x = rapt_require_gradient(rapt_ones_like(numbers));
    rapt_tensor *y = rapt_sum(rapt_mul(RAPT_APPLY(&same, &o, x), numbers), RAPT_ALL_AXES, false);
    cr_assert(rapt_backward(y), "%s", rapt_error());
    return rapt_gradient(x);
}

Test(functions_in_place, give_the_bits_that_they_give_elsewhere)
{
    enum { count = 1500 };
    double numbers[count];
    for (int i = 0; i < count; i++) numbers[i] = (i % 2 ? 1 : -1) * ldexp(1 + i * 0.0007, i % 130 - 30);
    for (int f = 0; f < (int)(sizeof functions / sizeof *functions); f++)
        for (int dtype = RAPT_FLOAT32; dtype <= RAPT_FLOAT64; dtype++) {
            RAPT_SCOPE;
            rapt_tensor *all = rapt_cast(rapt_from(RAPT_FLOAT64, RAPT_SHAPE(count), numbers), (rapt_dtype)dtype);
            const rapt_tensor *there = gradient_of(functions[f].apply, true, all),
                              *elsewhere = gradient_of(functions[f].apply, false, all);
            cr_expect(memcmp(rapt_data(there), rapt_data(elsewhere), count * rapt_dtype_size((rapt_dtype)dtype)) == 0,
                      "%s of %s", functions[f].name, rapt_dtype_name((rapt_dtype)dtype));
        }
    expect_no_error();
}
