/* Softmax of rows of which only the first elements count: the others are never read, and become 0. */
#include <math.h>

#include "loop.h"
#include "vector_math.h"

#define MASKED_SOFTMAX(T, dtype, EXP, MAX)                                                                             \
    /* y = exp(x − max x) / Σ exp(x − max x) over the first lengths[row] columns */                               \
    static void forward_##dtype(int64_t first, int64_t last, int64_t columns, const int64_t *lengths, const void *x_,  \
                                void *y_)                                                                              \
    {                                                                                                                  \
        for (int64_t row = first; row < last; row++) {                                                                 \
            const T *x = (const T *)x_ + row * columns;                                                                \
            T *y = (T *)y_ + row * columns, largest = -(T)INFINITY, sum = 0;                                           \
            const int64_t length = lengths[row];                                                                       \
            _Pragma("omp simd reduction(max : largest)") for (int64_t j = 0; j < length; j++) largest =                \
                MAX(largest, x[j]);                                                                                    \
            const T shift = largest == -(T)INFINITY ? 0 : largest;                                                     \
            _Pragma("omp simd reduction(+ : sum)") for (int64_t j = 0; j < length; j++)                                \
            {                                                                                                          \
                y[j] = EXP(x[j] - shift);                                                                              \
                sum += y[j];                                                                                           \
            }                                                                                                          \
            const T scale = sum == 0 ? 0 : 1 / sum;                                                                    \
            RAPT_SIMD for (int64_t j = 0; j < length; j++) y[j] *= scale;                                              \
            for (int64_t j = length; j < columns; j++) y[j] = 0;                                                       \
        }                                                                                                              \
    }                                                                                                                  \
    /* backward of y = softmax x: dx = y · (g − Σ g y) */                                                          \
    static void backward_##dtype(int64_t first, int64_t last, int64_t columns, const int64_t *lengths, const void *y_, \
                                 const void *g_, void *dx_)                                                            \
    {                                                                                                                  \
        for (int64_t row = first; row < last; row++) {                                                                 \
            const T *y = (const T *)y_ + row * columns, *g = (const T *)g_ + row * columns;                            \
            T *dx = (T *)dx_ + row * columns, sum = 0;                                                                 \
            const int64_t length = lengths[row];                                                                       \
            _Pragma("omp simd reduction(+ : sum)") for (int64_t j = 0; j < length; j++) sum += g[j] * y[j];            \
            RAPT_SIMD for (int64_t j = 0; j < length; j++) dx[j] = y[j] * (g[j] - sum);                                \
            for (int64_t j = length; j < columns; j++) dx[j] = 0;                                                      \
        }                                                                                                              \
    }

/* The larger one; a NaN in x stays visible as NaN weights, since exp(NaN) is NaN whatever is subtracted. */
#define LARGER(a, b) ((a) > (b) ? (a) : (b))

MASKED_SOFTMAX(float, float32, rapt_math_expf, LARGER)
MASKED_SOFTMAX(double, float64, exp, LARGER)

void RAPT_AT_LEVEL(rapt_fill_masked_softmax)(rapt_kernels *kernels)
{
    kernels->masked_softmax = (rapt_masked_softmax_kernels){
        .forward = {forward_float32, forward_float64},
        .backward = {backward_float32, backward_float64},
    };
}
