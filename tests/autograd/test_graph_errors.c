/* Errors of graphs, derivatives and ops that nothing else in the tests provokes. */
#include "modules.h"

#include <stdio.h>

#include <rapt/derivatives.h>
#include <rapt/op.h>
#include <rapt/profile.h>
#include <rapt/recompute.h>

#include "tensor/core.h"
#include "tensor/reduce.h"

static rapt_tensor *leaf(void)
{
    return rapt_require_gradient(rapt_ones(RAPT_FLOAT64, RAPT_SHAPE(3)));
}

static rapt_tensor *total(rapt_tensor *x)
{
    return rapt_sum(x, RAPT_ALL_AXES, false);
}

Test(graph_errors, lists_that_are_missing)
{
    RAPT_SCOPE;
    rapt_tensor *x = leaf(), *y = total(rapt_mul(x, x)), *result;
    cr_expect_not(rapt_gradients(1, &y, NULL, 1, &x, NULL, 0));
    expect_error(RAPT_ERROR_NULL, "gradients: results is NULL");
    cr_expect_not(rapt_gradients(1, &y, NULL, 1, NULL, &result, 0));
    expect_error(RAPT_ERROR_NULL, "gradients: inputs is NULL");
    cr_expect_not(rapt_hvp(y, 1, &x, &x, NULL, 0));
    expect_error(RAPT_ERROR_NULL, "hvp: results is NULL");
    cr_expect_not(rapt_hvp(y, -1, &x, &x, &result, 0));
    expect_error(RAPT_ERROR_VALUE, "hvp: -1 inputs; 0 or more expected");
    cr_expect_not(rapt_backward_from(-1, &y, NULL, 0));
    expect_error(RAPT_ERROR_VALUE, "backward: -1 roots; 0 or more expected");
    cr_expect_not(rapt_gradients(-2, &y, NULL, 1, &x, &result, 0));
    expect_error(RAPT_ERROR_VALUE, "gradients: -2 roots; 0 or more expected");
    cr_expect_not(rapt_gradients(1, &y, NULL, -1, &x, &result, 0));
    expect_error(RAPT_ERROR_VALUE, "gradients: -1 inputs; 0 or more expected");
    cr_expect_null(rapt_gradient(NULL));
    expect_error(RAPT_ERROR_NULL, "gradient: leaf is NULL");
    rapt_reduction_shape shape;
    cr_expect_not(rapt_check_axes("op", x, 1, NULL, &shape));
    expect_error(RAPT_ERROR_NULL, "op: axes is NULL");
}

/* --- ops that are written wrongly --- */

static rapt_tensor *giving(rapt_call *call)
{
    rapt_call_give(call, 0, rapt_call_input(call, 0));
    return rapt_call_input(call, 0);
}

Test(graph_errors, forward_gives_no_gradient)
{
    RAPT_SCOPE;
    const rapt_op op = {.name = "giving", .forward = giving};
    rapt_tensor *x = leaf();
    cr_expect_null(RAPT_APPLY(&op, NULL, x));
    expect_error(RAPT_ERROR_GRAPH, "giving: its forward gave a gradient, which only a vjp can");
}

static rapt_tensor *saving(rapt_call *call)
{
    for (int i = 0; i < rapt_call_count(call); i++) rapt_call_save(call, rapt_call_input(call, i));
    return rapt_clone(rapt_call_input(call, 0));
}

static bool first_gradient(rapt_call *call)
{
    return rapt_call_give(call, 0, rapt_call_gradient(call, 0));
}

static rapt_tensor *defined(rapt_call *call)
{
    return rapt_call_input(call, 0);
}

Test(graph_errors, a_definition_has_room_for_so_many)
{
    RAPT_SCOPE;
    const rapt_op op = {.name = "wide", .forward = saving, .vjp = first_gradient, .definition = defined};
    rapt_tensor *inputs[RAPT_MAX_SAVED], *gradient;
    for (int i = 0; i < RAPT_MAX_SAVED; i++) inputs[i] = leaf();
    rapt_tensor *y = total(rapt_apply(&op, NULL, RAPT_MAX_SAVED, inputs));
    cr_expect_not(rapt_gradients(1, &y, NULL, 1, inputs, &gradient, RAPT_CREATE_GRAPH));
    expect_error(RAPT_ERROR_UNSUPPORTED, "wide: a definition has 32 inputs and outputs at most, not 33");
}

