/* Windows of images as columns, and columns added up to images. */
#include "columns.h"

#include <rapt/op.h>

#include "tensor/kernels.h"
#include "tensor/parallel.h"

bool rapt_windows_place(const char *op, rapt_windows *w, bool ceil)
{
    for (int k = 0; k < 2; k++) {
        int64_t reach, padded;
        if (w->size[k] < 1 || w->stride[k] < 1 || w->padding[k] < 0 || w->dilation[k] < 1)
            return rapt_fail(RAPT_ERROR_VALUE, op,
                             "size %lld, stride %lld, padding %lld and dilation %lld; 1 or more expected, of padding 0",
                             (long long)w->size[k], (long long)w->stride[k], (long long)w->padding[k],
                             (long long)w->dilation[k]);
        if (__builtin_mul_overflow(w->size[k] - 1, w->dilation[k], &reach) ||
            __builtin_mul_overflow(w->padding[k], 2, &padded) || __builtin_add_overflow(padded, w->in[k], &padded) ||
            padded <= reach)
            return rapt_fail(
                RAPT_ERROR_SHAPE, op,
                "a window of %lld with dilation %lld does not fit into %lld with padding %lld on each side",
                (long long)w->size[k], (long long)w->dilation[k], (long long)w->in[k], (long long)w->padding[k]);
        const int64_t room = padded - reach - 1;
        w->out[k] = room / w->stride[k] + 1;
        const bool begins_inside = w->out[k] * w->stride[k] < w->in[k] + w->padding[k];
        if (ceil && room % w->stride[k] > 0 && begins_inside) w->out[k]++;
    }
    int64_t count;
    return !__builtin_mul_overflow(w->out[0], w->out[1], &count) ||
           rapt_fail(RAPT_ERROR_SHAPE, op, "%lld times %lld windows are too many", (long long)w->out[0],
                     (long long)w->out[1]);
}

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

/* The outputs [*from, *to) of [first, last) in a row of windows whose place lies within the image. */
static void find_inside(const rapt_windows *w, int64_t place, int64_t first, int64_t last, int64_t *from, int64_t *to)
{
    const int64_t stride = w->stride[1], past = w->in[1] - place; /* inside: −place ≤ i · stride < past */
    *from = place >= 0 ? 0 : (-place + stride - 1) / stride;
    *to = past > 0 ? (past + stride - 1) / stride : 0;
    *from = *from < first ? first : *from > last ? last : *from;
    *to = *to > last ? last : *to < *from ? *from : *to;
}

typedef struct column_work {
    const rapt_windows *windows;
    int64_t first, last;
    char *image, *columns;
} column_work;

#define COLUMN_LOOPS(T, dtype)                                                                                         \
    static void fill_row_##dtype(const column_work *work, const T *image, column_row row, T *columns)                  \
    {                                                                                                                  \
        const rapt_windows *w = work->windows;                                                                         \
        for (int64_t at = work->first; at < work->last;) {                                                             \
            const int64_t i = at / w->out[1], first = at % w->out[1], y = row.place[0] + i * w->stride[0];             \
            const int64_t rest = work->last - at, last = w->out[1] - first < rest ? w->out[1] : first + rest;          \
            int64_t from = last, to = last;                                                                            \
            if (y >= 0 && y < w->in[0]) find_inside(w, row.place[1], first, last, &from, &to);                         \
            const T *line = image + y * w->in[1] + row.place[1];                                                       \
            T *out = columns + (at - work->first) - first;                                                             \
            for (int64_t j = first; j < from; j++) out[j] = 0;                                                         \
            if (w->stride[1] == 1 && from < to)                                                                        \
                memcpy(out + from, line + from, (size_t)(to - from) * sizeof(T));                                      \
            else                                                                                                       \
                for (int64_t j = from; j < to; j++) out[j] = line[j * w->stride[1]];                                   \
            for (int64_t j = to; j < last; j++) out[j] = 0;                                                            \
            at += last - first;                                                                                        \
        }                                                                                                              \
    }                                                                                                                  \
                                                                                                                       \
    static void add_row_##dtype(const column_work *work, const T *columns, column_row row, T *image)                   \
    {                                                                                                                  \
        const rapt_windows *w = work->windows;                                                                         \
        for (int64_t at = work->first; at < work->last;) {                                                             \
            const int64_t i = at / w->out[1], first = at % w->out[1], y = row.place[0] + i * w->stride[0];             \
            const int64_t rest = work->last - at, last = w->out[1] - first < rest ? w->out[1] : first + rest;          \
            int64_t from = last, to = last;                                                                            \
            if (y >= 0 && y < w->in[0]) find_inside(w, row.place[1], first, last, &from, &to);                         \
            T *line = image + y * w->in[1] + row.place[1];                                                             \
            const T *in = columns + (at - work->first) - first;                                                        \
            if (w->stride[1] == 1)                                                                                     \
                for (int64_t j = from; j < to; j++) line[j] += in[j];                                                  \
            else                                                                                                       \
                for (int64_t j = from; j < to; j++) line[j * w->stride[1]] += in[j];                                   \
            at += last - first;                                                                                        \
        }                                                                                                              \
    }                                                                                                                  \
                                                                                                                       \
    static void fill_##dtype(void *context, int64_t first, int64_t last)                                               \
    {                                                                                                                  \
        const column_work *work = context;                                                                             \
        const rapt_windows *w = work->windows;                                                                         \
        for (int64_t k = first; k < last; k++)                                                                         \
            fill_row_##dtype(work, (const T *)(void *)work->image + channel_of(w, k) * w->in[0] * w->in[1],            \
                             row_of(w, k), (T *)(void *)work->columns + k * (work->last - work->first));               \
    }                                                                                                                  \
                                                                                                                       \
    /* Channels apart, so that no two tasks write to one place. */                                                     \
    static void add_##dtype(void *context, int64_t first, int64_t last)                                                \
    {                                                                                                                  \
        const column_work *work = context;                                                                             \
        const rapt_windows *w = work->windows;                                                                         \
        const int64_t size = w->size[0] * w->size[1];                                                                  \
        for (int64_t k = first * size; k < last * size; k++)                                                           \
            add_row_##dtype(work, (const T *)(void *)work->columns + k * (work->last - work->first), row_of(w, k),     \
                            (T *)(void *)work->image + channel_of(w, k) * w->in[0] * w->in[1]);                        \
    }

