/* conv1d and conv2d: products of the weight with windows as columns, some columns at a time. */
#include <rapt/ops.h>

#include "autograd/checks.h"
#include "columns.h"
#include "tensor/flops.h"
#include "tensor/map.h"
#include "tensor/matmul.h"
#include "tensor/parallel.h"
#include "tensor/scratch.h"

/* Sizes of one convolution; one axis of an image of conv1d is its columns, and it has one row. */
typedef struct convolution {
    const char *op;
    rapt_windows windows;
    rapt_dtype dtype;
    int64_t items, groups;
    int64_t in, out;         /* channels of a group */
    int64_t depth;           /* numbers of a window of a group: rows of the columns */
    int64_t pixels, results; /* of an image, and of what comes out */
    int64_t block;           /* columns at once */
    bool is_dense;           /* the columns are the image itself */
} convolution;

/* So many columns at once fit in the cache. */
static int64_t block_of(const convolution *c)
{
    enum { block_bytes = 1 << 20, fewest = 64 };
    const int64_t bytes = c->depth * (int64_t)rapt_dtype_size(c->dtype);
    const int64_t columns = bytes > 0 ? block_bytes / bytes / fewest * fewest : c->results;
    return columns < fewest ? fewest : columns;
}

static bool check_shapes(const char *op, int axes, const rapt_tensor *x, const rapt_tensor *weight,
                         const rapt_tensor *bias, int64_t groups)
{
    const bool fits = x->rank == axes + 2 && weight->rank == axes + 2 && groups >= 1 && x->shape[1] % groups == 0 &&
                      weight->shape[0] % groups == 0 && weight->shape[1] == x->shape[1] / groups &&
                      (!bias || (bias->rank == 1 && bias->count == weight->shape[0]));
    char a[RAPT_SHAPE_TEXT], b[RAPT_SHAPE_TEXT], d[RAPT_SHAPE_TEXT];
    if (!fits)
        return rapt_fail(RAPT_ERROR_SHAPE, op,
                         "x is %s, weight is %s, bias is %s, in %lld groups; x (B, C, %s), weight (out, C / groups, "
                         "size%s) and bias (out) expected, C and out multiples of groups",
                         rapt_shape_text(x->rank, x->shape, a), rapt_shape_text(weight->rank, weight->shape, b),
                         bias ? rapt_shape_text(bias->rank, bias->shape, d) : "NULL", (long long)groups,
                         axes == 1 ? "length" : "height, width", axes == 1 ? "" : " of both");
    if (rapt_is_floating(x) && weight->dtype == x->dtype && (!bias || bias->dtype == x->dtype)) return true;
    return rapt_fail(RAPT_ERROR_DTYPE, op,
                     "x is %s, weight is %s, bias is %s; one floating dtype expected " RAPT_CAST_CURE,
                     rapt_dtype_name(x->dtype), rapt_dtype_name(weight->dtype),
                     bias ? rapt_dtype_name(bias->dtype) : "NULL");
}

/* What an op's call is about; false after an error. x, weight and bias as forward got them. */
static bool read(convolution *c, const char *op, int axes, const rapt_convolution *o, const rapt_tensor *x,
                 const rapt_tensor *weight, const rapt_tensor *bias)
{
    const int64_t groups = rapt_or_one(o->groups);
    if (!check_shapes(op, axes, x, weight, bias, groups)) return false;
    *c = (convolution){.op = op, .dtype = x->dtype, .items = x->shape[0], .groups = groups};
    rapt_windows *w = &c->windows;
    *w = rapt_windows_of(axes, x->shape + 2, weight->shape + 2, o->stride, o->padding, o->dilation);
    if (!rapt_windows_place(op, w, false)) return false;
    c->in = weight->shape[1];
    c->out = weight->shape[0] / groups;
    c->depth = c->in * w->size[0] * w->size[1];
    c->pixels = w->in[0] * w->in[1];
    c->results = rapt_windows_count(w);
    c->is_dense = w->size[0] == 1 && w->size[1] == 1 && w->stride[0] == 1 && w->stride[1] == 1 &&
                  w->padding[0] + w->padding[1] == 0;
    c->block = c->is_dense ? c->results : block_of(c);
    return true;
}

