/* What the losses share: class numbers that are checked, and the reduction of one loss for each row or element. */
#include "autograd/loss.h"

bool rapt_check_reduction(const char *op, rapt_reduction reduction)
{
    if (reduction == RAPT_REDUCE_MEAN || reduction == RAPT_REDUCE_SUM || reduction == RAPT_REDUCE_NONE) return true;
    return rapt_fail(RAPT_ERROR_VALUE, op, "%d is not a reduction; RAPT_REDUCE_MEAN, _SUM or _NONE expected",
                     (int)reduction);
}

static bool check_options(const char *op, const rapt_cross_entropy_options *options)
{
    if (!(options->label_smoothing >= 0 && options->label_smoothing <= 1))
        return rapt_fail(RAPT_ERROR_VALUE, op, "label smoothing %g; 0 to 1 expected", options->label_smoothing);
    return rapt_check_reduction(op, options->reduction);
}

static bool check_shapes(const char *op, const rapt_tensor *x, const rapt_tensor *targets)
{
    if (!rapt_is_floating(x))
        return rapt_fail(RAPT_ERROR_DTYPE, op, "not defined for %s; float32 or float64 expected",
                         rapt_dtype_name((rapt_dtype)x->dtype));
    if (targets->dtype != RAPT_INT64 && targets->dtype != RAPT_INT32)
        return rapt_fail(RAPT_ERROR_DTYPE, op, "targets are %s; int64 or int32 expected",
                         rapt_dtype_name((rapt_dtype)targets->dtype));
    bool fits = x->rank == targets->rank + 1;
    for (int axis = 0; fits && axis < targets->rank; axis++) fits = x->shape[axis] == targets->shape[axis];
    if (fits) return true;
    char text[RAPT_SHAPE_TEXT], targets_text[RAPT_SHAPE_TEXT];
    return rapt_fail(RAPT_ERROR_SHAPE, op, "input of shape %s and targets of shape %s; (…, classes) and (…) expected",
                     rapt_shape_text(x->rank, x->shape, text),
                     rapt_shape_text(targets->rank, targets->shape, targets_text));
}

rapt_tensor *rapt_check_targets(const char *op, const rapt_cross_entropy_options *options, const rapt_tensor *x,
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

rapt_tensor *rapt_reduce_counted(rapt_tensor *losses, rapt_reduction reduction, int64_t counted)
{
    if (reduction == RAPT_REDUCE_NONE) return losses;
    rapt_tensor *total = rapt_sum(losses, RAPT_ALL_AXES, false);
    return reduction == RAPT_REDUCE_SUM ? total : rapt_mul_scalar(total, counted ? 1 / (double)counted : 0);
}
