/* The functions of one number that tests/torture/elementary.c tries: the op, and its value and slope in double. */
#ifndef RAPT_TESTS_TORTURE_ELEMENTARY_FUNCTIONS_H
#define RAPT_TESTS_TORTURE_ELEMENTARY_FUNCTIONS_H

#include <math.h>

#include <rapt.h>

/* glibc has these for vectors too, right to 4 ulp of double, but declares so only where numbers need not be exact. */
#if defined __x86_64__ && defined __GLIBC__ && !defined __clang__
#if __GLIBC_PREREQ(2, 35)
#define FOR_VECTORS(name) _Pragma("omp declare simd notinbranch") double name(double x);
FOR_VECTORS(exp)
FOR_VECTORS(log)
FOR_VECTORS(expm1)
FOR_VECTORS(log1p)
FOR_VECTORS(sin)
FOR_VECTORS(cos)
FOR_VECTORS(erf)
FOR_VECTORS(erfc)
FOR_VECTORS(tanh)
FOR_VECTORS(cosh)
#endif
#endif

#define INLINE static inline __attribute__((always_inline))

static const double root_half = 0.70710678118654752440, root_2_pi = 0.39894228040143267794;

INLINE double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

INLINE double gelu(double x)
{
    return x * (0.5 * erfc(-x * root_half));
}

INLINE double gelu_slope(double x)
{
    return 0.5 * erfc(-x * root_half) + x * root_2_pi * exp(-0.5 * x * x);
}

INLINE double twice_u(double x)
{
    return 2 * sqrt(2 / M_PI) * (x + 0.044715 * x * x * x);
}

INLINE double gelu_tanh_slope(double x)
{
    const double s = sigmoid(twice_u(x)), slope = 2 * sqrt(2 / M_PI) * (1 + 3 * 0.044715 * x * x);
    return s + x * s * (1 - s) * slope;
}

INLINE double silu_slope(double x)
{
    return sigmoid(x) * (1 + x * sigmoid(-x));
}

INLINE double softplus(double x)
{
    return (x > 0 ? x : 0) + log1p(exp(-fabs(x)));
}

/* t + x σ (1 − t²) with the last factor as 1 / cosh² */
INLINE double mish_slope(double x)
{
    const double p = softplus(x), cosine = cosh(p);
    return tanh(p) + x * sigmoid(x) / (cosine * cosine);
}

#ifdef _WIN32 /* in double, MinGW's of large numbers have no digits to compare with */
#define SINES(X)
#else
#define SINES(X)                                                                                                       \
    X(sin, rapt_sin(t), sin(x), cos(x))                                                                                \
    X(cos, rapt_cos(t), cos(x), -sin(x))
#endif

/* X(identifier, the op of the tensor t, its value and its slope at the double x), and FROM_VALUE likewise: backward has
 * the value alone, whose digits do not tell a slope that is small beside 1 */
#define FUNCTIONS(X, FROM_VALUE)                                                                                       \
    X(neg, rapt_neg(t), -x, -1)                                                                                        \
    X(abs, rapt_abs(t), fabs(x), isnan(x) ? 0 : (x > 0) - (x < 0))                                                     \
    X(exp, rapt_exp(t), exp(x), exp(x))                                                                                \
    X(log, rapt_log(t), log(x), 1 / x)                                                                                 \
    X(expm1, rapt_expm1(t), expm1(x), exp(x))                                                                          \
    X(log1p, rapt_log1p(t), log1p(x), 1 / (1 + x))                                                                     \
    X(sqrt, rapt_sqrt(t), sqrt(x), 0.5 / sqrt(x))                                                                      \
    X(rsqrt, rapt_rsqrt(t), 1 / sqrt(x), -0.5 / (fabs(x) * sqrt(x)))                                                   \
    SINES(X)                                                                                                           \
    X(erf, rapt_erf(t), erf(x), M_2_SQRTPI *exp(-x *x))                                                                \
    FROM_VALUE(tanh, rapt_tanh(t), tanh(x), 1 / (cosh(x) * cosh(x)))                                                   \
    FROM_VALUE(sigmoid, rapt_sigmoid(t), sigmoid(x), sigmoid(x) * sigmoid(-x))                                         \
    X(relu, rapt_relu(t), isnan(x) ? x : fmax(x, 0), !(x <= 0))                                                        \
    X(gelu, rapt_gelu(t), gelu(x), gelu_slope(x))                                                                      \
    X(gelu_tanh, rapt_gelu_tanh(t), x *sigmoid(twice_u(x)), gelu_tanh_slope(x))                                        \
    X(silu, rapt_silu(t), x *sigmoid(x), silu_slope(x))                                                                \
    X(softplus, rapt_softplus(t), softplus(x), sigmoid(x))                                                             \
    X(mish, rapt_mish(t), x *tanh(softplus(x)), mish_slope(x))                                                         \
    X(leaky_relu, rapt_leaky_relu(t, 0.01), x > 0 ? x : 0.01 * x, x > 0 ? 1 : 0.01)                                    \
    X(elu, rapt_elu(t, 1), x > 0 ? x : expm1(x), x <= 0 ? exp(x) : 1)                                                  \
    X(clamp, rapt_clamp(t, -1, 2), isnan(x) ? x : fmin(fmax(x, -1), 2), x >= -1 && x <= 2)                             \
    X(square, rapt_pow_scalar(t, 2), x *x, 2 * x)                                                                      \
    X(cube, rapt_pow_scalar(t, 3), x *x *x, 3 * x * x)                                                                 \
    X(reciprocal, rapt_pow_scalar(t, -1), 1 / x, -1 / (x * x))                                                         \
    X(pow_half, rapt_pow_scalar(t, 0.5), pow(x, 0.5), 0.5 * pow(x, -0.5))                                              \
    X(pow_2_5, rapt_pow_scalar(t, 2.5), pow(x, 2.5), 2.5 * pow(x, 1.5))                                                \
    X(pow_minus_2, rapt_pow_scalar(t, -2), pow(x, -2), -2 * pow(x, -3))

#define DEFINE(name, op, value, slope)                                                                                 \
    static rapt_tensor *op_##name(rapt_tensor *t)                                                                      \
    {                                                                                                                  \
        return op;                                                                                                     \
    }                                                                                                                  \
    FOR_EACH_PROCESSOR static void exact_##name(int64_t count, const float *inputs, double *values, double *slopes)    \
    {                                                                                                                  \
        _Pragma("omp simd") for (int64_t i = 0; i < count; i++)                                                        \
        {                                                                                                              \
            const double x = (double)inputs[i];                                                                        \
            values[i] = value;                                                                                         \
            slopes[i] = slope;                                                                                         \
        }                                                                                                              \
    }
FUNCTIONS(DEFINE, DEFINE)

typedef struct function {
    const char *name;
    rapt_tensor *(*op)(rapt_tensor *x);
    void (*exact)(int64_t count, const float *x, double *values, double *slopes);
    int lowest; /* the exponent of the smallest slope whose ulp counts */
} function;

#define LIST(name, op, value, slope) {#name, op_##name, exact_##name, -126},
#define LIST_FROM_VALUE(name, op, value, slope) {#name, op_##name, exact_##name, 0},
static const function functions[] = {FUNCTIONS(LIST, LIST_FROM_VALUE)};
enum { function_count = sizeof functions / sizeof *functions };

#endif
