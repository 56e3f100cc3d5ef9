/* Windows of images as columns, and columns added up to images. */
#include "columns.h"

#include <rapt/op.h>

#include "autograd/checks.h"
#include "tensor/kernels.h"
#include "tensor/parallel.h"

rapt_windows rapt_windows_of(int axes, const int64_t *in, const int64_t *size, const int64_t *stride,
                             const int64_t *padding, const int64_t *dilation)
{
    rapt_windows w = {.size = {1, 1}, .stride = {1, 1}, .dilation = {1, 1}, .in = {1, 1}};
    for (int axis = 0; axis < axes; axis++) {
        const int k = axis + 2 - axes;
        w.in[k] = in[axis];
        w.size[k] = size[axis];
        w.stride[k] = rapt_or_one(stride[axis]);
        w.padding[k] = padding[axis];
        w.dilation[k] = rapt_or_one(dilation[axis]);
    }
    return w;
}

bool rapt_check_window(const char *op, int64_t size, int64_t stride, int64_t padding, int64_t dilation)
{
    return (size >= 1 && stride >= 1 && padding >= 0 && dilation >= 1) ||
           rapt_fail(RAPT_ERROR_VALUE, op,
                     "size %lld, stride %lld, padding %lld and dilation %lld; 1 or more expected, of padding 0",
                     (long long)size, (long long)stride, (long long)padding, (long long)dilation);
}

bool rapt_windows_place(const char *op, rapt_windows *w, bool ceil)
{
    for (int k = 0; k < 2; k++) {
        int64_t reach, padded;
        if (!rapt_check_window(op, w->size[k], w->stride[k], w->padding[k], w->dilation[k])) return false;
        if (__builtin_mul_overflow(w->size[k] - 1, w->dilation[k], &reach) ||
            __builtin_mul_overflow(w->padding[k], 2, &padded) || __builtin_add_overflow(padded, w->in[k], &padded) ||
            (padded <= reach && !(ceil && reach - padded < w->stride[k] - 1)))
            return rapt_fail(
                RAPT_ERROR_SHAPE, op,
                "a window of %lld with dilation %lld does not fit into %lld with padding %lld on each side",
                (long long)w->size[k], (long long)w->dilation[k], (long long)w->in[k], (long long)w->padding[k]);
        if (w->stride[k] > padded) w->stride[k] = padded; /* one window, however far the next would be */
        if (padded <= reach) {                            /* one, of which only the beginning is in the image */
            w->size[k] = (padded - 1) / w->dilation[k] + 1;
            w->out[k] = 1;
            continue;
        }
        const int64_t room = padded - reach - 1;
        w->out[k] = room / w->stride[k] + 1;
        const int64_t rest = room % w->stride[k];
        const bool next_begins_inside =
            room - rest < w->in[k] + w->padding[k] - w->stride[k]; /* room − rest: the last */
        if (ceil && rest > 0 && next_begins_inside) w->out[k]++;
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

typedef struct column_work {
    const rapt_windows *windows;
    int64_t first, last; /* outputs */
    int64_t top;         /* row of the columns that lies first */
    char *image, *columns;
} column_work;

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
    column_piece p = {.first = first, .last = rapt_smaller_of(w->out[1], first + walk->left)};
    p.from = p.to = p.last;
    if (y >= 0 && y < w->in[0]) {
        p.from = walk->from < first ? first : rapt_smaller_of(walk->from, p.last);
        p.to = walk->to < p.from ? p.from : rapt_smaller_of(walk->to, p.last);
        if (p.from < p.to) p.start = y * w->in[1] + walk->row.place[1];
    }
    walk->piece = p;
    walk->left -= p.last - first;
    walk->line++;
    return true;
}

/* With the first piece, of which there is one. */
static column_walk walk_along(const column_work *work, column_row row)
{
    const rapt_windows *w = work->windows;
    const int64_t stride = w->stride[1], place = row.place[1], past = w->in[1] - place;
    column_walk walk = {.windows = w, .row = row, .line = work->first / w->out[1], .left = work->last - work->first};
    /* inside: −place ≤ j · stride < past */
    walk.from = place >= 0 ? 0 : rapt_divide_up(-place, stride);
    walk.to = past > 0 ? rapt_divide_up(past, stride) : 0;
    walk_on(&walk, work->first % w->out[1]);
    return walk;
}

#define COLUMN_LOOPS(T, dtype)                                                                                         \
    static void fill_row_##dtype(const column_work *work, const T *image, column_row row, T *columns)                  \
    {                                                                                                                  \
        const int64_t stride = work->windows->stride[1];                                                               \
        column_walk walk = walk_along(work, row);                                                                      \
        do {                                                                                                           \
            const column_piece p = walk.piece;                                                                         \
            const T *line = image + p.start;                                                                           \
            T *out = columns - p.first;                                                                                \
            for (int64_t j = p.first; j < p.from; j++) out[j] = 0;                                                     \
            if (stride == 1 && p.from < p.to)                                                                          \
                memcpy(out + p.from, line + p.from, (size_t)(p.to - p.from) * sizeof(T));                              \
            else                                                                                                       \
                for (int64_t j = p.from; j < p.to; j++) out[j] = line[j * stride];                                     \
            for (int64_t j = p.to; j < p.last; j++) out[j] = 0;                                                        \
            columns += p.last - p.first;                                                                               \
        } while (walk_on(&walk, 0));                                                                                   \
    }                                                                                                                  \
                                                                                                                       \
    static void add_row_##dtype(const column_work *work, const T *columns, column_row row, T *image)                   \
    {                                                                                                                  \
        const int64_t stride = work->windows->stride[1];                                                               \
        column_walk walk = walk_along(work, row);                                                                      \
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
        const column_work *work = context;                                                                             \
        const rapt_windows *w = work->windows;                                                                         \
        for (int64_t k = work->top + first; k < work->top + last; k++)                                                 \
            fill_row_##dtype(work, (const T *)(void *)work->image + channel_of(w, k) * w->in[0] * w->in[1],            \
                             row_of(w, k), (T *)(void *)work->columns + (k - work->top) * (work->last - work->first)); \
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

void rapt_columns_fill(const rapt_windows *w, rapt_dtype dtype, const char *image, int64_t top, int64_t bottom,
                       int64_t first, int64_t last, char *columns)
{
    column_work work = {w, first, last, top, (char *)(uintptr_t)image, columns};
    rapt_parallel(bottom - top, rapt_grain(last - first), dtype == RAPT_FLOAT32 ? fill_float32 : fill_float64, &work);
}

void rapt_columns_add(const rapt_windows *w, rapt_dtype dtype, int64_t channels, const char *columns, int64_t first,
                      int64_t last, char *image)
{
    column_work work = {w, first, last, 0, image, (char *)(uintptr_t)columns};
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
        rapt_columns_fill(w, images->dtype, images->data + b * channels * w->in[0] * w->in[1] * size, 0, rows, 0,
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
