/* Windows of images as columns, and columns added up to images. */
#include <string.h>

#include "loop.h"
#include "vector_width.h"

/* One place of the window, of one channel: a row of the columns. */
typedef struct column_row {
    int64_t place[2]; /* in the image, of the window at the top left; may be negative */
} column_row;

static int64_t channel_of(const rapt_windows *w, int64_t k)
{
    return k / (w->size[0] * w->size[1]);
}

static column_row row_of(const rapt_windows *w, int64_t k)
{
    const int64_t in_window = k % (w->size[0] * w->size[1]);
    return (column_row){{in_window / w->size[1] * w->dilation[0] - w->padding[0],
                         in_window % w->size[1] * w->dilation[1] - w->padding[1]}};
}

/* Outputs side by side, [first, last) of one line of them; [from, to) have their place in the image, where that of
 * output j is `start` + j · stride. */
typedef struct column_piece {
    int64_t first, last, from, to, start;
} column_piece;

/* On its way through one row of the columns, piece by piece. */
typedef struct column_walk {
    const rapt_windows *windows;
    column_row row;
    int64_t from, to;   /* of a whole line, where the image has it */
    int64_t line, left; /* of outputs */
    column_piece piece;
} column_walk;

/* The next piece, if there is one, begins at output `first` of its line. */
static inline bool walk_on(column_walk *walk, int64_t first)
{
    const rapt_windows *w = walk->windows;
    if (walk->left == 0) return false;
    const int64_t y = walk->row.place[0] + walk->line * w->stride[0];
    column_piece p = {.first = first, .last = smaller_of(w->out[1], first + walk->left)};
    p.from = p.to = p.last;
    if (y >= 0 && y < w->in[0]) {
        p.from = walk->from < first ? first : smaller_of(walk->from, p.last);
        p.to = walk->to < p.from ? p.from : smaller_of(walk->to, p.last);
        if (p.from < p.to) p.start = y * w->in[1] + walk->row.place[1];
    }
    walk->piece = p;
    walk->left -= p.last - first;
    walk->line++;
    return true;
}

/* Strides that reach it; of numbers near the largest, too. */
static int64_t steps_to(int64_t distance, int64_t stride)
{
    return distance / stride + (distance % stride > 0);
}

/* With the first piece, of which there is one. */
static column_walk walk_along(const rapt_columns_part *part, column_row row)
{
    const rapt_windows *w = &part->windows;
    const int64_t stride = w->stride[1], place = row.place[1], past = w->in[1] - place;
    column_walk walk = {.windows = w, .row = row, .line = part->first / w->out[1], .left = part->last - part->first};
    /* inside: −place ≤ j · stride < past */
    walk.from = place >= 0 ? 0 : steps_to(-place, stride);
    walk.to = past > 0 ? steps_to(past, stride) : 0;
    walk_on(&walk, part->first % w->out[1]);
    return walk;
}

/* A call of memcpy costs as much as a short line. */
static inline void copy_line(void *to, const void *from, int64_t bytes)
{
    enum { piece = 64, long_line = 16 * piece };
    int64_t i = 0;
    for (; bytes < long_line && i + piece <= bytes; i += piece) memcpy((char *)to + i, (const char *)from + i, piece);
    if (i < bytes) memcpy((char *)to + i, (const char *)from + i, (size_t)(bytes - i));
}

#define COLUMN_LOOPS(T, dtype)                                                                                         \
    static void fill_row_##dtype(const rapt_columns_part *part, const T *image, column_row row, T *columns)            \
    {                                                                                                                  \
        const int64_t stride = part->windows.stride[1];                                                                \
        column_walk walk = walk_along(part, row);                                                                      \
        do {                                                                                                           \
            const column_piece p = walk.piece;                                                                         \
            const T *line = image + p.start;                                                                           \
            T *out = columns - p.first;                                                                                \
            for (int64_t j = p.first; j < p.from; j++) out[j] = 0;                                                     \
            if (stride == 1)                                                                                           \
                copy_line(out + p.from, line + p.from, (p.to - p.from) * (int64_t)sizeof(T));                          \
            else if (stride == 2)                                                                                      \
                RAPT_SIMD for (int64_t j = p.from; j < p.to; j++) out[j] = line[2 * j];                                \
            else                                                                                                       \
                for (int64_t j = p.from; j < p.to; j++) out[j] = line[j * stride];                                     \
            for (int64_t j = p.to; j < p.last; j++) out[j] = 0;                                                        \
            columns += p.last - p.first;                                                                               \
        } while (walk_on(&walk, 0));                                                                                   \
    }                                                                                                                  \
                                                                                                                       \
    static void add_row_##dtype(const rapt_columns_part *part, const T *columns, column_row row, T *image)             \
    {                                                                                                                  \
        const int64_t stride = part->windows.stride[1];                                                                \
        column_walk walk = walk_along(part, row);                                                                      \
        do {                                                                                                           \
            const column_piece p = walk.piece;                                                                         \
            T *restrict line = image + p.start;                                                                        \
            const T *restrict in = columns - p.first;                                                                  \
            if (stride == 1)                                                                                           \
                for (int64_t j = p.from; j < p.to; j++) line[j] += in[j];                                              \
            else                                                                                                       \
                for (int64_t j = p.from; j < p.to; j++) line[j * stride] += in[j];                                     \
            columns += p.last - p.first;                                                                               \
        } while (walk_on(&walk, 0));                                                                                   \
    }                                                                                                                  \
                                                                                                                       \
    static void fill_##dtype(void *context, int64_t first, int64_t last)                                               \
    {                                                                                                                  \
        const rapt_columns_part *part = context;                                                                       \
        const rapt_windows *w = &part->windows;                                                                        \
        for (int64_t k = part->top + first; k < part->top + last; k++)                                                 \
            fill_row_##dtype(part, (const T *)(void *)part->image + channel_of(w, k) * w->in[0] * w->in[1],            \
                             row_of(w, k), (T *)(void *)part->columns + (k - part->top) * (part->last - part->first)); \
    }                                                                                                                  \
                                                                                                                       \
    /* Channels apart, so that no two tasks write to one place. */                                                     \
    static void add_##dtype(void *context, int64_t first, int64_t last)                                                \
    {                                                                                                                  \
        const rapt_columns_part *part = context;                                                                       \
        const rapt_windows *w = &part->windows;                                                                        \
        const int64_t size = w->size[0] * w->size[1];                                                                  \
        for (int64_t k = first * size; k < last * size; k++)                                                           \
            add_row_##dtype(part, (const T *)(void *)part->columns + k * (part->last - part->first), row_of(w, k),     \
                            (T *)(void *)part->image + channel_of(w, k) * w->in[0] * w->in[1]);                        \
    }

