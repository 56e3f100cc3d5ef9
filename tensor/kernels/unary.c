/* Functions of one operand: powers, exponential, logarithm, roots, sine and cosine, erf, absolute value, clamp. */
#include <math.h>

#include "loop.h"
#include "vector_math.h"

#define INTEGER_LOOPS(T, dtype)                                                                                        \
    RAPT_UNARY_LOOP(neg_##dtype, T, T, (int64_t)(0 - (uint64_t)a))                                                     \
    RAPT_UNARY_LOOP(abs_##dtype, T, T, a < 0 ? (int64_t)(0 - (uint64_t)a) : (int64_t)a)

INTEGER_LOOPS(int64_t, int64)
INTEGER_LOOPS(int32_t, int32)
RAPT_UNARY_LOOP(neg_uint8, uint8_t, uint8_t, 0 - a)
RAPT_UNARY_LOOP(abs_uint8, uint8_t, uint8_t, a)

/* Where a function has a backward loop, a is the gradient and b the operand. */
#define FLOATING_LOOPS(T, dtype, FABS, SQRT, EXP, LOG, SIN, COS, ERF, POW)                                             \
    RAPT_UNARY_LOOP(neg_##dtype, T, T, -a)                                                                             \
    RAPT_UNARY_LOOP(abs_##dtype, T, T, FABS(a))                                                                        \
    RAPT_BINARY_LOOP(abs_backward_##dtype, T, T, b > 0 ? a : b < 0 ? -a : 0)                                           \
    RAPT_UNARY_LOOP(exp_##dtype, T, T, EXP(a))                                                                         \
    RAPT_UNARY_LOOP(log_##dtype, T, T, LOG(a))                                                                         \
    RAPT_UNARY_LOOP(sqrt_##dtype, T, T, SQRT(a))                                                                       \
    RAPT_UNARY_LOOP(rsqrt_##dtype, T, T, 1 / SQRT(a))                                                                  \
    RAPT_UNARY_LOOP(sin_##dtype, T, T, SIN(a))                                                                         \
    RAPT_UNARY_LOOP(cos_##dtype, T, T, COS(a))                                                                         \
    RAPT_UNARY_LOOP(erf_##dtype, T, T, ERF(a))                                                                         \
    RAPT_UNARY_LOOP(square_##dtype, T, T, a *a)                                                                        \
    RAPT_UNARY_LOOP(cube_##dtype, T, T, a *a *a)                                                                       \
    RAPT_UNARY_LOOP(reciprocal_##dtype, T, T, 1 / a)                                                                   \
    RAPT_UNARY_LOOP(power_##dtype, T, T, POW(a, option))                                                               \
    RAPT_UNARY_LOOP_WITH(clamp_##dtype, T, T, BOUNDS(T), a<low ? low : a> high ? high : a)                             \
    RAPT_BINARY_LOOP_WITH(clamp_backward_##dtype, T, T, BOUNDS(T), ((b >= low) & (b <= high)) ? a : 0)

#define BOUNDS(T) const T low = (T)((const double *)options)[0], high = (T)((const double *)options)[1]

FLOATING_LOOPS(float, float32, fabsf, sqrtf, rapt_math_expf, rapt_math_logf, rapt_math_sinf, rapt_math_cosf,
               rapt_math_erff, rapt_math_powf)
FLOATING_LOOPS(double, float64, fabs, sqrt, exp, log, sin, cos, erf, pow)

void RAPT_AT_LEVEL(rapt_fill_unary)(rapt_kernels *kernels)
{
    kernels->unary = (rapt_unary_kernels)
    {
#define X(name) .name = {RAPT_FLOATING_ROW(name)},
        RAPT_UNARY_KERNELS(X)
#undef X
    };
    kernels->unary.neg[RAPT_INT64] = neg_int64;
    kernels->unary.neg[RAPT_INT32] = neg_int32;
    kernels->unary.neg[RAPT_UINT8] = neg_uint8;
    kernels->unary.abs[RAPT_INT64] = abs_int64;
    kernels->unary.abs[RAPT_INT32] = abs_int32;
    kernels->unary.abs[RAPT_UINT8] = abs_uint8;
}
