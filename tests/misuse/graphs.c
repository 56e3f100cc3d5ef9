/* Mistakes with gradients: what is recorded, and what backward needs. */
#include <math.h>

#include "mistakes.h"

static bool backward_twice(void)
{
    rapt_tensor *loss = total(rapt_exp(leaf(RAPT_SHAPE(3))));
    return rapt_backward(loss) && !rapt_backward(loss);
}

static bool backward_of_many(void)
{
    return !rapt_backward(rapt_exp(leaf(RAPT_SHAPE(3))));
}

static bool change_saved(void)
{
    rapt_tensor *x = leaf(RAPT_SHAPE(3)), *weights = ones(RAPT_SHAPE(3)), *loss = total(rapt_mul(x, weights));
    return rapt_fill(weights, 2) && !rapt_backward(loss) && !rapt_gradient(x);
}

static bool step_before_backward(void)
{
    rapt_linear *linear = rapt_linear_new(3, 2, RAPT_BIAS);
    rapt_sequential *model = RAPT_SEQUENTIAL(&linear->module, (rapt_module *)rapt_linear_new(2, 1, RAPT_BIAS));
    rapt_optimizer *sgd = rapt_sgd_new(&model->module, NULL);
    rapt_tensor *x = ones(RAPT_SHAPE(4, 3)), *first = total(rapt_sequential_forward(model, x)),
                *second = total(rapt_sequential_forward(model, x));
    return rapt_backward(first) && rapt_optimizer_step(sgd) && !rapt_backward(second);
}

static bool read_gradient_early(void)
{
    rapt_tensor *x = leaf(RAPT_SHAPE(1));
    return !rapt_gradient(x) && !rapt_error() && isnan(rapt_item(rapt_gradient(x)));
}

static bool no_leaf(void)
{
    return !rapt_backward(total(rapt_exp(ones(RAPT_SHAPE(3)))));
}

static bool recording_left_off(void)
{
    rapt_set_recording(false);
    return !rapt_backward(total(rapt_exp(leaf(RAPT_SHAPE(3)))));
}

static bool detached(void)
{
    return !rapt_backward(total(rapt_detach(rapt_exp(leaf(RAPT_SHAPE(3))))));
}

static bool through_integers(void)
{
    rapt_tensor *best = rapt_argmax(leaf(RAPT_SHAPE(2, 3)), -1, false);
    return !rapt_backward(total(rapt_cast(best, RAPT_FLOAT32)));
}

static bool mixed_dtypes(void)
{
    return !rapt_mul(leaf(RAPT_SHAPE(3)), rapt_ones(RAPT_FLOAT64, RAPT_SHAPE(3)));
}

static bool change_result(void)
{
    return !rapt_scale_in_place(rapt_exp(leaf(RAPT_SHAPE(3))), 2);
}

static bool change_expanded(void)
{
    return !rapt_fill(rapt_expand(ones(RAPT_SHAPE(1)), RAPT_SHAPE(3)), 2);
}

static bool integer_leaf(void)
{
    return !rapt_require_gradient(rapt_ones(RAPT_INT64, RAPT_SHAPE(3)));
}

static bool result_as_leaf(void)
{
    return !rapt_require_gradient(rapt_exp(leaf(RAPT_SHAPE(3))));
}

static bool gradients_not_cleared(void)
{
    rapt_tensor *x = leaf(RAPT_SHAPE(3));
    return rapt_backward(total(x)) && rapt_backward(total(x)) && is_all(rapt_gradient(x), 2);
}

static bool second_without_create(void)
{
    rapt_tensor *x = leaf(RAPT_SHAPE(3)), *y = total(rapt_exp(x)), *slope;
    return rapt_gradients(1, &y, NULL, 1, &x, &slope, RAPT_RETAIN_GRAPH) && !rapt_backward(total(slope));
}

