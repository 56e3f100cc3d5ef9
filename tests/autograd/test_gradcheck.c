/* gradcheck finds wrong gradients and says where they are. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include <rapt.h>

#include "expect.h"

/* y = x³ element by element, whose gradient is wrong by the factor 1 + 1e-5 where x is above 1. */
static rapt_tensor *cube_forward(rapt_call *call)
{
    rapt_tensor *x = rapt_call_input(call, 0);
    rapt_call_save(call, x);
    return rapt_pow_scalar(x, 3);
}

static bool cube_vjp(rapt_call *call)
{
    rapt_tensor *x = rapt_call_saved(call, 0), *slope = rapt_mul_scalar(rapt_pow_scalar(x, 2), 3);
    rapt_tensor *wrong =
        rapt_where(rapt_greater(x, rapt_scalar(RAPT_FLOAT64, 1)), rapt_mul_scalar(slope, 1 + 1e-5), slope);
    return rapt_call_give(call, 0, rapt_mul(rapt_call_gradient(call, 0), wrong));
}

static const rapt_op wrong_cube = {.name = "wrong_cube", .forward = cube_forward, .vjp = cube_vjp};

static rapt_tensor *call_wrong_cube(rapt_tensor *const *inputs, void *context)
{
    (void)context;
    return rapt_add(inputs[0], RAPT_APPLY(&wrong_cube, NULL, inputs[1]));
}

/* y = x³ with the right gradient, which does not depend on x, as the graph has it. */
static bool constant_vjp(rapt_call *call)
{
    rapt_tensor *x = rapt_detach(rapt_call_saved(call, 0));
    return rapt_call_give(call, 0, rapt_mul(rapt_call_gradient(call, 0), rapt_mul_scalar(rapt_pow_scalar(x, 2), 3)));
}

static const rapt_op flat_cube = {.name = "flat_cube", .forward = cube_forward, .vjp = constant_vjp};

static rapt_tensor *call_flat_cube(rapt_tensor *const *inputs, void *context)
{
    (void)context;
    return RAPT_APPLY(&flat_cube, NULL, inputs[0]);
}

static rapt_tensor *call_right_cube(rapt_tensor *const *inputs, void *context)
{
    int *calls = context;
    if (calls) ++*calls;
    return rapt_mul(rapt_mul(inputs[0], inputs[0]), inputs[0]);
}

static rapt_tensor *call_exp(rapt_tensor *const *inputs, void *context)
{
    (void)context;
    return rapt_exp(inputs[0]);
}

/* log x: NaN by backward and by differences where x is negative. */
static rapt_tensor *call_log(rapt_tensor *const *inputs, void *context)
{
    (void)context;
    return rapt_log(inputs[0]);
}

static rapt_tensor *leaf(rapt_dtype dtype, double start, double stop, double step)
{
    return rapt_require_gradient(rapt_arange(dtype, start, stop, step));
}

Test(gradcheck, a_right_gradient_passes)
{
    RAPT_SCOPE;
    rapt_tensor *x = leaf(RAPT_FLOAT64, -1, 2, 0.5);
    for (int mode = 0; mode < 4; mode++) {
        rapt_gradcheck_options options = {.second_order = mode & 1, .random_projection = mode & 2};
        rapt_gradcheck_result result = rapt_gradcheck("cube", call_right_cube, 1, &x, &options);
        cr_expect(result.passed && result.message[0] == 0, "mode %d: %s", mode, result.message);
        cr_expect(result.checked == (mode & 2   ? 1
                                     : mode & 1 ? 72
                                                : 36),
                  "mode %d: %d checked", mode, (int)result.checked);
        cr_expect(result.worst_error < 0.5);
        expect_no_error();
    }
}

