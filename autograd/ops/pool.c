/* max_pool and avg_pool: the largest number or the mean of each window of an image or a sequence. */
#include <rapt/ops.h>

#include <stdatomic.h>

#include "columns.h"
#include "tensor/kernels.h"
#include "tensor/parallel.h"

typedef struct pool_options {
    rapt_pool pool;
    int axes;
} pool_options;

/* Sizes of one call. */
typedef struct pool_work {
    rapt_windows windows;
    int64_t images; /* items times channels */
    bool leaves_padding_out, back;
    const rapt_tensor *x;
    rapt_tensor *out;
    _Atomic bool failed; /* a window has no number */
} pool_work;

static bool read(pool_work *p, const char *op, const pool_options *o, const rapt_tensor *x, const int64_t *shape)
{
    if (x->rank != o->axes + 2) {
        char text[RAPT_SHAPE_TEXT];
        return rapt_fail(RAPT_ERROR_SHAPE, op, "x is %s; (B, C, %s) expected", rapt_shape_text(x->rank, x->shape, text),
                         o->axes == 1 ? "length" : "height, width");
    }
    if (!rapt_check_floating(op, x)) return false;
    *p = (pool_work){.images = shape[0] * shape[1], .leaves_padding_out = o->pool.leaves_padding_out};
    rapt_windows *w = &p->windows;
    *w = rapt_windows_of(o->axes, shape + 2, o->pool.size, o->pool.stride, o->pool.padding, o->pool.dilation);
    for (int axis = 0; axis < o->axes; axis++) {
        const int k = axis + 2 - o->axes;
        if (o->pool.stride[axis] == 0) w->stride[k] = w->size[k];
        if (w->in[k] == 0) return rapt_fail(RAPT_ERROR_SHAPE, op, "axis %d of x has no places", axis + 2);
        if (w->padding[k] > w->size[k] / 2)
            return rapt_fail(RAPT_ERROR_VALUE, op, "padding %lld of windows of %lld; half of that at most expected",
                             (long long)w->padding[k], (long long)w->size[k]);
    }
    return rapt_windows_place(op, w, o->pool.ceil);
}

/* Reads the call, whose result is of that dtype, and makes it; false after an error. */
static bool begin(pool_work *p, rapt_call *call, rapt_dtype dtype)
{
    const char *op = rapt_call_op(call)->name;
    const pool_options *o = rapt_call_options(call);
    const rapt_tensor *x = rapt_call_input(call, 0);
    if (!read(p, op, o, x, x->shape)) return false;
    const int64_t *out = p->windows.out + 2 - o->axes;
    const int64_t shape[] = {x->shape[0], x->shape[1], out[0], out[o->axes - 1]};
    p->out = rapt_new(op, dtype, o->axes + 2, shape);
    p->x = rapt_as_contiguous(x);
    return p->out && p->x;
}

/* Of images. What costs as much is a piece by itself. */
static int64_t grain_of(const pool_work *p)
{
    enum { most = 1 << 20 };
    int64_t cost = rapt_smaller_of(rapt_windows_count(&p->windows), most);
    for (int k = 0; k < 2; k++) cost *= rapt_smaller_of(p->windows.size[k], most);
    return rapt_grain(cost);
}

/* --- max --- */

/* The first place in the window, along an axis, that lies in the image, and the first past both. */
static int64_t first_inside(const rapt_windows *w, int k, int64_t start)
{
    return start >= 0 ? start : start + (-start + w->dilation[k] - 1) / w->dilation[k] * w->dilation[k];
}

static int64_t end_inside(const rapt_windows *w, int k, int64_t start)
{
    const int64_t end = start + (w->size[k] - 1) * w->dilation[k] + 1;
    return end < w->in[k] ? end : w->in[k];
}