/* Tasks, each with columns of its own: what is written is apart, so each product is one thread's where there are
 * several tasks. */
typedef struct work {
    const convolution *c;
    const char *x, *weight, *g; /* those that a task reads */
    char *out;                  /* y, dx or dweight */
    bool accumulate;
    int64_t blocks, chunk; /* of an image; channels of a task of dweight */
    rapt_scratch scratch;
    _Atomic bool failed;
} work;

/* The bytes of so many elements. */
static int64_t bytes_of(const convolution *c, int64_t count)
{
    return count * (int64_t)rapt_dtype_size(c->dtype);
}

static int64_t end_of_block(const convolution *c, int64_t first)
{
    return c->results - first < c->block ? c->results : first + c->block;
}

/* The columns [first, last) of some channels of an image, and how far apart their rows are. */
static const char *columns_of(const convolution *c, const char *image, int64_t channels, int64_t first, int64_t last,
                              char *room, int64_t *row)
{
    *row = c->is_dense ? c->results : last - first;
    if (c->is_dense) return image + bytes_of(c, first);
    rapt_columns_fill(&c->windows, c->dtype, channels, image, first, last, room);
    return room;
}

/* c (+)= a · b, where a's columns and b's rows are `depth`. Whichever thread it is, the caller tells the error. */
static void multiply(work *w, int64_t m, int64_t n, int64_t depth, const char *a, int64_t a_row, int64_t a_column,
                     const char *b, int64_t b_row, int64_t b_column, char *to, int64_t to_row, bool accumulate)
{
    const bool stood = rapt_error() != NULL, left_before = rapt_error_leave_to_others(true);
    const bool good =
        rapt_gemm(w->c->op, w->c->dtype, m, n, depth, a, a_row, a_column, b, b_row, b_column, to, to_row, accumulate);
    rapt_error_leave_to_others(left_before);
    if (good) return;
    if (!stood) rapt_clear_error();
    atomic_store(&w->failed, true);
}

/* A block of y = weight · columns (+ y) */
static void forward_blocks(void *context, int64_t first, int64_t last)
{
    work *w = context;
    const convolution *c = w->c;
    char *room = rapt_scratch_borrow(&w->scratch);
    for (int64_t i = first; i < last; i++) {
        const int64_t image = i / w->blocks, from = i % w->blocks * c->block, to = end_of_block(c, from);
        int64_t row;
        const char *columns = columns_of(c, w->x + bytes_of(c, image * c->in * c->pixels), c->in, from, to, room, &row);
        multiply(w, c->out, to - from, c->depth, w->weight + bytes_of(c, image % c->groups * c->out * c->depth),
                 c->depth, 1, columns, row, 1, w->out + bytes_of(c, image * c->out * c->results + from), c->results,
                 w->accumulate);
    }
    rapt_scratch_return(&w->scratch, room);
}

/* An image of dx = weightᵀ g, each number where it came from */
static void backward_images(void *context, int64_t first, int64_t last)
{
    work *w = context;
    const convolution *c = w->c;
    char *room = rapt_scratch_borrow(&w->scratch);
    for (int64_t image = first; image < last; image++) {
        const char *weight = w->weight + bytes_of(c, image % c->groups * c->out * c->depth);
        char *dx = w->out + bytes_of(c, image * c->in * c->pixels);
        for (int64_t from = 0, to; from < c->results; from = to) {
            to = end_of_block(c, from);
            multiply(w, c->depth, to - from, c->out, weight, 1, c->depth,
                     w->g + bytes_of(c, image * c->out * c->results + from), c->results, 1, c->is_dense ? dx : room,
                     to - from, false);
            if (!c->is_dense) rapt_columns_add(&c->windows, c->dtype, c->in, room, from, to, dx);
        }
    }
    rapt_scratch_return(&w->scratch, room);
}

