/* Losses: cross-entropy of rows of logits, and the elementwise ones that need a formula of their own. */
#include <math.h>
#include <stddef.h>

#include "apart.h"
#include "double_math.h"
#include "row.h"
#include "stream.h"

/* loss = s − (1 − ε) x[target] − ε / classes Σ x, with s = log Σ exp x = m + log Σ exp(x − m), m the largest x, or,
 * all relative to m: log Σ exp(x − m) + (1 − ε) (m − x[target]) + ε / classes Σ (m − x). Backward gets m and the sum
 * as they are: s itself, rounded, would lose the digits of the differences where m is large. */
#define CROSS_ENTROPY(T, dtype, EXP)                                                                                   \
    RAPT_ROW_FOLD(distances_##dtype, T, double, 0, m + (c - (double)a), m + a)                                         \
    RAPT_ROW_LARGEST(largest_##dtype, T)                                                                               \
    RAPT_ROW_EXPONENTIALS(exponentials_##dtype, T, EXP)                                                                \
                                                                                                                       \
    static double loss_##dtype(int64_t classes, double smoothing, const T *x, int64_t target, T *m, double *sum,       \
                               T *exponentials)                                                                        \
    {                                                                                                                  \
        *m = largest_##dtype(classes, x);                                                                              \
        double distance = (1 - smoothing) * ((double)*m - (double)x[target]);                                          \
        if (smoothing > 0) distance += smoothing * distances_##dtype(classes, x, (double)*m) / (double)classes;        \
        *sum = exponentials_##dtype(classes, x, *m, exponentials);                                                     \
        return log(*sum) + distance;                                                                                   \
    }                                                                                                                  \
                                                                                                                       \
    static void cross_entropy_##dtype(int64_t rows, int64_t classes, double smoothing, const void *logits,             \
                                      const int64_t *targets, void *losses, void *statistics)                          \
    {                                                                                                                  \
        for (int64_t j = 0; j < rows; j++) {                                                                           \
            const T *x = (const T *)logits + j * classes;                                                              \
            T m = 0;                                                                                                   \
            double sum = 0, loss = 0;                                                                                  \
            if (targets[j] >= 0) loss = loss_##dtype(classes, smoothing, x, targets[j], &m, &sum, NULL);               \
            ((T *)losses)[j] = (T)loss;                                                                                \
            if (!statistics) continue;                                                                                 \
            ((T *)statistics)[2 * j] = m;                                                                              \
            ((T *)statistics)[2 * j + 1] = (T)sum;                                                                     \
        }                                                                                                              \
    }                                                                                                                  \
                                                                                                                       \
    /* dx = factor (e share − uniform) */                                                                            \
    static void slope_##dtype(int64_t classes, const T *e, T factor, T share, T uniform, T *dx)                        \
    {                                                                                                                  \
        RAPT_SIMD for (int64_t i = 0; i < classes; i++) dx[i] = factor * (e[i] * share - uniform);                     \
    }                                                                                                                  \
                                                                                                                       \
    static void stream_slope_##dtype(int64_t classes, const T *e, T factor, T share, T uniform, T *dx)                 \
    {                                                                                                                  \
        enum { lanes = stream_bytes / sizeof(T) };                                                                     \
        typedef T vector __attribute__((vector_size(stream_bytes)));                                                   \
        int64_t i = rapt_stream_offset(dx, classes * (int64_t)sizeof(T)) / (int64_t)sizeof(T);                         \
        slope_##dtype(i, e, factor, share, uniform, dx);                                                               \
        for (; i + lanes <= classes; i += lanes) {                                                                     \
            vector v;                                                                                                  \
            memcpy(&v, e + i, sizeof v);                                                                               \
            v = factor * (v * share - uniform);                                                                        \
            rapt_stream(dx + i, (rapt_stream_vector)v);                                                                \
        }                                                                                                              \
        slope_##dtype(classes - i, e + i, factor, share, uniform, dx + i);                                             \
    }                                                                                                                  \
                                                                                                                       \
    static void cross_entropy_gradient_##dtype(int64_t rows, int64_t classes, double smoothing, const void *logits,    \
                                               const int64_t *targets, const void *g, int64_t g_step, void *losses,    \
                                               void *exponentials, void *dx_data)                                      \
    {                                                                                                                  \
        const T uniform = (T)(smoothing / (double)classes);                                                            \
        for (int64_t j = 0; j < rows; j++) {                                                                           \
            const T *x = (const T *)logits + j * classes;                                                              \
            T *dx = (T *)dx_data + j * classes, *e = exponentials ? exponentials : dx, m;                              \
            ((T *)losses)[j] = 0;                                                                                      \
            if (targets[j] < 0) {                                                                                      \
                memset(dx, 0, (size_t)classes * sizeof(T));                                                            \
                continue;                                                                                              \
            }                                                                                                          \
            double sum;                                                                                                \
            ((T *)losses)[j] = (T)loss_##dtype(classes, smoothing, x, targets[j], &m, &sum, e);                        \
            const T share = 1 / (T)sum, factor = ((const T *)g)[j * g_step];                                           \
            const T at_target = factor * (e[targets[j]] * share - uniform - (T)(1 - smoothing));                       \
            (exponentials ? stream_slope_##dtype : slope_##dtype)(classes, e, factor, share, uniform, dx);             \
            if (exponentials) rapt_stream_end();                                                                       \
            dx[targets[j]] = at_target;                                                                                \
        }                                                                                                              \
    }

/* dx = g (exp(x − m) / sum − (1 − ε) [i = target] − ε / classes) */
#define CROSS_ENTROPY_BACKWARD(T, dtype, EXP)                                                                          \
    static void cross_entropy_backward_##dtype(int64_t rows, int64_t classes, double smoothing, const void *logits,    \
                                               const int64_t *targets, const void *statistics, const void *g,          \
                                               int64_t g_step, void *dx_data)                                          \
    {                                                                                                                  \
        const T uniform = (T)(smoothing / (double)classes);                                                            \
        for (int64_t j = 0; j < rows; j++) {                                                                           \
            const T *restrict x = (const T *)logits + j * classes;                                                     \
            T *restrict dx = (T *)dx_data + j * classes;                                                               \
            const T m = ((const T *)statistics)[2 * j], share = 1 / ((const T *)statistics)[2 * j + 1];                \
            const T factor = ((const T *)g)[j * g_step];                                                               \
            if (targets[j] < 0) {                                                                                      \
                for (int64_t i = 0; i < classes; i++) dx[i] = 0;                                                       \
                continue;                                                                                              \
            }                                                                                                          \
            RAPT_SIMD for (int64_t i = 0; i < classes; i++) dx[i] = factor * (EXP(x[i] - m) * share - uniform);        \
            dx[targets[j]] = factor * (EXP(x[targets[j]] - m) * share - uniform - (T)(1 - smoothing));                 \
        }                                                                                                              \
    }