Test(gradcheck, a_wrong_gradient_is_found_where_it_is)
{
    RAPT_SCOPE;
    rapt_tensor *inputs[] = {leaf(RAPT_FLOAT64, 0, 4, 1), leaf(RAPT_FLOAT64, 0.5, 1.5, 0.25)}; /* 0.5 0.75 1 1.25 */
    rapt_gradcheck_result result = rapt_gradcheck("wrong_cube", call_wrong_cube, 2, inputs, NULL);
    cr_expect_not(result.passed);
    cr_expect(result.input == 1 && result.index == 3 && result.output == 3, "%s", result.message);
    cr_expect_float_eq(result.numeric, 3 * 1.25 * 1.25, 1e-8);
    cr_expect_float_eq(result.analytic, 3 * 1.25 * 1.25 * (1 + 1e-5), 1e-12);
    cr_expect_float_eq(result.tolerance, 1e-9 + 1e-6 * 3 * 1.25 * 1.25, 1e-12);
    cr_expect_float_eq(result.worst_error, 10, 0.1);
    const char *const parts[] = {"wrong_cube", "input 1[3]",       "output[3]",       "4.68754",
                                 "4.6875",     "; they differ by", "4.69e-06 allowed"};
    for (int i = 0; i < 7; i++)
        cr_expect(strstr(result.message, parts[i]), "'%s' is not in: %s", parts[i], result.message);
    expect_no_error();
}

static rapt_tensor *call_behind_an_empty_one(rapt_tensor *const *inputs, void *context)
{
    (void)context;
    return rapt_add(rapt_sum(inputs[0], RAPT_ALL_AXES, false), RAPT_APPLY(&wrong_cube, NULL, inputs[1]));
}

Test(gradcheck, a_wrong_gradient_is_found_behind_an_empty_input)
{
    RAPT_SCOPE;
    rapt_tensor *inputs[] = {leaf(RAPT_FLOAT64, 0, 0, 1), leaf(RAPT_FLOAT64, 1.25, 1.75, 0.5)};
    cr_assert_eq(rapt_count(inputs[0]), 0);
    rapt_gradcheck_result result = rapt_gradcheck("wrong_cube", call_behind_an_empty_one, 2, inputs, NULL);
    cr_expect_not(result.passed);
    cr_expect(result.input == 1 && result.index == 0 && result.output == 0, "%s", result.message);
}

Test(gradcheck, tolerances_and_steps_are_the_callers)
{
    RAPT_SCOPE;
    rapt_tensor *inputs[] = {leaf(RAPT_FLOAT64, 0, 4, 1), leaf(RAPT_FLOAT64, 0.5, 1.5, 0.25)};
    cr_expect(
        rapt_gradcheck("w", call_wrong_cube, 2, inputs, &(rapt_gradcheck_options){.relative_tolerance = 1e-4}).passed);
    cr_expect(
        rapt_gradcheck("w", call_wrong_cube, 2, inputs, &(rapt_gradcheck_options){.absolute_tolerance = 1e-3}).passed);
    /* differences with a step of 0.5 are those of another function */
    rapt_tensor *x = leaf(RAPT_FLOAT64, 0.1, 3, 1);
    cr_expect(rapt_gradcheck("exp", call_exp, 1, &x, NULL).passed);
    cr_expect_not(rapt_gradcheck("exp", call_exp, 1, &x, &(rapt_gradcheck_options){.step = 0.5}).passed);
}

static rapt_tensor *call_large(rapt_tensor *const *inputs, void *context)
{
    (void)context;
    return rapt_mul_scalar(call_exp(inputs, NULL), 1e9);
}

/* What rounding makes of its gradient's derivative is more than 1e-9, and little beside it. */
Test(gradcheck, large_gradients_may_be_off_by_more)
{
    RAPT_SCOPE;
    rapt_tensor *x = leaf(RAPT_FLOAT64, -1, 3, 0.01);
    rapt_gradcheck_options options = {.random_projection = true};
    rapt_gradcheck_result result = rapt_gradcheck("large", call_large, 1, &x, &options);
    cr_expect(result.passed, "%s", result.message);
    expect_no_error();
}

Test(gradcheck, a_gradient_that_is_no_number_fails)
{
    RAPT_SCOPE;
    rapt_tensor *x = leaf(RAPT_FLOAT64, 1, -3, -1.5);
    rapt_gradcheck_result result = rapt_gradcheck("log", call_log, 1, &x, NULL);
    cr_expect(!result.passed && result.output == 1, "%s", result.message);
}

