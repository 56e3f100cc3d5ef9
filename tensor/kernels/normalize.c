/* Layer and root-mean-square normalisation of dense rows, forward and backward. Sums are kept in double. */
#include <math.h>

#include "row.h"

/* The mean in two parts, both of the rows' type: one rounding would lose the digits of rows that lie far from 0. */
#define MEAN_OF_ROW(T)                                                                                                 \
    const double whole = mean ? mean[j] : 0;                                                                           \
    const T center = (T)whole, rest = (T)(whole - (double)center)
#define CENTERED(i) (x[i] - center - rest)

/* out = (x − mean) · scale · weight + bias, scale = 1 / √(mean (x − mean)² + epsilon) */
#define FORWARD(T, dtype)                                                                                              \
    RAPT_ROW_FOLD(sum_##dtype, T, double, 0, m + (double)a, m + a)                                                     \
    RAPT_ROW_FOLD(squares_##dtype, T, double, 0, m + ((double)a - c) * ((double)a - c), m + a)                         \
                                                                                                                       \
    static void forward_##dtype(int64_t rows, int64_t n, double epsilon, const void *x_data, const void *weight,       \
                                const void *bias, double *mean, void *scale, void *out_data)                           \
    {                                                                                                                  \
        const T *restrict w = weight, *restrict b = bias;                                                              \
        for (int64_t j = 0; j < rows; j++) {                                                                           \
            const T *restrict x = (const T *)x_data + j * n;                                                           \
            T *restrict out = (T *)out_data + j * n;                                                                   \
            if (mean) mean[j] = sum_##dtype(n, x, 0) / (double)n;                                                      \
            MEAN_OF_ROW(T);                                                                                            \
            const T s = (T)(1 / sqrt(squares_##dtype(n, x, whole) / (double)n + epsilon));                             \
            ((T *)scale)[j] = s;                                                                                       \
            if (w && b) {                                                                                              \
                RAPT_SIMD for (int64_t i = 0; i < n; i++) out[i] = CENTERED(i) * s * w[i] + b[i];                      \
            } else if (w) {                                                                                            \
                RAPT_SIMD for (int64_t i = 0; i < n; i++) out[i] = CENTERED(i) * s * w[i];                             \
            } else {                                                                                                   \
                RAPT_SIMD for (int64_t i = 0; i < n; i++) out[i] = CENTERED(i) * s;                                    \
                for (int64_t i = 0; b && i < n; i++) out[i] += b[i];                                                   \
            }                                                                                                          \
        }                                                                                                              \
    }

/* With y = (x − mean) · scale and h = g · weight: dx = (h − mean h − y mean(h y)) · scale, dweight = Σ g y, dbias = Σ g.
 * Rows that are not centered have no mean h. */
#define BACKWARD(T, dtype)                                                                                             \
    static void add_parameter_gradients_##dtype(int64_t n, const T *restrict g, const T *restrict x, T center, T rest, \
                                                T s, T *restrict dweight, T *restrict dbias)                           \
    {                                                                                                                  \
        RAPT_SIMD for (int64_t i = 0; i < n; i++)                                                                      \
        {                                                                                                              \
            dweight[i] += g[i] * (CENTERED(i) * s);                                                                    \
            dbias[i] += g[i];                                                                                          \
        }                                                                                                              \
    }                                                                                                                  \
                                                                                                                       \
    static void backward_##dtype(int64_t rows, int64_t n, const void *g_data, const void *x_data, const void *weight,  \
                                 const double *mean, const void *scale, void *dx_data, void *dweight, void *dbias)     \
    {                                                                                                                  \
        const T *restrict w = weight;                                                                                  \
        for (int64_t j = 0; j < rows; j++) {                                                                           \
            const T *restrict g = (const T *)g_data + j * n, *restrict x = (const T *)x_data + j * n;                  \
            T *restrict dx = (T *)dx_data + j * n;                                                                     \
            MEAN_OF_ROW(T);                                                                                            \
            const T s = ((const T *)scale)[j];                                                                         \
            double sum = 0, product = 0;                                                                               \
            if (w) {                                                                                                   \
                _Pragma("omp simd reduction(+ : sum, product)") for (int64_t i = 0; i < n; i++)                        \
                {                                                                                                      \
                    const T h = g[i] * w[i];                                                                           \
                    dx[i] = h;                                                                                         \
                    sum += (double)h;                                                                                  \
                    product += (double)(h * (CENTERED(i) * s));                                                        \
                }                                                                                                      \
            } else {                                                                                                   \
                _Pragma("omp simd reduction(+ : sum, product)") for (int64_t i = 0; i < n; i++)                        \
                {                                                                                                      \
                    dx[i] = g[i];                                                                                      \
                    sum += (double)g[i];                                                                               \
                    product += (double)(g[i] * (CENTERED(i) * s));                                                     \
                }                                                                                                      \
            }                                                                                                          \
            const T average = mean ? (T)(sum / (double)n) : 0, slope = (T)(product / (double)n);                       \
            RAPT_SIMD for (int64_t i = 0; i < n; i++) dx[i] = (dx[i] - average - CENTERED(i) * s * slope) * s;         \
            if (dweight) add_parameter_gradients_##dtype(n, g, x, center, rest, s, dweight, dbias);                    \
        }                                                                                                              \
    }

FORWARD(float, float32)
FORWARD(double, float64)
BACKWARD(float, float32)
BACKWARD(double, float64)

void RAPT_AT_LEVEL(rapt_fill_normalize)(rapt_kernels *kernels)
{
    kernels->normalize = (rapt_normalize_kernels){.forward = {forward_float32, forward_float64},
                                                  .backward = {backward_float32, backward_float64}};
}
