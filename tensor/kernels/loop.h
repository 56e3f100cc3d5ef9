/* The templates of elementwise loops: a formula for one element becomes a loop for dense, repeated and strided operands. */
#ifndef RAPT_KERNELS_LOOP_H
#define RAPT_KERNELS_LOOP_H

#include <stdint.h>

#include "tensor/kernels.h"

#define RAPT_SIMD _Pragma("omp simd")

/* out = formula of a, where `option` is the options' number (a double) converted to IN. */
#define RAPT_UNARY_LOOP(function, OUT, IN, formula)                                                                    \
    static void function(int64_t count, char *const *data, const int64_t *strides, const void *options)               \
    {                                                                                                                  \
        const IN option = options ? (IN) * (const double *)options : (IN)0;                                            \
        (void)option;                                                                                                  \
        if (strides[0] == sizeof(OUT) && strides[1] == sizeof(IN)) {                                                   \
            OUT *out = (OUT *)(void *)data[0];                                                                         \
            const IN *in = (const IN *)(void *)data[1];                                                                \
            RAPT_SIMD for (int64_t i = 0; i < count; i++)                                                              \
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

/* One case of a binary loop: a and b are read by the expressions read_a and read_b. */
#define RAPT_BINARY_CASE_(OUT, IN, formula, read_a, read_b)                                                            \
    {                                                                                                                  \
        OUT *out = (OUT *)(void *)data[0];                                                                             \
        const IN *in_a = (const IN *)(void *)data[1], *in_b = (const IN *)(void *)data[2];                             \
        const IN first_a = *in_a, first_b = *in_b;                                                                     \
        (void)first_a, (void)first_b, (void)in_a, (void)in_b;                                                          \
        RAPT_SIMD for (int64_t i = 0; i < count; i++)                                                                  \
        {                                                                                                              \
            const IN a = read_a, b = read_b;                                                                           \
            out[i] = (OUT)(formula);                                                                                   \
        }                                                                                                              \
        return;                                                                                                        \
    }

/* out = formula of a and b, where `option` is as above. */
#define RAPT_BINARY_LOOP(function, OUT, IN, formula)                                                                   \
    static void function(int64_t count, char *const *data, const int64_t *strides, const void *options)               \
    {                                                                                                                  \
        const IN option = options ? (IN) * (const double *)options : (IN)0;                                            \
        (void)option;                                                                                                  \
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

/* out = formula of a, b and c, dense or strided. */
#define RAPT_TERNARY_LOOP(function, OUT, A, B, C, formula)                                                             \
    static void function(int64_t count, char *const *data, const int64_t *strides, const void *options)               \
    {                                                                                                                  \
        const B option = options ? (B) * (const double *)options : (B)0;                                               \
        (void)option;                                                                                                  \
        if (strides[0] == sizeof(OUT) && strides[1] == sizeof(A) && strides[2] == sizeof(B) &&                         \
            strides[3] == sizeof(C)) {                                                                                 \
            OUT *out = (OUT *)(void *)data[0];                                                                         \
            const A *in_a = (const A *)(void *)data[1];                                                                \
            const B *in_b = (const B *)(void *)data[2];                                                                \
            const C *in_c = (const C *)(void *)data[3];                                                                \
            RAPT_SIMD for (int64_t i = 0; i < count; i++)                                                              \
            {                                                                                                          \
                const A a = in_a[i];                                                                                   \
                const B b = in_b[i];                                                                                   \
                const C c = in_c[i];                                                                                   \
                out[i] = (OUT)(formula);                                                                               \
            }                                                                                                          \
            return;                                                                                                    \
        }                                                                                                              \
        for (int64_t i = 0; i < count; i++) {                                                                          \
            const A a = *(const A *)(void *)(data[1] + i * strides[1]);                                                \
            const B b = *(const B *)(void *)(data[2] + i * strides[2]);                                                \
            const C c = *(const C *)(void *)(data[3] + i * strides[3]);                                                \
            *(OUT *)(void *)(data[0] + i * strides[0]) = (OUT)(formula);                                               \
        }                                                                                                              \
    }

#endif
