/* Pools: the largest number and the mean of each window of images, some neighbouring windows at once. */
#include <math.h>
#include <stdatomic.h>

#include "loop.h"
#include "vector_width.h"

/* So few windows are worked on one by one, and all of them where vectors do not choose between numbers. */
enum { windows_at_once = 64, few_windows = RAPT_VECTOR_BYTES > 16 ? 8 : windows_at_once + 1 };

/* Places of windows along an axis. */
typedef struct pool_range {
    int64_t first, end;
} pool_range;

/* Of a row of windows those from `first` on, `count` of them, and which of their places lie in the image for some. */
typedef struct pool_part {
    const rapt_windows *windows;
    int64_t row, first, count;
    pool_range places[2];
} pool_part;

/* Steps of that size to a distance or past it; most are 1, and a division costs as much as a window. */
static int64_t steps_to(int64_t distance, int64_t step)
{
    return step == 1 ? distance : divide_up(distance, step);
}

/* Places of a window and of `more` after it that lie in the image for some of them. */
static pool_range places_inside(const rapt_windows *w, int k, int64_t window, int64_t more)
{
    const int64_t start = window * w->stride[k] - w->padding[k], last = start + more * w->stride[k];
    return (pool_range){.first = last < 0 ? steps_to(-last, w->dilation[k]) : 0,
                        .end = smaller_of(w->size[k], steps_to(w->in[k] - start, w->dilation[k]))};
}

static pool_part part_of(const rapt_windows *w, int64_t line, int64_t first)
{
    pool_part part = {.windows = w, .row = line % w->out[0], .first = first};
    part.count = smaller_of(w->out[1] - first, windows_at_once);
    part.places[0] = places_inside(w, 0, part.row, 0);
    part.places[1] = places_inside(w, 1, first, part.count - 1);
    return part;
}

/* Where place (i, j) of the part's first window lies. */
static int64_t start_of(const pool_part *part, int64_t i, int64_t j, int64_t *column)
{
    const rapt_windows *w = part->windows;
    *column = part->first * w->stride[1] - w->padding[1] + j * w->dilation[1];
    return (part->row * w->stride[0] - w->padding[0] + i * w->dilation[0]) * w->in[1] + *column;
}

/* Of place (i, j), of which i is inside: windows [from, to) of the part have it in the image, where that of window q is
 * `start` + q · stride; false where none has. */
static bool find_place(const pool_part *part, int64_t i, int64_t j, int64_t *from, int64_t *to, int64_t *start)
{
    const rapt_windows *w = part->windows;
    const int64_t stride = w->stride[1];
    int64_t x;
    *start = start_of(part, i, j, &x);
    *from = x < 0 ? steps_to(-x, stride) : 0;
    *to = x + (part->count - 1) * stride < w->in[1] ? part->count : steps_to(w->in[1] - x, stride);
    return *from < *to;
}

/* The numbers of windows [from, to), which are a stride apart at x, as neighbours: in a line, or where they are. */
#define STEP_BY_STEP(T, dtype)                                                                                         \
    static const T *step_by_step_##dtype(const pool_part *part, int64_t from, int64_t to, const T *x, T *line)         \
    {                                                                                                                  \
        const int64_t stride = part->windows->stride[1];                                                               \
        if (stride == 1) return x;                                                                                     \
        if (stride == 2)                                                                                               \
            for (int64_t q = from; q < to; q++) line[q] = x[q * 2];                                                    \
        else                                                                                                           \
            for (int64_t q = from; q < to; q++) line[q] = x[q * stride];                                               \
        return line;                                                                                                   \
    }

