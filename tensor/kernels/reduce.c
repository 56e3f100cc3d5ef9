/* Folds: sums, products, extremes, squared distances to a center and exponentials of them, by rows and by columns. */
#include <math.h>
#include <stddef.h>

#include "double_math.h"
#include "row.h"

/* Output by output; function##_dense folds a dense row. */
#define FOLD_ROWS(function, T, A, step, merge)                                                                         \
    static void function##_rows(int64_t outputs, int64_t output_stride, int64_t count, int64_t stride, const char *in, \
                                void *accumulators, const void *centers)                                               \
    {                                                                                                                  \
        A *result = accumulators;                                                                                      \
        for (int64_t j = 0; j < outputs; j++, in += output_stride) {                                                   \
            const A c = centers ? ((const A *)centers)[j] : (A)0;                                                      \
            if (stride == sizeof(T)) {                                                                                 \
                const A m = result[j], a = function##_dense(count, (const T *)(const void *)in, c);                    \
                result[j] = merge;                                                                                     \
                continue;                                                                                              \
            }                                                                                                          \
            A m = result[j];                                                                                           \
            for (int64_t i = 0; i < count; i++) {                                                                      \
                const T a = *(const T *)(const void *)(in + i * stride);                                               \
                m = step;                                                                                              \
            }                                                                                                          \
            result[j] = m;                                                                                             \
        }                                                                                                              \
    }

enum { elements_ahead = 16 };

/* All outputs at once, four elements of each in a pass over the accumulators: `four` gives the new m from m and the
 * elements j of a, b, d and e. What a later pass reads is prefetched: a pass is too short, and the elements are too far
 * apart, for the processor to see it come. Not of integers, of which nobody has so many that it would be worth the
 * code. */
#define FOLD_COLUMNS_(function, T, A, step, four)                                                                      \
    static inline A function##_step(A m, T a, A c)                                                                     \
    {                                                                                                                  \
        (void)c;                                                                                                       \
        return step;                                                                                                   \
    }                                                                                                                  \
                                                                                                                       \
    static inline __attribute__((always_inline)) void function##_four(const int64_t outputs, int64_t stride,           \
                                                                      const char *in, A *result, const A *center)      \
    {                                                                                                                  \
        const T *a = (const T *)(const void *)in, *b = (const T *)(const void *)(in + stride);                         \
        const T *d = (const T *)(const void *)(in + 2 * stride), *e = (const T *)(const void *)(in + 3 * stride);      \
        RAPT_SIMD_OF(T) for (int64_t j = 0; j < outputs; j++)                                                          \
        {                                                                                                              \
            const A c = center[j], m = result[j];                                                                      \
            (void)c;                                                                                                   \
            result[j] = four;                                                                                          \
        }                                                                                                              \
    }                                                                                                                  \
                                                                                                                       \
    static void function##_columns(int64_t outputs, int64_t output_stride, int64_t count, int64_t stride,              \
                                   const char *in, void *accumulators, const void *centers)                            \
    {                                                                                                                  \
        enum { line = 64 / sizeof(T) };                                                                                \
        const bool prefetches = (T)0.5 != 0;                                                                           \
        A *result = accumulators;                                                                                      \
        const A *center = centers ? centers : accumulators;                                                            \
        int64_t i = 0;                                                                                                 \
        if (output_stride == sizeof(T)) {                                                                              \
            for (; i + 4 <= count; i += 4, in += 4 * stride) {                                                         \
                const int64_t ahead = i + 4 + elements_ahead <= count ? elements_ahead * stride : 0;                   \
                int64_t j = 0;                                                                                         \
                for (; prefetches && j + line <= outputs; j += line) {                                                 \
                    const char *const at = in + j * (int64_t)sizeof(T);                                                \
                    for (int k = 0; k < 4; k++) __builtin_prefetch(at + ahead + k * stride, 0, 2);                     \
                    function##_four(line, stride, at, result + j, center + j);                                         \
                }                                                                                                      \
                function##_four(outputs - j, stride, in + j * (int64_t)sizeof(T), result + j, center + j);             \
            }                                                                                                          \
            for (; i < count; i++, in += stride) {                                                                     \
                const T *a = (const T *)(const void *)in;                                                              \
                RAPT_SIMD_OF(T)                                                                                        \
                for (int64_t j = 0; j < outputs; j++) result[j] = function##_step(result[j], a[j], center[j]);         \
            }                                                                                                          \
            return;                                                                                                    \
        }                                                                                                              \
        for (; i < count; i++, in += stride)                                                                           \
            for (int64_t j = 0; j < outputs; j++)                                                                      \
                result[j] = function##_step(result[j], *(const T *)(const void *)(in + j * output_stride), center[j]); \
    }

/* The elements one after the other. */
#define FOLD_COLUMNS(function, T, A, step)                                                                             \
    FOLD_COLUMNS_(function, T, A, step,                                                                                \
                  function##_step(function##_step(function##_step(function##_step(m, a[j], c), b[j], c), d[j], c),     \
                                  e[j], c))

