/* Functions of one number: the loops of functions.def, powers and clamp. */
#include <math.h>

#include "apart.h"
#include "gate_math.h"
#include "wide_math.h"

/* The formulas' functions, by the type of their argument. */
#define BY_TYPE(x, of_float, of_double) _Generic((x), float : of_float, double : of_double)(x)
#define FABS(x) BY_TYPE(x, fabsf, fabs)
#define SQRT(x) BY_TYPE(x, sqrtf, sqrt)
#define EXP(x) BY_TYPE(x, rapt_math_expf, rapt_math_exp)
#define LOG(x) BY_TYPE(x, rapt_math_logf, rapt_math_log)
#define EXPM1(x) BY_TYPE(x, rapt_math_expm1f, rapt_math_expm1)
#define LOG1P(x) BY_TYPE(x, rapt_math_log1pf, rapt_math_log1p)
#define FLOOR(x) BY_TYPE(x, floorf, floor)
#define CEIL(x) BY_TYPE(x, ceilf, ceil)
#define ROUND(x) BY_TYPE(x, rintf, rint)
#define ERF(x) BY_TYPE(x, rapt_math_erff, rapt_math_erf)
#define TANH(x) BY_TYPE(x, rapt_math_tanhf, rapt_math_tanh)
#define SIGMOID(x) BY_TYPE(x, rapt_math_sigmoidf, rapt_math_sigmoid)

/* In double whatever T is: of a float those that are exact enough for one. SHORT_EXP has the digits of a float, and
 * some more. */
#define WIDE(x, of_float, of_double) _Generic((T)0, float : of_float, double : of_double)((double)(x))
#define WIDE_EXP(x) WIDE(x, rapt_math_exp_normal_double, rapt_math_exp)
#define SHORT_EXP(x) WIDE(x, rapt_math_exp_short, rapt_math_exp)

/* Of a float, where products are fused with sums, `of_float` in float lanes; else the formula */
#ifdef RAPT_MATH_FUSED
#define IN_LANES(x, of_float, formula) _Generic((T)0, float : of_float((float)(x)), double : (formula))
#else
#define IN_LANES(x, of_float, formula) (formula)
#endif

#define ROOT_2_PI 0.39894228040143267794 /* 1 / √(2π) */

static inline double gelu_slope(double x)
{
    return RAPT_MULTIPLY_ADD(x * ROOT_2_PI, rapt_math_exp(-0.5 * x * x), rapt_math_normal_double(x));
}

#define NORMAL(x) WIDE(x, rapt_math_normal, rapt_math_normal_double)
#define GELU_SLOPE(x) WIDE(x, rapt_math_gelu_slope, gelu_slope)
/* log(1 + e^x) without an exponential that overflows */
#define SOFTPLUS(x) (((x) > 0 ? (x) : 0) + LOG1P(EXP(-FABS(x))))

/* Of gelu_tanh: 2u = 2 √(2/π) (x + 0.044715 x³), and its derivative. */
#define SLOPE 1.59576912160573071176
#define TWICE_U(x) (SLOPE * ((x) + 0.044715 * (x) * (x) * (x)))
#define TWICE_U_SLOPE(x) (SLOPE * (1 + 3 * 0.044715 * (x) * (x)))

/* The formula with a name for a number that stands in it more than once. */
#define WITH(number, name, formula)                                                                                    \
    ({                                                                                                                 \
        const __typeof__(number) name = (number);                                                                      \
        formula;                                                                                                       \
    })

#define INLINE static inline __attribute__((always_inline))

/* sin(x + quadrants · π/2). Which row of the table reduces an angle is asked some angles at a time: it is one for all
 * but huge ones, and gathering it takes longer than all else. */
