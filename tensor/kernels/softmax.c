/* Softmax and its logarithm along dense rows, or rows side by side, whole or what a mask leaves of them, forward and
 * backward. Sums are kept in double. */
#include <math.h>
#include <stddef.h>

#include "double_math.h"
#include "row.h"

#define OUT_ROW(T) ((T *)(void *)(data[0] + j * strides[0]))
#define IN_ROW(T, k) ((const T *)(const void *)(data[k] + j * strides[k]))

/* What a mask leaves of a row: elements [first, last) of n, and of these the ones that `seen` says true to; NULL:
 * all. */
typedef struct part {
    int64_t n, first, last;
    const uint8_t *seen;
} part;

/* data and strides: of the ranges and of the bytes. */
static part find_part(const rapt_masked_row *options, char *const *data, const int64_t *strides, int64_t row)
{
    part p = {.n = options->n, .last = options->n};
    const uint8_t *seen = (const uint8_t *)data[1] + row * strides[1];
    if (options->has_ranges) {
        const int64_t *range = (const int64_t *)(void *)(data[0] + row * strides[0]);
        p.first = range[0];
        p.last = range[1];
    }
    if (options->has_seen && options->seen_repeats) p.last = *seen ? p.last : p.first;
    if (options->has_seen && !options->seen_repeats) p.seen = seen;
    return p;
}

/* out = exp(x − m) / Σ exp(x − m), with m the largest x. A row of −∞ only, or of nothing, gives NaN, or 0 where
 * `masked`. Rows of the first loop are whole; those of the second are what the options leave of them, and 0
 * elsewhere. */
#define SOFTMAX(T, dtype, EXP)                                                                                         \
    RAPT_ROW_LARGEST(largest_##dtype, T)                                                                               \
    RAPT_ROW_EXPONENTIALS(exponentials_##dtype, T, EXP)                                                                \
                                                                                                                       \
    static inline __attribute__((always_inline)) void softmax_row_##dtype(int64_t n, const T *x, T *out, bool masked)  \
    {                                                                                                                  \
        const T largest = largest_##dtype(n, x), m = masked && largest == -(T)INFINITY ? 0 : largest;                  \
        const double total = exponentials_##dtype(n, x, m, out);                                                       \
        const T factor = masked && total == 0 ? 0 : (T)(1 / total);                                                    \
        RAPT_SIMD for (int64_t i = 0; i < n; i++) out[i] *= factor;                                                    \
    }                                                                                                                  \
                                                                                                                       \
    static void softmax_##dtype(int64_t count, char *const *data, const int64_t *strides, const void *options)         \
    {                                                                                                                  \
        const int64_t n = *(const int64_t *)options;                                                                   \
        for (int64_t j = 0; j < count; j++) softmax_row_##dtype(n, IN_ROW(T, 1), OUT_ROW(T), false);                   \
    }                                                                                                                  \
                                                                                                                       \
    static void masked_softmax_##dtype(int64_t count, char *const *data, const int64_t *strides, const void *options)  \
    {                                                                                                                  \
        for (int64_t j = 0; j < count; j++) {                                                                          \
            T *out = OUT_ROW(T);                                                                                       \
            const T *x = IN_ROW(T, 1);                                                                                 \
            const part p = find_part(options, data + 2, strides + 2, j);                                               \
            if (p.seen) {                                                                                              \
                RAPT_SIMD for (int64_t i = p.first; i < p.last; i++) out[i] = p.seen[i] ? x[i] : -(T)INFINITY;         \
                x = out;                                                                                               \
            }                                                                                                          \
            softmax_row_##dtype(p.last - p.first, x + p.first, out + p.first, true);                                   \
            RAPT_SIMD for (int64_t i = 0; i < p.first; i++) out[i] = 0;                                                \
            RAPT_SIMD for (int64_t i = p.last; i < p.n; i++) out[i] = 0;                                               \
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
            const T m = largest_##dtype(n, x);                                                                         \
            const T shift = (T)log(exponentials_##dtype(n, x, m, NULL));                                               \
            RAPT_SIMD for (int64_t i = 0; i < n; i++) out[i] = x[i] - m - shift;                                       \
        }                                                                                                              \
    }

/* The same of rows side by side: plain loops, which a build for speed vectorises and one for size keeps small. */
#define SIDE_BY_SIDE(T, dtype, EXP)                                                                                    \
    static void side_by_side_##dtype(int64_t n, int64_t width, int64_t stride, const T *a, bool logarithm, T *to)      \
    {                                                                                                                  \
        T largest[rapt_rows_side_by_side], numbers[rapt_rows_side_by_side];                                            \
        double totals[rapt_rows_side_by_side] = {0};                                                                   \
        for (int64_t j = 0; j < width; j++) largest[j] = -(T)INFINITY;                                                 \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            const T *restrict x = a + i * stride;                                                                      \
            for (int64_t j = 0; j < width; j++) largest[j] = x[j] > largest[j] ? x[j] : largest[j];                    \
        }                                                                                                              \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            const T *restrict x = a + i * stride;                                                                      \
            T *restrict out = to + i * stride;                                                                         \
            for (int64_t j = 0; j < width; j++) {                                                                      \
                const T e = EXP(x[j] - largest[j]);                                                                    \
                totals[j] += (double)e;                                                                                \
                out[j] = e;                                                                                            \
            }                                                                                                          \
        }                                                                                                              \
        for (int64_t j = 0; j < width; j++) numbers[j] = (T)(logarithm ? log(totals[j]) : 1 / totals[j]);              \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            const T *restrict x = a + i * stride;                                                                      \
            T *restrict out = to + i * stride;                                                                         \
            if (logarithm)                                                                                             \
                for (int64_t j = 0; j < width; j++) out[j] = x[j] - largest[j] - numbers[j];                           \
            else                                                                                                       \
                for (int64_t j = 0; j < width; j++) out[j] *= numbers[j];                                              \
        }                                                                                                              \
    }                                                                                                                  \
                                                                                                                       \
    static void softmax_side_by_side_##dtype(int64_t n, int64_t width, int64_t stride, const void *a, const void *b,   \
                                             void *out)                                                                \
    {                                                                                                                  \
        (void)b;                                                                                                       \
        side_by_side_##dtype(n, width, stride, a, false, out);                                                         \
    }                                                                                                                  \
                                                                                                                       \
    static void log_softmax_side_by_side_##dtype(int64_t n, int64_t width, int64_t stride, const void *a,              \
                                                 const void *b, void *out)                                             \
    {                                                                                                                  \
        (void)b;                                                                                                       \
        side_by_side_##dtype(n, width, stride, a, true, out);                                                          \
    }