/* For each window the place of its largest number in its image: the first of equals, and NaN before all. */
#define LARGEST(T, dtype)                                                                                              \
    static void find_largest_##dtype(void *context, int64_t first, int64_t last)                                       \
    {                                                                                                                  \
        pool_work *p = context;                                                                                        \
        const rapt_windows *w = &p->windows;                                                                           \
        for (int64_t image = first; image < last; image++) {                                                           \
            const T *x = (const T *)(const void *)p->x->data + image * w->in[0] * w->in[1];                            \
            int64_t *out = (int64_t *)(void *)p->out->data + image * rapt_windows_count(w);                            \
            for (int64_t i = 0; i < rapt_windows_count(w); i++) {                                                      \
                const int64_t top = i / w->out[1] * w->stride[0] - w->padding[0];                                      \
                const int64_t left = i % w->out[1] * w->stride[1] - w->padding[1];                                     \
                const int64_t low = first_inside(w, 1, left), high = end_inside(w, 1, left);                           \
                const int64_t bottom = end_inside(w, 0, top);                                                          \
                int64_t place = -1;                                                                                    \
                T largest = 0;                                                                                         \
                for (int64_t y = first_inside(w, 0, top); y < bottom; y += w->dilation[0])                             \
                    for (int64_t at = y * w->in[1] + low; at < y * w->in[1] + high; at += w->dilation[1])              \
                        if (place < 0 || x[at] > largest || (x[at] != x[at] && largest == largest)) {                  \
                            place = at;                                                                                \
                            largest = x[at];                                                                           \
                        }                                                                                              \
                out[i] = place;                                                                                        \
                if (place < 0) atomic_store_explicit(&p->failed, true, memory_order_relaxed);                          \
            }                                                                                                          \
        }                                                                                                              \
    }

LARGEST(float, float32)
LARGEST(double, float64)

static rapt_tensor *largest_forward(rapt_call *call)
{
    RAPT_SCOPE;
    pool_work p;
    if (!begin(&p, call, RAPT_INT64)) return NULL;
    rapt_parallel(p.images, grain_of(&p), p.x->dtype == RAPT_FLOAT32 ? find_largest_float32 : find_largest_float64, &p);
    if (!p.failed) return rapt_keep(p.out);
    rapt_fail(RAPT_ERROR_VALUE, rapt_call_op(call)->name, "a window with dilation sees nothing but padding");
    return NULL;
}

/* y[window] = x[its largest number's place]: gathered, so that gradients go there */
static rapt_tensor *max_pool(const rapt_op *largest, int axes, rapt_tensor *x, const rapt_pool *pool)
{
    if (!pool) rapt_fail_null(largest->name, "pool");
    if (!pool) return NULL;
    const pool_options options = {*pool, axes};
    rapt_tensor *places = RAPT_APPLY(largest, &options, x);
    if (!places) return NULL;
    const int64_t images = places->shape[0] * places->shape[1];
    int64_t pixels = 1, results = 1;
    for (int axis = 2; axis < places->rank; axis++) {
        pixels *= x->shape[axis];
        results *= places->shape[axis];
    }
    rapt_tensor *y =
        rapt_gather(rapt_reshape(x, RAPT_SHAPE(images, pixels)), 1, rapt_reshape(places, RAPT_SHAPE(images, results)));
    return rapt_reshape(y, places->rank, places->shape);
}

#define MAX_POOL(kind, axes)                                                                                           \
    static const rapt_op kind = {.name = #kind,                                                                        \
                                 .forward = largest_forward,                                                           \
                                 .no_gradient = "it is made of places",                                                \
                                 .options_size = sizeof(pool_options)};                                                \
    rapt_tensor *rapt_##kind(rapt_tensor *x, const rapt_pool *pool)                                                    \
    {                                                                                                                  \
        return max_pool(&kind, axes, x, pool);                                                                         \
    }

MAX_POOL(max_pool1d, 1)
MAX_POOL(max_pool2d, 2)

/* --- mean --- */

/* The part [*low, *high) of a window that lies in the image; returns its size with the padding that it sees. */
static int64_t part_inside(const rapt_windows *w, int k, int64_t i, int64_t *low, int64_t *high)
{
    const int64_t start = i * w->stride[k] - w->padding[k], past = w->in[k] + w->padding[k];
    const int64_t end = start + w->size[k] < past ? start + w->size[k] : past;
    *low = start > 0 ? start : 0;
    *high = end < w->in[k] ? end : w->in[k];
    return end - start;
}