static bool set_one(rapt_tensor *const *inputs, rapt_tensor **outputs, void *context)
{
    outputs[*(const int *)context] = inputs[0];
    return true;
}

Test(graph_errors, recompute_wants_every_output)
{
    RAPT_SCOPE;
    for (int set = 0; set < 2; set++) {
        rapt_tensor *x = leaf(), *outputs[2];
        cr_expect_not(rapt_recompute_many(set_one, 1, &x, 2, outputs, &set, NULL));
        expect_error(RAPT_ERROR_NULL,
                     set ? "recompute: the function set no output 0" : "recompute: the function set no output 1");
    }
}

Test(graph_errors, a_full_disk_takes_no_report)
{
    RAPT_SCOPE;
    FILE *full = fopen("/dev/full", "w");
    cr_assert(rapt_profile_start(NULL));
    total(leaf());
    cr_assert(rapt_profile_stop());
    if (!full) cr_skip_test("no /dev/full here");
    cr_expect_not(rapt_profile_report(full));
    expect_error(RAPT_ERROR_FILE, "profile_report: the stream cannot be written to");
    fclose(full);
}

/* --- ops --- */

Test(graph_errors, shapes_and_dtypes_of_ops)
{
    RAPT_SCOPE;
    rapt_tensor *x = leaf(), *is = rapt_ones(RAPT_BOOL, RAPT_SHAPE(3));
    rapt_tensor *deep = rapt_zeros(RAPT_FLOAT32, RAPT_SHAPE(1, 1, 1, 1, 1, 1, 1, 1));
    cr_expect_null(rapt_maximum_scalar(is, 1));
    expect_error(RAPT_ERROR_DTYPE, "maximum_scalar: not defined for bool (rapt_cast converts)");
    cr_expect_null(rapt_where(x, x, x));
    expect_error(RAPT_ERROR_DTYPE, "where: the condition is float64; bool expected");
    cr_expect_null(rapt_unsqueeze(deep, 0));
    expect_error(RAPT_ERROR_SHAPE, "unsqueeze: a tensor of rank 8 can have no further axis");
    cr_expect_null(rapt_stack(1, &deep, 0));
    expect_error(RAPT_ERROR_SHAPE, "stack: tensors of rank 8 can have no further axis");
}

Test(graph_errors, joining_other_shapes)
{
    RAPT_SCOPE;
    rapt_tensor *pair[] = {rapt_zeros(RAPT_FLOAT32, RAPT_SHAPE(1, 2)), rapt_zeros(RAPT_FLOAT32, RAPT_SHAPE(1, 3))};
    cr_expect_null(rapt_concat(2, pair, 0));
    expect_error(RAPT_ERROR_SHAPE, "concat: tensor 0 has shape [1, 2], tensor 1 shape [1, 3]; only axis 0 may differ");
    cr_expect_null(rapt_stack(2, pair, 0));
    expect_error(RAPT_ERROR_SHAPE, "stack: tensor 0 has shape [1, 2], tensor 1 shape [1, 3]");
}

Test(graph_errors, more_than_64_bits_can_count)
{
    if (sizeof(size_t) < 8) cr_skip_test("no two tensors have so much");
    RAPT_SCOPE;
    rapt_tensor *huge = rapt_expand(rapt_zeros(RAPT_UINT8, RAPT_SHAPE(1)), RAPT_SHAPE(INT64_MAX / 2 + 1));
    cr_assert_not_null(huge, "%s", rapt_error());
    cr_expect_null(rapt_concat(2, (rapt_tensor *[]){huge, huge}, 0));
    expect_error(RAPT_ERROR_MEMORY, "concat: the sizes of axis 0 sum to more than 64 bits can count");
}
