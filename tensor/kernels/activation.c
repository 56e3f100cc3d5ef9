/* Activation functions and their derivatives. In a backward loop a is the gradient and b the function's value (tanh,
 * sigmoid, relu) or its operand (gelu, gelu_tanh, silu). */
#include <math.h>

#include "loop.h"
#include "vector_math.h"

#define ROOT_HALF 0.70710678118654752440 /* 1 / √2 */
#define ROOT_2_PI 0.39894228040143267794 /* 1 / √(2π) */

/* Of gelu_tanh, whose ½ (1 + tanh u) is σ(2u): 2u = 2 √(2/π) (x + 0.044715 x³), and its derivative. */
#define SLOPE 1.59576912160573071176
#define TWO_U(T, x) ((T)SLOPE * ((x) + (T)0.044715 * (x) * (x) * (x)))
#define TWO_U_SLOPE(T, x) ((T)SLOPE * (1 + (T)(3 * 0.044715) * (x) * (x)))

#define ACTIVATIONS(T, dtype, TANH, SIGMOID, ERF, EXP)                                                                 \
    static inline T normal_cdf_##dtype(T x)                                                                            \
    {                                                                                                                  \
        return (T)0.5 * (1 + ERF(x * (T)ROOT_HALF));                                                                   \
    }                                                                                                                  \
    static inline T gelu_slope_##dtype(T x)                                                                            \
    {                                                                                                                  \
        return normal_cdf_##dtype(x) + x * (T)ROOT_2_PI * EXP((T)-0.5 * x * x);                                        \
    }                                                                                                                  \
    static inline T gelu_tanh_slope_##dtype(T x)                                                                       \
    {                                                                                                                  \
        T s = SIGMOID(TWO_U(T, x));                                                                                    \
        return s + x * s * (1 - s) * TWO_U_SLOPE(T, x);                                                                \
    }                                                                                                                  \
    static inline T silu_slope_##dtype(T x)                                                                            \
    {                                                                                                                  \
        T s = SIGMOID(x);                                                                                              \
        return s * (1 + x * (1 - s));                                                                                  \
    }                                                                                                                  \
    RAPT_UNARY_LOOP(tanh_##dtype, T, T, TANH(a))                                                                       \
    RAPT_BINARY_LOOP(tanh_backward_##dtype, T, T, a *(1 - b * b))                                                      \
    RAPT_UNARY_LOOP(sigmoid_##dtype, T, T, SIGMOID(a))                                                                 \
    RAPT_BINARY_LOOP(sigmoid_backward_##dtype, T, T, a *b *(1 - b))                                                    \
    RAPT_UNARY_LOOP(relu_##dtype, T, T, a < 0 ? 0 : a)                                                                 \
    RAPT_BINARY_LOOP(relu_backward_##dtype, T, T, b <= 0 ? 0 : a)                                                      \
    RAPT_UNARY_LOOP(gelu_##dtype, T, T, a *normal_cdf_##dtype(a))                                                      \
    RAPT_BINARY_LOOP(gelu_backward_##dtype, T, T, a *gelu_slope_##dtype(b))                                            \
    RAPT_UNARY_LOOP(gelu_tanh_##dtype, T, T, a *SIGMOID(TWO_U(T, a)))                                                  \
    RAPT_BINARY_LOOP(gelu_tanh_backward_##dtype, T, T, a *gelu_tanh_slope_##dtype(b))                                  \
    RAPT_UNARY_LOOP(silu_##dtype, T, T, a *SIGMOID(a))                                                                 \
    RAPT_BINARY_LOOP(silu_backward_##dtype, T, T, a *silu_slope_##dtype(b))

ACTIVATIONS(float, float32, rapt_math_tanhf, rapt_math_sigmoidf, rapt_math_erff, rapt_math_expf)
ACTIVATIONS(double, float64, tanh, rapt_math_sigmoid, erf, exp)

void RAPT_AT_LEVEL(rapt_fill_activation)(rapt_kernels *kernels)
{
    kernels->activation = (rapt_activation_kernels)
    {
#define X(name) .name = {RAPT_FLOATING_ROW(name)},
        RAPT_ACTIVATION_KERNELS(X)
#undef X
    };
}
