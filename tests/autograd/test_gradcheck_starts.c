/* gradcheck starts from gradients of both signs and all sizes: a vjp may be right for 1 alone. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include <rapt.h>

#include "expect.h"

static rapt_tensor *tanh_forward(rapt_call *call)
{
    rapt_call_save(call, rapt_call_input(call, 0));
    return rapt_tanh(rapt_call_input(call, 0));
}

static bool give_times_slope(rapt_call *call, rapt_tensor *gradient)
{
    rapt_tensor *y = rapt_tanh(rapt_call_saved(call, 0));
    return rapt_call_give(call, 0, rapt_mul(gradient, rapt_add_scalar(rapt_neg(rapt_mul(y, y)), 1)));
}

static bool right_vjp(rapt_call *call)
{
    return give_times_slope(call, rapt_call_gradient(call, 0));
}

static bool relu_vjp(rapt_call *call)
{
    return give_times_slope(call, rapt_relu(rapt_call_gradient(call, 0)));
}

static bool abs_vjp(rapt_call *call)
{
    return give_times_slope(call, rapt_abs(rapt_call_gradient(call, 0)));
}

static bool square_vjp(rapt_call *call)
{
    rapt_tensor *gradient = rapt_call_gradient(call, 0);
    return give_times_slope(call, rapt_mul(gradient, gradient));
}

static bool clip_vjp(rapt_call *call)
{
    return give_times_slope(call, rapt_clamp(rapt_call_gradient(call, 0), -1, 1));
}

#define OP(kind)                                                                                                       \
    {                                                                                                                  \
        .name = #kind, .forward = tanh_forward, .vjp = kind##_vjp,                                                     \
        .no_second_gradient = "nothing is asked of the graph"                                                          \
    }
static const rapt_op right = OP(right), wrong[] = {OP(relu), OP(abs), OP(square), OP(clip)};

static rapt_tensor *call_op(rapt_tensor *const *inputs, void *context)
{
    return RAPT_APPLY((const rapt_op *)context, NULL, inputs[0]);
}

static rapt_gradcheck_result check(const rapt_op *op, int64_t count)
{
    rapt_tensor *x = rapt_require_gradient(rapt_linspace(RAPT_FLOAT64, 0.1, 1, count));
    return rapt_gradcheck(op->name, call_op, 1, &x, &(rapt_gradcheck_options){.context = (void *)(uintptr_t)op});
}

Test(gradcheck_starts, a_vjp_that_is_not_linear_is_found)
{
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        for (int64_t count = 1; count <= 9; count += 4) {
            RAPT_SCOPE;
            const rapt_gradcheck_result r = check(&wrong[i], count);
            cr_expect_not(r.passed, "%s of %d", wrong[i].name, (int)count);
            cr_expect(strstr(r.message, "a vjp is not linear in rapt_call_gradient: from a starting gradient of mixed "
                                        "sign and size, d / d input 0["),
                      "%s", r.message);
            cr_expect(r.input == 0 && r.output == -1 && r.index >= 0 && r.index < count, "%s", r.message);
            cr_expect_gt(fabs(r.analytic - r.numeric), r.tolerance);
            cr_expect_eq(r.checked, count * count, "derivatives are counted, and nothing else");
        }
    expect_no_error();
}

Test(gradcheck_starts, a_right_one_passes)
{
    for (int64_t count = 1; count <= 9; count += 4) {
        RAPT_SCOPE;
        const rapt_gradcheck_result r = check(&right, count);
        cr_expect(r.passed, "%s", r.message);
    }
    expect_no_error();
}

/* Wrong for 1 as well: the element is told, as ever. */
static bool half_vjp(rapt_call *call)
{
    return give_times_slope(call, rapt_relu(rapt_mul_scalar(rapt_call_gradient(call, 0), 0.5)));
}

Test(gradcheck_starts, a_derivative_that_is_wrong_is_told_first)
{
    RAPT_SCOPE;
    const rapt_op half = OP(half);
    const rapt_gradcheck_result r = check(&half, 3);
    cr_expect(strstr(r.message, "d output[0] / d input 0[0] is"), "%s", r.message);
}

/* A loop over numbers; one op's forgets rapt_contiguous. */
static bool loop(rapt_call *call, bool forgets)
{
    rapt_tensor *gradient = rapt_call_gradient(call, 0), *x = rapt_contiguous(rapt_call_saved(call, 0));
    rapt_tensor *given = rapt_empty_like(x);
    if (!forgets) gradient = rapt_contiguous(gradient);
    const double *g = rapt_data(gradient), *numbers = rapt_data(x);
    double *result = rapt_data_for_writing(given);
    for (int64_t i = 0; i < rapt_count(x); i++) result[i] = g[i] * (1 - tanh(numbers[i]) * tanh(numbers[i]));
    return rapt_call_give(call, 0, given);
}

static bool forgetful_vjp(rapt_call *call)
{
    return loop(call, true);
}

static bool careful_vjp(rapt_call *call)
{
    return loop(call, false);
}

static const rapt_op forgetful = OP(forgetful), careful = OP(careful);

Test(gradcheck_starts, a_vjp_that_takes_the_gradient_for_contiguous_is_found)
{
    static const int64_t shape[] = {2, 3, 1, 2, 1, 1, 2, 1};
    for (int rank = 0; rank <= RAPT_MAX_RANK; rank++)
        for (int project = 0; project < 2; project++) {
            RAPT_SCOPE;
            rapt_tensor *x = rapt_require_gradient(rapt_randn(RAPT_FLOAT64, rank, shape));
            rapt_gradcheck_options options = {.context = (void *)(uintptr_t)&careful, .random_projection = project};
            rapt_gradcheck_result r = rapt_gradcheck("careful", call_op, 1, &x, &options);
            cr_expect(r.passed, "rank %d: %s", rank, r.message);
            expect_no_error();
            options.context = (void *)(uintptr_t)&forgetful;
            r = rapt_gradcheck("forgetful", call_op, 1, &x, &options);
            cr_expect_eq(r.passed, rank == 0, "rank %d", rank);
            if (rank > 0) expect_error(RAPT_ERROR_GRAPH, "forgetful: backward gives something else");
        }
}