/* out = formula of g, y and total, the sum of term over the row */
#define BACKWARD_ROW(function, T, read_g, term, formula)                                                               \
    static void function(int64_t n, const T *restrict gs, const T *restrict ys, const uint8_t *restrict seen,          \
                         T *restrict out)                                                                              \
    {                                                                                                                  \
        (void)seen;                                                                                                    \
        double sum = 0;                                                                                                \
        _Pragma("omp simd reduction(+ : sum)") for (int64_t i = 0; i < n; i++)                                         \
        {                                                                                                              \
            const T g = read_g, y = ys[i];                                                                             \
            (void)y;                                                                                                   \
            sum += (double)(term);                                                                                     \
        }                                                                                                              \
        const T total = (T)sum;                                                                                        \
        RAPT_SIMD for (int64_t i = 0; i < n; i++)                                                                      \
        {                                                                                                              \
            const T g = read_g, y = ys[i];                                                                             \
            out[i] = formula;                                                                                          \
        }                                                                                                              \
    }

#define BACKWARD(function, T, term, formula)                                                                           \
    BACKWARD_ROW(function##_row, T, gs[i], term, formula)                                                              \
    static void function(int64_t count, char *const *data, const int64_t *strides, const void *options)                \
    {                                                                                                                  \
        const int64_t n = *(const int64_t *)options;                                                                   \
        for (int64_t j = 0; j < count; j++) function##_row(n, IN_ROW(T, 1), IN_ROW(T, 2), NULL, OUT_ROW(T));           \
    }

#define BACKWARD_SIDE_BY_SIDE(function, T, term, formula)                                                              \
    static void function(int64_t n, int64_t width, int64_t stride, const void *a, const void *b, void *to)             \
    {                                                                                                                  \
        double sums[rapt_rows_side_by_side] = {0};                                                                     \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            const T *restrict gs = (const T *)a + i * stride, *restrict ys = (const T *)b + i * stride;                \
            for (int64_t j = 0; j < width; j++) {                                                                      \
                const T g = gs[j], y = ys[j];                                                                          \
                (void)y;                                                                                               \
                sums[j] += (double)(term);                                                                             \
            }                                                                                                          \
        }                                                                                                              \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            const T *restrict gs = (const T *)a + i * stride, *restrict ys = (const T *)b + i * stride;                \
            T *restrict out = (T *)to + i * stride;                                                                    \
            for (int64_t j = 0; j < width; j++) {                                                                      \
                const T g = gs[j], y = ys[j], total = (T)sums[j];                                                      \
                out[j] = formula;                                                                                      \
            }                                                                                                          \
        }                                                                                                              \
    }