static bool does_not_depend(void)
{
    rapt_tensor *x = leaf(RAPT_SHAPE(3)), *other = leaf(RAPT_SHAPE(3)), *y = total(x), *slope = x;
    return rapt_gradients(1, &y, NULL, 1, &other, &slope, 0) && !slope;
}

static bool shapes_do_not_fit(void)
{
    return !rapt_matmul(ones(RAPT_SHAPE(2, 3)), ones(RAPT_SHAPE(2, 3)));
}

static bool do_not_broadcast(void)
{
    return !rapt_add(ones(RAPT_SHAPE(4, 3)), ones(RAPT_SHAPE(4)));
}

static bool loss_of_other_shape(void)
{
    rapt_tensor *losses = rapt_mse_loss(ones(RAPT_SHAPE(4, 1)), ones(RAPT_SHAPE(4)), RAPT_REDUCE_NONE);
    return losses && rapt_count(losses) == 16;
}

static bool null_input(void)
{
    rapt_tensor *wrong = rapt_matmul(ones(RAPT_SHAPE(2, 3)), ones(RAPT_SHAPE(2, 3)));
    return !rapt_exp(rapt_add(wrong, ones(RAPT_SHAPE(2)))) && !rapt_backward(wrong);
}

static bool really_null(void)
{
    return !rapt_mul(ones(RAPT_SHAPE(2)), NULL);
}

static bool nan_loss(void)
{
    rapt_hunt_not_finite(true);
    return !rapt_log(rapt_neg(leaf(RAPT_SHAPE(3))));
}

static bool item_of_many(void)
{
    return isnan(rapt_item(ones(RAPT_SHAPE(3))));
}

static bool axis_too_large(void)
{
    return !rapt_sum(ones(RAPT_SHAPE(2, 3)), RAPT_AXES(2), false);
}

static bool freed_by_first_of_two(void)
{
    rapt_tensor *x = leaf(RAPT_SHAPE(3)), *shared = rapt_exp(x), *a = total(shared),
                *b = total(rapt_mul(shared, shared));
    return rapt_backward(a) && !rapt_backward(b);
}