Test(gradcheck, a_random_projection_finds_it_too)
{
    RAPT_SCOPE;
    rapt_tensor *inputs[] = {leaf(RAPT_FLOAT64, 0, 4, 1), leaf(RAPT_FLOAT64, 1.5, 2.5, 0.25)};
    rapt_gradcheck_options options = {.random_projection = true, .seed = 3};
    rapt_gradcheck_result result = rapt_gradcheck("wrong_cube", call_wrong_cube, 2, inputs, &options);
    cr_expect(!result.passed && result.input == -1 && result.output == -1 && result.checked == 1, "%s", result.message);
    cr_expect(strstr(result.message, "random projection"), "%s", result.message);
}

Test(gradcheck, a_wrong_second_derivative_is_found)
{
    RAPT_SCOPE;
    rapt_tensor *x = leaf(RAPT_FLOAT64, 1, 3, 0.5);
    cr_expect(rapt_gradcheck("flat_cube", call_flat_cube, 1, &x, NULL).passed, "its first derivative is right");
    for (int project = 0; project < 2; project++) {
        rapt_gradcheck_options options = {.second_order = true, .random_projection = project};
        rapt_gradcheck_result result = rapt_gradcheck("flat_cube", call_flat_cube, 1, &x, &options);
        cr_expect_not(result.passed);
        cr_expect(strstr(result.message, "second order"), "%s", result.message);
        cr_expect(strstr(result.message, project ? "a random projection" : "] / d input 0["), "%s", result.message);
        if (!project)
            cr_expect(result.input == 0 && result.analytic == 0 && fabs(result.numeric) > 0.1, "%s", result.message);
    }
}

static void expect_refusal(rapt_gradcheck_result result, rapt_error_code code, const char *part)
{
    cr_expect_not(result.passed);
    cr_expect(strstr(result.message, part), "'%s' is not in: %s", part, result.message);
    expect_error(code, part);
}

static rapt_tensor *call_failing(rapt_tensor *const *inputs, void *context)
{
    (void)context;
    return rapt_reshape(inputs[0], RAPT_SHAPE(77));
}

static rapt_tensor *call_to_float32(rapt_tensor *const *inputs, void *context)
{
    (void)context;
    return rapt_cast(inputs[0], RAPT_FLOAT32);
}