static void wave_float32(int64_t count, float *out, const float *in, uint32_t quadrants)
{
    enum { at_once = 64 };
    double high[at_once], low[at_once];
    bool are_first = false; /* rows */
    for (int64_t first = 0; first < count; first += at_once, in += at_once, out += at_once) {
        const int64_t n = smaller_of(count - first, at_once);
        int64_t last_row = 0;
        for (int64_t i = 0; i < n; i++) last_row = larger_of(last_row, rapt_math_turn_row(in[i]));
        for (int64_t i = 0; i < at_once && !(are_first && last_row == 0); i++) {
            const int64_t row = i < n ? rapt_math_turn_row(in[i]) : 0;
            high[i] = rapt_math_turn_high[row], low[i] = rapt_math_turn_low[row];
        }
        are_first = last_row == 0;
        RAPT_SIMD for (int64_t i = 0; i < n; i++) out[i] = rapt_math_sin_turned(in[i], high[i], low[i], quadrants);
    }
}

/* The same; large angles have the C library's. */
static void wave_float64(int64_t count, double *out, const double *in, uint32_t quadrants)
{
    enum { at_once = 256 };
    for (int64_t n; count > 0; count -= n, out += n, in += n) {
        int64_t large = 0; /* is known before anything is written, for out may be in */
        n = smaller_of(count, at_once);
        for (int64_t i = 0; i < n; i++) large += fabs(in[i]) > RAPT_MATH_LARGEST_ANGLE;
        RAPT_SIMD for (int64_t i = 0; i < (large ? 0 : n); i++) out[i] = rapt_math_sin_quadrants(in[i], quadrants);
        for (int64_t i = 0; i < (large ? n : 0); i++) {
            const bool is_large = fabs(in[i]) > RAPT_MATH_LARGEST_ANGLE;
            out[i] = !is_large ? rapt_math_sin_quadrants(in[i], quadrants) : quadrants ? cos(in[i]) : sin(in[i]);
        }
    }
}

