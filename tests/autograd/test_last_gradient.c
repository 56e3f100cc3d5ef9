/* Vjps whose last op writes over the gradient: nobody who still needs that sees it; and outputs saved before they are
 * there. */
#include "modules.h"

static rapt_tensor *leaf(double value)
{
    return rapt_require_gradient(rapt_full(RAPT_FLOAT64, RAPT_SHAPE(3), value));
}

static void expect_all(const char *what, rapt_tensor *x, double expected)
{
    expect_values(what, x, 3, (const double[]){expected, expected, expected}, 1e-12);
}

Test(last_gradient, what_the_caller_gave_stays)
{
    RAPT_SCOPE;
    rapt_tensor *x = leaf(3), *y = rapt_mul_scalar(rapt_neg(x), 5), *given = rapt_full_like(y, 2);
    cr_assert(rapt_backward_from(1, &y, &given, 0), "%s", rapt_error());
    expect_all("given", given, 2);
    expect_all("gradient", rapt_gradient(x), -10);
}

Test(last_gradient, what_was_asked_for_stays)
{
    RAPT_SCOPE;
    rapt_tensor *x = leaf(3), *c = rapt_full_like(x, 7), *h = rapt_exp(rapt_mul(x, c)), *y = rapt_mul_scalar(h, 2);
    rapt_tensor *inputs[] = {h, x}, *results[2];
    cr_assert(rapt_gradients(1, &y, &c, 2, inputs, results, 0), "%s", rapt_error());
    expect_all("of h", results[0], 14);
    expect_values("of x", results[1], 3, (const double[]){98 * exp(21), 98 * exp(21), 98 * exp(21)}, 1e-6 * exp(21));
}

/* d(u + v): the same gradient goes to both, and each is scaled. */
Test(last_gradient, a_gradient_of_two_inputs_serves_both)
{
    RAPT_SCOPE;
    rapt_tensor *x = leaf(3), *y = rapt_add(rapt_mul_scalar(x, 5), rapt_mul_scalar(x, 11));
    rapt_tensor *given = rapt_ones_like(y);
    rapt_tensor *z = rapt_mul_scalar(y, 2);
    cr_assert(rapt_backward_from(1, &z, &given, 0), "%s", rapt_error());
    expect_all("gradient", rapt_gradient(x), 32);
}

Test(last_gradient, a_product_reads_it_twice)
{
    RAPT_SCOPE;
    rapt_tensor *a = leaf(3), *b = leaf(5), *y = rapt_mul_scalar(rapt_mul(rapt_mul_scalar(a, 1), rapt_mul(a, b)), 2);
    rapt_tensor *given = rapt_ones_like(y);
    cr_assert(rapt_backward_from(1, &y, &given, RAPT_RETAIN_GRAPH), "%s", rapt_error());
    expect_all("of a", rapt_gradient(a), 60);
    expect_all("of b", rapt_gradient(b), 18);
    cr_assert(rapt_backward_from(1, &y, &given, 0), "%s", rapt_error());
    expect_all("of a twice", rapt_gradient(a), 120);
}

/* Its vjp says that it reads the gradient for the last time, and gives it on. */
static rapt_tensor *through_forward(rapt_call *call)
{
    return rapt_clone(rapt_call_input(call, 0));
}

static bool through_vjp(rapt_call *call)
{
    return rapt_call_give(call, 0, rapt_call_last_gradient(call, 0));
}

static const rapt_op through = {.name = "through", .forward = through_forward, .vjp = through_vjp};

Test(last_gradient, what_one_vjp_says_is_over_with_it)
{
    RAPT_SCOPE;
    rapt_tensor *a = leaf(3), *b = leaf(5), *y = rapt_mul_scalar(RAPT_APPLY(&through, NULL, rapt_mul(a, b)), 2);
    rapt_tensor *given = rapt_ones_like(y);
    cr_assert(rapt_backward_from(1, &y, &given, 0), "%s", rapt_error());
    expect_all("of a", rapt_gradient(a), 10);
    expect_all("of b", rapt_gradient(b), 6);
}

/* y = x²; the vjp turns recording on, so that what it computes is a graph that needs the gradient. */
static rapt_tensor *slope_seen;