Test(gradcheck, what_cannot_be_checked_is_refused)
{
    RAPT_SCOPE;
    rapt_tensor *single = leaf(RAPT_FLOAT32, 0, 3, 1), *constant = rapt_arange(RAPT_FLOAT64, 0, 3, 1);
    rapt_tensor *x = leaf(RAPT_FLOAT64, 0, 3, 1), *result = rapt_exp(x), *none = NULL;
    rapt_tensor *repeated = rapt_require_gradient(rapt_expand(rapt_ones(RAPT_FLOAT64, RAPT_SHAPE(1)), RAPT_SHAPE(3)));
    expect_refusal(rapt_gradcheck("f", call_right_cube, 1, &single, NULL), RAPT_ERROR_DTYPE, "f: input 0 is float32");
    expect_refusal(rapt_gradcheck("f", call_right_cube, 1, &constant, NULL), RAPT_ERROR_VALUE,
                   "no input requires a gradient");
    expect_refusal(rapt_gradcheck("f", call_right_cube, 1, &result, NULL), RAPT_ERROR_GRAPH, "a leaf expected");
    expect_refusal(rapt_gradcheck("f", call_right_cube, 1, &repeated, NULL), RAPT_ERROR_SHAPE, "repeats elements");
    expect_refusal(rapt_gradcheck("f", call_right_cube, 1, &none, NULL), RAPT_ERROR_NULL, "input 0 is NULL");
    expect_refusal(rapt_gradcheck("f", NULL, 1, &x, NULL), RAPT_ERROR_NULL, "function or inputs is NULL");
    expect_refusal(rapt_gradcheck("f", call_right_cube, 1, NULL, NULL), RAPT_ERROR_NULL, "function or inputs is NULL");
    expect_refusal(rapt_gradcheck("f", call_right_cube, -1, &x, NULL), RAPT_ERROR_VALUE, "f: -1 inputs");
    const rapt_gradcheck_options bad[] = {{.step = (double)NAN},
                                          {.step = -1e-4},
                                          {.step = (double)INFINITY},
                                          {.relative_tolerance = -1},
                                          {.absolute_tolerance = (double)NAN}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        expect_refusal(rapt_gradcheck("f", call_right_cube, 1, &x, &bad[i]), RAPT_ERROR_VALUE,
                       "finite numbers above 0 expected");
    rapt_tensor *infinite = leaf(RAPT_FLOAT64, 0, 3, 1);
    rapt_set_at(infinite, (int64_t[]){1}, (double)INFINITY);
    expect_refusal(rapt_gradcheck("f", call_right_cube, 1, &infinite, NULL), RAPT_ERROR_VALUE,
                   "f: input 0 has NaN or infinities");
    expect_refusal(rapt_gradcheck("f", call_failing, 1, &x, NULL), RAPT_ERROR_SHAPE, "reshape: ");
    expect_refusal(rapt_gradcheck("f", call_to_float32, 1, &x, NULL), RAPT_ERROR_DTYPE, "returned float32");
}

Test(gradcheck, everything_is_as_before)
{
    RAPT_SCOPE;
    rapt_seed(11);
    rapt_tensor *x = leaf(RAPT_FLOAT64, -1, 1, 0.3);
    double before[7];
    memcpy(before, rapt_data(x), sizeof before);
    rapt_random_state random = rapt_random_get_state();
    int calls = 0;
    int64_t live = rapt_memory_get_statistics().live_bytes;
    rapt_gradcheck_options options = {.context = &calls, .second_order = true};
    cr_expect(rapt_gradcheck("cube", call_right_cube, 1, &x, &options).passed);
    cr_expect(calls > 28, "the context arrives: %d calls", calls);
    cr_expect_eq(memcmp(before, rapt_data(x), sizeof before), 0);
    cr_expect_null(rapt_gradient(x));
    cr_expect(rapt_is_recording());
    cr_expect_eq(rapt_random_get_state().offset, random.offset);
    cr_expect_eq(rapt_memory_get_statistics().live_bytes, live);
}

Test(gradcheck, works_while_recording_is_off)
{
    RAPT_SCOPE;
    RAPT_NO_GRADIENT;
    rapt_tensor *x = leaf(RAPT_FLOAT64, -1, 1, 0.3);
    cr_expect(rapt_gradcheck("cube", call_right_cube, 1, &x, NULL).passed, "%s", rapt_error());
    cr_expect_not(rapt_is_recording());
}

static rapt_tensor *call_sum(rapt_tensor *const *inputs, void *count)
{
    rapt_tensor *sum = inputs[0];
    for (int i = 1; i < *(int *)count; i++) sum = rapt_add(sum, rapt_mul_scalar(inputs[i], i));
    return sum;
}

Test(gradcheck, of_any_number_of_inputs)
{
    RAPT_SCOPE;
    enum { many = 40 };
    int count = many;
    rapt_tensor *inputs[many];
    for (int i = 0; i < many; i++) inputs[i] = leaf(RAPT_FLOAT64, i, i + 2, 1);
    for (int mode = 0; mode < 4; mode++) {
        rapt_gradcheck_options options = {.context = &count,
                                          .absolute_tolerance = 1e-6,
                                          .second_order = mode & 1,
                                          .random_projection = mode & 2};
        rapt_gradcheck_result result = rapt_gradcheck("sum", call_sum, many, inputs, &options);
        cr_expect(result.passed, "mode %d: %s", mode, result.message);
    }
}

static rapt_tensor *call_product(rapt_tensor *const *inputs, void *context)
{
    (void)context;
    return rapt_mul(inputs[0], rapt_exp(inputs[1]));
}

/* Its second move would take the first one back. */
Test(gradcheck, one_tensor_may_be_two_inputs)
{
    RAPT_SCOPE;
    rapt_tensor *x = leaf(RAPT_FLOAT64, 1, 4, 1), *inputs[] = {x, x};
    for (int order = 1; order <= 2; order++) {
        const rapt_gradcheck_options options = {.second_order = order == 2};
        const rapt_gradcheck_result result = rapt_gradcheck("product", call_product, 2, inputs, &options);
        cr_expect(result.passed, "%s", result.message);
        cr_expect_eq(result.checked, order == 1 ? 9 : 18);
    }
}

static rapt_tensor *call_first(rapt_tensor *const *inputs, void *context)
{
    (void)context;
    return rapt_mul(inputs[0], inputs[0]);
}

Test(gradcheck, inputs_may_be_of_no_use)
{
    RAPT_SCOPE;
    rapt_tensor *x = leaf(RAPT_FLOAT64, 0, 2, 1);
    rapt_tensor *inputs[] = {x, rapt_require_gradient(rapt_ones(RAPT_FLOAT64, RAPT_SHAPE(2, 3))),
                             rapt_require_gradient(rapt_ones(RAPT_FLOAT64, 0, NULL))};
    for (int mode = 0; mode < 4; mode++) {
        rapt_gradcheck_options options = {.second_order = mode & 1, .random_projection = mode & 2};
        rapt_gradcheck_result result = rapt_gradcheck("first", call_first, 3, inputs, &options);
        cr_expect(result.passed, "mode %d: %s", mode, result.message);
        if (!options.random_projection) cr_expect_eq(result.checked, mode ? 11 * 9 : 9 * 2, "%d", (int)result.checked);
    }
    expect_no_error();
}

Test(gradcheck, inputs_have_the_callers_names)
{
    RAPT_SCOPE;
    rapt_tensor *inputs[] = {leaf(RAPT_FLOAT64, 0, 4, 1), leaf(RAPT_FLOAT64, 0.5, 1.5, 0.25)};
    const char *names[] = {"bias", "encoder.weight"};
    rapt_gradcheck_options options = {.names = names};
    rapt_gradcheck_result result = rapt_gradcheck("wrong_cube", call_wrong_cube, 2, inputs, &options);
    cr_expect(strstr(result.message, "d output[3] / d encoder.weight[3] is 4.68"), "%s", result.message);
    rapt_tensor *single[] = {inputs[0], leaf(RAPT_FLOAT32, 0, 4, 1)};
    expect_refusal(rapt_gradcheck("f", call_wrong_cube, 2, single, &options), RAPT_ERROR_DTYPE,
                   "f: encoder.weight is float32");
}

/* x³, whose gradient is linear in the one that arrives, as differences have it, but not in the graph's. */
static bool deaf_vjp(rapt_call *call)
{
    rapt_tensor *slope = rapt_mul_scalar(rapt_pow_scalar(rapt_call_saved(call, 0), 2), 3);
    return rapt_call_give(call, 0, rapt_mul(rapt_detach(rapt_call_gradient(call, 0)), slope));
}

static const rapt_op deaf_cube = {.name = "deaf_cube", .forward = cube_forward, .vjp = deaf_vjp};

static rapt_tensor *call_deaf_cube(rapt_tensor *const *inputs, void *context)
{
    (void)context;
    return RAPT_APPLY(&deaf_cube, NULL, inputs[0]);
}

Test(gradcheck, the_starting_gradient_has_a_name)
{
    RAPT_SCOPE;
    rapt_tensor *inputs[] = {leaf(RAPT_FLOAT64, 1, 3, 0.5), rapt_arange(RAPT_FLOAT64, 0, 2, 1)};
    rapt_gradcheck_result result =
        rapt_gradcheck("deaf_cube", call_deaf_cube, 2, inputs, &(rapt_gradcheck_options){.second_order = true});
    cr_expect(!result.passed && strstr(result.message, "d starting gradient["), "%s", result.message);
    cr_expect_eq(result.input, 2, "after all inputs");
}

static rapt_tensor *call_dropout(rapt_tensor *const *inputs, void *context)
{
    (void)context;
    return rapt_drop(rapt_mul(inputs[0], inputs[0]), 0.5);
}

Test(gradcheck, random_numbers_are_the_same_at_every_call)
{
    RAPT_SCOPE;
    rapt_tensor *x = leaf(RAPT_FLOAT64, 1, 9, 0.5);
    for (int mode = 0; mode < 4; mode++) {
        rapt_gradcheck_options options = {.second_order = mode & 1, .random_projection = mode & 2};
        rapt_gradcheck_result result = rapt_gradcheck("dropout", call_dropout, 1, &x, &options);
        cr_expect(result.passed, "mode %d: %s", mode, result.message);
    }
}
