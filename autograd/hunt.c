/* The hunt for what is not finite: every result is looked at, and the first whose makings were finite is an error. */
#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "observe.h"

static __attribute__((constructor(200))) void start(void)
{
    const char *wanted = getenv("RAPT_HUNT");
    if (wanted && *wanted && *wanted != '0') rapt_hunt_not_finite(true);
}

bool rapt_hunt_not_finite(bool hunting)
{
    return rapt_set_observer(RAPT_HUNTS, hunting);
}

/* The place in row-major order of the first element that is not finite, −1: there is none. */
static int64_t first_not_finite(const rapt_tensor *tensor, double *value)
{
    RAPT_SCOPE;
    if (!tensor || !rapt_is_floating(tensor)) return -1;
    const rapt_tensor *dense = rapt_as_contiguous(tensor);
    for (int64_t i = 0; dense && i < dense->count; i++) {
        *value = dense->dtype == RAPT_FLOAT32 ? (double)((const float *)(const void *)dense->data)[i]
                                              : ((const double *)(const void *)dense->data)[i];
        if (!(fabs(*value) <= DBL_MAX)) return i;
    }
    return -1;
}

/* One sentence: what, and where in the tensor. */
static bool fail(const rapt_op *op, const char *what, int number, const rapt_tensor *tensor, int64_t place,
                 double value, const char *whose)
{
    int64_t indices[RAPT_MAX_RANK];
    char at[RAPT_SHAPE_TEXT], text[128];
    for (int axis = tensor->rank - 1; axis >= 0; axis--) {
        indices[axis] = place % tensor->shape[axis];
        place /= tensor->shape[axis];
    }
    return rapt_fail(RAPT_ERROR_NOT_FINITE, op->name, "%s %d, %s, is %g at %s, though %s finite", what, number,
                     rapt_describe(tensor, text, sizeof text), value, rapt_shape_text(tensor->rank, indices, at),
                     whose);
}

bool rapt_hunt_forward(const rapt_call *call)
{
    double value, other;
    for (int k = 0; k < call->output_count; k++) {
        const int64_t place = first_not_finite(call->outputs[k], &value);
        if (place < 0) continue;
        for (int i = 0; i < call->count; i++)
            if (first_not_finite(call->inputs[i], &other) >= 0) return true;
        return fail(call->op, "in forward output", k, call->outputs[k], place, value, "its inputs are");
    }
    return true;
}

void rapt_hunt_arrived(rapt_walk *walk, const rapt_node *node)
{
    double value;
    for (int k = 0; k < node->output_count && !walk->is_not_finite; k++)
        walk->is_not_finite = first_not_finite(node->outputs[k].gradient, &value) >= 0;
}

bool rapt_hunt_backward(const rapt_walk *walk, const rapt_node *node)
{
    double value;
    for (int i = 0; i < node->edge_count && !walk->is_not_finite; i++) {
        if (!rapt_walk_wants(walk, &node->edges[i])) continue;
        const rapt_tensor *sum = *rapt_places_sum(&walk->places, node->edges[i].node, node->edges[i].output);
        const int64_t place = first_not_finite(sum, &value);
        if (place >= 0)
            return fail(node->op, "in backward the gradient of input", i, sum, place, value,
                        "the gradients of its outputs are");
    }
    return true;
}
