/* Losses of class numbers: nll_loss, and cross_entropy, whose softmax is never stored: backward makes it from two
 * numbers for each row. */
#include <rapt/ops.h>

#include "loss.h"
#include "tensor/core.h"
#include "tensor/kernels.h"
#include "tensor/parallel.h"

static bool check_options(const char *op, const rapt_cross_entropy_options *options)
{
    if (!(options->label_smoothing >= 0 && options->label_smoothing <= 1))
        return rapt_fail(RAPT_ERROR_VALUE, op, "label smoothing %g; 0 to 1 expected", options->label_smoothing);
    return rapt_check_reduction(op, options->reduction);
}

static bool check_shapes(const char *op, const rapt_tensor *x, const rapt_tensor *targets)
{
    if (!rapt_check_floating(op, x)) return false;
    if (targets->dtype != RAPT_INT64 && targets->dtype != RAPT_INT32)
        return rapt_fail(RAPT_ERROR_DTYPE, op, "targets are %s; int64 or int32 expected",
                         rapt_dtype_name(targets->dtype));
    bool fits = x->rank == targets->rank + 1;
    for (int axis = 0; fits && axis < targets->rank; axis++) fits = x->shape[axis] == targets->shape[axis];
    if (fits) return true;
    char text[RAPT_SHAPE_TEXT], targets_text[RAPT_SHAPE_TEXT];
    return rapt_fail(RAPT_ERROR_SHAPE, op, "input of shape %s and targets of shape %s; (…, classes) and (…) expected",
                     rapt_shape_text(x->rank, x->shape, text),
                     rapt_shape_text(targets->rank, targets->shape, targets_text));
}

/* The targets of (…, classes) as a new contiguous int64 tensor, with −1 in the rows that are left out; counted is
 * how many are not. NULL after an error: bad options, dtypes or shapes, or a target that is no class. */
static rapt_tensor *check_targets(const char *op, const rapt_cross_entropy_options *options, const rapt_tensor *x,
                                  rapt_tensor *targets, int64_t *counted)
{
    if (!check_options(op, options) || !check_shapes(op, x, targets)) return NULL;
    rapt_tensor *checked = rapt_new(op, RAPT_INT64, targets->rank, targets->shape);
    if (!checked || !rapt_copy(checked, targets)) return NULL;
    int64_t *rows = (int64_t *)(void *)checked->data, classes = x->shape[x->rank - 1];
    *counted = 0;
    for (int64_t row = 0; row < checked->count; row++) {
        if (options->has_ignore_index && rows[row] == options->ignore_index) {
            rows[row] = -1;
            continue;
        }
        if (rows[row] < 0 || rows[row] >= classes) {
            rapt_fail(RAPT_ERROR_VALUE, op, "target %lld in row %lld; a class number from 0 to %lld expected",
                      (long long)rows[row], (long long)row, (long long)(classes - 1));
            return NULL;
        }
        ++*counted;
    }
    return checked;
}

/* The losses themselves, their sum, or the sum over `counted` (0 when that is 0). Made of recorded ops. */
static rapt_tensor *reduce_counted(rapt_tensor *losses, rapt_reduction reduction, int64_t counted)
{
    if (reduction == RAPT_REDUCE_NONE) return losses;
    rapt_tensor *total = rapt_sum(losses, RAPT_ALL_AXES, false);
    return reduction == RAPT_REDUCE_SUM ? total : rapt_mul_scalar(total, counted ? 1 / (double)counted : 0);
}

typedef struct work {
    int64_t classes;
    double smoothing;
    const rapt_tensor *logits, *targets, *g;
    rapt_tensor *losses, *statistics, *dx;
} work;

static char *at(const rapt_tensor *tensor, int64_t index)
{
    return tensor->data + index * (int64_t)rapt_dtype_size(tensor->dtype);
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
    w.dx = rapt_new("cross_entropy_backward", x->dtype, x->rank, x->shape);
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
    rapt_dtype dtype = x->dtype;
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
    rapt_tensor *targets = check_targets("cross_entropy", o, x, rapt_call_input(call, 1), &counted);
    if (!targets) return NULL;
    work w = {.classes = x->shape[x->rank - 1], .smoothing = o->label_smoothing, .targets = targets};
    w.logits = rapt_as_contiguous(x);
    w.losses = rapt_new("cross_entropy", x->dtype, targets->rank, targets->shape);
    w.statistics = rapt_new("cross_entropy", x->dtype, 2, (int64_t[]){targets->count, 2});
    if (!w.logits || !w.losses || !w.statistics) return NULL;
    rapt_parallel(targets->count, rapt_grain(8 * w.classes), forward_rows, &w);
    rapt_call_save(call, x);
    rapt_call_save(call, targets);
    rapt_call_save_constant(call, w.statistics); /* the backward op accounts for the x that they are made of */
    return reduce_counted(w.losses, o->reduction, counted);
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

/* −x[target] of each row, 0 in the rows left out */
rapt_tensor *rapt_nll_loss(rapt_tensor *log_probabilities, rapt_tensor *targets,
                           const rapt_cross_entropy_options *options)
{
    static const rapt_cross_entropy_options standard = {.reduction = RAPT_REDUCE_MEAN};
    const rapt_cross_entropy_options *o = options ? options : &standard;
    if (!log_probabilities || !targets) {
        rapt_fail_null("nll_loss", log_probabilities ? "targets" : "log_probabilities");
        return NULL;
    }
    if (o->label_smoothing != 0) {
        rapt_fail(RAPT_ERROR_VALUE, "nll_loss", "label smoothing %g; 0 expected (cross_entropy smooths)",
                  o->label_smoothing);
        return NULL;
    }
    int64_t counted;
    rapt_tensor *checked = check_targets("nll_loss", o, log_probabilities, targets, &counted);
    if (!checked) return NULL;
    rapt_tensor *zero = rapt_scalar(log_probabilities->dtype, 0), *first = rapt_scalar(RAPT_INT64, 0);
    rapt_tensor *counts = rapt_greater_equal(checked, first);
    rapt_tensor *indices = rapt_unsqueeze(rapt_maximum(checked, first), -1);
    rapt_tensor *picked = rapt_squeeze(rapt_gather(log_probabilities, -1, indices), -1);
    return reduce_counted(rapt_where(counts, rapt_neg(picked), zero), o->reduction, counted);
}
