/* Turning pairs of numbers by given angles: rotary positions. */
#include "loop.h"

/* (a, b) → (a cos − b sin, a sin + b cos), for the pairs that lie `between` elements apart, each `step` after the
 * last */
#define TURN(T, step, between)                                                                                         \
    RAPT_SIMD for (int64_t j = 0; j < half; j++)                                                                       \
    {                                                                                                                  \
        const T a = x[(step)*j], b = x[(step)*j + (between)];                                                          \
        const T s = sign * sine[j];                                                                                    \
        out[(step)*j] = RAPT_MULTIPLY_ADD(a, cosine[j], -b * s);                                                       \
        out[(step)*j + (between)] = RAPT_MULTIPLY_ADD(a, s, b * cosine[j]);                                            \
    }

#define ROTATE(T, dtype)                                                                                               \
    static void rotate_##dtype(int64_t count, char *const *data, const int64_t *strides, const void *options)          \
    {                                                                                                                  \
        const rapt_rotate_options *o = options;                                                                        \
        const int64_t half = o->pairs;                                                                                 \
        const T sign = o->back ? -1 : 1;                                                                               \
        for (int64_t i = 0; i < count; i++) {                                                                          \
            T *restrict out = (T *)(void *)(data[0] + i * strides[0]);                                                 \
            const T *restrict x = (const T *)(void *)(data[1] + i * strides[1]);                                       \
            const T *restrict cosine = (const T *)(void *)(data[2] + i * strides[2]), *restrict sine = cosine + half;  \
            if (o->halves) {                                                                                           \
                TURN(T, 1, half)                                                                                       \
            } else {                                                                                                   \
                TURN(T, 2, 1)                                                                                          \
            }                                                                                                          \
        }                                                                                                              \
    }

ROTATE(float, float32)
ROTATE(double, float64)

void RAPT_AT_LEVEL(rapt_fill_rotate)(rapt_kernels *kernels)
{
    kernels->rotate = (rapt_rotate_kernels){.rotate = {RAPT_FLOATING_ROW(rotate)}};
}
