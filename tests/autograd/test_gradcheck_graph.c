/* gradcheck looks whether gradients are part of the graph, whatever failed before. */
#include <criterion/criterion.h>
#include <math.h>

#include <rapt.h>

#include "expect.h"

static rapt_tensor *sine_forward(rapt_call *call)
{
    rapt_call_save(call, rapt_call_input(call, 0));
    return rapt_sin(rapt_call_input(call, 0));
}

/* A loop over numbers, which has no derivative. */
static bool sine_vjp(rapt_call *call)
{
    rapt_tensor *x = rapt_call_saved(call, 0), *given = rapt_empty_like(x);
    const double *numbers = rapt_data(x), *g = rapt_data(rapt_contiguous(rapt_call_gradient(call, 0)));
    double *result = rapt_data_for_writing(given);
    for (int64_t i = 0; i < rapt_count(x); i++) result[i] = g[i] * cos(numbers[i]);
    return rapt_call_give(call, 0, given);
}

static const rapt_op sine_that_says_so = {.name = "sine",
                                          .forward = sine_forward,
                                          .vjp = sine_vjp,
                                          .no_second_gradient = "it is a loop"};
static const rapt_op silent_sine = {.name = "sine", .forward = sine_forward, .vjp = sine_vjp};

static rapt_tensor *call_op(rapt_tensor *const *inputs, void *context)
{
    return RAPT_APPLY((const rapt_op *)context, NULL, inputs[0]);
}

static rapt_gradcheck_result check(const rapt_op *op)
{
    rapt_tensor *x = rapt_require_gradient(rapt_linspace(RAPT_FLOAT64, 0.1, 1, 3));
    return rapt_gradcheck("sine", call_op, 1, &x, &(rapt_gradcheck_options){.context = (void *)(uintptr_t)op});
}

static int told;

static void count_told(rapt_error_code code, const char *message)
{
    (void)code, (void)message;
    told++;
}

Test(gradcheck_graph, a_handler_hears_of_no_error_that_is_forgiven)
{
    RAPT_SCOPE;
    rapt_on_error(count_told);
    cr_expect(check(&sine_that_says_so).passed, "%s", rapt_error());
    cr_expect_eq(told, 0);
    cr_expect_not(check(&silent_sine).passed);
    cr_expect_eq(told, 1);
    expect_error(RAPT_ERROR_GRAPH, "sine: its vjp did not make the gradient");
}

/* The error is that of before, as the first one always is. */
Test(gradcheck_graph, an_error_that_stands_changes_nothing)
{
    static const rapt_error_code codes[] = {RAPT_ERROR_NULL, RAPT_ERROR_UNSUPPORTED};
    RAPT_SCOPE;
    cr_expect(check(&sine_that_says_so).passed, "%s", rapt_error());
    expect_no_error();
    cr_expect_not(check(&silent_sine).passed);
    expect_error(RAPT_ERROR_GRAPH, "sine: its vjp did not make the gradient");
    for (int i = 0; i < 2; i++) {
        rapt_fail(codes[i], "before", "an error that stands");
        const char *message = rapt_error();
        rapt_gradcheck_result r = check(&sine_that_says_so);
        cr_expect(r.passed, "%s", r.message);
        r = check(&silent_sine);
        cr_expect_not(r.passed);
        cr_expect(strstr(r.message, "sine: its vjp did not make the gradient"), "%s", r.message);
        cr_expect_eq(rapt_error(), message);
        expect_error(codes[i], "before: an error that stands");
    }
}
