/* Softmax and its logarithm along an axis. */
#include <rapt/ops.h>

#include "row_op.h"
#include "tensor/kernels.h"
#include "tensor/parallel.h"

/* The axis, counted from the last one: −1 for rows, and for rows side by side the one that they go along. */
typedef struct softmax_options {
    int axis;
} softmax_options;

static int axis_of(const rapt_call *call)
{
    return ((const softmax_options *)rapt_call_options(call))->axis;
}

/* Rows side by side: dense tensors of one shape, whose axis has `inner` elements behind each place. */
typedef struct work {
    rapt_side_by_side_loop *loop;
    int64_t n, inner, tiles; /* tiles of neighbouring rows */
    const rapt_tensor *a, *b;
    rapt_tensor *out;
} work;

static void run_tiles(void *context, int64_t first, int64_t last)
{
    const work *w = context;
    for (int64_t i = first; i < last; i++) {
        const int64_t column = i % w->tiles * rapt_rows_side_by_side, from = i / w->tiles * w->n * w->inner + column;
        w->loop(w->n, rapt_smaller_of(w->inner - column, rapt_rows_side_by_side), w->inner, rapt_data_at(w->a, from),
                w->b ? rapt_data_at(w->b, from) : NULL, rapt_data_at(w->out, from));
    }
}

static int64_t size_behind(const rapt_tensor *x, int axis)
{
    int64_t size = 1;
    for (int i = x->rank + axis + 1; i < x->rank; i++) size *= x->shape[i];
    return size;
}

/* Runs the loop of rows, or of rows side by side, of a and perhaps b. NULL after an error. */
static rapt_tensor *run(rapt_call *call, const rapt_loops rows, rapt_side_by_side_loop *const *side_by_side,
                        int64_t cost, rapt_tensor *a, rapt_tensor *b)
{
    const char *op = rapt_call_op(call)->name;
    const int axis = axis_of(call);
    if (axis == -1) return rapt_map_rows(op, rows, cost, b ? 2 : 1, (rapt_tensor *[]){a, b});
    if (!rapt_check_floating(op, a)) return NULL;
    RAPT_SCOPE;
    work w = {.loop = side_by_side[a->dtype], .n = a->shape[a->rank + axis], .inner = size_behind(a, axis)};
    w.tiles = rapt_divide_up(w.inner, rapt_rows_side_by_side);
    w.a = rapt_as_contiguous(a);
    w.b = b ? rapt_as_contiguous(b) : NULL;
    w.out = rapt_new(op, a->dtype, a->rank, a->shape);
    if (!w.a || (b && !w.b) || !w.out) return NULL;
    if (a->count > 0)
        rapt_parallel(a->count / (w.n * w.inner) * w.tiles, rapt_grain(cost * w.n * rapt_rows_side_by_side), run_tiles,
                      &w);
    return rapt_keep(w.out);
}

static rapt_tensor *sums(rapt_call *call, rapt_tensor *x)
{
    return rapt_sum(x, RAPT_AXES(axis_of(call)), true);
}

/* Rows too few to lie side by side are brought to where the last axis is. */
static rapt_tensor *apply(const rapt_op *op, rapt_tensor *x, int axis)
{
    enum { enough_rows = 16 };
    if (x && (axis = rapt_check_axis(op->name, axis, x->rank, 0)) < 0) return NULL;
    const int from_last = x ? axis - x->rank : -1;
    if (from_last < -1 && size_behind(x, from_last) >= enough_rows)
        return RAPT_APPLY(op, (&(softmax_options){from_last}), x);
    return rapt_apply_along(op, &(softmax_options){-1}, x, axis);
}

/* dx = y (g − Σ g y) */
static rapt_tensor *softmax_backward_forward(rapt_call *call)
{
    rapt_tensor *g = rapt_call_input(call, 0), *y = rapt_call_input(call, 1);
    rapt_call_save(call, g);
    rapt_call_save(call, y);
    return run(call, rapt_kernel.softmax.softmax_backward, rapt_kernel.softmax.softmax_backward_side_by_side, 2, g, y);
}

static bool softmax_backward_vjp(rapt_call *call);

static const rapt_op softmax_backward = {.name = "softmax_backward",
                                         .forward = softmax_backward_forward,
                                         .vjp = softmax_backward_vjp,
                                         .options_size = sizeof(softmax_options)};