/* y (g − Σ g y) over what is seen, and 0 elsewhere; g is not read there */
#define MASKED_BACKWARD(T, dtype)                                                                                      \
    BACKWARD_ROW(seen_backward_##dtype, T, seen[i] ? gs[i] : 0, g *y, seen[i] ? y *(g - total) : 0)                    \
    static void masked_softmax_backward_##dtype(int64_t count, char *const *data, const int64_t *strides,              \
                                                const void *options)                                                   \
    {                                                                                                                  \
        for (int64_t j = 0; j < count; j++) {                                                                          \
            T *out = OUT_ROW(T);                                                                                       \
            const T *g = IN_ROW(T, 1), *y = IN_ROW(T, 2);                                                              \
            const part p = find_part(options, data + 3, strides + 3, j);                                               \
            const int64_t n = p.last - p.first;                                                                        \
            if (p.seen)                                                                                                \
                seen_backward_##dtype(n, g + p.first, y + p.first, p.seen + p.first, out + p.first);                   \
            else                                                                                                       \
                softmax_backward_##dtype##_row(n, g + p.first, y + p.first, NULL, out + p.first);                      \
            RAPT_SIMD for (int64_t i = 0; i < p.first; i++) out[i] = 0;                                                \
            RAPT_SIMD for (int64_t i = p.last; i < p.n; i++) out[i] = 0;                                               \
        }                                                                                                              \
    }

#define FAMILY(T, dtype, EXP)                                                                                          \
    SOFTMAX(T, dtype, EXP)                                                                                             \
    LOG_SOFTMAX(T, dtype)                                                                                              \
    BACKWARD(softmax_backward_##dtype, T, g *y, y *(g - total))                                                        \
    BACKWARD(log_softmax_backward_##dtype, T, g, g - EXP(y) * total)                                                   \
    SIDE_BY_SIDE(T, dtype, EXP)                                                                                        \
    BACKWARD_SIDE_BY_SIDE(softmax_backward_side_by_side_##dtype, T, g *y, y *(g - total))                              \
    BACKWARD_SIDE_BY_SIDE(log_softmax_backward_side_by_side_##dtype, T, g, g - EXP(y) * total)                         \
    MASKED_BACKWARD(T, dtype)

FAMILY(float, float32, rapt_math_expf)
FAMILY(double, float64, rapt_math_exp)

void RAPT_AT_LEVEL(rapt_fill_softmax)(rapt_kernels *kernels)
{
    kernels->softmax = (rapt_softmax_kernels){
        .softmax = {RAPT_FLOATING_ROW(softmax)},
        .log_softmax = {RAPT_FLOATING_ROW(log_softmax)},
        .softmax_backward = {RAPT_FLOATING_ROW(softmax_backward)},
        .log_softmax_backward = {RAPT_FLOATING_ROW(log_softmax_backward)},
        .masked_softmax = {RAPT_FLOATING_ROW(masked_softmax)},
        .masked_softmax_backward = {RAPT_FLOATING_ROW(masked_softmax_backward)},
        .softmax_side_by_side = {RAPT_FLOATING_ROW(softmax_side_by_side)},
        .log_softmax_side_by_side = {RAPT_FLOATING_ROW(log_softmax_side_by_side)},
        .softmax_backward_side_by_side = {RAPT_FLOATING_ROW(softmax_backward_side_by_side)},
        .log_softmax_backward_side_by_side = {RAPT_FLOATING_ROW(log_softmax_backward_side_by_side)},
    };
}