/* Some channels of dweight = Σ g columnsᵀ over all images */
static void backward_channels(void *context, int64_t first, int64_t last)
{
    work *w = context;
    const convolution *c = w->c;
    const int64_t chunks = rapt_divide_up(c->in, w->chunk), size = c->windows.size[0] * c->windows.size[1];
    char *room = rapt_scratch_borrow(&w->scratch);
    for (int64_t i = first; i < last; i++) {
        const int64_t group = i / chunks, channel = i % chunks * w->chunk;
        const int64_t channels = c->in - channel < w->chunk ? c->in - channel : w->chunk;
        char *dweight = w->out + bytes_of(c, group * c->out * c->depth + channel * size);
        for (int64_t image = group; image < c->items * c->groups; image += c->groups)
            for (int64_t from = 0, to, row; from < c->results; from = to) {
                to = end_of_block(c, from);
                const char *x = w->x + bytes_of(c, (image * c->in + channel) * c->pixels);
                const char *columns = columns_of(c, x, channels, from, to, room, &row);
                multiply(w, c->out, channels * size, to - from, w->g + bytes_of(c, image * c->out * c->results + from),
                         c->results, 1, columns, 1, row, dweight, c->depth, true);
            }
    }
    rapt_scratch_return(&w->scratch, room);
}

/* Runs so many tasks; false and an error when one had no memory. */
static bool run(work *w, int64_t tasks, rapt_task *task)
{
    const convolution *c = w->c;
    const int64_t columns = end_of_block(c, 0);
    double *const flops = rapt_flops; /* counted here for all threads */
    const size_t room = c->is_dense ? 0 : (size_t)bytes_of(c, c->depth * columns);
    if (!rapt_scratch_take(c->op, &w->scratch, tasks, room)) return false;
    rapt_count_flops(2 * (double)c->items * (double)c->groups * (double)c->out * (double)c->results * (double)c->depth);
    rapt_flops = NULL;
    rapt_parallel(tasks, rapt_grain(c->depth * columns), task, w);
    rapt_flops = flops;
    rapt_scratch_give(&w->scratch);
    return !w->failed || rapt_fail(RAPT_ERROR_MEMORY, c->op, "no memory for a product of %lld rows", (long long)c->out);
}

/* --- ops --- */

static int axes_of(const rapt_call *call);

/* y[b, o] = bias[o] + Σ weight[o, c] over the windows of the channels c of o's group */
static rapt_tensor *forward(rapt_call *call)
{
    RAPT_SCOPE;
    rapt_tensor *x = rapt_call_input(call, 0), *weight = rapt_call_input(call, 1), *bias = rapt_call_input(call, 2);
    const char *op = rapt_call_op(call)->name;
    const int axes = axes_of(call);
    convolution c;
    if (!read(&c, op, axes, rapt_call_options(call), x, weight, bias)) return NULL;
    const int64_t shape[] = {c.items, weight->shape[0], c.windows.out[2 - axes], c.windows.out[1]};
    rapt_tensor *y = rapt_new(op, c.dtype, axes + 2, shape);
    const rapt_tensor *dense_x = rapt_as_contiguous(x), *dense_weight = rapt_as_contiguous(weight);
    if (!y || !dense_x || !dense_weight) return NULL;
    if (bias) {
        rapt_tensor *each =
            rapt_expand(rapt_reshape(bias, axes + 1, (const int64_t[]){weight->shape[0], 1, 1}), axes + 2, shape);
        if (!each) return NULL;
        rapt_map(rapt_kernel.elementwise.cast[c.dtype][c.dtype], NULL, 1, 2, (const rapt_tensor *[]){y, each});
    }
    work w = {.c = &c, .x = dense_x->data, .weight = dense_weight->data, .out = y->data, .accumulate = bias != NULL};
    w.blocks = rapt_divide_up(c.results, c.block);
    if (y->count > 0 && !run(&w, c.items * c.groups * w.blocks, forward_blocks)) return NULL;
    for (int i = 0; i < 3; i++) rapt_call_save(call, rapt_call_input(call, i));
    return rapt_keep(y);
}

/* Of g, x and weight: dx, or dweight. */
typedef struct backward_options {
    rapt_convolution how;
    int axes;
    bool of_weight;
} backward_options;