CROSS_ENTROPY(float, float32, rapt_math_expf)
CROSS_ENTROPY(double, float64, rapt_math_exp)
CROSS_ENTROPY_BACKWARD(float, float32, rapt_math_expf)
CROSS_ENTROPY_BACKWARD(double, float64, rapt_math_exp)

/* −b log σ(a) − (1 − b) log(1 − σ(a)) = max(a, 0) − a b + log(1 + exp(−|a|)), the first two terms as one product */
RAPT_BINARY_FUNCTION(bce_with_logits_float32, float,
                     RAPT_MULTIPLY_ADD(a, (a > 0) - b, rapt_math_log1pf(rapt_math_expf(-fabsf(a)))))
RAPT_BINARY_FUNCTION(bce_with_logits_float64, double,
                     RAPT_MULTIPLY_ADD(a, (a > 0) - b, rapt_math_log1p(rapt_math_exp(-fabs(a)))))

/* b (log b − a), 0 where b is 0 */
RAPT_BINARY_FUNCTION(kl_div_float32, float, b == 0 ? 0 : b * (rapt_math_logf(b) - a))
RAPT_BINARY_FUNCTION(kl_div_float64, double, b == 0 ? 0 : b * (rapt_math_log(b) - a))

/* Of d = a − b: d², and c (d − c / 2) with c = d cut to ±option; and the slopes of both, factor c g, with two options:
 * limit and factor. */
#define SQUARES(T, dtype)                                                                                              \
    static inline T cut_##dtype(T d, T limit)                                                                          \
    {                                                                                                                  \
        return d < -limit ? -limit : d > limit ? limit : d;                                                            \
    }                                                                                                                  \
    static inline T huber_of_##dtype(T d, T limit)                                                                     \
    {                                                                                                                  \
        const T c = cut_##dtype(d, limit);                                                                             \
        return c * (d - (T)0.5 * c);                                                                                   \
    }                                                                                                                  \
    RAPT_BINARY_FUNCTION(mse_##dtype, T, (a - b) * (a - b))                                                            \
    RAPT_BINARY_FUNCTION(huber_##dtype, T, huber_of_##dtype(a - b, option))                                            \
    static void square_slope_##dtype(int64_t count, char *const *data, const int64_t *strides, const void *options)    \
    {                                                                                                                  \
        if (!are_dense(4, strides, sizeof(T))) {                                                                       \
            run_apart(square_slope_##dtype, 4, 1, 1, sizeof(T), count, data, strides, options);                        \
            return;                                                                                                    \
        }                                                                                                              \
        const T limit = (T)((const double *)options)[0], factor = (T)((const double *)options)[1];                     \
        T *out = (T *)(void *)data[0];                                                                                 \
        const T *g = (const T *)(void *)data[1], *a = (const T *)(void *)data[2], *b = (const T *)(void *)data[3];     \
        RAPT_SIMD for (int64_t i = 0; i < count; i++) out[i] = g[i] * cut_##dtype(a[i] - b[i], limit) * factor;        \
    }

SQUARES(float, float32)
SQUARES(double, float64)

void RAPT_AT_LEVEL(rapt_fill_loss)(rapt_kernels *kernels)
{
    kernels->loss = (rapt_loss_kernels){
        .cross_entropy = {cross_entropy_float32, cross_entropy_float64},
        .cross_entropy_gradient = {cross_entropy_gradient_float32, cross_entropy_gradient_float64},
        .cross_entropy_backward = {cross_entropy_backward_float32, cross_entropy_backward_float64},
        .bce_with_logits = {RAPT_FLOATING_ROW(bce_with_logits)},
        .kl_div = {RAPT_FLOATING_ROW(kl_div)},
        .mse = {RAPT_FLOATING_ROW(mse)},
        .huber = {RAPT_FLOATING_ROW(huber)},
        .square_slope = {RAPT_FLOATING_ROW(square_slope)},
    };
}
