/* conv1d and conv2d: products of the weight with windows as columns, some columns at a time. */
#include <rapt/ops.h>

#include "columns.h"
#include "tensor/kernels.h"
#include "tensor/map.h"
#include "tensor/matmul.h"
#include "tensor/memory.h"

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

static int64_t or_one(int64_t number)
{
    return number ? number : 1;
}

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
    const int64_t groups = or_one(o->groups);
    if (!check_shapes(op, axes, x, weight, bias, groups)) return false;
    *c = (convolution){.op = op, .dtype = x->dtype, .items = x->shape[0], .groups = groups};
    rapt_windows *w = &c->windows;
    *w = (rapt_windows){.size = {1, 1}, .stride = {1, 1}, .dilation = {1, 1}, .in = {1, 1}};
    for (int axis = 0; axis < axes; axis++) {
        const int k = axis + 2 - axes;
        w->size[k] = weight->shape[axis + 2];
        w->in[k] = x->shape[axis + 2];
        w->stride[k] = or_one(o->stride[axis]);
        w->padding[k] = o->padding[axis];
        w->dilation[k] = or_one(o->dilation[axis]);
    }
    if (!rapt_windows_place(op, w, false)) return false;
    c->in = weight->shape[1];
    c->out = weight->shape[0] / groups;
    c->depth = c->in * w->size[0] * w->size[1];
    c->pixels = w->in[0] * w->in[1];
    c->results = rapt_windows_count(w);
    c->is_dense = w->size[0] * w->size[1] * w->stride[0] * w->stride[1] == 1 && w->padding[0] + w->padding[1] == 0;
    c->block = c->is_dense ? c->results : block_of(c);
    return true;
}

/* Goes through items, groups and blocks of columns. */
typedef struct block {
    const convolution *c;
    char *columns; /* (depth, last − first) */
    size_t capacity;
    int64_t item, group, first, last, row; /* row: how far apart the columns' rows are */
} block;

/* False after an error. The first block comes with blocks_next. */
static bool blocks_begin(block *b, const convolution *c)
{
    *b = (block){.c = c, .row = c->results, .last = c->results, .group = c->groups - 1, .item = -1};
    if (c->is_dense) return true;
    const int64_t columns = c->results < c->block ? c->results : c->block;
    b->columns = rapt_block_take(c->op, (size_t)(c->depth * columns) * rapt_dtype_size(c->dtype), &b->capacity);
    return b->columns != NULL;
}

/* The next block, or false: the end. */
static bool blocks_next(block *b)
{
    const convolution *c = b->c;
    b->first = b->last;
    if (b->first == c->results) {
        b->first = 0;
        if (++b->group == c->groups) {
            b->group = 0;
            b->item++;
        }
    }
    b->last = c->results - b->first < c->block ? c->results : b->first + c->block;
    if (!c->is_dense) b->row = b->last - b->first;
    return b->item < c->items;
}

static void blocks_end(block *b)
{
    if (b->columns) rapt_block_give(b->columns, b->capacity);
}

/* Element `element` of the block's item and group of a tensor (items, groups·channels, size). */
static char *at(const block *b, const rapt_tensor *tensor, int64_t channels, int64_t size, int64_t element)
{
    const int64_t before = (b->item * b->c->groups + b->group) * channels * size + element;
    return tensor->data + before * (int64_t)rapt_dtype_size(tensor->dtype);
}

static char *weight_of(const block *b, const rapt_tensor *weight)
{
    return weight->data + b->group * b->c->out * b->c->depth * (int64_t)rapt_dtype_size(weight->dtype);
}

static const char *columns_of(const block *b, const rapt_tensor *x)
{
    const convolution *c = b->c;
    if (c->is_dense) return at(b, x, c->in, c->pixels, b->first);
    rapt_columns_fill(&c->windows, c->dtype, c->in, at(b, x, c->in, c->pixels, 0), b->first, b->last, b->columns);
    return b->columns;
}

/* y = weight · columns (+ y) */
static bool multiply(const convolution *c, const rapt_tensor *x, const rapt_tensor *weight, rapt_tensor *y,
                     bool accumulate)
{
    block b;
    bool good = blocks_begin(&b, c);
    while (good && blocks_next(&b))
        good = rapt_gemm(c->op, c->dtype, c->out, b.last - b.first, c->depth, weight_of(&b, weight), c->depth, 1,
                         columns_of(&b, x), b.row, 1, at(&b, y, c->out, c->results, b.first), c->results, accumulate);
    blocks_end(&b);
    return good;
}

/* dx = weightᵀ g, each number where it came from */
static bool multiply_back(const convolution *c, const rapt_tensor *g, const rapt_tensor *weight, rapt_tensor *dx)
{
    block b;
    bool good = blocks_begin(&b, c);
    while (good && blocks_next(&b)) {
        char *image = at(&b, dx, c->in, c->pixels, 0);
        good = rapt_gemm(c->op, c->dtype, c->depth, b.last - b.first, c->out, weight_of(&b, weight), 1, c->depth,
                         at(&b, g, c->out, c->results, b.first), c->results, 1, c->is_dense ? image : b.columns, b.row,
                         false);
        if (good && !c->is_dense) rapt_columns_add(&c->windows, c->dtype, c->in, b.columns, b.first, b.last, image);
    }
    blocks_end(&b);
    return good;
}

/* dweight = Σ g columnsᵀ */
static bool multiply_with_gradient(const convolution *c, const rapt_tensor *g, const rapt_tensor *x,
                                   rapt_tensor *dweight)
{
    block b;
    bool good = blocks_begin(&b, c);
    while (good && blocks_next(&b))
        good = rapt_gemm(c->op, c->dtype, c->out, c->depth, b.last - b.first, at(&b, g, c->out, c->results, b.first),
                         c->results, 1, columns_of(&b, x), 1, b.row, weight_of(&b, dweight), c->depth, true);
    blocks_end(&b);
    return good;
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
    if (!multiply(&c, dense_x, dense_weight, y, bias != NULL)) return NULL;
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
    rapt_tensor *result = c.is_dense && !o->of_weight ? rapt_new_shaped(c.op, c.dtype, result_of)
                                                      : rapt_zeros(c.dtype, result_of->rank, result_of->shape);
    const rapt_tensor *other = rapt_as_contiguous(o->of_weight ? x : weight);
    if (!result || !other) return NULL;
    const bool good = o->of_weight ? multiply_with_gradient(&c, g, other, result) : multiply_back(&c, g, other, result);
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
