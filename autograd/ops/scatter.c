/* scatter and scatter_add, the gradient of all that is chosen by indices. Each place is written in one fixed order. */
#include <rapt/ops.h>

#include <string.h>

#include "indices.h"
#include "tensor/map.h"
#include "tensor/parallel.h"

typedef struct scatter_options {
    int axis;
    int rank; /* the output's shape where x is NULL, which stands for zeros */
    int64_t shape[RAPT_MAX_RANK];
} scatter_options;

enum { out, from, chosen, operands };

/* Lines along the axis are independent of each other: they are cut into pieces, and each piece walks along the axis. */
typedef struct scatter_walk {
    rapt_loop *loop;
    int64_t step, length;           /* along the axis */
    int64_t axis_strides[operands]; /* in bytes, as all strides here; 0 for out */
    int64_t inner, piece, pieces;   /* the last axis, where that is not the axis itself */
    int64_t inner_strides[operands];
    int outer_rank;
    int64_t outer_shape[RAPT_MAX_RANK];
    int64_t outer_strides[RAPT_MAX_RANK][operands];
    char *data[operands];
} scatter_walk;

static void scatter_pieces(void *context, int64_t first, int64_t last)
{
    const scatter_walk *w = context;
    for (int64_t item = first; item < last; item++) {
        char *data[operands];
        int64_t start = item % w->pieces * w->piece, outer = item / w->pieces;
        int64_t size = w->inner - start < w->piece ? w->inner - start : w->piece;
        for (int k = 0; k < operands; k++) data[k] = w->data[k] + start * w->inner_strides[k];
        for (int axis = w->outer_rank - 1; axis >= 0; axis--) {
            int64_t position = outer % w->outer_shape[axis];
            outer /= w->outer_shape[axis];
            for (int k = 0; k < operands; k++) data[k] += position * w->outer_strides[axis][k];
        }
        if (w->inner == 1) {
            w->loop(w->length, data, w->axis_strides, &w->step);
            continue;
        }
        for (int64_t i = 0; i < w->length; i++) {
            w->loop(size, data, w->inner_strides, &w->step);
            for (int k = 0; k < operands; k++) data[k] += w->axis_strides[k];
        }
    }
}

static void scatter_by(const rapt_loops loops, const rapt_tensor *const *tensors, int axis)
{
    enum { block = 64, enough = 16 }; /* columns in a piece, unless there are pieces enough already */
    const rapt_tensor *shaped = tensors[chosen];
    if (shaped->count == 0) return;
    scatter_walk w = {.length = shaped->shape[axis], .inner = 1};
    w.loop = loops[tensors[out]->dtype];
    int64_t items = 1;
    for (int i = 0; i < shaped->rank; i++) {
        int64_t *strides = i == axis ? w.axis_strides : w.outer_strides[w.outer_rank];
        if (i != axis && i == shaped->rank - 1) strides = w.inner_strides;
        for (int k = 0; k < operands; k++)
            strides[k] = tensors[k]->strides[i] * (int64_t)rapt_dtype_size(tensors[k]->dtype);
        if (strides == w.inner_strides) {
            w.inner = shaped->shape[i];
        } else if (strides != w.axis_strides) {
            w.outer_shape[w.outer_rank++] = shaped->shape[i];
            items *= shaped->shape[i];
        }
    }
    w.step = w.axis_strides[out];
    w.axis_strides[out] = 0;
    for (int k = 0; k < operands; k++) w.data[k] = tensors[k]->data;
    w.piece = items >= enough || w.inner < block ? w.inner : block;
    w.pieces = (w.inner + w.piece - 1) / w.piece;
    rapt_parallel(items * w.pieces, rapt_grain(2 * w.length * w.piece), scatter_pieces, &w);
}

static bool check_dtypes(const char *op, const rapt_tensor *x, const rapt_tensor *source, bool floating)
{
    if ((!floating || rapt_is_floating(source)) && (!x || x->dtype == source->dtype)) return true;
    return rapt_fail(RAPT_ERROR_DTYPE, op, "x is %s, source is %s; one %sdtype expected (rapt_cast converts)",
                     x ? rapt_dtype_name(x->dtype) : "zeros", rapt_dtype_name(source->dtype),
                     floating ? "floating " : "");
}

static bool check_shapes(const char *op, int rank, const int64_t *shape, int axis, const rapt_tensor *indices,
                         const rapt_tensor *source)
{
    bool fits = indices->rank == rank && rapt_same_shape(indices, source);
    for (int i = 0; fits && i < rank; i++) fits = i == axis || indices->shape[i] <= shape[i];
    if (fits) return true;
    char a[RAPT_SHAPE_TEXT], b[RAPT_SHAPE_TEXT], c[RAPT_SHAPE_TEXT];
    return rapt_fail(
        RAPT_ERROR_SHAPE, op,
        "x is %s, indices are %s, source is %s; indices and source of one shape expected, within x's but for axis %d",
        rapt_shape_text(rank, shape, a), rapt_shape_text(indices->rank, indices->shape, b),
        rapt_shape_text(source->rank, source->shape, c), axis);
}

