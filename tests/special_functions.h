/* The functions that tests/test_special_values.c and tests/special_page.c run on numbers that are not ordinary. */
#ifndef RAPT_TESTS_SPECIAL_FUNCTIONS_H
#define RAPT_TESTS_SPECIAL_FUNCTIONS_H

#include <math.h>

#include <rapt.h>

/* X(inputs, identifier, the name in the fixture, the result by x and, where there are two, b) */
#define FUNCTIONS(X)                                                                                                   \
    X(one, neg, "neg", rapt_neg(x))                                                                                    \
    X(one, abs, "abs", rapt_abs(x))                                                                                    \
    X(one, exp, "exp", rapt_exp(x))                                                                                    \
    X(one, log, "log", rapt_log(x))                                                                                    \
    X(one, sqrt, "sqrt", rapt_sqrt(x))                                                                                 \
    X(one, rsqrt, "rsqrt", rapt_rsqrt(x))                                                                              \
    X(one, sin, "sin", rapt_sin(x))                                                                                    \
    X(one, cos, "cos", rapt_cos(x))                                                                                    \
    X(one, tanh, "tanh", rapt_tanh(x))                                                                                 \
    X(one, sigmoid, "sigmoid", rapt_sigmoid(x))                                                                        \
    X(one, erf, "erf", rapt_erf(x))                                                                                    \
    X(one, relu, "relu", rapt_relu(x))                                                                                 \
    X(one, gelu, "gelu", rapt_gelu(x))                                                                                 \
    X(one, gelu_tanh, "gelu_tanh", rapt_gelu_tanh(x))                                                                  \
    X(one, silu, "silu", rapt_silu(x))                                                                                 \
    X(one, expm1, "expm1", rapt_expm1(x))                                                                              \
    X(one, log1p, "log1p", rapt_log1p(x))                                                                              \
    X(one, softplus, "softplus", rapt_softplus(x))                                                                     \
    X(one, mish, "mish", rapt_mish(x))                                                                                 \
    X(one, sign, "sign", rapt_sign(x))                                                                                 \
    X(one, floor, "floor", rapt_floor(x))                                                                              \
    X(one, ceil, "ceil", rapt_ceil(x))                                                                                 \
    X(one, round, "round", rapt_round(x))                                                                              \
    X(one, leaky_relu, "leaky_relu", rapt_leaky_relu(x, 0.01))                                                         \
    X(one, elu, "elu", rapt_elu(x, 1.5))                                                                               \
    X(one, clamp, "clamp", rapt_clamp(x, -1, 1))                                                                       \
    X(one, clamp_below, "clamp_below", rapt_clamp(x, 0, (double)INFINITY))                                             \
    X(one, add_scalar, "add_scalar", rapt_add_scalar(x, 1.5))                                                          \
    X(one, mul_scalar, "mul_scalar", rapt_mul_scalar(x, 3))                                                            \
    X(one, mul_scalar_0, "mul_scalar_0", rapt_mul_scalar(x, 0))                                                        \
    X(one, maximum_scalar, "maximum_scalar", rapt_maximum_scalar(x, 0.5))                                              \
    X(one, minimum_scalar, "minimum_scalar", rapt_minimum_scalar(x, 0.5))                                              \
    X(one, masked_fill, "masked_fill", rapt_masked_fill(x, rapt_greater_scalar(x, 0), 7))                              \
    X(one, pow_0, "pow_scalar_0", rapt_pow_scalar(x, 0))                                                               \
    X(one, pow_half, "pow_scalar_0.5", rapt_pow_scalar(x, 0.5))                                                        \
    X(one, pow_1, "pow_scalar_1", rapt_pow_scalar(x, 1))                                                               \
    X(one, pow_2, "pow_scalar_2", rapt_pow_scalar(x, 2))                                                               \
    X(one, pow_3, "pow_scalar_3", rapt_pow_scalar(x, 3))                                                               \
    X(one, pow_minus_1, "pow_scalar_-1", rapt_pow_scalar(x, -1))                                                       \
    X(one, pow_minus_2, "pow_scalar_-2", rapt_pow_scalar(x, -2))                                                       \
    X(one, pow_five_halves, "pow_scalar_2.5", rapt_pow_scalar(x, 2.5))                                                 \
    X(two, add, "add", rapt_add(x, b))                                                                                 \
    X(two, sub, "sub", rapt_sub(x, b))                                                                                 \
    X(two, mul, "mul", rapt_mul(x, b))                                                                                 \
    X(two, div, "div", rapt_div(x, b))                                                                                 \
    X(two, pow, "pow", rapt_pow(x, b))                                                                                 \
    X(two, maximum, "maximum", rapt_maximum(x, b))                                                                     \
    X(two, minimum, "minimum", rapt_minimum(x, b))                                                                     \
    X(two, where, "where", rapt_where(rapt_greater_scalar(x, 0), x, b))                                                \
    X(two, equal, "equal", rapt_equal(x, b))                                                                           \
    X(two, not_equal, "not_equal", rapt_not_equal(x, b))                                                               \
    X(two, less, "less", rapt_less(x, b))                                                                              \
    X(two, less_equal, "less_equal", rapt_less_equal(x, b))                                                            \
    X(two, greater, "greater", rapt_greater(x, b))                                                                     \
    X(two, greater_equal, "greater_equal", rapt_greater_equal(x, b))                                                   \
    X(two, mse_loss, "mse_loss", rapt_mse_loss(x, b, NONE))                                                            \
    X(two, l1_loss, "l1_loss", rapt_l1_loss(x, b, NONE))                                                               \
    X(two, huber_loss, "huber_loss", rapt_huber_loss(x, b, 1, NONE))                                                   \
    X(two, bce_with_logits, "bce_with_logits", rapt_bce_with_logits(x, b, NONE))                                       \
    X(two, kl_div, "kl_div", rapt_kl_div(x, b, NONE))                                                                  \
    X(rows, sum, "sum", rapt_sum(x, OF_ROWS))                                                                          \
    X(rows, mean, "mean", rapt_mean(x, OF_ROWS))                                                                       \
    X(rows, var, "var", rapt_var(x, OF_ROWS, 1))                                                                       \
    X(rows, max, "max", rapt_max(x, OF_ROWS))                                                                          \
    X(rows, min, "min", rapt_min(x, OF_ROWS))                                                                          \
    X(rows, logsumexp, "logsumexp", rapt_logsumexp(x, OF_ROWS))                                                        \
    X(rows, argmax, "argmax", rapt_argmax(x, -1, false))                                                               \
    X(rows, cumsum, "cumsum", rapt_cumsum(x, -1))                                                                      \
    X(rows, argmin, "argmin", rapt_argmin(x, -1, false))                                                               \
    X(rows, prod, "prod", rapt_prod(x, OF_ROWS))                                                                       \
    X(rows, std, "std", rapt_std(x, OF_ROWS, 1))                                                                       \
    X(rows, cumprod, "cumprod", rapt_cumprod(x, -1))                                                                   \
    X(rows, sort, "sort", rapt_sort(x, -1, false, NULL))                                                               \
    X(rows, argsort, "argsort", rapt_argsort(x, -1, true))                                                             \
    X(rows, topk, "topk", rapt_topk(x, -1, 2, true, NULL))                                                             \
    X(rows, norm_0, "norm_0", rapt_norm(x, 0, OF_ROWS))                                                                \
    X(rows, norm_half, "norm_0.5", rapt_norm(x, 0.5, OF_ROWS))                                                         \
    X(rows, norm_1, "norm_1", rapt_norm(x, 1, OF_ROWS))                                                                \
    X(rows, norm_2, "norm_2", rapt_norm(x, 2, OF_ROWS))                                                                \
    X(rows, norm_3, "norm_3", rapt_norm(x, 3, OF_ROWS))                                                                \
    X(rows, norm_infinite, "norm_inf", rapt_norm(x, (double)INFINITY, OF_ROWS))                                        \
    X(rows, norm_minus_1, "norm_-1", rapt_norm(x, -1, OF_ROWS))                                                        \
    X(rows, norm_minus_infinite, "norm_-inf", rapt_norm(x, -(double)INFINITY, OF_ROWS))                                \
    X(rows, softmax, "softmax", rapt_softmax(x, -1))                                                                   \
    X(rows, log_softmax, "log_softmax", rapt_log_softmax(x, -1))                                                       \
    X(rows, layer_normalize, "layer_normalize", rapt_layer_normalize(x, NULL, NULL, 1e-5))                             \
    X(rows, rms_normalize, "rms_normalize", rapt_rms_normalize(x, NULL, 1e-5))                                         \
    X(rows, cross_entropy, "cross_entropy", rapt_cross_entropy(x, b, &unreduced))                                      \
    X(rows, smoothed, "cross_entropy_smoothed", rapt_cross_entropy(x, b, &smoothed_options))                           \
    X(rows, nll_loss, "nll_loss", rapt_nll_loss(x, b, &unreduced))

/* What the inputs are: one number, every pair of them, or rows of three and a class for each. */
typedef enum input_kind { one, two, rows } input_kind;

#define NONE RAPT_REDUCE_NONE
#define OF_ROWS RAPT_AXES(-1), false

static const rapt_cross_entropy_options unreduced = {.reduction = NONE},
                                        smoothed_options = {.reduction = NONE, .label_smoothing = 0.1};

#define DEFINE(inputs, id, name, formula)                                                                              \
    static rapt_tensor *call_##id(rapt_tensor *x, rapt_tensor *b)                                                      \
    {                                                                                                                  \
        (void)b;                                                                                                       \
        return formula;                                                                                                \
    }
FUNCTIONS(DEFINE)

typedef struct function {
    const char *name;
    input_kind of;
    rapt_tensor *(*call)(rapt_tensor *x, rapt_tensor *b);
} function;

#define LIST(inputs, id, name, formula) {name, inputs, call_##id},
static const function functions[] = {FUNCTIONS(LIST)};

#endif
