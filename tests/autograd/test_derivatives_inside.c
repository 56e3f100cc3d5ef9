/* Derivatives that are asked for inside of what backward runs: a recomputed function, a vjp. */
#include "modules.h"

#include <rapt/autograd.h>

static rapt_tensor *total(rapt_tensor *x)
{
    return rapt_sum(x, RAPT_ALL_AXES, false);
}

static rapt_tensor *leaf(void)
{
    return rapt_require_gradient(rapt_linspace(RAPT_FLOAT64, 0.1, 1, 3));
}

/* Outside any graph. */
static void expect_near(rapt_tensor *actual, rapt_tensor *expected, double tolerance)
{
    cr_assert(actual && expected, "%s", rapt_error());
    expect_values("gradient", actual, rapt_count(expected), values_of(rapt_detach(expected)), tolerance);
}

/* Derivatives of Σ sin³ x, asked for while a function runs. */
typedef enum inside { PENALTY, PRODUCT_WITH_HESSIAN, PRODUCT_WITH_JACOBIAN, JACOBIAN, INSIDES } inside;

static rapt_tensor *differentiate_inside(rapt_tensor *const *in, void *context)
{
    rapt_tensor *x = in[0], *y = total(rapt_pow_scalar(rapt_sin(x), 3)), *one = rapt_ones_like(x), *d = NULL;
    const inside which = *(const inside *)context;
    if (which == PENALTY) rapt_gradients(1, &y, NULL, 1, &x, &d, RAPT_CREATE_GRAPH);
    if (which == PRODUCT_WITH_HESSIAN) rapt_hvp(y, 1, &x, &one, &d, RAPT_CREATE_GRAPH);
    if (which == PRODUCT_WITH_JACOBIAN) rapt_jvp(1, &y, 1, &x, &one, &d, RAPT_CREATE_GRAPH);
    return which == JACOBIAN ? rapt_jacobian(y, x, RAPT_CREATE_GRAPH) : d;
}

/* Backward has the result of exp while it runs the function again. */
Test(derivatives_inside, recomputed_function)
{
    for (inside which = PENALTY; which < INSIDES; which++)
        for (int flags = 0; flags <= RAPT_CREATE_GRAPH; flags += RAPT_CREATE_GRAPH) {
            RAPT_SCOPE;
            rapt_tensor *w[2], *x[2], *y[2];
            for (int again = 0; again < 2; again++) {
                w[again] = leaf();
                x[again] = rapt_exp(w[again]);
                y[again] = again ? rapt_recompute(differentiate_inside, 1, &x[1], &which, NULL)
                                 : differentiate_inside(&x[0], &which);
                rapt_tensor *root = total(rapt_mul(rapt_mul(y[again], y[again]), x[again]));
                cr_assert(root && rapt_backward_from(1, &root, NULL, flags), "%d, %d: %s", which, flags, rapt_error());
            }
            expect_near(rapt_gradient(w[1]), rapt_gradient(w[0]), 0);
        }
}

static rapt_tensor *sine_forward(rapt_call *call)
{
    rapt_call_save(call, rapt_call_input(call, 0));
    return rapt_sin(rapt_call_input(call, 0));
}

static bool sine_vjp(rapt_call *call)
{
    rapt_tensor *x = rapt_call_saved(call, 0), *g = rapt_call_gradient(call, 0), *result;
    const bool before = rapt_set_recording(true);
    rapt_tensor *y = rapt_sin(x);
    const bool good = rapt_gradients(1, &y, &g, 1, &x, &result, before ? RAPT_CREATE_GRAPH : 0);
    rapt_set_recording(before);
    return good && rapt_call_give(call, 0, result);
}

Test(derivatives_inside, vjp)
{
    static const rapt_op sine = {.name = "sine", .forward = sine_forward, .vjp = sine_vjp};
    RAPT_SCOPE;
    rapt_tensor *w = leaf(), *x = rapt_exp(w), *root = total(RAPT_APPLY(&sine, NULL, x)), *square, *second, *expected;
    rapt_tensor *slope = rapt_mul(rapt_cos(x), x);
    cr_assert(rapt_backward_from(1, &root, NULL, RAPT_CREATE_GRAPH), "%s", rapt_error());
    expect_near(rapt_gradient(w), slope, 1e-15);
    square = total(rapt_mul(rapt_gradient(w), rapt_gradient(w)));
    cr_assert(rapt_gradients(1, &square, NULL, 1, &w, &second, RAPT_RETAIN_GRAPH), "%s", rapt_error());
    square = total(rapt_mul(slope, slope));
    cr_assert(rapt_gradients(1, &square, NULL, 1, &w, &expected, 0), "%s", rapt_error());
    expect_near(second, expected, 1e-13);
}