#define WAVE_LOOP(function, T, dtype, quadrants)                                                                       \
    static void function##_##dtype(int64_t count, char *const *data, const int64_t *strides, const void *options)      \
    {                                                                                                                  \
        if (are_dense(2, strides, sizeof(T)))                                                                          \
            wave_##dtype(count, (T *)(void *)data[0], (const T *)(void *)data[1], quadrants);                          \
        else                                                                                                           \
            run_apart(function##_##dtype, 2, 1, 1, sizeof(T), count, data, strides, options);                          \
    }

WAVE_LOOP(sin, float, float32, 0)
WAVE_LOOP(cos, float, float32, 1)
WAVE_LOOP(sin, double, float64, 0)
WAVE_LOOP(cos, double, float64, 1)

#define VALUE_LOOP(name, type, dtype, value)                                                                           \
    INLINE type name##_of_##dtype(type x)                                                                              \
    {                                                                                                                  \
        typedef type T __attribute__((unused));                                                                        \
        return (T)(value);                                                                                             \
    }                                                                                                                  \
    RAPT_UNARY_FUNCTION(name##_##dtype, type, name##_of_##dtype(a))

#define GRADIENT_LOOP(name, type, dtype, saved, gradient)                                                              \
    INLINE type name##_gradient_of_##dtype(type g, type saved)                                                         \
    {                                                                                                                  \
        typedef type T __attribute__((unused));                                                                        \
        return (T)(gradient);                                                                                          \
    }                                                                                                                  \
    RAPT_BINARY_FUNCTION(name##_backward_##dtype, type, name##_gradient_of_##dtype(a, b))

#define FUNCTION(name, saved, cost, value, gradient)                                                                   \
    VALUE_LOOP(name, float, float32, value)                                                                            \
    VALUE_LOOP(name, double, float64, value)
#define FUSED_STEPS(name, saved, cost, gradient_cost, value, gradient)                                                 \
    FUNCTION(name, saved, cost, value, gradient)                                                                       \
    GRADIENT_LOOP(name, float, float32, saved, gradient)                                                               \
    GRADIENT_LOOP(name, double, float64, saved, gradient)
#define FUSED(name, saved, cost, gradient_cost, value, gradient, curve)                                                \
    FUSED_STEPS(name, saved, cost, gradient_cost, value, gradient)
#define STEPS(name, cost, value) FUNCTION(name, nothing, cost, value, )
#define WAVE(name, saved, cost, gradient)
#include "tensor/functions.def"

#define INTEGER_LOOPS(T, dtype)                                                                                        \
    RAPT_UNARY_LOOP(neg_##dtype, T, T, (int64_t)(0 - (uint64_t)a))                                                     \
    RAPT_UNARY_LOOP(abs_##dtype, T, T, a < 0 ? (int64_t)(0 - (uint64_t)a) : (int64_t)a)

INTEGER_LOOPS(int64_t, int64)
INTEGER_LOOPS(int32_t, int32)
RAPT_UNARY_LOOP(neg_uint8, uint8_t, uint8_t, 0 - a)
RAPT_UNARY_LOOP(abs_uint8, uint8_t, uint8_t, a)

#define BOUNDS(T) const T low = (T)((const double *)options)[0], high = (T)((const double *)options)[1]

/* In gradients a is that of the output and b the operand, in scaled_relu_backward relu's output. */
#define FLOATING_LOOPS(T, dtype, POW)                                                                                  \
    RAPT_UNARY_LOOP(square_##dtype, T, T, a *a)                                                                        \
    RAPT_UNARY_LOOP(cube_##dtype, T, T, a *a *a)                                                                       \
    RAPT_UNARY_LOOP(reciprocal_##dtype, T, T, 1 / a)                                                                   \
    RAPT_UNARY_FUNCTION(power_##dtype, T, POW(a, option))                                                              \
    RAPT_UNARY_LOOP_WITH(clamp_##dtype, T, T, BOUNDS(T), a<low ? low : a> high ? high : a)                             \
    RAPT_BINARY_LOOP_WITH(clamp_backward_##dtype, T, T, BOUNDS(T), ((b >= low) & (b <= high)) ? a : 0)                 \
    RAPT_BINARY_LOOP(scaled_relu_backward_##dtype, T, T, b <= 0 ? 0 : a * option)                                      \
    RAPT_UNARY_FUNCTION(leaky_relu_##dtype, T, a > 0 ? a : option * a)                                                 \
    RAPT_BINARY_FUNCTION(leaky_relu_backward_##dtype, T, b > 0 ? a : a * option)                                       \
    RAPT_UNARY_FUNCTION(elu_##dtype, T, a < 0 ? option * EXPM1(a) : a)                                                 \
    RAPT_BINARY_FUNCTION(elu_backward_##dtype, T, b <= 0 ? a * option * EXP(b) : a)

FLOATING_LOOPS(float, float32, rapt_math_powf)
FLOATING_LOOPS(double, float64, pow)

#define LARGEST_AND_SCALE const double largest = ((const double *)options)[0], scale = ((const double *)options)[1]

RAPT_UNARY_LOOP_WITH(weight_float64, double, double, LARGEST_AND_SCALE, rapt_math_exp_weight((a - largest) * scale))

void RAPT_AT_LEVEL(rapt_fill_unary)(rapt_kernels *kernels)
{
    kernels->unary = (rapt_unary_kernels)
    {
#define FUNCTION(name, ...) .name = {RAPT_FLOATING_ROW(name)},
#define FUSED(name, ...) .name = {RAPT_FLOATING_ROW(name)}, .name##_backward = {RAPT_FLOATING_ROW(name##_backward)},
#define FUSED_STEPS FUSED
#define STEPS FUNCTION
#define WAVE FUNCTION
#include "tensor/functions.def"
#define X(name) .name = {RAPT_FLOATING_ROW(name)},
        RAPT_OTHER_UNARY_KERNELS(X)
#undef X
    };
    kernels->unary.weight[RAPT_FLOAT64] = weight_float64;
    kernels->unary.neg[RAPT_INT64] = neg_int64;
    kernels->unary.neg[RAPT_INT32] = neg_int32;
    kernels->unary.neg[RAPT_UINT8] = neg_uint8;
    kernels->unary.abs[RAPT_INT64] = abs_int64;
    kernels->unary.abs[RAPT_INT32] = abs_int32;
    kernels->unary.abs[RAPT_UINT8] = abs_uint8;
}