static rapt_tensor *square_forward(rapt_call *call)
{
    rapt_call_save(call, rapt_call_input(call, 0));
    return rapt_mul(rapt_call_input(call, 0), rapt_call_input(call, 0));
}

static bool square_vjp(rapt_call *call)
{
    rapt_tensor *g = rapt_call_last_gradient(call, 0), *x = rapt_detach(rapt_call_saved(call, 0));
    const bool before = rapt_set_recording(true);
    rapt_tensor *slope = rapt_mul(g, rapt_require_gradient(x)), *result;
    bool good = rapt_gradients(1, &slope, &x, 1, &x, &result, 0);
    slope_seen = rapt_retain(result); /* g x */
    rapt_set_recording(before);
    return good && rapt_call_give(call, 0, rapt_mul_scalar(rapt_detach(slope), 2));
}

static const rapt_op square = {.name = "square", .forward = square_forward, .vjp = square_vjp};

Test(last_gradient, what_a_vjp_records_keeps_it)
{
    RAPT_SCOPE;
    rapt_tensor *x = leaf(3), *y = rapt_mul_scalar(RAPT_APPLY(&square, NULL, x), 5), *given = rapt_ones_like(x);
    cr_assert(rapt_backward_from(1, &y, &given, 0), "%s", rapt_error());
    expect_all("gradient", rapt_gradient(x), 30);
    expect_all("slope", slope_seen, 15);
    rapt_release(slope_seen);
}

/* --- outputs that are saved --- */

/* (e^x, e^−x), which saves what its options say */
static rapt_tensor *pair_forward(rapt_call *call)
{
    rapt_tensor *x = rapt_call_input(call, 0);
    rapt_call_save_output(call, 1);
    rapt_call_save_output(call, *(const int *)rapt_call_options(call));
    rapt_call_set_output(call, 1, rapt_exp(rapt_neg(x)));
    return rapt_exp(x);
}

static bool pair_vjp(rapt_call *call)
{
    rapt_tensor *up = rapt_mul(rapt_call_gradient_or_zeros(call, 0), rapt_call_saved(call, 1));
    rapt_tensor *down = rapt_mul(rapt_call_gradient_or_zeros(call, 1), rapt_call_saved(call, 0));
    if (*(const int *)rapt_call_options(call) != 0) rapt_call_save_output(call, 0);
    return rapt_call_give(call, 0, rapt_sub(up, down));
}

static const rapt_op pair = {.name = "pair",
                             .forward = pair_forward,
                             .vjp = pair_vjp,
                             .options_size = sizeof(int),
                             .outputs = 2};

Test(last_gradient, outputs_are_saved_before_they_are_there)
{
    RAPT_SCOPE;
    rapt_tensor *x = leaf(0.5), *outputs[2], *slope, *curve;
    cr_assert(rapt_apply_many(&pair, &(int){0}, 1, &x, outputs));
    rapt_tensor *sum = rapt_sum(rapt_add(outputs[0], outputs[1]), RAPT_ALL_AXES, false);
    cr_assert(rapt_gradients(1, &sum, NULL, 1, &x, &slope, RAPT_CREATE_GRAPH), "%s", rapt_error());
    expect_all("slope", slope, 2 * sinh(0.5));
    rapt_tensor *total = rapt_sum(slope, RAPT_ALL_AXES, false);
    cr_assert(rapt_gradients(1, &total, NULL, 1, &x, &curve, 0), "%s", rapt_error());
    expect_all("curve", curve, 2 * cosh(0.5));
}

Test(last_gradient, saving_no_output_or_too_late_is_an_error)
{
    RAPT_SCOPE;
    rapt_tensor *x = leaf(0.5), *outputs[2];
    cr_expect_not(rapt_apply_many(&pair, &(int){2}, 1, &x, outputs));
    expect_error(RAPT_ERROR_VALUE, "pair: output 2 asked for in its forward; there are 2");
    cr_assert(rapt_apply_many(&pair, &(int){1}, 1, &x, outputs));
    cr_expect_not(rapt_backward(rapt_sum(outputs[0], RAPT_ALL_AXES, false)));
    expect_error(RAPT_ERROR_GRAPH, "pair: its vjp saved a tensor, which only forward can");
}
