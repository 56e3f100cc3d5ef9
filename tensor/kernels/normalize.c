/* Layer and root-mean-square normalisation of dense rows, forward and backward. Sums are kept in double. */
#include <math.h>
#include <stddef.h>

#include "row.h"

/* What a row needs of its mean and scale. The mean is taken in two parts, for one rounding would lose the digits of
 * rows that lie far from 0; and where numbers are so large that their distance from it may overflow, all is shrunk. */
#define STATISTICS_OF_ROW(T, large, shrinking)                                                                         \
    const T shrink = scale[j] < 1 / (large) ? (T)(shrinking) : 1;                                                      \
    const double whole = mean ? mean[j] * (double)shrink : 0;                                                          \
    const T center = (T)whole, s = (T)(scale[j] / (double)shrink), rest = (T)(whole - (double)center) * s
#define NORMALIZED(i) RAPT_MULTIPLY_ADD(x[i] * shrink - center, s, -rest)

/* out = (x − mean) · scale · weight + bias, scale = 1 / √(mean (x − mean)² + epsilon) */
#define FORWARD(T, dtype, large, shrinking)                                                                            \
    RAPT_ROW_FOLD(sum_##dtype, T, double, 0, m + (double)a, m + a)                                                     \
    RAPT_ROW_FOLD(squares_##dtype, T, double, 0, m + ((double)a - c) * ((double)a - c), m + a)                         \
                                                                                                                       \
    /* The same sums where they overflow a double. */                                                                  \
    static double wide_scale_##dtype(int64_t n, double epsilon, const T *x, double *mean)                              \
    {                                                                                                                  \
        long double sum = 0, squares = 0;                                                                              \
        for (int64_t i = 0; mean && i < n; i++) sum += (long double)x[i];                                              \
        const long double average = sum / (long double)n;                                                              \
        for (int64_t i = 0; i < n; i++) squares += ((long double)x[i] - average) * ((long double)x[i] - average);      \
        if (mean) *mean = (double)average;                                                                             \
        return (double)(1 / sqrtl(squares / (long double)n + (long double)epsilon));                                   \
    }                                                                                                                  \
                                                                                                                       \
    static void forward_##dtype(int64_t rows, int64_t n, double epsilon, const void *x_data, const void *weight,       \
                                const void *bias, double *mean, double *scale, void *out_data)                         \
    {                                                                                                                  \
        const T *restrict w = weight, *restrict b = bias;                                                              \
        for (int64_t j = 0; j < rows; j++) {                                                                           \
            const T *restrict x = (const T *)x_data + j * n;                                                           \
            T *restrict out = (T *)out_data + j * n;                                                                   \
            const double average = mean ? sum_##dtype(n, x, 0) / (double)n : 0;                                        \
            const double variance = squares_##dtype(n, x, average) / (double)n;                                        \
            if (mean) mean[j] = average;                                                                               \
            scale[j] = variance < (double)INFINITY ? 1 / sqrt(variance + epsilon)                                      \
                                                   : wide_scale_##dtype(n, epsilon, x, mean ? mean + j : NULL);        \
            STATISTICS_OF_ROW(T, large, shrinking);                                                                    \
            if (w && b) {                                                                                              \
                RAPT_SIMD for (int64_t i = 0; i < n; i++) out[i] = NORMALIZED(i) * w[i] + b[i];                        \
            } else if (w) {                                                                                            \
                RAPT_SIMD for (int64_t i = 0; i < n; i++) out[i] = NORMALIZED(i) * w[i];                               \
            } else {                                                                                                   \
                RAPT_SIMD for (int64_t i = 0; i < n; i++) out[i] = NORMALIZED(i);                                      \
                for (int64_t i = 0; b && i < n; i++) out[i] += b[i];                                                   \
            }                                                                                                          \
        }                                                                                                              \
    }

/* With y = (x − mean) · scale and h = g · weight: dx = (h − mean h − y mean(h y)) · scale, dweight = Σ g y, dbias =
 * Σ g. Rows that are not centered have no mean h. */
#define BACKWARD(T, dtype, large, shrinking)                                                                           \
    static void add_parameter_gradients_##dtype(int64_t n, const T *restrict g, const T *restrict x, T shrink,         \
                                                T center, T rest, T s, T *restrict dweight, T *restrict dbias)         \
    {                                                                                                                  \
        RAPT_SIMD for (int64_t i = 0; i < n; i++)                                                                      \
        {                                                                                                              \
            dweight[i] += g[i] * NORMALIZED(i);                                                                        \
            dbias[i] += g[i];                                                                                          \
        }                                                                                                              \
    }                                                                                                                  \
                                                                                                                       \
    static void backward_##dtype(int64_t rows, int64_t n, const void *g_data, const void *x_data, const void *weight,  \
                                 const double *mean, const double *scale, void *dx_data, void *dweight, void *dbias)   \
    {                                                                                                                  \
        const T *restrict w = weight;                                                                                  \
        for (int64_t j = 0; j < rows; j++) {                                                                           \
            const T *restrict g = (const T *)g_data + j * n, *restrict x = (const T *)x_data + j * n;                  \
            T *restrict dx = (T *)dx_data + j * n;                                                                     \
            STATISTICS_OF_ROW(T, large, shrinking);                                                                    \
            double sum = 0, product = 0;                                                                               \
            if (w) {                                                                                                   \
                _Pragma("omp simd reduction(+ : sum, product)") for (int64_t i = 0; i < n; i++)                        \
                {                                                                                                      \
                    const T h = g[i] * w[i];                                                                           \
                    dx[i] = h;                                                                                         \
                    sum += (double)h;                                                                                  \
                    product += (double)(h * NORMALIZED(i));                                                            \
                }                                                                                                      \
            } else {                                                                                                   \
                _Pragma("omp simd reduction(+ : sum, product)") for (int64_t i = 0; i < n; i++)                        \
                {                                                                                                      \
                    dx[i] = g[i];                                                                                      \
                    sum += (double)g[i];                                                                               \
                    product += (double)(g[i] * NORMALIZED(i));                                                         \
                }                                                                                                      \
            }                                                                                                          \
            const T average = mean ? (T)(sum / (double)n) : 0, slope = (T)(product / (double)n), outer = s * shrink;   \
            RAPT_SIMD for (int64_t i = 0; i < n; i++) dx[i] = (dx[i] - average - NORMALIZED(i) * slope) * outer;       \
            if (dweight) add_parameter_gradients_##dtype(n, g, x, shrink, center, rest, s, dweight, dbias);            \
        }                                                                                                              \
    }

FORWARD(float, float32, 0x1p100, 0x1p-64)
FORWARD(double, float64, 0x1p500, 0x1p-600)
BACKWARD(float, float32, 0x1p100, 0x1p-64)
BACKWARD(double, float64, 0x1p500, 0x1p-600)

void RAPT_AT_LEVEL(rapt_fill_normalize)(rapt_kernels *kernels)
{
    kernels->normalize = (rapt_normalize_kernels){.forward = {forward_float32, forward_float64},
                                                  .backward = {backward_float32, backward_float64}};
}
