/* What the losses of class numbers share, and nll_loss. */
#include "class_loss.h"

#include <math.h>

#include "loss.h"
#include "tensor/core.h"
#include "tensor/debug.h"

const rapt_cross_entropy_options rapt_standard_class_loss = {.reduction = RAPT_REDUCE_MEAN};

static bool check_options(const char *op, const rapt_cross_entropy_options *options)
{
    if (!(options->label_smoothing >= 0 && options->label_smoothing <= 1))
        return rapt_fail(RAPT_ERROR_VALUE, op, "label smoothing %g; 0 to 1 expected", options->label_smoothing);
    if (options->ignore_index != 0 && !options->has_ignore_index)
        return rapt_fail(RAPT_ERROR_VALUE, op, "ignore_index is %lld, and has_ignore_index is false",
                         (long long)options->ignore_index);
    return rapt_check_reduction(op, options->reduction);
}

/* Class numbers as one-hot rows, or classes not on the last axis, as PyTorch has them. */
static const char *shape_cure(const rapt_tensor *x, const rapt_tensor *targets)
{
    if (rapt_same_shape(x, targets)) return "; rapt_argmax makes class numbers of one-hot rows";
    if (x->rank < 3 || targets->rank != x->rank - 1 || x->shape[0] != targets->shape[0]) return "";
    for (int axis = 1; axis < targets->rank; axis++)
        if (targets->shape[axis] != x->shape[axis + 1]) return "";
    return "; the classes are axis 1, and go to the end (rapt_permute)";
}

bool rapt_check_class_loss(const char *op, const rapt_cross_entropy_options *options, const rapt_tensor *x,
                           const rapt_tensor *targets)
{
    if (!rapt_check_alive(op, "the input", x) || !rapt_check_alive(op, "the target", targets)) return false;
    if (!check_options(op, options) || !rapt_check_floating(op, x)) return false;
    if (!rapt_is_integer(targets))
        return rapt_fail(
            RAPT_ERROR_DTYPE, op,
            "targets are %s; int64 or int32 expected: class numbers (rapt_argmax makes them of one-hot rows)",
            rapt_dtype_name(targets->dtype));
    bool fits = x->rank == targets->rank + 1;
    for (int axis = 0; fits && axis < targets->rank; axis++) fits = x->shape[axis] == targets->shape[axis];
    if (fits) return true;
    char text[RAPT_SHAPE_TEXT], targets_text[RAPT_SHAPE_TEXT];
    return rapt_fail(RAPT_ERROR_SHAPE, op, "input of shape %s and targets of shape %s; (…, classes) and (…) expected%s",
                     rapt_shape_text(x->rank, x->shape, text),
                     rapt_shape_text(targets->rank, targets->shape, targets_text), shape_cure(x, targets));
}

rapt_tensor *rapt_checked_targets(const char *op, const rapt_cross_entropy_options *options, int64_t classes,
                                  const rapt_tensor *targets)
{
    rapt_tensor *checked = rapt_new(op, RAPT_INT64, targets->rank, targets->shape);
    if (!checked || !rapt_copy(checked, targets)) return NULL;
    int64_t *rows = (int64_t *)(void *)checked->data;
    for (int64_t row = 0; row < checked->count; row++) {
        if (options->has_ignore_index && rows[row] == options->ignore_index) {
            rows[row] = -1;
        } else if (rows[row] < 0 || rows[row] >= classes) {
            rapt_fail(RAPT_ERROR_VALUE, op, "target %lld in row %lld; a class number from 0 to %lld expected%s",
                      (long long)rows[row], (long long)row, (long long)(classes - 1),
                      rows[row] < 0          ? ", or the ignore_index"
                      : rows[row] == classes ? "; the first class is 0"
                                             : "");
            return NULL;
        }
    }
    return checked;
}

int64_t rapt_count_targets(const rapt_tensor *checked)
{
    int64_t counted = 0;
    for (int64_t row = 0; row < checked->count; row++) counted += ((const int64_t *)(void *)checked->data)[row] >= 0;
    return counted;
}

double rapt_mean_share(const rapt_tensor *checked)
{
    const int64_t counted = rapt_count_targets(checked);
    return counted ? 1 / (double)counted : 0;
}

rapt_tensor *rapt_read_counting(rapt_tensor *x, rapt_tensor *checked)
{
    if (!x || !checked || rapt_count_targets(checked) == checked->count) return x;
    rapt_tensor *counts = rapt_greater_equal(checked, rapt_scalar(RAPT_INT64, 0));
    return rapt_where(rapt_unsqueeze(counts, -1), x, rapt_scalar(x->dtype, 0));
}

rapt_tensor *rapt_reduce_losses(rapt_tensor *losses, rapt_reduction reduction, double share)
{
    if (reduction == RAPT_REDUCE_NONE) return losses;
    rapt_tensor *total = rapt_sum(losses, RAPT_ALL_AXES, false);
    return reduction == RAPT_REDUCE_SUM ? total : rapt_mul_scalar(total, share);
}

bool rapt_can_scale_saved(rapt_call *call, int index)
{
    const rapt_tensor *g = rapt_call_gradient(call, 0);
    return rapt_call_saved(call, index) && g->count == 1 && isfinite(rapt_item(g));
}

bool rapt_give_scaled(rapt_call *call, int input, int index)
{
    if (!rapt_call_wants(call, input)) return true;
    const double factor = rapt_item(rapt_call_gradient(call, 0));
    rapt_tensor *gradient = rapt_call_take_saved(call, index);
    if (!gradient || (factor != 1 && !rapt_scale_in_place(gradient, factor))) return false;
    return rapt_call_give(call, input, gradient);
}

/* −x[target] of each row, 0 in the rows left out */
rapt_tensor *rapt_nll_loss(rapt_tensor *log_probabilities, rapt_tensor *targets,
                           const rapt_cross_entropy_options *options)
{
    const rapt_cross_entropy_options *o = options ? options : &rapt_standard_class_loss;
    if (!log_probabilities || !targets) {
        rapt_fail_null("nll_loss", log_probabilities ? "targets" : "log_probabilities");
        return NULL;
    }
    if (o->label_smoothing != 0) {
        rapt_fail(RAPT_ERROR_VALUE, "nll_loss", "label smoothing %g; 0 expected (cross_entropy smooths)",
                  o->label_smoothing);
        return NULL;
    }
    if (!rapt_check_class_loss("nll_loss", o, log_probabilities, targets)) return NULL;
    const int64_t classes = log_probabilities->shape[log_probabilities->rank - 1];
    rapt_tensor *checked = rapt_checked_targets("nll_loss", o, classes, targets);
    if (!checked) return NULL;
    rapt_tensor *zero = rapt_scalar(log_probabilities->dtype, 0), *first = rapt_scalar(RAPT_INT64, 0);
    rapt_tensor *counts = rapt_greater_equal(checked, first);
    rapt_tensor *indices = rapt_unsqueeze(rapt_maximum(checked, first), -1);
    rapt_tensor *picked = classes > 0 ? rapt_squeeze(rapt_gather(log_probabilities, -1, indices), -1)
                                      : rapt_sum(log_probabilities, RAPT_AXES(-1), false); /* every row is left out */
    return rapt_reduce_losses(rapt_where(counts, rapt_neg(picked), zero), o->reduction, rapt_mean_share(checked));
}
