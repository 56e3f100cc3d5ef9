/* Scans along one axis: the index of the largest or smallest element, running sums and products, and recurrences. */
#include <math.h>

#include "row.h"

/* better: whether a is to replace the best so far, m. A dense row is searched for its extreme element. */
#define ARG_EXTREME(name, T, dtype, better, equal)                                                                     \
    static int64_t dense_##name##_##dtype(int64_t count, const T *in)                                                  \
    {                                                                                                                  \
        const T m = extreme_of_##name##_##dtype(count, in, 0);                                                         \
        for (int64_t i = 0;; i++) {                                                                                    \
            const T a = in[i];                                                                                         \
            if (equal) return i;                                                                                       \
        }                                                                                                              \
    }                                                                                                                  \
                                                                                                                       \
    static int64_t strided_##name##_##dtype(int64_t count, int64_t stride, const char *in)                             \
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
    static void name##_##dtype(int64_t count, char *const *data, const int64_t *strides, const void *options)          \
    {                                                                                                                  \
        const rapt_scan_options *o = options;                                                                          \
        for (int64_t j = 0; j < count; j++) {                                                                          \
            const char *in = data[1] + j * strides[1];                                                                 \
            *(int64_t *)(void *)(data[0] + j * strides[0]) =                                                           \
                o->in_stride == sizeof(T) ? dense_##name##_##dtype(o->count, (const T *)(const void *)in)              \
                                          : strided_##name##_##dtype(o->count, o->in_stride, in);                      \
        }                                                                                                              \
    }