const mistake graph_mistakes[] = {
    {"`rapt_backward` twice of one loss", backward_twice, FAILS, RAPT_ERROR_GRAPH,
     "backward: the graph of sum was freed by an earlier backward",
     "The first frees the graph: run forward again, or `RAPT_RETAIN_GRAPH`."},
    {"Backward of two losses, one after the other, that share a part", freed_by_first_of_two, FAILS, RAPT_ERROR_GRAPH,
     "the graph of exp was freed by an earlier backward",
     "Backward of their sum, or `rapt_backward_from` both at once."},
    {"Backward of a loss of many elements", backward_of_many, FAILS, RAPT_ERROR_SHAPE,
     "a root of shape [3] needs a gradient given", "`rapt_mean` or `rapt_sum` first."},
    {"A tensor that backward needs is changed in place", change_saved, FAILS, RAPT_ERROR_GRAPH,
     "was changed in place after the op ran", "Change a `rapt_clone`, or after backward."},
    {"A step of the optimizer between forward and backward", step_before_backward, FAILS, RAPT_ERROR_GRAPH,
     "was changed in place after the op ran", "Forward, backward, step."},
    {"A gradient is read before backward", read_gradient_early, FAILS, RAPT_ERROR_NULL, "item: tensor is NULL",
     "`rapt_gradient` gives NULL, and no error, until backward has been there."},
    {"Nothing requires a gradient", no_leaf, FAILS, RAPT_ERROR_GRAPH,
     "does not depend on a tensor that requires a gradient", "`rapt_require_gradient`; parameters of modules have it."},
    {"`rapt_set_recording(false)` is left on", recording_left_off, FAILS, RAPT_ERROR_GRAPH,
     "or was made while nothing was recorded", "`RAPT_NO_GRADIENT;`, which ends with its block."},
    {"Backward of what was detached", detached, FAILS, RAPT_ERROR_GRAPH, "(RAPT_NO_GRADIENT, rapt_detach)",
     "Detach only what is to have no gradient."},
    {"A gradient is to pass an argmax or a comparison", through_integers, FAILS, RAPT_ERROR_GRAPH,
     "does not depend on a tensor that requires a gradient", "Use a softmax, or weights, in its place."},
    {"float32 meets float64", mixed_dtypes, FAILS, RAPT_ERROR_DTYPE, "one dtype expected (rapt_cast converts)",
     "`rapt_cast`, or `rapt_module_cast` for a model."},
    {"The result of an op is changed in place", change_result, FAILS, RAPT_ERROR_GRAPH,
     "the tensor is the result of a recorded op", "Compute a new tensor: `rapt_mul_scalar(y, 2)`."},
    {"An expanded tensor is changed in place", change_expanded, FAILS, RAPT_ERROR_SHAPE,
     "axis 0 of the tensor is expanded: one element stands for 3", "`rapt_clone` it first."},
    {"A gradient is required of integers", integer_leaf, FAILS, RAPT_ERROR_DTYPE,
     "require_gradient: int64 cannot have a gradient", "Floats have gradients."},
    {"A gradient is required of a result", result_as_leaf, FAILS, RAPT_ERROR_GRAPH,
     "the tensor is the result of a recorded op, which has its gradient already",
     "`rapt_gradients` gives those of results."},
    {"Gradients are not cleared between two backwards", gradients_not_cleared, WORKS, RAPT_OK,
     "they are added, as accumulation wants it",
     "`rapt_optimizer_step` drops them; else `rapt_module_clear_gradients`."},
    {"A second derivative of gradients that are not recorded", second_without_create, FAILS, RAPT_ERROR_GRAPH,
     "does not depend on a tensor that requires a gradient", "`RAPT_CREATE_GRAPH` when the first are asked for."},
    {"`rapt_gradients` of an input that the root does not depend on", does_not_depend, WORKS, RAPT_OK,
     "the result is NULL, without an error", "Ask for NULL before you use it."},
    {"Matrices that do not fit are multiplied", shapes_do_not_fit, FAILS, RAPT_ERROR_SHAPE,
     "matmul: inner sizes differ: a is [2, 3], b is [2, 3]; b fits transposed",
     "Transpose one; `rapt_affine` takes a weight as (out, in)."},
    {"A number for each row is added to rows", do_not_broadcast, FAILS, RAPT_ERROR_SHAPE,
     "shapes [4, 3] and [4] do not broadcast", "`rapt_unsqueeze(x, 1)` makes it a column."},
    {"A loss of (B, 1) and (B)", loss_of_other_shape, WARNS, RAPT_OK,
     "mse_loss: input [4, 1] and target [4] broadcast to [4, 4], so that there are losses of all pairs",
     "`rapt_squeeze(y, 1)`."},
    {"A NULL that an error left goes on through a whole model", null_input, FAILS, RAPT_ERROR_SHAPE,
     "matmul: inner sizes differ", "`rapt_error` tells of the first error, not of those after it."},
    {"A NULL", really_null, FAILS, RAPT_ERROR_NULL, "mul: input 1 is NULL", "Look where it comes from."},
    {"The loss becomes NaN", nan_loss, FAILS, RAPT_ERROR_NOT_FINITE,
     "log: in forward output 0, float32 [3], is nan at [0], though its inputs are finite",
     "`rapt_hunt_not_finite(true)`, or `RAPT_HUNT=1`, finds the op, as here; without it NaN goes on."},
    {"`rapt_item` of many elements", item_of_many, FAILS, RAPT_ERROR_SHAPE,
     "a tensor of one element expected, not shape [3]", "`rapt_at`, or `rapt_mean` first."},
    {"An axis that is not there", axis_too_large, FAILS, RAPT_ERROR_SHAPE, "axis 2 of a tensor of rank 2",
     "Axes count from 0, or from −1 backwards."},
    {0},
};
