/* Ops of one's own that do more than compute: they keep what they make, give their inputs out, change tensors and
 * modes on their way. */
#include <math.h>

#include "own_ops.h"

static bool gives_on(rapt_call *call)
{
    return rapt_call_give(call, 0, rapt_call_gradient(call, 0));
}

/* --- what forward gives out --- */

static rapt_tensor *gives_its_input(rapt_call *call)
{
    return rapt_call_input(call, 0);
}

/* It outlives the share of its caller, as each output of the innermost scope does, and is outside the graph. */
Test(op_side_effects, an_input_is_given_out_as_a_tensor_of_the_scope)
{
    static const rapt_op op = {.name = "own", .forward = gives_its_input, .vjp = gives_on};
    RAPT_SCOPE;
    RAPT_NO_GRADIENT;
    rapt_tensor *held;
    {
        RAPT_SCOPE;
        held = rapt_retain(doubles(2, (double[]){5, 5}));
    }
    rapt_tensor *y = RAPT_APPLY(&op, NULL, held);
    cr_assert(y && y != held, "%s", rapt_error());
    cr_expect_not(rapt_requires_gradient(y));
    rapt_release(held);
    for (int i = 0; i < 3; i++) rapt_full(RAPT_FLOAT64, RAPT_SHAPE(2), -1);
    cr_expect_eq(at(y, 1), 5);
}

static rapt_tensor *last_made;

/* y = exp(x): dx = y dy; a share of y stays here. */
static rapt_tensor *kept_exp_forward(rapt_call *call)
{
    rapt_tensor *y = rapt_exp(rapt_call_input(call, 0));
    rapt_release(last_made);
    last_made = rapt_retain(y);
    rapt_call_save(call, y);
    return y;
}

static bool kept_exp_vjp(rapt_call *call)
{
    return rapt_call_give(call, 0, rapt_mul(rapt_call_gradient(call, 0), rapt_call_saved(call, 0)));
}

Test(op_side_effects, an_output_that_forward_keeps_is_saved_as_an_output)
{
    static const rapt_op op = {.name = "kept_exp", .forward = kept_exp_forward, .vjp = kept_exp_vjp};
    RAPT_SCOPE;
    rapt_tensor *x = doubles(1, (double[]){0.5}), *y = total(RAPT_APPLY(&op, NULL, x)), *one = rapt_ones_like(x),
                *curve;
    cr_assert(rapt_hvp(y, 1, &x, &one, &curve, 0), "%s", rapt_error());
    cr_expect_float_eq(at(curve, 0), exp(0.5), 1e-14);
    cr_expect_not(rapt_requires_gradient(last_made), "the share stays outside the graph");
    rapt_release(last_made);
    last_made = NULL;
}

/* --- what a vjp does besides --- */

static rapt_tensor *times_3_forward(rapt_call *call)
{
    return rapt_mul_scalar(rapt_call_input(call, 0), 3);
}

static rapt_tensor *statistic;

static bool changes_a_tensor(rapt_call *call)
{
    return rapt_fill(statistic, 2) && rapt_call_give(call, 0, rapt_mul_scalar(rapt_call_gradient(call, 0), 3));
}

/* The check of all nodes was before. */
Test(op_side_effects, a_saved_tensor_that_a_vjp_changes_is_an_error)
{
    static const rapt_op op = {.name = "changing", .forward = times_3_forward, .vjp = changes_a_tensor};
    RAPT_SCOPE;
    statistic = rapt_ones(RAPT_FLOAT64, RAPT_SHAPE(2));
    rapt_tensor *x = doubles(2, (double[]){1, 2}), *y = total(RAPT_APPLY(&op, NULL, rapt_mul(x, statistic)));
    cr_expect_not(rapt_backward(y));
    expect_error(RAPT_ERROR_GRAPH, "mul: a tensor that its gradient needs was changed in place");
    cr_expect_null(rapt_gradient(x));
}

static bool leaves_recording_off(rapt_call *call)
{
    rapt_set_recording(false);
    return rapt_call_give(call, 0, rapt_mul_scalar(rapt_call_gradient(call, 0), 3));
}

/* y = 3 x³, whose vjps behind the op are recorded too. */
Test(op_side_effects, recording_goes_on_behind_a_vjp_that_turns_it_off)
{
    static const rapt_op op = {.name = "off", .forward = times_3_forward, .vjp = leaves_recording_off};
    RAPT_SCOPE;
    rapt_tensor *x = doubles(1, (double[]){0.5}), *one = rapt_ones_like(x), *curve;
    rapt_tensor *y = total(RAPT_APPLY(&op, NULL, rapt_pow_scalar(x, 3)));
    cr_assert(rapt_hvp(y, 1, &x, &one, &curve, 0), "%s", rapt_error());
    cr_expect_float_eq(at(curve, 0), 9, 1e-14);
    cr_expect(rapt_is_recording());
}

static bool turns_recording_off(void *context, rapt_tensor *leaf, rapt_tensor *gradient)
{
    (void)leaf;
    int *linked = context;
    *linked += rapt_requires_gradient(gradient);
    rapt_set_recording(false);
    return true;
}

/* b's gradient is complete before a's is computed. */
Test(op_side_effects, recording_goes_on_behind_a_function_that_takes_a_gradient_and_turns_it_off)
{
    RAPT_SCOPE;
    rapt_tensor *a = doubles(1, (double[]){0.5}), *b = doubles(1, (double[]){2});
    rapt_tensor *y = total(rapt_mul(rapt_pow_scalar(a, 3), b));
    int linked = 0;
    cr_assert(rapt_backward_to(1, &y, NULL, RAPT_CREATE_GRAPH, turns_recording_off, &linked), "%s", rapt_error());
    cr_expect_eq(linked, 2);
    cr_expect(rapt_is_recording());
}
