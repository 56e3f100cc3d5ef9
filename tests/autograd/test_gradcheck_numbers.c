/* gradcheck of large and small numbers, and what it leaves of its inputs. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include <rapt.h>

#include "expect.h"

static rapt_tensor *call_square(rapt_tensor *const *inputs, void *context)
{
    (void)context;
    return rapt_mul(inputs[0], inputs[0]);
}

static rapt_tensor *three(double first)
{
    return rapt_require_gradient(rapt_from(RAPT_FLOAT64, RAPT_SHAPE(3), (double[]){first, 3, 0.5}));
}

/* The first output does not depend on the other elements: its differences along those are 0, however large it is. */
Test(gradcheck_numbers, large_outputs)
{
    for (double first = 1; first < 1e9; first *= 10)
        for (int project = 0; project < 2; project++) {
            RAPT_SCOPE;
            rapt_tensor *x = three(first);
            const rapt_gradcheck_options options = {.random_projection = project};
            const rapt_gradcheck_result r = rapt_gradcheck("square", call_square, 1, &x, &options);
            cr_expect(r.passed, "%g: %s", first, r.message);
        }
    expect_no_error();
}

Test(gradcheck_numbers, negative_zero_stays)
{
    RAPT_SCOPE;
    rapt_tensor *x = three(-0.0);
    for (int project = 0; project < 2; project++) {
        const rapt_gradcheck_options options = {.random_projection = project};
        cr_expect(rapt_gradcheck("square", call_square, 1, &x, &options).passed, "%s", rapt_error());
        cr_expect(signbit(rapt_at(x, (int64_t[]){0})), "−0 became 0");
    }
}

/* The square root of what is below 0. */
static rapt_tensor *call_root(rapt_tensor *const *inputs, void *context)
{
    (void)context;
    return rapt_sqrt(rapt_add_scalar(inputs[0], -1));
}

Test(gradcheck_numbers, results_that_are_no_numbers_are_told_by_their_place)
{
    RAPT_SCOPE;
    rapt_tensor *x = three(2);
    for (int order = 1; order <= 2; order++) {
        const rapt_gradcheck_options options = {.second_order = order == 2};
        const rapt_gradcheck_result r = rapt_gradcheck("root", call_root, 1, &x, &options);
        cr_expect(!r.passed && r.index == 2, "%s", r.message);
        expect_no_error();
    }
}

static rapt_tensor *call_relu(rapt_tensor *const *inputs, void *context)
{
    (void)context;
    return rapt_relu(inputs[0]);
}

static rapt_tensor *call_size(rapt_tensor *const *inputs, void *context)
{
    (void)context;
    return rapt_abs(inputs[0]);
}

/* The root's end is at 1, a step is 1e-4. */
Test(gradcheck_numbers, the_end_of_a_domain_is_told)
{
    for (int project = 0; project < 2; project++) {
        RAPT_SCOPE;
        static const double ends[] = {1, 1 + 1.5e-4};
        for (int i = 0; i < 2; i++) {
            rapt_tensor *x = rapt_require_gradient(rapt_full(RAPT_FLOAT64, RAPT_SHAPE(2), ends[i]));
            const rapt_gradcheck_options options = {.random_projection = project};
            const rapt_gradcheck_result r = rapt_gradcheck("root", call_root, 1, &x, &options);
            cr_expect(!r.passed && strstr(r.message, "within two steps of 0.0001 the function is not finite"), "%s",
                      r.message);
        }
    }
    expect_no_error();
}

static rapt_tensor *call_wrong_square(rapt_tensor *const *inputs, void *context)
{
    (void)context;
    return rapt_mul(inputs[0], rapt_detach(inputs[0]));
}

/* At it, and within two steps beside it. What is wrong where the function is smooth has no such excuse. */
Test(gradcheck_numbers, a_kink_is_told)
{
    RAPT_SCOPE;
    static const double places[] = {0, 5e-5, -1.9e-4, 2e-4 / 3};
    for (int i = 0; i < 4; i++) {
        rapt_tensor *x = three(places[i]);
        rapt_gradcheck_result r = rapt_gradcheck("relu", call_relu, 1, &x, NULL);
        cr_expect(!r.passed && r.index == 0 && strstr(r.message, "a kink of the function"), "%g: %s", places[i],
                  r.message);
        r = rapt_gradcheck("size", call_size, 1, &x, NULL);
        cr_expect(i == 0 || strstr(r.message, "a kink of the function"), "%g: %s", places[i], r.message);
        r = rapt_gradcheck("wrong", call_wrong_square, 1, &x, NULL);
        cr_expect(!r.passed && !strstr(r.message, "kink"), "%s", r.message);
    }
    expect_no_error();
}

/* The inputs are as before: a graph that saved one of them, too. */
Test(gradcheck_numbers, graphs_of_before_go_on)
{
    RAPT_SCOPE;
    rapt_tensor *x = three(2), *y = rapt_sum(rapt_mul(x, x), RAPT_ALL_AXES, false);
    const uint64_t version = rapt_version(x);
    for (int project = 0; project < 2; project++) {
        const rapt_gradcheck_options options = {.random_projection = project};
        cr_expect(rapt_gradcheck("square", call_square, 1, &x, &options).passed, "%s", rapt_error());
        cr_expect_not(rapt_gradcheck("root", call_root, 1, &x, &options).passed);
        rapt_clear_error();
    }
    cr_expect_eq(rapt_version(x), version);
    cr_expect(rapt_backward(y), "%s", rapt_error());
    cr_expect_eq(rapt_at(rapt_gradient(x), (int64_t[]){1}), 6);
}