/* Σ u dx: dg = y (u − Σ u y), dy = u (g − Σ g y) − g Σ u y */
static bool softmax_backward_vjp(rapt_call *call)
{
    rapt_tensor *u = rapt_call_gradient(call, 0), *g = rapt_call_saved(call, 0), *y = rapt_call_saved(call, 1);
    if (rapt_call_wants(call, 0) &&
        !rapt_call_give(call, 0, RAPT_APPLY(&softmax_backward, rapt_call_options(call), u, y)))
        return false;
    if (!rapt_call_wants(call, 1)) return true;
    rapt_tensor *first = rapt_mul(u, rapt_sub(g, sums(call, rapt_mul(g, y))));
    return rapt_call_give(call, 1, rapt_sub(first, rapt_mul(g, sums(call, rapt_mul(u, y)))));
}

/* y = exp x / Σ exp x: dx = y (dy − Σ dy y) */
static rapt_tensor *softmax_forward(rapt_call *call)
{
    rapt_tensor *x = rapt_call_input(call, 0);
    rapt_tensor *y = run(call, rapt_kernel.softmax.softmax, rapt_kernel.softmax.softmax_side_by_side, 8, x, NULL);
    rapt_call_save(call, y);
    return y;
}

static bool softmax_vjp(rapt_call *call)
{
    rapt_tensor *g = rapt_call_gradient(call, 0), *y = rapt_call_saved(call, 0);
    return rapt_call_give(call, 0, RAPT_APPLY(&softmax_backward, rapt_call_options(call), g, y));
}

static const rapt_op softmax = {.name = "softmax",
                                .forward = softmax_forward,
                                .vjp = softmax_vjp,
                                .options_size = sizeof(softmax_options)};

rapt_tensor *rapt_softmax(rapt_tensor *x, int axis)
{
    return apply(&softmax, x, axis);
}

/* dx = g − exp(y) Σ g */
static rapt_tensor *log_softmax_backward_forward(rapt_call *call)
{
    rapt_tensor *g = rapt_call_input(call, 0), *y = rapt_call_input(call, 1);
    rapt_call_save(call, rapt_call_wants(call, 1) ? g : NULL);
    rapt_call_save(call, y);
    return run(call, rapt_kernel.softmax.log_softmax_backward, rapt_kernel.softmax.log_softmax_backward_side_by_side, 8,
               g, y);
}

/* Σ u dx: dg = u − Σ u exp(y), dy = −u exp(y) Σ g */
static bool log_softmax_backward_vjp(rapt_call *call)
{
    rapt_tensor *u = rapt_call_gradient(call, 0);
    rapt_tensor *product = rapt_mul(u, rapt_exp(rapt_call_saved(call, 1)));
    if (!rapt_call_give(call, 0, rapt_sub(u, sums(call, product)))) return false;
    if (!rapt_call_wants(call, 1)) return true;
    return rapt_call_give(call, 1, rapt_neg(rapt_mul(product, sums(call, rapt_call_saved(call, 0)))));
}

static const rapt_op log_softmax_backward = {.name = "log_softmax_backward",
                                             .forward = log_softmax_backward_forward,
                                             .vjp = log_softmax_backward_vjp,
                                             .options_size = sizeof(softmax_options)};

/* y = x − log Σ exp x: dx = dy − exp(y) Σ dy */
static rapt_tensor *log_softmax_forward(rapt_call *call)
{
    rapt_tensor *x = rapt_call_input(call, 0);
    rapt_tensor *y =
        run(call, rapt_kernel.softmax.log_softmax, rapt_kernel.softmax.log_softmax_side_by_side, 8, x, NULL);
    rapt_call_save(call, y);
    return y;
}

static bool log_softmax_vjp(rapt_call *call)
{
    rapt_tensor *g = rapt_call_gradient(call, 0), *y = rapt_call_saved(call, 0);
    return rapt_call_give(call, 0, RAPT_APPLY(&log_softmax_backward, rapt_call_options(call), g, y));
}

static const rapt_op log_softmax = {.name = "log_softmax",
                                    .forward = log_softmax_forward,
                                    .vjp = log_softmax_vjp,
                                    .options_size = sizeof(softmax_options)};

rapt_tensor *rapt_log_softmax(rapt_tensor *x, int axis)
{
    return apply(&log_softmax, x, axis);
}
