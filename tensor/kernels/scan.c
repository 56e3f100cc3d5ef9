/* Scans along one axis: the index of the largest element, and running sums. */
#include <math.h>

#include "row.h"

/* better: whether a is to replace the best so far, m. A dense row is searched for its largest element. */
#define ARGMAX(T, dtype, start, larger, better, equal)                                                                 \
    RAPT_ROW_FOLD(largest_##dtype, T, T, start, larger, larger)                                                        \
                                                                                                                       \
    static int64_t dense_argmax_##dtype(int64_t count, const T *in)                                                    \
    {                                                                                                                  \
        const T m = largest_##dtype(count, in, 0);                                                                     \
        for (int64_t i = 0;; i++) {                                                                                    \
            const T a = in[i];                                                                                         \
            if (equal) return i;                                                                                       \
        }                                                                                                              \
    }                                                                                                                  \
                                                                                                                       \
    static int64_t strided_argmax_##dtype(int64_t count, int64_t stride, const char *in)                               \
    {                                                                                                                  \
        int64_t index = 0;                                                                                             \
        T m = *(const T *)(const void *)in;                                                                            \
        for (int64_t i = 1; i < count; i++) {                                                                          \
            const T a = *(const T *)(const void *)(in + i * stride);                                                   \
            if (better) m = a, index = i;                                                                              \
        }                                                                                                              \
        return index;                                                                                                  \
    }                                                                                                                  \
                                                                                                                       \
    static void argmax_##dtype(int64_t count, char *const *data, const int64_t *strides, const void *options)          \
    {                                                                                                                  \
        const rapt_scan_options *o = options;                                                                          \
        for (int64_t j = 0; j < count; j++) {                                                                          \
            const char *in = data[1] + j * strides[1];                                                                 \
            *(int64_t *)(void *)(data[0] + j * strides[0]) =                                                           \
                o->in_stride == sizeof(T) ? dense_argmax_##dtype(o->count, (const T *)(const void *)in)                \
                                          : strided_argmax_##dtype(o->count, o->in_stride, in);                        \
        }                                                                                                              \
    }

/* The first NaN wins and stays. */
#define FLOATING_ARGMAX(T, dtype)                                                                                      \
    ARGMAX(T, dtype, -(T)INFINITY, RAPT_GREATER(a, m), !(a <= m) && m == m, a == m || a != a)
#define INTEGER_ARGMAX(T, dtype, start) ARGMAX(T, dtype, start, (a > m ? a : m), a > m, a == m)

FLOATING_ARGMAX(float, float32)
FLOATING_ARGMAX(double, float64)
INTEGER_ARGMAX(int64_t, int64, INT64_MIN)
INTEGER_ARGMAX(int32_t, int32, INT32_MIN)
INTEGER_ARGMAX(uint8_t, uint8, 0)

enum { columns_at_once = 64 };

#define AT(T, pointer) *(T *)(void *)(pointer)
#define READ_AT(T, pointer) *(const T *)(const void *)(pointer)

/* Columns advance together, so that memory is read as whole cache lines. */
#define CUMSUM(OUT, IN, A, dtype)                                                                                      \
    static void cumsum_row_##dtype(const rapt_scan_options *o, char *out, const char *in)                              \
    {                                                                                                                  \
        A total = 0;                                                                                                   \
        for (int64_t k = 0; k < o->count; k++) {                                                                       \
            const int64_t i = o->reverse ? o->count - 1 - k : k;                                                       \
            total += (A)READ_AT(IN, in + i * o->in_stride);                                                            \
            AT(OUT, out + i * o->out_stride) = (OUT)total;                                                             \
        }                                                                                                              \
    }                                                                                                                  \
                                                                                                                       \
    static void cumsum_columns_##dtype(const rapt_scan_options *o, int64_t columns, char *const *data,                 \
                                       const int64_t *strides)                                                         \
    {                                                                                                                  \
        A totals[columns_at_once] = {0};                                                                               \
        for (int64_t k = 0; k < o->count; k++) {                                                                       \
            const int64_t i = o->reverse ? o->count - 1 - k : k;                                                       \
            char *out = data[0] + i * o->out_stride;                                                                   \
            const char *in = data[1] + i * o->in_stride;                                                               \
            for (int64_t j = 0; j < columns; j++) {                                                                    \
                totals[j] += (A)READ_AT(IN, in + j * strides[1]);                                                      \
                AT(OUT, out + j * strides[0]) = (OUT)totals[j];                                                        \
            }                                                                                                          \
        }                                                                                                              \
    }                                                                                                                  \
                                                                                                                       \
    static void cumsum_##dtype(int64_t count, char *const *data, const int64_t *strides, const void *options)          \
    {                                                                                                                  \
        const rapt_scan_options *o = options;                                                                          \
        const bool by_columns = strides[1] < o->in_stride;                                                             \
        int64_t columns = 1;                                                                                           \
        for (int64_t first = 0; first < count; first += columns) {                                                     \
            char *rest[] = {data[0] + first * strides[0], data[1] + first * strides[1]};                               \
            if (by_columns) {                                                                                          \
                columns = count - first < columns_at_once ? count - first : columns_at_once;                           \
                cumsum_columns_##dtype(o, columns, rest, strides);                                                     \
            } else {                                                                                                   \
                cumsum_row_##dtype(o, rest[0], rest[1]);                                                               \
            }                                                                                                          \
        }                                                                                                              \
    }

CUMSUM(float, float, double, float32)
CUMSUM(double, double, double, float64)
CUMSUM(int64_t, int64_t, uint64_t, int64)
CUMSUM(int64_t, int32_t, uint64_t, int32)
CUMSUM(int64_t, uint8_t, uint64_t, uint8)

void RAPT_AT_LEVEL(rapt_fill_scan)(rapt_kernels *kernels)
{
    kernels->scan = (rapt_scan_kernels){.argmax = RAPT_FULL_ROW(argmax), .cumsum = RAPT_FULL_ROW(cumsum)};
}