/* Sums of products with the windows' numbers, a block of windows at once; back, four taps at once. */
#define TAP_LOOPS(T, dtype, integer)                                                                                   \
    typedef T vector_##dtype __attribute__((vector_size(RAPT_VECTOR_BYTES), aligned(sizeof(T)), may_alias));           \
    typedef integer integers_##dtype __attribute__((vector_size(RAPT_VECTOR_BYTES)));                                  \
                                                                                                                       \
    static void taps_##dtype(int64_t count, int64_t taps, const rapt_tap *tap, double start, const void *in,           \
                             void *out)                                                                                \
    {                                                                                                                  \
        enum { lanes = RAPT_VECTOR_BYTES / sizeof(T), at_once = 4, block = at_once * lanes };                          \
        for (int64_t p = 0; p < count; p += block) {                                                                   \
            vector_##dtype sums[at_once];                                                                              \
            for (int k = 0; k < at_once; k++) sums[k] = (vector_##dtype){0} + (T)start;                                \
            for (int64_t i = 0; i < taps; i++) {                                                                       \
                const vector_##dtype *at = (const vector_##dtype *)(const void *)((const T *)in + p + tap[i].offset);  \
                const T weight = (T)tap[i].weight;                                                                     \
                _Pragma("GCC unroll 4") for (int k = 0; k < at_once; k++) sums[k] += at[k] * weight;                   \
            }                                                                                                          \
            vector_##dtype *to = (vector_##dtype *)(void *)((T *)out + p);                                             \
            for (int k = 0; k < at_once; k++) to[k] = sums[k];                                                         \
        }                                                                                                              \
    }                                                                                                                  \
                                                                                                                       \
    static void taps_back_##dtype(int64_t count, int64_t taps, rapt_tap *tap, const void *g, const void *seen,         \
                                  const void *in)                                                                      \
    {                                                                                                                  \
        enum { lanes = RAPT_VECTOR_BYTES / sizeof(T), at_once = 4 };                                                   \
        for (int64_t i = 0; i < taps; i += at_once) {                                                                  \
            const T *from[at_once];                                                                                    \
            vector_##dtype sums[at_once] = {{0}};                                                                      \
            for (int k = 0; k < at_once; k++) from[k] = (const T *)in + tap[smaller_of(i + k, taps - 1)].offset;       \
            for (int64_t p = 0; p < count; p += lanes) {                                                               \
                const vector_##dtype gs = *(const vector_##dtype *)(const void *)((const T *)g + p);                   \
                const vector_##dtype sees = *(const vector_##dtype *)(const void *)((const T *)seen + p);              \
                const integers_##dtype mask = (integers_##dtype)(sees != 0);                                           \
                _Pragma("GCC unroll 4") for (int k = 0; k < at_once; k++)                                              \
                {                                                                                                      \
                    const vector_##dtype x = *(const vector_##dtype *)(const void *)(from[k] + p);                     \
                    sums[k] += gs * (vector_##dtype)((integers_##dtype)x & mask);                                      \
                }                                                                                                      \
            }                                                                                                          \
            for (int k = 0; k < at_once && i + k < taps; k++)                                                          \
                for (int lane = 0; lane < lanes; lane++) tap[i + k].weight += (double)sums[k][lane];                   \
        }                                                                                                              \
    }

COLUMN_LOOPS(float, float32)
COLUMN_LOOPS(double, float64)
TAP_LOOPS(float, float32, int32_t)
TAP_LOOPS(double, float64, int64_t)

void RAPT_AT_LEVEL(rapt_fill_columns)(rapt_kernels *kernels)
{
    kernels->columns = (rapt_columns_kernels){.fill = {RAPT_FLOATING_ROW(fill)},
                                              .add = {RAPT_FLOATING_ROW(add)},
                                              .taps = {RAPT_FLOATING_ROW(taps)},
                                              .taps_back = {RAPT_FLOATING_ROW(taps_back)}};
}