#define FOLD(function, T, A, start, step, merge)                                                                       \
    RAPT_ROW_FOLD(function##_dense, T, A, start, step, merge)                                                          \
    FOLD_ROWS(function, T, A, step, merge)                                                                             \
    FOLD_COLUMNS(function, T, A, step)

/* m is the accumulator, a the element, c the center. */
#define SUM (m + (double)a)
#define WRAPPING_SUM (int64_t)((uint64_t)m + (uint64_t)a)
#define PRODUCT (m * (double)a)
#define WRAPPING_PRODUCT (int64_t)((uint64_t)m * (uint64_t)a)
#define GREATER_INTEGER (a > m ? a : m)
#define LESSER_INTEGER (a < m ? a : m)
#define SQUARES (m + ((double)a - c) * ((double)a - c))

/* A NaN among the elements is the largest and the smallest; of equal ones the first is taken. */
#define EXTREME(m, a, at_least) ((((m) != (m)) | ((m)at_least(a))) ? (m) : (a))

/* Of four elements of a column, one is converted. Conditions are joined by | and chosen by a product, which compilers
 * make the best vectors of. */
#define EXTREME_FOLD(function, T, start, beyond, at_least)                                                             \
    RAPT_ROW_EXTREME(function##_dense, T, start, a beyond m)                                                           \
    FOLD_ROWS(function, T, double, EXTREME(m, (double)a, at_least), EXTREME(m, (double)a, at_least))                   \
    static inline T function##_of_four(T a, T b, T d, T e)                                                             \
    {                                                                                                                  \
        const T first = b beyond a ? b : a, second = e beyond d ? e : d;                                               \
        const T one_or_nan = ((a != a) | (b != b) | (d != d) | (e != e)) ? (T)NAN : 1;                                 \
        return one_or_nan * (second beyond first ? second : first);                                                    \
    }                                                                                                                  \
    FOLD_COLUMNS_(function, T, double, EXTREME(m, (double)a, at_least),                                                \
                  EXTREME(m, (double)function##_of_four(a[j], b[j], d[j], e[j]), at_least))

#define EXPONENTIALS(T, EXP) (m + (double)EXP((T)((double)a - c)))

#define FLOATING_FOLDS(T, dtype, EXP)                                                                                  \
    FOLD(sum_##dtype, T, double, 0, SUM, SUM)                                                                          \
    FOLD(product_##dtype, T, double, 1, PRODUCT, PRODUCT)                                                              \
    EXTREME_FOLD(max_##dtype, T, -(T)INFINITY, >, >=)                                                                  \
    EXTREME_FOLD(min_##dtype, T, (T)INFINITY, <, <=)                                                                   \
    FOLD(squares_##dtype, T, double, 0, SQUARES, SUM)                                                                  \
    RAPT_ROW_EXPONENTIALS(sum_of_exponentials_##dtype, T, EXP)                                                         \
    static double exponentials_##dtype##_dense(int64_t count, const T *in, double c)                                   \
    {                                                                                                                  \
        return sum_of_exponentials_##dtype(count, in, (T)c, NULL);                                                     \
    }                                                                                                                  \
    FOLD_ROWS(exponentials_##dtype, T, double, EXPONENTIALS(T, EXP), SUM)                                              \
    FOLD_COLUMNS(exponentials_##dtype, T, double, EXPONENTIALS(T, EXP))

FLOATING_FOLDS(float, float32, rapt_math_expf)
FLOATING_FOLDS(double, float64, rapt_math_exp)

#define INTEGER_FOLDS(T, dtype)                                                                                        \
    FOLD(sum_##dtype, T, int64_t, 0, WRAPPING_SUM, WRAPPING_SUM)                                                       \
    FOLD(product_##dtype, T, int64_t, 1, WRAPPING_PRODUCT, WRAPPING_PRODUCT)                                           \
    FOLD(max_##dtype, T, int64_t, INT64_MIN, GREATER_INTEGER, GREATER_INTEGER)                                         \
    FOLD(min_##dtype, T, int64_t, INT64_MAX, LESSER_INTEGER, LESSER_INTEGER)

INTEGER_FOLDS(int64_t, int64)
INTEGER_FOLDS(int32_t, int32)
INTEGER_FOLDS(uint8_t, uint8)

#define FLOATING_ROW(name, loop) [RAPT_FLOAT32] = name##_float32_##loop, [RAPT_FLOAT64] = name##_float64_##loop
#define FULL_ROW(name, loop)                                                                                           \
    FLOATING_ROW(name, loop), [RAPT_INT64] = name##_int64_##loop, [RAPT_INT32] = name##_int32_##loop,                  \
                              [RAPT_UINT8] = name##_uint8_##loop, [RAPT_BOOL] = name##_uint8_##loop

void RAPT_AT_LEVEL(rapt_fill_reduce)(rapt_kernels *kernels)
{
    kernels->reduce = (rapt_reduce_kernels){
        .sum = {.rows = {FULL_ROW(sum, rows)}, .columns = {FULL_ROW(sum, columns)}},
        .product = {.rows = {FULL_ROW(product, rows)},
                    .columns = {FULL_ROW(product, columns)},
                    .number = 1,
                    .integer = 1},
        .max = {.rows = {FULL_ROW(max, rows)},
                .columns = {FULL_ROW(max, columns)},
                .number = (double)-INFINITY,
                .integer = INT64_MIN},
        .min = {.rows = {FULL_ROW(min, rows)},
                .columns = {FULL_ROW(min, columns)},
                .number = (double)INFINITY,
                .integer = INT64_MAX},
        .squares = {.rows = {FLOATING_ROW(squares, rows)}, .columns = {FLOATING_ROW(squares, columns)}},
        .exponentials = {.rows = {FLOATING_ROW(exponentials, rows)}, .columns = {FLOATING_ROW(exponentials, columns)}},
    };
}