static rapt_tensor *backward_forward(rapt_call *call)
{
    RAPT_SCOPE;
    const backward_options *o = rapt_call_options(call);
    const rapt_tensor *g = rapt_as_contiguous(rapt_call_input(call, 0)), *x = rapt_call_input(call, 1),
                      *weight = rapt_call_input(call, 2), *result_of = o->of_weight ? weight : x;
    convolution c;
    if (!g || !read(&c, "conv_backward", o->axes, &o->how, x, weight, NULL)) return NULL;
    rapt_tensor *result = c.is_dense && !o->of_weight && g->count > 0
                              ? rapt_new_shaped(c.op, c.dtype, result_of)
                              : rapt_zeros(c.dtype, result_of->rank, result_of->shape);
    const rapt_tensor *other = rapt_as_contiguous(o->of_weight ? x : weight);
    if (!result || !other) return NULL;
    if (result->count == 0 || g->count == 0) return rapt_keep(result);
    enum { chunks = 4 }; /* of a group's channels */
    work w = {.c = &c, .g = g->data, .x = other->data, .weight = other->data, .out = result->data};
    w.chunk = c.in > chunks ? rapt_divide_up(c.in, chunks) : 1;
    const bool good = o->of_weight ? run(&w, c.groups * rapt_divide_up(c.in, w.chunk), backward_channels)
                                   : run(&w, c.items * c.groups, backward_images);
    return good ? rapt_keep(result) : NULL;
}

static const rapt_op backward = {.name = "conv_backward",
                                 .forward = backward_forward,
                                 .options_size = sizeof(backward_options)};

static bool vjp(rapt_call *call)
{
    const int axes = axes_of(call);
    rapt_tensor *g = rapt_call_gradient(call, 0), *x = rapt_call_saved(call, 0), *weight = rapt_call_saved(call, 1);
    if (!x || !weight) return false;
    for (int i = 0; i < 2; i++) {
        const backward_options o = {*(const rapt_convolution *)rapt_call_options(call), axes, i == 1};
        if (rapt_call_wants(call, i) && !rapt_call_give(call, i, RAPT_APPLY(&backward, &o, g, x, weight))) return false;
    }
    if (!rapt_call_wants(call, 2)) return true;
    return rapt_call_give(call, 2, rapt_sum(g, axes + 1, (const int[]){0, 2, 3}, false));
}

/* The product of the weight with all columns. */
static rapt_tensor *definition(rapt_call *call)
{
    const int axes = axes_of(call);
    rapt_tensor *x = rapt_call_input(call, 0), *weight = rapt_call_input(call, 1), *bias = rapt_call_input(call, 2);
    convolution c;
    if (!read(&c, rapt_call_op(call)->name, axes, rapt_call_options(call), x, weight, bias)) return NULL;
    const int64_t shape[] = {c.items, weight->shape[0], c.windows.out[2 - axes], c.windows.out[1]};
    rapt_tensor *images = rapt_reshape(x, RAPT_SHAPE(c.items, x->shape[1], c.windows.in[0], c.windows.in[1]));
    rapt_tensor *columns =
        rapt_reshape(rapt_unfold(images, &c.windows), RAPT_SHAPE(c.items, c.groups, c.depth, c.results));
    rapt_tensor *y = rapt_matmul(rapt_reshape(weight, RAPT_SHAPE(c.groups, c.out, c.depth)), columns);
    y = rapt_reshape(y, axes + 2, shape);
    return bias ? rapt_add(y, rapt_reshape(bias, axes + 1, (const int64_t[]){weight->shape[0], 1, 1})) : y;
}

#define CONVOLUTION(kind)                                                                                              \
    static const rapt_op kind = {.name = #kind,                                                                        \
                                 .forward = forward,                                                                   \
                                 .vjp = vjp,                                                                           \
                                 .definition = definition,                                                             \
                                 .options_size = sizeof(rapt_convolution),                                             \
                                 .optional = 1 << 2};                                                                  \
    rapt_tensor *rapt_##kind(rapt_tensor *x, rapt_tensor *weight, rapt_tensor *bias, const rapt_convolution *options)  \
    {                                                                                                                  \
        static const rapt_convolution none = {0};                                                                      \
        return RAPT_APPLY(&kind, options ? options : &none, x, weight, bias);                                          \
    }

CONVOLUTION(conv1d)
CONVOLUTION(conv2d)

static int axes_of(const rapt_call *call)
{
    return rapt_call_op(call) == &conv1d ? 1 : 2;
}