/* The first NaN wins and stays. */
#define FLOATING_EXTREME(name, T, dtype, start, beyond, better)                                                        \
    RAPT_ROW_EXTREME(extreme_of_##name##_##dtype, T, start, beyond)                                                    \
    ARG_EXTREME(name, T, dtype, better, a == m || a != a)
#define FLOATING_EXTREMES(T, dtype)                                                                                    \
    FLOATING_EXTREME(argmax, T, dtype, -(T)INFINITY, a > m, !(a <= m) && m == m)                                       \
    FLOATING_EXTREME(argmin, T, dtype, (T)INFINITY, a < m, !(a >= m) && m == m)
#define INTEGER_EXTREME(name, T, dtype, start, better)                                                                 \
    RAPT_ROW_FOLD(extreme_of_##name##_##dtype, T, T, start, ((better) ? a : m), ((better) ? a : m))                    \
    ARG_EXTREME(name, T, dtype, better, a == m)
#define INTEGER_EXTREMES(T, dtype, smallest, largest)                                                                  \
    INTEGER_EXTREME(argmax, T, dtype, smallest, a > m)                                                                 \
    INTEGER_EXTREME(argmin, T, dtype, largest, a < m)

FLOATING_EXTREMES(float, float32)
FLOATING_EXTREMES(double, float64)
INTEGER_EXTREMES(int64_t, int64, INT64_MIN, INT64_MAX)
INTEGER_EXTREMES(int32_t, int32, INT32_MIN, INT32_MAX)
INTEGER_EXTREMES(uint8_t, uint8, 0, UINT8_MAX)

enum { columns_at_once = 64, rows_at_once = 2 };

#define AT(T, pointer) *(T *)(void *)(pointer)
#define READ_AT(T, pointer) *(const T *)(const void *)(pointer)

/* Columns advance together, so that memory is read as whole cache lines. */
#define RUNNING(name, OUT, IN, A, dtype, start, operator)                                                              \
    static void name##_row_##dtype(const rapt_scan_options *o, char *out, const char *in)                              \
    {                                                                                                                  \
        A total = start;                                                                                               \
        for (int64_t k = 0; k < o->count; k++) {                                                                       \
            const int64_t i = o->reverse ? o->count - 1 - k : k;                                                       \
            total operator(A) READ_AT(IN, in + i * o->in_stride);                                                      \
            AT(OUT, out + i * o->out_stride) = (OUT)total;                                                             \
        }                                                                                                              \
    }                                                                                                                  \
                                                                                                                       \
    static void name##_columns_##dtype(const rapt_scan_options *o, int64_t columns, char *const *data,                 \
                                       const int64_t *strides)                                                         \
    {                                                                                                                  \
        A totals[columns_at_once];                                                                                     \
        for (int64_t j = 0; j < columns; j++) totals[j] = start;                                                       \
        for (int64_t k = 0; k < o->count; k++) {                                                                       \
            const int64_t i = o->reverse ? o->count - 1 - k : k;                                                       \
            char *out = data[0] + i * o->out_stride;                                                                   \
            const char *in = data[1] + i * o->in_stride;                                                               \
            for (int64_t j = 0; j < columns; j++) {                                                                    \
                totals[j] operator(A) READ_AT(IN, in + j * strides[1]);                                                \
                AT(OUT, out + j * strides[0]) = (OUT)totals[j];                                                        \
            }                                                                                                          \
        }                                                                                                              \
    }                                                                                                                  \
                                                                                                                       \
    static void name##_##dtype(int64_t count, char *const *data, const int64_t *strides, const void *options)          \
    {                                                                                                                  \
        const rapt_scan_options *o = options;                                                                          \
        const bool by_columns = count > 1 && strides[1] < o->in_stride;                                                \
        int64_t columns = 1;                                                                                           \
        for (int64_t first = 0; first < count; first += columns) {                                                     \
            char *rest[] = {data[0] + first * strides[0], data[1] + first * strides[1]};                               \
            if (by_columns) {                                                                                          \
                columns = count - first < columns_at_once ? count - first : columns_at_once;                           \
                name##_columns_##dtype(o, columns, rest, strides);                                                     \
            } else {                                                                                                   \
                name##_row_##dtype(o, rest[0], rest[1]);                                                               \
            }                                                                                                          \
        }                                                                                                              \
    }

#define RUNNING_BOTH(OUT, IN, A, dtype)                                                                                \
    RUNNING(cumsum, OUT, IN, A, dtype, 0, +=)                                                                          \
    RUNNING(cumprod, OUT, IN, A, dtype, 1, *=)

RUNNING_BOTH(float, float, double, float32)
RUNNING_BOTH(double, double, double, float64)
RUNNING_BOTH(int64_t, int64_t, uint64_t, int64)
RUNNING_BOTH(int64_t, int32_t, uint64_t, int32)
RUNNING_BOTH(int64_t, uint8_t, uint64_t, uint8)

/* Of one line or of some rows the numbers stay in registers; a small library does without that. */
#ifdef __OPTIMIZE_SIZE__
#define OF_LINES static __attribute__((noinline))
#else
#define OF_LINES static inline __attribute__((always_inline))
#endif

/* y = in + factor · the y before; the first y is the first of in. data: y, in, factor. Lines advance together: columns
 * as above, and rows so that their sums do not wait for one another. */
#define RECURRENCE(T, dtype)                                                                                           \
    OF_LINES void recurrence_lines_##dtype(const rapt_scan_options *o, int64_t lines, char *const *data,               \
                                           const int64_t *strides)                                                     \
    {                                                                                                                  \
        double y[columns_at_once] = {0};                                                                               \
        for (int64_t k = 0; k < o->count; k++) {                                                                       \
            const int64_t i = o->reverse ? o->count - 1 - k : k;                                                       \
            char *out = data[0] + i * o->out_stride;                                                                   \
            const char *in = data[1] + i * o->in_stride, *factor = data[2] + i * o->factor_stride;                     \
            for (int64_t j = 0; j < lines; j++) {                                                                      \
                const double a = (double)READ_AT(T, in + j * strides[1]);                                              \
                y[j] = k == 0 ? a : a + (double)READ_AT(T, factor + j * strides[2]) * y[j];                            \
                AT(T, out + j * strides[0]) = (T)y[j];                                                                 \
            }                                                                                                          \
        }                                                                                                              \
    }                                                                                                                  \
                                                                                                                       \
    static void recurrence_##dtype(int64_t count, char *const *data, const int64_t *strides, const void *options)      \
    {                                                                                                                  \
        const rapt_scan_options *o = options;                                                                          \
        const int64_t together = strides[1] < o->in_stride ? columns_at_once : rows_at_once;                           \
        for (int64_t first = 0; first < count; first += together) {                                                    \
            const int64_t lines = smaller_of(count - first, together);                                                 \
            char *rest[3];                                                                                             \
            for (int k = 0; k < 3; k++) rest[k] = data[k] + first * strides[k];                                        \
            if (lines == 1)                                                                                            \
                recurrence_lines_##dtype(o, 1, rest, strides);                                                         \
            else if (lines == rows_at_once)                                                                            \
                recurrence_lines_##dtype(o, rows_at_once, rest, strides);                                              \
            else                                                                                                       \
                recurrence_lines_##dtype(o, lines, rest, strides);                                                     \
        }                                                                                                              \
    }

RECURRENCE(float, float32)
RECURRENCE(double, float64)

void RAPT_AT_LEVEL(rapt_fill_scan)(rapt_kernels *kernels)
{
    kernels->scan = (rapt_scan_kernels){.argmax = RAPT_FULL_ROW(argmax),
                                        .argmin = RAPT_FULL_ROW(argmin),
                                        .cumsum = RAPT_FULL_ROW(cumsum),
                                        .cumprod = RAPT_FULL_ROW(cumprod),
                                        .recurrence = {RAPT_FLOATING_ROW(recurrence)}};
}