COLUMN_LOOPS(float, float32)
COLUMN_LOOPS(double, float64)

void rapt_columns_fill(const rapt_windows *w, rapt_dtype dtype, int64_t channels, const char *image, int64_t first,
                       int64_t last, char *columns)
{
    column_work work = {w, first, last, (char *)(uintptr_t)image, columns};
    rapt_parallel(channels * w->size[0] * w->size[1], rapt_grain(last - first),
                  dtype == RAPT_FLOAT32 ? fill_float32 : fill_float64, &work);
}

void rapt_columns_add(const rapt_windows *w, rapt_dtype dtype, int64_t channels, const char *columns, int64_t first,
                      int64_t last, char *image)
{
    column_work work = {w, first, last, image, (char *)(uintptr_t)columns};
    rapt_parallel(channels, rapt_grain((last - first) * w->size[0] * w->size[1]),
                  dtype == RAPT_FLOAT32 ? add_float32 : add_float64, &work);
}

/* --- ops --- */

/* out[b, (c, i, j), (y, x)] = image[b, c, y · stride + i · dilation − padding, x likewise] */
static rapt_tensor *unfold_forward(rapt_call *call)
{
    const rapt_windows *w = rapt_call_options(call);
    const rapt_tensor *images = rapt_as_contiguous(rapt_call_input(call, 0));
    if (!images) return NULL;
    const int64_t channels = images->shape[1], size = (int64_t)rapt_dtype_size(images->dtype);
    const int64_t rows = channels * w->size[0] * w->size[1], windows = rapt_windows_count(w);
    rapt_tensor *out = rapt_new("unfold", images->dtype, RAPT_SHAPE(images->shape[0], rows, windows));
    for (int64_t b = 0; out && b < images->shape[0]; b++)
        rapt_columns_fill(w, images->dtype, channels, images->data + b * channels * w->in[0] * w->in[1] * size, 0,
                          windows, out->data + b * rows * windows * size);
    return out;
}

static bool unfold_vjp(rapt_call *call)
{
    return rapt_call_give(call, 0, rapt_fold_columns(rapt_call_gradient(call, 0), rapt_call_options(call)));
}

static const rapt_op unfold = {.name = "unfold",
                               .forward = unfold_forward,
                               .vjp = unfold_vjp,
                               .options_size = sizeof(rapt_windows)};

rapt_tensor *rapt_unfold(rapt_tensor *images, const rapt_windows *w)
{
    return RAPT_APPLY(&unfold, w, images);
}

static rapt_tensor *fold_forward(rapt_call *call)
{
    const rapt_windows *w = rapt_call_options(call);
    const rapt_tensor *columns = rapt_as_contiguous(rapt_call_input(call, 0));
    if (!columns) return NULL;
    const int64_t items = columns->shape[0], rows = columns->shape[1], windows = columns->shape[2];
    const int64_t channels = channel_of(w, rows), size = (int64_t)rapt_dtype_size(columns->dtype);
    rapt_tensor *out = rapt_zeros(columns->dtype, RAPT_SHAPE(items, channels, w->in[0], w->in[1]));
    for (int64_t b = 0; out && b < items; b++)
        rapt_columns_add(w, columns->dtype, channels, columns->data + b * rows * windows * size, 0, windows,
                         out->data + b * channels * w->in[0] * w->in[1] * size);
    return out;
}

static bool fold_vjp(rapt_call *call)
{
    return rapt_call_give(call, 0, rapt_unfold(rapt_call_gradient(call, 0), rapt_call_options(call)));
}

static const rapt_op fold = {.name = "fold",
                             .forward = fold_forward,
                             .vjp = fold_vjp,
                             .options_size = sizeof(rapt_windows)};

rapt_tensor *rapt_fold_columns(rapt_tensor *columns, const rapt_windows *w)
{
    return RAPT_APPLY(&fold, w, columns);
}
