/* Cross-entropy of logits and class numbers. The softmax is never stored: backward makes it from two numbers for each row. */
#include <rapt/ops.h>

#include "autograd/loss.h"
#include "tensor/kernels.h"
#include "tensor/parallel.h"

typedef struct work {
    int64_t classes;
    double smoothing;
    const rapt_tensor *logits, *targets, *g;
    rapt_tensor *losses, *statistics, *dx;
} work;

static char *at(const rapt_tensor *tensor, int64_t index)
{
    return tensor->data + index * (int64_t)rapt_dtype_size((rapt_dtype)tensor->dtype);
}

static void forward_rows(void *context, int64_t first, int64_t last)
{
    const work *w = context;
    rapt_kernel.loss.cross_entropy[w->logits->dtype](last - first, w->classes, w->smoothing,
                                                     at(w->logits, first * w->classes),
                                                     (const int64_t *)(void *)at(w->targets, first),
                                                     at(w->losses, first), at(w->statistics, 2 * first));
}

static void backward_rows(void *context, int64_t first, int64_t last)
{
    const work *w = context;
    int64_t step = w->g->rank > 0;
    rapt_kernel.loss.cross_entropy_backward[w->logits->dtype](last - first, w->classes, w->smoothing,
                                                              at(w->logits, first * w->classes),
                                                              (const int64_t *)(void *)at(w->targets, first),
                                                              at(w->statistics, 2 * first), at(w->g, step * first),
                                                              step, at(w->dx, first * w->classes));
}

/* dx = g (softmax(x) − q), g a scalar or one for each row; q = (1 − ε) one-hot + ε / classes; 0 in rows left out */
static rapt_tensor *backward_forward(rapt_call *call)
{
    const double *smoothing = rapt_call_options(call);
    const rapt_tensor *x = rapt_call_input(call, 1);
    work w = {.classes = x->shape[x->rank - 1], .smoothing = *smoothing, .targets = rapt_call_input(call, 2)};
    w.g = rapt_as_contiguous(rapt_call_input(call, 0));
    w.logits = rapt_as_contiguous(x);
    w.statistics = rapt_call_input(call, 3);
    w.dx = rapt_new("cross_entropy_backward", (rapt_dtype)x->dtype, x->rank, x->shape);
    if (!w.g || !w.logits || !w.dx) return NULL;
    for (int i = 0; i < 4; i++) rapt_call_save(call, rapt_call_input(call, i));
    rapt_parallel(w.targets->count, rapt_grain(8 * w.classes), backward_rows, &w);
    return w.dx;
}

static bool backward_vjp(rapt_call *call);

static const rapt_op backward = {.name = "cross_entropy_backward",
                                 .forward = backward_forward,
                                 .vjp = backward_vjp,
                                 .options_size = sizeof(double)};

/* Σ u dx, with y = softmax(x): dg = Σ u (y − q) over each row, dx = g y (u − Σ u y) */
static bool backward_vjp(rapt_call *call)
{
    rapt_tensor *u = rapt_call_gradient(call, 0), *g = rapt_call_saved(call, 0), *x = rapt_call_saved(call, 1);
    rapt_tensor *targets = rapt_call_saved(call, 2), *statistics = rapt_call_saved(call, 3);
    if (!g || !x || !targets || !statistics) return false;
    rapt_dtype dtype = (rapt_dtype)x->dtype;
    if (rapt_call_wants(call, 0)) {
        const void *smoothing = rapt_call_options(call);
        rapt_tensor *unit = RAPT_APPLY(&backward, smoothing, rapt_scalar(dtype, 1), x, targets, statistics);
        if (!rapt_call_give(call, 0, rapt_sum(rapt_mul(u, unit), RAPT_AXES(-1), false))) return false;
    }
    if (!rapt_call_wants(call, 1)) return true;
    rapt_tensor *counts = rapt_cast(rapt_greater_equal(targets, rapt_scalar(RAPT_INT64, 0)), dtype);
    rapt_tensor *factor = rapt_unsqueeze(rapt_mul(g, counts), -1), *y = rapt_softmax(x, -1);
    rapt_tensor *slope = rapt_mul(y, rapt_sub(u, rapt_sum(rapt_mul(u, y), RAPT_AXES(-1), true)));
    return rapt_call_give(call, 1, rapt_mul(factor, slope));
}

/* y = −Σ q log softmax(x), over the rows that count: dx = dy (softmax(x) − q) */
static rapt_tensor *forward(rapt_call *call)
{
    const rapt_cross_entropy_options *o = rapt_call_options(call);
    rapt_tensor *x = rapt_call_input(call, 0);
    int64_t counted;
    rapt_tensor *targets = rapt_check_targets("cross_entropy", o, x, rapt_call_input(call, 1), &counted);
    if (!targets) return NULL;
    work w = {.classes = x->shape[x->rank - 1], .smoothing = o->label_smoothing, .targets = targets};
    w.logits = rapt_as_contiguous(x);
    w.losses = rapt_new("cross_entropy", (rapt_dtype)x->dtype, targets->rank, targets->shape);
    w.statistics = rapt_new("cross_entropy", (rapt_dtype)x->dtype, 2, (int64_t[]){targets->count, 2});
    if (!w.logits || !w.losses || !w.statistics) return NULL;
    rapt_parallel(targets->count, rapt_grain(8 * w.classes), forward_rows, &w);
    rapt_call_save(call, x);
    rapt_call_save(call, targets);
    rapt_call_save_constant(call, w.statistics); /* the backward op accounts for the x that they are made of */
    return rapt_reduce_counted(w.losses, o->reduction, counted);
}

static bool vjp(rapt_call *call)
{
    const rapt_cross_entropy_options *o = rapt_call_options(call);
    rapt_tensor *x = rapt_call_saved(call, 0), *targets = rapt_call_saved(call, 1),
                *statistics = rapt_call_saved(call, 2);
    if (!x || !targets || !statistics) return false;
    rapt_tensor *g = rapt_call_gradient(call, 0);
    if (o->reduction == RAPT_REDUCE_MEAN) {
        int64_t counted = 0;
        for (int64_t row = 0; row < targets->count; row++) counted += ((const int64_t *)targets->data)[row] >= 0;
        g = rapt_mul_scalar(g, counted ? 1 / (double)counted : 0);
    }
    return rapt_call_give(call, 0, RAPT_APPLY(&backward, &o->label_smoothing, g, x, targets, statistics));
}

static const rapt_op cross_entropy = {.name = "cross_entropy",
                                      .forward = forward,
                                      .vjp = vjp,
                                      .options_size = sizeof(rapt_cross_entropy_options)};

rapt_tensor *rapt_cross_entropy(rapt_tensor *logits, rapt_tensor *targets, const rapt_cross_entropy_options *options)
{
    static const rapt_cross_entropy_options standard = {.reduction = RAPT_REDUCE_MEAN};
    return RAPT_APPLY(&cross_entropy, options ? options : &standard, logits, targets);
}
