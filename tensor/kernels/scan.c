/* Scans along one axis: the index of the largest element, and running sums. */
#include <math.h>

#include "loop.h"

/* better: whether a is to replace the best so far, m. */
#define ARGMAX(T, dtype, better)                                                                                       \
    static void argmax_##dtype(int64_t count, char *const *data, const int64_t *strides, const void *options)          \
    {                                                                                                                  \
        const rapt_scan_options *o = options;                                                                          \
        for (int64_t j = 0; j < count; j++) {                                                                          \
            const char *in = data[1] + j * strides[1];                                                                 \
            int64_t index = 0;                                                                                         \
            T m = *(const T *)(const void *)in;                                                                        \
            for (int64_t i = 1; i < o->count; i++) {                                                                   \
                const T a = *(const T *)(const void *)(in + i * o->in_stride);                                         \
                if (better) m = a, index = i;                                                                          \
            }                                                                                                          \
            *(int64_t *)(void *)(data[0] + j * strides[0]) = index;                                                    \
        }                                                                                                              \
    }

/* The first NaN wins and stays. */
#define FLOATING_BETTER (!(a <= m) && m == m)

ARGMAX(float, float32, FLOATING_BETTER)
ARGMAX(double, float64, FLOATING_BETTER)
ARGMAX(int64_t, int64, a > m)
ARGMAX(int32_t, int32, a > m)
ARGMAX(uint8_t, uint8, a > m)

#define CUMSUM(OUT, IN, A, dtype)                                                                                      \
    static void cumsum_##dtype(int64_t count, char *const *data, const int64_t *strides, const void *options)          \
    {                                                                                                                  \
        const rapt_scan_options *o = options;                                                                          \
        for (int64_t j = 0; j < count; j++) {                                                                          \
            char *out = data[0] + j * strides[0];                                                                      \
            const char *in = data[1] + j * strides[1];                                                                 \
            A total = 0;                                                                                               \
            for (int64_t k = 0; k < o->count; k++) {                                                                   \
                const int64_t i = o->reverse ? o->count - 1 - k : k;                                                   \
                total += (A) * (const IN *)(const void *)(in + i * o->in_stride);                                      \
                *(OUT *)(void *)(out + i * o->out_stride) = (OUT)total;                                                \
            }                                                                                                          \
        }                                                                                                              \
    }

CUMSUM(float, float, double, float32)
CUMSUM(double, double, double, float64)
CUMSUM(int64_t, int64_t, uint64_t, int64)
CUMSUM(int64_t, int32_t, uint64_t, int32)
CUMSUM(int64_t, uint8_t, uint64_t, uint8)

#define FULL_ROW(name)                                                                                                 \
    {                                                                                                                  \
        [RAPT_FLOAT32] = name##_float32, [RAPT_FLOAT64] = name##_float64, [RAPT_INT64] = name##_int64,                 \
        [RAPT_INT32] = name##_int32, [RAPT_UINT8] = name##_uint8, [RAPT_BOOL] = name##_uint8                           \
    }

void RAPT_AT_LEVEL(rapt_fill_scan)(rapt_kernels *kernels)
{
    kernels->scan = (rapt_scan_kernels){.argmax = FULL_ROW(argmax), .cumsum = FULL_ROW(cumsum)};
}
