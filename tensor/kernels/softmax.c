/* Softmax and its logarithm along dense rows, forward and backward. Sums are kept in double. */
#include <math.h>
#include <stddef.h>

#include "row.h"
#include "vector_math.h"

#define OUT_ROW(T) ((T *)(void *)(data[0] + j * strides[0]))
#define IN_ROW(T, k) ((const T *)(const void *)(data[k] + j * strides[k]))

/* out = exp(x − m) / Σ exp(x − m), with m the largest x */
#define SOFTMAX(T, dtype, EXP, width)                                                                                  \
    RAPT_ROW_FOLD(largest_##dtype, T, T, -(T)INFINITY, (a > m ? a : m), (a > m ? a : m))                               \
    RAPT_ROW_EXPONENTIALS(exponentials_##dtype, T, EXP, width)                                                         \
                                                                                                                       \
    static void softmax_##dtype(int64_t count, char *const *data, const int64_t *strides, const void *options)         \
    {                                                                                                                  \
        const int64_t n = *(const int64_t *)options;                                                                   \
        for (int64_t j = 0; j < count; j++) {                                                                          \
            T *restrict out = OUT_ROW(T);                                                                              \
            const T *restrict x = IN_ROW(T, 1);                                                                        \
            const T m = largest_##dtype(n, x, 0);                                                                      \
            const double total = exponentials_##dtype(n, x, m, out);                                                   \
            const T factor = (T)(1 / total);                                                                           \
            RAPT_SIMD for (int64_t i = 0; i < n; i++) out[i] *= factor;                                                \
        }                                                                                                              \
    }

/* out = x − m − log Σ exp(x − m) */
#define LOG_SOFTMAX(T, dtype)                                                                                          \
    static void log_softmax_##dtype(int64_t count, char *const *data, const int64_t *strides, const void *options)     \
    {                                                                                                                  \
        const int64_t n = *(const int64_t *)options;                                                                   \
        for (int64_t j = 0; j < count; j++) {                                                                          \
            T *restrict out = OUT_ROW(T);                                                                              \
            const T *restrict x = IN_ROW(T, 1);                                                                        \
            const T m = largest_##dtype(n, x, 0);                                                                      \
            const T shift = (T)log(exponentials_##dtype(n, x, m, NULL));                                               \
            RAPT_SIMD for (int64_t i = 0; i < n; i++) out[i] = x[i] - m - shift;                                       \
        }                                                                                                              \
    }

/* out = formula of g, y and total, the sum of term over the row */
#define BACKWARD(function, T, term, formula)                                                                           \
    static void function(int64_t count, char *const *data, const int64_t *strides, const void *options)                \
    {                                                                                                                  \
        const int64_t n = *(const int64_t *)options;                                                                   \
        for (int64_t j = 0; j < count; j++) {                                                                          \
            T *restrict out = OUT_ROW(T);                                                                              \
            const T *restrict gs = IN_ROW(T, 1), *restrict ys = IN_ROW(T, 2);                                          \
            double sum = 0;                                                                                            \
            _Pragma("omp simd reduction(+ : sum)") for (int64_t i = 0; i < n; i++)                                     \
            {                                                                                                          \
                const T g = gs[i], y = ys[i];                                                                          \
                (void)y;                                                                                               \
                sum += (double)(term);                                                                                 \
            }                                                                                                          \
            const T total = (T)sum;                                                                                    \
            RAPT_SIMD for (int64_t i = 0; i < n; i++)                                                                  \
            {                                                                                                          \
                const T g = gs[i], y = ys[i];                                                                          \
                out[i] = formula;                                                                                      \
            }                                                                                                          \
        }                                                                                                              \
    }

#define FAMILY(T, dtype, EXP, width)                                                                                   \
    SOFTMAX(T, dtype, EXP, width)                                                                                      \
    LOG_SOFTMAX(T, dtype)                                                                                              \
    BACKWARD(softmax_backward_##dtype, T, g *y, y *(g - total))                                                        \
    BACKWARD(log_softmax_backward_##dtype, T, g, g - EXP(y) * total)

FAMILY(float, float32, rapt_math_expf, lane_count)
FAMILY(double, float64, exp, 1)

#define ROW(name)                                                                                                      \
    {                                                                                                                  \
        [RAPT_FLOAT32] = name##_float32, [RAPT_FLOAT64] = name##_float64                                               \
    }

void RAPT_AT_LEVEL(rapt_fill_softmax)(rapt_kernels *kernels)
{
    kernels->softmax = (rapt_softmax_kernels){
        .softmax = ROW(softmax),
        .log_softmax = ROW(log_softmax),
        .softmax_backward = ROW(softmax_backward),
        .log_softmax_backward = ROW(log_softmax_backward),
    };
}
