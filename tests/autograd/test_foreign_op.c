/* Ops whose functions another language has, which may leave them before there is a result. */
#include "own_ops.h"

/* Twice x, by functions that are left before they have a result while `is_left`. */
static bool is_left;

static void twice_forward(rapt_call *call, rapt_tensor **output)
{
    if (!is_left) *output = rapt_mul_scalar(rapt_call_input(call, 0), 2);
}

static void twice_vjp(rapt_call *call, bool *is_good)
{
    if (is_left) return;
    *is_good = rapt_call_give(call, 0, rapt_mul_scalar(rapt_call_gradient(call, 0), 2));
}

static const rapt_foreign_op twice = {{.name = "twice", .forward = rapt_foreign_forward, .vjp = rapt_foreign_vjp},
                                      twice_forward,
                                      twice_vjp};

Test(foreign_op, functions_that_are_left_are_an_error)
{
    RAPT_SCOPE;
    rapt_tensor *x = doubles(2, (double[]){3, -1}), *y = RAPT_APPLY(&twice.op, NULL, x);
    cr_expect_eq(at(y, 0), 6);
    rapt_tensor *sum = total(y);
    is_left = true;
    cr_expect_null(RAPT_APPLY(&twice.op, NULL, x));
    expect_error(RAPT_ERROR_VALUE, "twice: its forward failed without a reason");
    cr_expect_not(rapt_backward_from(1, &sum, NULL, RAPT_RETAIN_GRAPH));
    expect_error(RAPT_ERROR_GRAPH, "twice: its vjp failed without a reason");
    is_left = false;
    cr_assert(rapt_backward(sum), "%s", rapt_error());
    cr_expect_eq(at(rapt_gradient(x), 1), 2);
}

Test(foreign_op, without_functions_it_is_an_error)
{
    RAPT_SCOPE;
    const rapt_foreign_op empty = {.op = {.name = "empty", .forward = rapt_foreign_forward}};
    cr_expect_null(RAPT_APPLY(&empty.op, NULL, doubles(1, (double[]){1})));
    expect_error(RAPT_ERROR_NULL, "empty: forward of its rapt_foreign_op is NULL");
    rapt_foreign_op half = twice;
    half.vjp = NULL;
    cr_expect_not(rapt_backward(total(RAPT_APPLY(&half.op, NULL, doubles(1, (double[]){1})))));
    expect_error(RAPT_ERROR_NULL, "twice: vjp of its rapt_foreign_op is NULL");
}
