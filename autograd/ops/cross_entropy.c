/* cross_entropy, whose softmax is never stored. Where one number comes out, forward makes the gradient too, while a row
 * is in the cache; else backward makes it from two numbers for each row. */
#include "class_loss.h"
#include "tensor/core.h"
#include "tensor/kernels.h"
#include "tensor/parallel.h"
#include "tensor/scratch.h"

typedef struct work {
    int64_t classes;
    double smoothing;
    const rapt_tensor *logits, *targets, *g;
    rapt_tensor *losses, *statistics, *dx; /* statistics may be NULL */
    rapt_scratch scratch;                  /* for rows of exponentials where dx is large */
} work;

static void forward_rows(void *context, int64_t first, int64_t last)
{
    const work *w = context;
    rapt_kernel.loss.cross_entropy[w->logits->dtype](last - first, w->classes, w->smoothing,
                                                     rapt_data_at(w->logits, first * w->classes),
                                                     (const int64_t *)(void *)rapt_data_at(w->targets, first),
                                                     rapt_data_at(w->losses, first),
                                                     w->statistics ? rapt_data_at(w->statistics, 2 * first) : NULL);
}

static void gradient_rows(void *context, int64_t first, int64_t last)
{
    const work *w = context;
    void *exponentials = w->scratch.block ? rapt_scratch_borrow(&w->scratch) : NULL;
    rapt_kernel.loss.cross_entropy_gradient[w->logits->dtype](last - first, w->classes, w->smoothing,
                                                              rapt_data_at(w->logits, first * w->classes),
                                                              (const int64_t *)(void *)rapt_data_at(w->targets, first),
                                                              w->g->data, 0, rapt_data_at(w->losses, first),
                                                              exponentials, rapt_data_at(w->dx, first * w->classes));
    if (exponentials) rapt_scratch_return(&w->scratch, exponentials);
}

/* Losses and dx, which no cache holds where it is large. False after an error. */
static bool run_with_gradient(work *w)
{
    enum { large = 1 << 25 };
    const int64_t bytes = (int64_t)rapt_dtype_size(w->dx->dtype), rows = w->targets->count;
    const bool is_large = w->dx->count >= large / bytes;
    if (is_large && !rapt_scratch_take("cross_entropy", &w->scratch, rows, (size_t)(w->classes * bytes))) return false;
    rapt_parallel_evenly(rows, rapt_grain(8 * w->classes), gradient_rows, w);
    if (is_large) rapt_scratch_give(&w->scratch);
    return true;
}

static void backward_rows(void *context, int64_t first, int64_t last)
{
    const work *w = context;
    int64_t step = w->g->rank > 0;
    rapt_kernel.loss.cross_entropy_backward[w->logits->dtype](last - first, w->classes, w->smoothing,
                                                              rapt_data_at(w->logits, first * w->classes),
                                                              (const int64_t *)(void *)rapt_data_at(w->targets, first),
                                                              rapt_data_at(w->statistics, 2 * first),
                                                              rapt_data_at(w->g, step * first), step,
                                                              rapt_data_at(w->dx, first * w->classes));
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
    w.dx = rapt_new("cross_entropy_backward", x->dtype, x->rank, x->shape);
    if (!w.g || !w.logits || !w.dx) return NULL;
    for (int i = 0; i < 4; i++) rapt_call_save(call, rapt_call_input(call, i));
    rapt_parallel_evenly(w.targets->count, rapt_grain(8 * w.classes), backward_rows, &w);
    return w.dx;
}

static bool backward_vjp(rapt_call *call);

static const rapt_op backward = {.name = "cross_entropy_backward",
                                 .forward = backward_forward,
                                 .vjp = backward_vjp,
                                 .options_size = sizeof(double)};

/* Σ u dx, with y = softmax(x): dg = Σ u (y − q) over each row, dx = g y (u − Σ u y); 0 in rows left out */
static bool backward_vjp(rapt_call *call)
{
    rapt_tensor *g = rapt_call_saved(call, 0), *targets = rapt_call_saved(call, 2),
                *statistics = rapt_call_saved(call, 3);
    rapt_tensor *u = rapt_read_counting(rapt_call_gradient(call, 0), targets);
    rapt_tensor *x = rapt_read_counting(rapt_call_saved(call, 1), targets);
    if (!g || !x || !targets || !statistics) return false;
    rapt_dtype dtype = x->dtype;
    if (rapt_call_wants(call, 0)) {
        const void *smoothing = rapt_call_options(call);
        rapt_tensor *unit = RAPT_APPLY(&backward, smoothing, rapt_scalar(dtype, 1), x, targets, statistics);
        if (!rapt_call_give(call, 0, rapt_sum(rapt_mul(u, unit), RAPT_AXES(-1), false))) return false;
    }
    if (!rapt_call_wants(call, 1)) return true;
    rapt_tensor *y = rapt_softmax(x, -1);
    rapt_tensor *slope = rapt_mul(y, rapt_sub(u, rapt_sum(rapt_mul(u, y), RAPT_AXES(-1), true)));
    return rapt_call_give(call, 1, rapt_mul(g->rank > 0 ? rapt_unsqueeze(g, -1) : g, slope));
}