#define LARGEST(T, dtype)                                                                                              \
    static int64_t largest_of_window_##dtype(const pool_part *part, int64_t q, const T *x)                             \
    {                                                                                                                  \
        const rapt_windows *w = part->windows;                                                                         \
        const pool_range rows = part->places[0], columns = places_inside(w, 1, part->first + q, 0);                    \
        int64_t column, place;                                                                                         \
        if (rows.first >= rows.end || columns.first >= columns.end) return -1;                                         \
        place = start_of(part, rows.first, columns.first, &column) + q * w->stride[1];                                 \
        T m = x[place];                                                                                                \
        for (int64_t i = rows.first; i < rows.end; i++)                                                                \
            for (int64_t j = columns.first, at = start_of(part, i, j, &column) + q * w->stride[1]; j < columns.end;    \
                 j++, at += w->dilation[1]) {                                                                          \
                const bool takes = !(x[at] <= m) & (m == m);                                                           \
                place = takes ? at : place;                                                                            \
                m = takes ? x[at] : m;                                                                                 \
            }                                                                                                          \
        return place;                                                                                                  \
    }                                                                                                                  \
                                                                                                                       \
    static void compare_##dtype(int64_t from, int64_t to, const T *restrict x, int64_t start, int64_t stride,          \
                                T *restrict largest, int64_t *restrict places)                                         \
    {                                                                                                                  \
        for (int64_t q = from; q < to; q++) {                                                                          \
            const T a = x[q], m = largest[q];                                                                          \
            const bool takes = !(a <= m) & (m == m);                                                                   \
            largest[q] = takes ? a : m;                                                                                \
            places[q] = takes ? start + q * stride : places[q];                                                        \
        }                                                                                                              \
    }                                                                                                                  \
                                                                                                                       \
    static bool find_largest_##dtype(const pool_part *part, const T *x, int64_t *restrict out)                         \
    {                                                                                                                  \
        const rapt_windows *w = part->windows;                                                                         \
        T largest[windows_at_once], line[windows_at_once];                                                             \
        int64_t from, to, start, places[windows_at_once];                                                              \
        bool found = true;                                                                                             \
        for (int64_t q = 0; q < part->count; q++) largest[q] = -(T)INFINITY;                                           \
        for (int64_t q = 0; q < part->count; q++) places[q] = -1;                                                      \
        for (int64_t i = part->places[0].first; part->count >= few_windows && i < part->places[0].end; i++)            \
            for (int64_t j = part->places[1].first; j < part->places[1].end; j++) {                                    \
                if (!find_place(part, i, j, &from, &to, &start)) continue;                                             \
                compare_##dtype(from, to, step_by_step_##dtype(part, from, to, x + start, line), start, w->stride[1],  \
                                largest, places);                                                                      \
            }                                                                                                          \
        for (int64_t q = 0; q < part->count; q++) {                                                                    \
            out[q] = places[q] >= 0 ? places[q] : largest_of_window_##dtype(part, q, x);                               \
            found &= out[q] >= 0;                                                                                      \
        }                                                                                                              \
        return found;                                                                                                  \
    }                                                                                                                  \
                                                                                                                       \
    static void largest_##dtype(void *context, int64_t first, int64_t last)                                            \
    {                                                                                                                  \
        rapt_pool_images *p = context;                                                                                 \
        const rapt_windows *w = &p->windows;                                                                           \
        const int64_t lines = w->out[0];                                                                               \
        for (int64_t line = first * lines; line < last * lines; line++)                                                \
            for (int64_t q = 0; q < w->out[1]; q += windows_at_once) {                                                 \
                const pool_part part = part_of(w, line, q);                                                            \
                const T *x = (const T *)(void *)p->in + line / lines * w->in[0] * w->in[1];                            \
                if (!find_largest_##dtype(&part, x, (int64_t *)(void *)p->out + line * w->out[1] + q))                 \
                    atomic_store_explicit(&p->failed, true, memory_order_relaxed);                                     \
            }                                                                                                          \
    }

/* Windows one by one; x is g where dx grows by Σ g / count. */
#define MEAN(T, dtype)                                                                                                 \
    static void mean_##dtype(void *context, int64_t first, int64_t last)                                               \
    {                                                                                                                  \
        const rapt_pool_images *p = context;                                                                           \
        const rapt_windows *w = &p->windows;                                                                           \
        const int64_t lines = w->out[0], windows = lines * w->out[1], pixels = w->in[0] * w->in[1];                    \
        for (int64_t line = first * lines; line < last * lines; line++) {                                              \
            const int64_t top = line % lines * w->stride[0] - w->padding[0], image = line / lines;                     \
            const int64_t low = larger_of(top, 0), end = smaller_of(top + w->size[0], w->in[0]);                       \
            const int64_t height = smaller_of(top + w->size[0], w->in[0] + w->padding[0]) - top;                       \
            const T *restrict x = (const T *)(void *)p->in + (p->back ? image * windows : image * pixels);             \
            T *restrict out = (T *)(void *)p->out + (p->back ? image * pixels : image * windows);                      \
            for (int64_t q = 0, i = line % lines * w->out[1]; q < w->out[1]; q++, i++) {                               \
                const int64_t start = q * w->stride[1] - w->padding[1], stop = start + w->size[1];                     \
                const int64_t left = larger_of(start, 0), right = smaller_of(stop, w->in[1]);                          \
                double count = (double)height * (double)(smaller_of(stop, w->in[1] + w->padding[1]) - start), sum = 0; \
                if (p->leaves_padding_out) count = (double)((end - low) * (right - left));                             \
                if (p->back) {                                                                                         \
                    const T share = x[i] / (T)count;                                                                   \
                    for (int64_t y = low; y < end; y++)                                                                \
                        for (int64_t at = y * w->in[1] + left; at < y * w->in[1] + right; at++) out[at] += share;      \
                    continue;                                                                                          \
                }                                                                                                      \
                for (int64_t y = low; y < end; y++)                                                                    \
                    for (int64_t at = y * w->in[1] + left; at < y * w->in[1] + right; at++) sum += (double)x[at];      \
                out[i] = (T)(sum / count);                                                                             \
            }                                                                                                          \
        }                                                                                                              \
    }

STEP_BY_STEP(float, float32)
STEP_BY_STEP(double, float64)
LARGEST(float, float32)
LARGEST(double, float64)
MEAN(float, float32)
MEAN(double, float64)

void RAPT_AT_LEVEL(rapt_fill_pool)(rapt_kernels *kernels)
{
    kernels->pool = (rapt_pool_kernels){.largest = {RAPT_FLOATING_ROW(largest)}, .mean = {RAPT_FLOATING_ROW(mean)}};
}
