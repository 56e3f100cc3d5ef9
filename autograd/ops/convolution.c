/* conv1d and conv2d: products of the weight with windows as columns. */
#include <rapt/ops.h>

#include "autograd/checks.h"
#include "convolution_direct.h"

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
static bool read(rapt_convolution_sizes *c, const char *op, int axes, const rapt_convolution *o, const rapt_tensor *x,
                 const rapt_tensor *weight, const rapt_tensor *bias)
{
    const int64_t groups = rapt_or_one(o->groups);
    if (!check_shapes(op, axes, x, weight, bias, groups)) return false;
    *c = (rapt_convolution_sizes){.op = op, .dtype = x->dtype, .items = x->shape[0], .groups = groups};
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
    return true;
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
    rapt_convolution_sizes c;
    if (!read(&c, op, axes, rapt_call_options(call), x, weight, bias)) return NULL;
    const int64_t shape[] = {c.items, weight->shape[0], c.windows.out[2 - axes], c.windows.out[1]};
    rapt_tensor *y = rapt_new(op, c.dtype, axes + 2, shape);
    const rapt_tensor *dense_x = rapt_as_contiguous(x), *dense_weight = rapt_as_contiguous(weight);
    if (!y || !dense_x || !dense_weight) return NULL;
    const rapt_tensor *dense_bias = bias ? rapt_as_contiguous(bias) : NULL;
    if (bias && !dense_bias) return NULL;
    if (y->count > 0 &&
        !(rapt_convolution_is_direct(&c) ? rapt_convolution_direct_forward
                                         : rapt_convolution_forward)(&c, dense_x->data, dense_weight->data,
                                                                     bias ? dense_bias->data : NULL, y->data))
        return NULL;
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
    rapt_convolution_sizes c;
    if (!g || !read(&c, "conv_backward", o->axes, &o->how, x, weight, NULL)) return NULL;
    rapt_tensor *result = c.is_dense && !o->of_weight && g->count > 0
                              ? rapt_new_shaped(c.op, c.dtype, result_of)
                              : rapt_zeros(c.dtype, result_of->rank, result_of->shape);
    const rapt_tensor *other = rapt_as_contiguous(o->of_weight ? x : weight);
    if (!result || !other) return NULL;
    if (result->count == 0 || g->count == 0) return rapt_keep(result);
    const bool direct = rapt_convolution_is_direct(&c) && (o->of_weight || rapt_convolution_finite(&c, other->data));
    bool (*const run)(const rapt_convolution_sizes *, const char *, const char *, char *) =
        o->of_weight ? direct ? rapt_convolution_direct_of_weight : rapt_convolution_of_weight
        : direct     ? rapt_convolution_direct_of_x
                     : rapt_convolution_of_x;
    const bool good = run(&c, g->data, other->data, result->data);
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
    rapt_convolution_sizes c;
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