rapt_tensor *rapt_cross_entropy_gradient(const rapt_cross_entropy_options *o, rapt_tensor *g, rapt_tensor *logits,
                                         rapt_tensor *targets, rapt_tensor *statistics)
{
    if (!g || !logits || !targets) return NULL;
    work w = {.classes = logits->shape[logits->rank - 1], .smoothing = o->label_smoothing, .targets = targets};
    if (!statistics) {
        w.logits = rapt_as_contiguous(logits);
        w.losses = rapt_new("cross_entropy", logits->dtype, targets->rank, targets->shape);
        w.statistics = statistics = rapt_new("cross_entropy", logits->dtype, 2, (int64_t[]){targets->count, 2});
        if (!w.logits || !w.losses || !statistics) return NULL;
        rapt_parallel_evenly(targets->count, rapt_grain(8 * w.classes), forward_rows, &w);
    }
    if (o->reduction == RAPT_REDUCE_MEAN) g = rapt_mul_scalar(g, rapt_mean_share(targets));
    return RAPT_APPLY(&backward, &o->label_smoothing, g, logits, targets, statistics);
}

enum { saved_x, saved_targets, saved_statistics, saved_gradient };

/* y = −Σ q log softmax(x), over the rows that count: dx = dy (softmax(x) − q) */
static rapt_tensor *forward(rapt_call *call)
{
    const rapt_cross_entropy_options *o = rapt_call_options(call);
    rapt_tensor *x = rapt_call_input(call, 0), *targets = rapt_call_input(call, 1);
    if (!rapt_check_class_loss("cross_entropy", o, x, targets)) return NULL;
    RAPT_SCOPE;
    work w = {.classes = x->shape[x->rank - 1], .smoothing = o->label_smoothing};
    w.targets = targets = rapt_checked_targets("cross_entropy", o, w.classes, targets);
    w.logits = rapt_as_contiguous(x);
    w.losses = targets ? rapt_new("cross_entropy", x->dtype, targets->rank, targets->shape) : NULL;
    if (!w.logits || !w.losses) return NULL;
    const double share = o->reduction == RAPT_REDUCE_MEAN ? rapt_mean_share(targets) : 1;
    const bool is_wanted = rapt_call_wants(call, 0), at_once = is_wanted && o->reduction != RAPT_REDUCE_NONE;
    if (at_once) {
        w.g = rapt_scalar(x->dtype, share);
        w.dx = rapt_new("cross_entropy", x->dtype, x->rank, x->shape);
        if (!w.g || !w.dx || !run_with_gradient(&w)) return NULL;
    } else if (is_wanted) {
        w.statistics = rapt_new("cross_entropy", x->dtype, 2, (int64_t[]){targets->count, 2});
        if (!w.statistics) return NULL;
    }
    if (!at_once) rapt_parallel_evenly(targets->count, rapt_grain(8 * w.classes), forward_rows, &w);
    rapt_call_save(call, x);
    rapt_call_save(call, targets);
    rapt_call_save_constant(call, w.statistics); /* the backward op accounts for the x that they are made of, */
    rapt_call_save_constant(call, w.dx);         /* and where the vjp is differentiated, it calls that op */
    return rapt_keep(rapt_reduce_losses(w.losses, o->reduction, share));
}

static bool vjp(rapt_call *call)
{
    if (!rapt_is_recording() && rapt_can_scale_saved(call, saved_gradient))
        return rapt_give_scaled(call, 0, saved_gradient);
    return rapt_call_give(call, 0,
                          rapt_cross_entropy_gradient(rapt_call_options(call), rapt_call_gradient(call, 0),
                                                      rapt_call_saved(call, saved_x),
                                                      rapt_call_saved(call, saved_targets),
                                                      rapt_call_saved(call, saved_statistics)));
}

static const rapt_op cross_entropy = {.name = "cross_entropy",
                                      .forward = forward,
                                      .vjp = vjp,
                                      .options_size = sizeof(rapt_cross_entropy_options)};

rapt_tensor *rapt_cross_entropy(rapt_tensor *logits, rapt_tensor *targets, const rapt_cross_entropy_options *options)
{
    return RAPT_APPLY(&cross_entropy, options ? options : &rapt_standard_class_loss, logits, targets);
}
