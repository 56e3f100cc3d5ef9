/* Ops over the rows of a tensor, its last axis, which can be had along any axis. */
#include "row_op.h"

#include <rapt/ops.h>

rapt_tensor *rapt_map_rows(const char *op, const rapt_loops loops, int64_t cost, int count, rapt_tensor *const *inputs)
{
    const rapt_tensor *x = inputs[0], *operands[3];
    if (!rapt_check_floating(op, x)) return NULL;
    int64_t length = x->shape[x->rank - 1];
    rapt_tensor *output = rapt_new(op, x->dtype, x->rank, x->shape);
    operands[0] = output;
    for (int i = 0; i < count; i++) {
        bool dense = inputs[i]->strides[x->rank - 1] == 1 || length <= 1;
        operands[i + 1] = dense ? inputs[i] : rapt_as_contiguous(inputs[i]);
        if (!operands[i + 1]) return NULL;
    }
    if (output) rapt_map_along(x->rank - 1, loops[x->dtype], &length, cost * length, count + 1, operands);
    return output;
}

rapt_tensor *rapt_row_sums(rapt_tensor *x)
{
    return rapt_sum(x, RAPT_AXES(-1), true);
}

rapt_tensor *rapt_apply_along(const rapt_op *op, const void *options, rapt_tensor *x, int axis)
{
    if (x && (axis = rapt_check_axis(op->name, axis, x->rank, 0)) < 0) return NULL;
    if (!x || axis == x->rank - 1) return RAPT_APPLY(op, options, x);
    return rapt_transpose(RAPT_APPLY(op, options, rapt_transpose(x, axis, -1)), axis, -1);
}