/* y = Σ x / count over each window; back: dx = Σ g / count over the windows that see x. x is g then. */
#define MEANS(T, dtype)                                                                                                \
    static void average_##dtype(const pool_work *p, const T *x, T *out)                                                \
    {                                                                                                                  \
        const rapt_windows *w = &p->windows;                                                                           \
        for (int64_t i = 0; i < rapt_windows_count(w); i++) {                                                          \
            int64_t top, bottom, left, right;                                                                          \
            double count = (double)part_inside(w, 0, i / w->out[1], &top, &bottom);                                    \
            count *= (double)part_inside(w, 1, i % w->out[1], &left, &right);                                          \
            if (p->leaves_padding_out) count = (double)((bottom - top) * (right - left));                              \
            double sum = 0;                                                                                            \
            const T share = p->back ? x[i] / (T)count : 0;                                                             \
            for (int64_t y = top; y < bottom; y++)                                                                     \
                for (int64_t at = y * w->in[1] + left; at < y * w->in[1] + right; at++)                                \
                    if (p->back)                                                                                       \
                        out[at] += share;                                                                              \
                    else                                                                                               \
                        sum += (double)x[at];                                                                          \
            if (!p->back) out[i] = (T)(sum / count);                                                                   \
        }                                                                                                              \
    }                                                                                                                  \
                                                                                                                       \
    static void averages_##dtype(void *context, int64_t first, int64_t last)                                           \
    {                                                                                                                  \
        const pool_work *p = context;                                                                                  \
        const int64_t pixels = p->windows.in[0] * p->windows.in[1], results = rapt_windows_count(&p->windows);         \
        const int64_t in = p->back ? results : pixels, out = p->back ? pixels : results;                               \
        for (int64_t image = first; image < last; image++)                                                             \
            average_##dtype(p, (const T *)(const void *)p->x->data + image * in,                                       \
                            (T *)(void *)p->out->data + image * out);                                                  \
    }

MEANS(float, float32)
MEANS(double, float64)

static rapt_tensor *run_averages(pool_work *p)
{
    rapt_parallel(p->images, grain_of(p), p->x->dtype == RAPT_FLOAT32 ? averages_float32 : averages_float64, p);
    return rapt_keep(p->out);
}

static rapt_tensor *average_forward(rapt_call *call)
{
    RAPT_SCOPE;
    pool_work p;
    return begin(&p, call, rapt_get_dtype(rapt_call_input(call, 0))) ? run_averages(&p) : NULL;
}

/* Of the gradient: an image of that shape. */
typedef struct back_options {
    pool_options options;
    const rapt_op *of;
    int64_t shape[4];
} back_options;

static rapt_tensor *back_forward(rapt_call *call)
{
    RAPT_SCOPE;
    const back_options *o = rapt_call_options(call);
    const rapt_tensor *g = rapt_call_input(call, 0);
    pool_work p;
    if (!read(&p, o->of->name, &o->options, g, o->shape)) return NULL;
    p.out = rapt_zeros(g->dtype, o->options.axes + 2, o->shape);
    p.x = rapt_as_contiguous(g);
    p.back = true;
    return p.out && p.x ? run_averages(&p) : NULL;
}

/* Both are linear. */
static bool back_vjp(rapt_call *call)
{
    const back_options *o = rapt_call_options(call);
    return rapt_call_give(call, 0, RAPT_APPLY(o->of, &o->options, rapt_call_gradient(call, 0)));
}

static const rapt_op back = {.name = "avg_pool_backward",
                             .forward = back_forward,
                             .vjp = back_vjp,
                             .options_size = sizeof(back_options)};

static bool average_vjp(rapt_call *call)
{
    int rank;
    const int64_t *shape = rapt_call_input_shape(call, 0, &rank);
    back_options o = {.options = *(const pool_options *)rapt_call_options(call), .of = rapt_call_op(call)};
    memcpy(o.shape, shape, (size_t)rank * sizeof *shape);
    return rapt_call_give(call, 0, RAPT_APPLY(&back, &o, rapt_call_gradient(call, 0)));
}

static rapt_tensor *avg_pool(const rapt_op *op, int axes, rapt_tensor *x, const rapt_pool *pool)
{
    if (!pool) rapt_fail_null(op->name, "pool");
    if (!pool) return NULL;
    for (int axis = 0; axis < axes; axis++)
        if (pool->dilation[axis] > 1) {
            rapt_fail(RAPT_ERROR_VALUE, op->name, "dilation %lld; a mean is of windows without gaps: 0 or 1 expected",
                      (long long)pool->dilation[axis]);
            return NULL;
        }
    const pool_options options = {*pool, axes};
    return RAPT_APPLY(op, &options, x);
}

#define AVG_POOL(kind, axes)                                                                                           \
    static const rapt_op kind = {.name = #kind,                                                                        \
                                 .forward = average_forward,                                                           \
                                 .vjp = average_vjp,                                                                   \
                                 .options_size = sizeof(pool_options)};                                                \
    rapt_tensor *rapt_##kind(rapt_tensor *x, const rapt_pool *pool)                                                    \
    {                                                                                                                  \
        return avg_pool(&kind, axes, x, pool);                                                                         \
    }

AVG_POOL(avg_pool1d, 1)
AVG_POOL(avg_pool2d, 2)
