/* max_pool and avg_pool: the largest number or the mean of each window of an image or a sequence. */
#include <rapt/ops.h>

#include "columns.h"
#include "tensor/kernels.h"
#include "tensor/parallel.h"

typedef struct pool_options {
    rapt_pool pool;
    int axes;
} pool_options;

/* Sizes of one call. */
typedef struct pool_work {
    rapt_pool_images part;
    int64_t images; /* items times channels */
    const rapt_tensor *x;
    rapt_tensor *out;
} pool_work;

static bool read(pool_work *p, const char *op, const pool_options *o, const rapt_tensor *x, const int64_t *shape)
{
    if (x->rank != o->axes + 2) {
        char text[RAPT_SHAPE_TEXT];
        return rapt_fail(RAPT_ERROR_SHAPE, op, "x is %s; (B, C, %s) expected", rapt_shape_text(x->rank, x->shape, text),
                         o->axes == 1 ? "length" : "height, width");
    }
    if (!rapt_check_floating(op, x)) return false;
    *p = (pool_work){.images = shape[0] * shape[1], .part.leaves_padding_out = o->pool.leaves_padding_out};
    rapt_windows *w = &p->part.windows;
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
    const int64_t *out = p->part.windows.out + 2 - o->axes;
    const int64_t shape[] = {x->shape[0], x->shape[1], out[0], out[o->axes - 1]};
    p->out = rapt_new(op, dtype, o->axes + 2, shape);
    p->x = rapt_as_contiguous(x);
    return p->out && p->x;
}

/* Runs the loop over all images. What costs as much is a piece by itself. */
static void run(pool_work *p, rapt_pool_loop *const *loops)
{
    enum { most = 1 << 20 };
    const rapt_windows *w = &p->part.windows;
    int64_t cost = rapt_smaller_of(rapt_windows_count(w), most);
    for (int k = 0; k < 2; k++) cost *= rapt_smaller_of(w->size[k], most);
    p->part.in = p->x->data;
    p->part.out = p->out->data;
    rapt_parallel(p->images, rapt_grain(cost), loops[p->x->dtype], &p->part);
}

/* --- max --- */

static rapt_tensor *largest_forward(rapt_call *call)
{
    RAPT_SCOPE;
    pool_work p;
    if (!begin(&p, call, RAPT_INT64)) return NULL;
    run(&p, rapt_kernel.pool.largest);
    if (!p.part.failed) return rapt_keep(p.out);
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

static rapt_tensor *run_averages(pool_work *p)
{
    run(p, rapt_kernel.pool.mean);
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
    p.part.back = true;
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
