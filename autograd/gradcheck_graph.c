/* The graph of gradients, as gradcheck of first order looks at it. */
#include "gradcheck_graph.h"

#include <math.h>

#include <rapt/ops.h>

#include "node.h"

/* An op that says that it has no second derivative is believed. */
static bool forgive_unsupported(void)
{
    if (rapt_error_get_code() != RAPT_ERROR_UNSUPPORTED) return false;
    rapt_clear_error();
    return true;
}

/* The gradients are linear in the cotangent u that they start from, so that Σ <t, gradient> is <u, its derivative by
 * u>. The derivative is that of definitions, where ops have them: they must be of the same function. What is not finite
 * is for the differences. */
static bool check_definitions(const char *name, int count, rapt_tensor *const *gradients, rapt_tensor *cotangent,
                              const rapt_gradcheck_options *options)
{
    rapt_tensor *sum = rapt_zeros(RAPT_FLOAT64, 0, NULL), *magnitude = sum, *slope;
    for (int i = 0; i < count; i++) {
        rapt_tensor *gradient = gradients[i];
        if (!gradient || !gradient->link) continue;
        rapt_tensor *along = rapt_mul(gradient, rapt_randn(RAPT_FLOAT64, gradient->rank, gradient->shape));
        sum = rapt_add(sum, rapt_sum(along, RAPT_ALL_AXES, false));
        magnitude = rapt_add(magnitude, rapt_sum(rapt_abs(along), RAPT_ALL_AXES, false));
    }
    if (!sum || !magnitude) return false;
    if (!sum->link) return true;
    if (!rapt_gradients(1, &sum, NULL, 1, &cotangent, &slope, 0)) return forgive_unsupported();
    rapt_tensor *product = slope ? rapt_sum(rapt_mul(cotangent, slope), RAPT_ALL_AXES, false) : NULL;
    if (slope && !product) return false;
    const double by_gradient = rapt_item(sum), by_slope = product ? rapt_item(product) : 0;
    const double allowed = options->absolute_tolerance + options->relative_tolerance * rapt_item(magnitude);
    return !isfinite(by_gradient) || fabs(by_gradient - by_slope) <= allowed ||
           rapt_fail(RAPT_ERROR_GRAPH, "gradcheck",
                     "%s: the derivative of its gradient is that of another function (%.12g along a direction, not "
                     "%.12g): an op's definition is not what its forward computes, or a vjp is not linear in "
                     "rapt_call_gradient, which it may have left out",
                     name, by_slope, by_gradient);
}

static bool check_graph(const char *name, rapt_tensor *output, int count, rapt_tensor *const *variables,
                        rapt_tensor **gradients, const rapt_gradcheck_options *options)
{
    rapt_tensor *cotangent = rapt_require_gradient(rapt_randn(RAPT_FLOAT64, output->rank, output->shape));
    if (!cotangent) return false;
    if (!rapt_gradients(1, &output, &cotangent, count, variables, gradients, RAPT_CREATE_GRAPH))
        return forgive_unsupported();
    return check_definitions(name, count, gradients, cotangent, options);
}

bool rapt_gradcheck_graph(const char *name, rapt_tensor *output, int count, rapt_tensor *const *variables,
                          rapt_tensor **gradients, const rapt_gradcheck_options *options)
{
    if (!output->link) return true;
    rapt_error_hold(); /* its handler is not told of what is forgiven */
    const bool good = check_graph(name, output, count, variables, gradients, options);
    rapt_error_release();
    return good;
}
