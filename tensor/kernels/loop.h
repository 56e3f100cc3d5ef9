/* What all kernels share: the templates of elementwise loops, by which a formula for one element becomes a loop for
 * dense, repeated and strided operands. */
#ifndef RAPT_KERNELS_LOOP_H
#define RAPT_KERNELS_LOOP_H

#include <stdint.h>

#include "multiply_add.h"
#include "tensor/kernels.h"

#define RAPT_PRAGMA(text) _Pragma(#text)
#define RAPT_SIMD RAPT_PRAGMA(omp simd)

/* Over elements of the type: a small library has vectors of floating types alone. */
#ifdef __OPTIMIZE_SIZE__
#define RAPT_SIMD_OF(T) RAPT_PRAGMA(omp simd if ((T)0.5 != 0))
#else
#define RAPT_SIMD_OF(T) RAPT_SIMD
#endif

static inline int64_t smaller_of(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t larger_of(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static inline int64_t divide_up(int64_t a, int64_t b)
{
    return a / b + (a % b > 0);
}

/* out = formula of a, where `prepare` may declare constants for the formula from the options. */
#define RAPT_UNARY_LOOP_WITH(function, OUT, IN, prepare, formula)                                                      \
    static void function(int64_t count, char *const *data, const int64_t *strides, const void *options)                \
    {                                                                                                                  \
        (void)options;                                                                                                 \
        prepare;                                                                                                       \
        OUT *out = (OUT *)(void *)data[0];                                                                             \
        const IN *in = (const IN *)(void *)data[1];                                                                    \
        if (strides[0] == sizeof(OUT) && strides[1] == sizeof(IN)) {                                                   \
            RAPT_SIMD_OF(IN) for (int64_t i = 0; i < count; i++)                                                       \
            {                                                                                                          \
                const IN a = in[i];                                                                                    \
                out[i] = (OUT)(formula);                                                                               \
            }                                                                                                          \
            return;                                                                                                    \
        }                                                                                                              \
        for (int64_t i = 0; i < count; i++) {                                                                          \
            const IN a = *(const IN *)(void *)(data[1] + i * strides[1]);                                              \
            *(OUT *)(void *)(data[0] + i * strides[0]) = (OUT)(formula);                                               \
        }                                                                                                              \
    }

/* The options' number (a double, 0 without options) converted to the type of the inputs. */
#define RAPT_OPTION(IN)                                                                                                \
    const IN option = options ? (IN) * (const double *)options : (IN)0;                                                \
    (void)option

/* out = formula of a and perhaps `option`. */
#define RAPT_UNARY_LOOP(function, OUT, IN, formula) RAPT_UNARY_LOOP_WITH(function, OUT, IN, RAPT_OPTION(IN), formula)

/* One case of a binary loop: a and b are read by the expressions read_a and read_b. */
#define RAPT_BINARY_CASE_(OUT, IN, formula, read_a, read_b)                                                            \
    {                                                                                                                  \
        OUT *out = (OUT *)(void *)data[0];                                                                             \
        const IN *in_a = (const IN *)(void *)data[1], *in_b = (const IN *)(void *)data[2];                             \
        const IN first_a = *in_a, first_b = *in_b;                                                                     \
        (void)first_a, (void)first_b, (void)in_a, (void)in_b;                                                          \
        RAPT_SIMD_OF(IN) for (int64_t i = 0; i < count; i++)                                                           \
        {                                                                                                              \
            const IN a = read_a, b = read_b;                                                                           \
            out[i] = (OUT)(formula);                                                                                   \
        }                                                                                                              \
        return;                                                                                                        \
    }

/* out = formula of a and b, where `prepare` is as above. */
#define RAPT_BINARY_LOOP_WITH(function, OUT, IN, prepare, formula)                                                     \
    static void function(int64_t count, char *const *data, const int64_t *strides, const void *options)                \
    {                                                                                                                  \
        (void)options;                                                                                                 \
        prepare;                                                                                                       \
        const bool dense_a = strides[1] == sizeof(IN), dense_b = strides[2] == sizeof(IN);                             \
        if (strides[0] == sizeof(OUT) && count > 0) {                                                                  \
            if (dense_a && dense_b) RAPT_BINARY_CASE_(OUT, IN, formula, in_a[i], in_b[i])                              \
            if (dense_a && strides[2] == 0) RAPT_BINARY_CASE_(OUT, IN, formula, in_a[i], first_b)                      \
            if (strides[1] == 0 && dense_b) RAPT_BINARY_CASE_(OUT, IN, formula, first_a, in_b[i])                      \
        }                                                                                                              \
        for (int64_t i = 0; i < count; i++) {                                                                          \
            const IN a = *(const IN *)(void *)(data[1] + i * strides[1]);                                              \
            const IN b = *(const IN *)(void *)(data[2] + i * strides[2]);                                              \
            *(OUT *)(void *)(data[0] + i * strides[0]) = (OUT)(formula);                                               \
        }                                                                                                              \
    }

/* out = formula of a and b and perhaps `option`. */
#define RAPT_BINARY_LOOP(function, OUT, IN, formula) RAPT_BINARY_LOOP_WITH(function, OUT, IN, RAPT_OPTION(IN), formula)

/* One case of a choosing loop: a and b are read by the expressions read_a and read_b. */
#define RAPT_CHOICE_CASE_(T, read_a, read_b)                                                                           \
    {                                                                                                                  \
        T *out = (T *)(void *)data[0];                                                                                 \
        const uint8_t *condition = (const uint8_t *)(void *)data[1];                                                   \
        const T *in_a = (const T *)(void *)data[2], *in_b = (const T *)(void *)data[3];                                \
        const T first_a = *in_a, first_b = *in_b;                                                                      \
        (void)first_a, (void)first_b;                                                                                  \
        RAPT_SIMD_OF(T) for (int64_t i = 0; i < count; i++)                                                            \
        {                                                                                                              \
            const T a = read_a, b = read_b;                                                                            \
            out[i] = condition[i] ? a : b;                                                                             \
        }                                                                                                              \
        return;                                                                                                        \
    }

/* out = condition ? a : b, where the condition has one byte an element. */
#define RAPT_CHOICE_LOOP(function, T)                                                                                  \
    static void function(int64_t count, char *const *data, const int64_t *strides, const void *options)                \
    {                                                                                                                  \
        (void)options;                                                                                                 \
        const bool dense_a = strides[2] == sizeof(T), dense_b = strides[3] == sizeof(T);                               \
        if (strides[0] == sizeof(T) && strides[1] == 0 && count > 0) { /* one of the two for the whole row */          \
            const int chosen = *data[1] ? 2 : 3;                                                                       \
            const T *in = (const T *)(void *)data[chosen], number = *in;                                               \
            T *out = (T *)(void *)data[0];                                                                             \
            if (strides[chosen] == 0) {                                                                                \
                RAPT_SIMD_OF(T) for (int64_t i = 0; i < count; i++) out[i] = number;                                   \
                return;                                                                                                \
            }                                                                                                          \
            if (strides[chosen] == sizeof(T)) {                                                                        \
                RAPT_SIMD_OF(T) for (int64_t i = 0; i < count; i++) out[i] = in[i];                                    \
                return;                                                                                                \
            }                                                                                                          \
        }                                                                                                              \
        if (strides[0] == sizeof(T) && strides[1] == 1 && count > 0) {                                                 \
            if (dense_a && dense_b) RAPT_CHOICE_CASE_(T, in_a[i], in_b[i])                                             \
            if (dense_a && strides[3] == 0) RAPT_CHOICE_CASE_(T, in_a[i], first_b)                                     \
            if (strides[2] == 0 && dense_b) RAPT_CHOICE_CASE_(T, first_a, in_b[i])                                     \
        }                                                                                                              \
        for (int64_t i = 0; i < count; i++) {                                                                          \
            const T a = *(const T *)(void *)(data[2] + i * strides[2]);                                                \
            const T b = *(const T *)(void *)(data[3] + i * strides[3]);                                                \
            *(T *)(void *)(data[0] + i * strides[0]) = data[1][i * strides[1]] ? a : b;                                \
        }                                                                                                              \
    }

/* A row of a table: a loop for each dtype, bool sharing uint8's loop where it has one. */
#define RAPT_INTEGER_ROW(name) [RAPT_INT64] = name##_int64, [RAPT_INT32] = name##_int32, [RAPT_UINT8] = name##_uint8
#define RAPT_FLOATING_ROW(name) [RAPT_FLOAT32] = name##_float32, [RAPT_FLOAT64] = name##_float64
#define RAPT_NUMBER_ROW(name)                                                                                          \
    {                                                                                                                  \
        RAPT_FLOATING_ROW(name), RAPT_INTEGER_ROW(name)                                                                \
    }
#define RAPT_FULL_ROW(name)                                                                                            \
    {                                                                                                                  \
        RAPT_FLOATING_ROW(name), RAPT_INTEGER_ROW(name), [RAPT_BOOL] = name##_uint8                                    \
    }

#endif
