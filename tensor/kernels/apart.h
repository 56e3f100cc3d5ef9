/* Loops that have one way alone, over dense elements: those that lie apart are brought together, some at a time. */
#ifndef RAPT_KERNELS_APART_H
#define RAPT_KERNELS_APART_H

#include <string.h>

#include "loop.h"
#include "tensor/map.h"

static inline bool are_dense(int operands, const int64_t *strides, int64_t element)
{
    for (int k = 0; k < operands; k++)
        if (strides[k] != element) return false;
    return true;
}

#define COPY_APART(T)                                                                                                  \
    {                                                                                                                  \
        T *to_element = (T *)(void *)to;                                                                               \
        const T *from_element = (const T *)(const void *)from, number = *from_element;                                 \
        if (to_stride == sizeof(T) && from_stride == 0)                                                                \
            RAPT_SIMD for (int64_t i = 0; i < count; i++) to_element[i] = number;                                      \
        else if (to_stride == sizeof(T))                                                                               \
            RAPT_SIMD for (int64_t i = 0; i < count; i++) to_element[i] =                                              \
                *(const T *)(const void *)(from + i * from_stride);                                                    \
        else                                                                                                           \
            for (int64_t i = 0; i < count; i++) *(T *)(void *)(to + i * to_stride) = from_element[i];                  \
    }

/* From or to dense elements, of which there is one or more. */
static inline void copy_apart(int64_t count, int64_t element, char *to, int64_t to_stride, const char *from,
                              int64_t from_stride)
{
    if (element == sizeof(float))
        COPY_APART(float)
    else
        COPY_APART(double)
}

/* The loop for elements of 4 or 8 bytes. Operands from `first_read` on are read, and those in the set `written` (bit k
 * of operand k) are written. */
static __attribute__((noinline)) void run_apart(rapt_loop *loop, int operands, int first_read, unsigned written,
                                                int64_t element, int64_t count, char *const *data,
                                                const int64_t *strides, const void *options)
{
    enum { at_once = 256 };
    _Alignas(64) union {
        float floats[at_once];
        double doubles[at_once];
    } together[RAPT_MAX_OPERANDS];
    char *at[RAPT_MAX_OPERANDS];
    int64_t steps[RAPT_MAX_OPERANDS];
    for (int k = 0; k < operands; k++) at[k] = (char *)&together[k], steps[k] = element;
    for (int64_t first = 0; first < count; first += at_once) {
        const int64_t length = smaller_of(count - first, at_once);
        for (int k = 0; k < operands; k++) {
            if (strides[k] == element)
                at[k] = data[k] + first * element;
            else if (k >= first_read && (first == 0 || strides[k] != 0)) /* one that is repeated stays */
                copy_apart(length, element, at[k], element, data[k] + first * strides[k], strides[k]);
        }
        loop(length, at, steps, options);
        for (int k = 0; k < operands; k++)
            if (written >> k & 1 && strides[k] != element)
                copy_apart(length, element, data[k] + first * strides[k], strides[k], at[k], element);
    }
}

/* out = formula of a and perhaps `option`, a formula that takes longer than to bring its elements together. */
#define RAPT_UNARY_FUNCTION(function, T, formula)                                                                      \
    static void function(int64_t count, char *const *data, const int64_t *strides, const void *options)                \
    {                                                                                                                  \
        if (!are_dense(2, strides, sizeof(T))) {                                                                       \
            run_apart(function, 2, 1, 1, sizeof(T), count, data, strides, options);                                    \
            return;                                                                                                    \
        }                                                                                                              \
        RAPT_OPTION(T);                                                                                                \
        T *out = (T *)(void *)data[0];                                                                                 \
        const T *in = (const T *)(void *)data[1];                                                                      \
        RAPT_SIMD for (int64_t i = 0; i < count; i++)                                                                  \
        {                                                                                                              \
            const T a = in[i];                                                                                         \
            out[i] = (T)(formula);                                                                                     \
        }                                                                                                              \
    }

/* The same of a and b. */
#define RAPT_BINARY_FUNCTION(function, T, formula)                                                                     \
    static void function(int64_t count, char *const *data, const int64_t *strides, const void *options)                \
    {                                                                                                                  \
        RAPT_OPTION(T);                                                                                                \
        if (are_dense(3, strides, sizeof(T)) && count > 0) RAPT_BINARY_CASE_(T, T, formula, in_a[i], in_b[i])          \
        run_apart(function, 3, 1, 1, sizeof(T), count, data, strides, options);                                        \
    }

#endif
