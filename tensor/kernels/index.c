/* Elements read from, written and added to places that indices name. */
#include <string.h>

#include "loop.h"
#include "stream.h"

/* out = in at the index. data: out, in, indices (int64). options: the bytes from one index's place to the next
 * one's. */
#define GATHER(T, dtype)                                                                                               \
    static void gather_##dtype(int64_t count, char *const *data, const int64_t *strides, const void *options)          \
    {                                                                                                                  \
        const int64_t step = *(const int64_t *)options;                                                                \
        if (strides[2] == 0 && strides[0] == sizeof(T) && strides[1] == sizeof(T)) {                                   \
            memcpy(data[0], data[1] + *(const int64_t *)(void *)data[2] * step, (size_t)count * sizeof(T));            \
            return;                                                                                                    \
        }                                                                                                              \
        for (int64_t i = 0; i < count; i++) {                                                                          \
            const int64_t index = *(const int64_t *)(void *)(data[2] + i * strides[2]);                                \
            *(T *)(void *)(data[0] + i * strides[0]) = *(const T *)(void *)(data[1] + i * strides[1] + index * step);  \
        }                                                                                                              \
    }

GATHER(float, float32)
GATHER(double, float64)
GATHER(int64_t, int64)
GATHER(int32_t, int32)
GATHER(uint8_t, uint8)

/* out at the index = in or += in, one after the other. data and options as above. */
#define SCATTER(name, T, dtype, operator)                                                                              \
    static void name##_##dtype(int64_t count, char *const *data, const int64_t *strides, const void *options)          \
    {                                                                                                                  \
        const int64_t step = *(const int64_t *)options;                                                                \
        if (strides[2] == 0 && strides[0] == sizeof(T) && strides[1] == sizeof(T)) {                                   \
            T *out = (T *)(void *)(data[0] + *(const int64_t *)(void *)data[2] * step);                                \
            const T *in = (const T *)(void *)data[1];                                                                  \
            RAPT_SIMD_OF(T) for (int64_t i = 0; i < count; i++) out[i] operator in[i];                                 \
            return;                                                                                                    \
        }                                                                                                              \
        for (int64_t i = 0; i < count; i++) {                                                                          \
            char *out = data[0] + i * strides[0] + *(const int64_t *)(void *)(data[2] + i * strides[2]) * step;        \
            *(T *)(void *)out operator*(const T *)(void *)(data[1] + i * strides[1]);                                  \
        }                                                                                                              \
    }

SCATTER(scatter_add, float, float32, +=)
SCATTER(scatter_add, double, float64, +=)
SCATTER(scatter, float, float32, =)
SCATTER(scatter, double, float64, =)
SCATTER(scatter, int64_t, int64, =)
SCATTER(scatter, int32_t, int32, =)
SCATTER(scatter, uint8_t, uint8, =)

/* A row that is chosen once or more often, and zeros. */
#define ADD_ROWS(T, dtype)                                                                                             \
    static void add_rows_##dtype(int64_t first, int64_t last, int64_t size, const int64_t *starts,                     \
                                 const int64_t *order, const void *g, void *out_data, bool accumulate, bool is_large)  \
    {                                                                                                                  \
        for (int64_t row = first; row < last; row++) {                                                                 \
            T *restrict out = (T *)out_data + row * size;                                                              \
            int64_t k = starts[row];                                                                                   \
            if (!accumulate && k == starts[row + 1]) {                                                                 \
                if (is_large)                                                                                          \
                    rapt_stream_zeros(out, size *(int64_t)sizeof(T));                                                  \
                else                                                                                                   \
                    memset(out, 0, (size_t)size * sizeof(T));                                                          \
            } else if (!accumulate) {                                                                                  \
                const T *restrict in = (const T *)g + order[k++] * size;                                               \
                RAPT_SIMD for (int64_t i = 0; i < size; i++) out[i] = in[i] + 0; /* −0 becomes 0, as in a sum */     \
            }                                                                                                          \
            for (; k < starts[row + 1]; k++) {                                                                         \
                const T *restrict in = (const T *)g + order[k] * size;                                                 \
                RAPT_SIMD for (int64_t i = 0; i < size; i++) out[i] += in[i];                                          \
            }                                                                                                          \
        }                                                                                                              \
        if (is_large) rapt_stream_end();                                                                               \
    }

ADD_ROWS(float, float32)
ADD_ROWS(double, float64)

void RAPT_AT_LEVEL(rapt_fill_index)(rapt_kernels *kernels)
{
    kernels->index = (rapt_index_kernels){
        .gather = RAPT_FULL_ROW(gather),
        .scatter = RAPT_FULL_ROW(scatter),
        .scatter_add = {RAPT_FLOATING_ROW(scatter_add)},
        .add_rows = {add_rows_float32, add_rows_float64},
    };
}