/* x, or zeros where it is NULL, with the source's elements put where the indices say. Keeps the indices. */
static rapt_tensor *forward(rapt_call *call, const rapt_loops loops, bool floating)
{
    const char *op = rapt_call_op(call)->name;
    const rapt_tensor *x = rapt_call_input(call, 0), *source = rapt_call_input(call, 2);
    const scatter_options *o = rapt_call_options(call);
    int rank = x ? x->rank : o->rank;
    const int64_t *shape = x ? x->shape : o->shape;
    int axis = rapt_check_axis(op, o->axis, rank, 0);
    if (axis < 0 || !check_dtypes(op, x, source, floating) ||
        !check_shapes(op, rank, shape, axis, rapt_call_input(call, 1), source))
        return NULL;
    rapt_tensor *indices = rapt_checked_indices(op, rapt_call_input(call, 1), shape[axis]);
    rapt_tensor *output = indices ? rapt_new(op, source->dtype, rank, shape) : NULL;
    if (!output) return NULL;
    const double zero = 0;
    if (x)
        rapt_map(rapt_kernel.elementwise.cast[x->dtype][x->dtype], NULL, 1, 2, (const rapt_tensor *[]){output, x});
    else
        rapt_map(rapt_kernel.elementwise.fill[output->dtype], &zero, 1, 1, (const rapt_tensor *[]){output});
    scatter_by(loops, (const rapt_tensor *[]){output, source, indices}, axis);
    rapt_call_save(call, indices);
    return output;
}

/* out = x, then out[indices[i, j, …], j, …] += source[i, j, …] for axis 0; d out = dx, and d source gathered back */
static rapt_tensor *scatter_add_forward(rapt_call *call)
{
    return forward(call, rapt_kernel.index.scatter_add, true);
}

static bool scatter_add_vjp(rapt_call *call)
{
    const scatter_options *o = rapt_call_options(call);
    rapt_tensor *g = rapt_call_gradient(call, 0);
    if (rapt_call_wants(call, 2) && !rapt_call_give(call, 2, rapt_gather(g, o->axis, rapt_call_saved(call, 0))))
        return false;
    return rapt_call_give(call, 0, g);
}

static const rapt_op scatter_add = {.name = "scatter_add",
                                    .forward = scatter_add_forward,
                                    .vjp = scatter_add_vjp,
                                    .options_size = sizeof(scatter_options),
                                    .optional = 1};

rapt_tensor *rapt_scatter_add(rapt_tensor *x, int axis, rapt_tensor *indices, rapt_tensor *source)
{
    if (x) return RAPT_APPLY(&scatter_add, (&(scatter_options){.axis = axis}), x, indices, source);
    rapt_fail_null("scatter_add", "x");
    return NULL;
}

/* Which elements of the source stayed: all but those that a later one with the same index took the place of. */
static rapt_tensor *find_last(rapt_tensor *g, int axis, rapt_tensor *indices)
{
    int64_t alone[RAPT_MAX_RANK];
    for (int i = 0; i < g->rank; i++) alone[i] = 1;
    if (axis < 0) axis += g->rank;
    alone[axis] = indices->shape[axis];
    rapt_tensor *places = rapt_arange(RAPT_INT64, 0, (double)alone[axis], 1);
    places = rapt_expand(rapt_reshape(places, g->rank, alone), g->rank, indices->shape);
    rapt_tensor *last = rapt_scatter(rapt_zeros(RAPT_INT64, g->rank, g->shape), axis, indices, places);
    return rapt_equal(rapt_gather(last, axis, indices), places);
}

/* out = x, then out[indices[i, j, …], j, …] = source[i, j, …] for axis 0; dx is d out but for these places */
static rapt_tensor *scatter_forward(rapt_call *call)
{
    return forward(call, rapt_kernel.index.scatter, false);
}

static bool scatter_vjp(rapt_call *call)
{
    const int axis = ((const scatter_options *)rapt_call_options(call))->axis;
    rapt_tensor *g = rapt_call_gradient(call, 0), *indices = rapt_call_saved(call, 0);
    if (!g || !indices) return false;
    if (rapt_call_wants(call, 2)) {
        rapt_tensor *hidden = rapt_logical_not(find_last(g, axis, indices));
        if (!rapt_call_give(call, 2, rapt_masked_fill(rapt_gather(g, axis, indices), hidden, 0))) return false;
    }
    if (!rapt_call_wants(call, 0)) return true;
    rapt_tensor *zeros = rapt_zeros(g->dtype, indices->rank, indices->shape);
    return rapt_call_give(call, 0, rapt_scatter(g, axis, indices, zeros));
}

static const rapt_op scatter = {.name = "scatter",
                                .forward = scatter_forward,
                                .vjp = scatter_vjp,
                                .options_size = sizeof(scatter_options)};

rapt_tensor *rapt_scatter(rapt_tensor *x, int axis, rapt_tensor *indices, rapt_tensor *source)
{
    return RAPT_APPLY(&scatter, (&(scatter_options){.axis = axis}), x, indices, source);
}

bool rapt_give_scattered(rapt_call *call, int axis, rapt_tensor *indices, rapt_tensor *g)
{
    scatter_options options = {.axis = axis};
    const int64_t *shape = rapt_call_input_shape(call, 0, &options.rank);
    memcpy(options.shape, shape, (size_t)options.rank * sizeof *shape);
    if (axis < 0) axis += options.rank;
    rapt_tensor *sum = rapt_call_gradient_so_far(call, 0);
    if (!sum || !indices || !g) return rapt_call_give(call, 0, RAPT_APPLY(&scatter_add, &options, NULL, indices, g));
    const rapt_tensor *checked = rapt_checked_indices("scatter_add", indices, shape[axis]);
    if (!checked) return false;
    scatter_by(rapt_kernel.index.scatter_add, (const rapt_tensor *[]){sum, g, checked}, axis);
    return true;
}
