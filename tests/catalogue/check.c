/* The checks of one function at its inputs. */
#include <math.h>

#include "../same_bits.h"
#include "catalogue.h"

/* What gradcheck allows: 1e-9 and 1e-6 of the derivative. Errors are given as a part of |derivative| + 1e-3 thus. */
static const double allowed = 1e-6, near_zero = 1e-3;

/* Results are rounded by 1.1e-16 of their size, which differences divide by their step: so much of what is allowed. */
static const double rounding = 4e-6;

static rapt_tensor *call(rapt_tensor *const *inputs, void *context)
{
    (void)inputs; /* they are the subject's own leaves */
    return subject_call(context);
}

static void check_by_differences(const subject *s, bool whole, bool second_order, entry *e)
{
    RAPT_SCOPE;
    const rapt_gradcheck_options options = {.context = (void *)s,
                                            .second_order = second_order,
                                            .random_projection = !whole,
                                            .seed = 11};
    const rapt_gradcheck_result result = rapt_gradcheck(s->c.name, call, s->count, s->leaves, &options);
    if (!result.passed) entry_fail(e, "%s", result.message);
    if (result.checked) entry_note(e, second_order ? of_second_order : of_gradients, result.worst_error * allowed);
    rapt_clear_error();
}

/* Standard normal numbers that float32 holds, the same for each dtype. */
static rapt_tensor *numbers_like(const rapt_tensor *x, uint64_t seed)
{
    rapt_seed(seed);
    return rapt_cast(rapt_randn(RAPT_FLOAT32, rapt_rank(x), rapt_shape(x)), rapt_get_dtype(x));
}

static void draw_tangents(const subject *s, rapt_tensor **tangents)
{
    for (int i = 0; i < s->count; i++) tangents[i] = numbers_like(s->leaves[i], (uint64_t)i + 100);
}

/* How the result changes along the tangents, by forward mode; zeros where it does not depend on the leaves. */
static rapt_tensor *forward_mode(const subject *s, rapt_tensor *y)
{
    rapt_tensor *tangents[most_leaves], *product = NULL;
    draw_tangents(s, tangents);
    if (!rapt_requires_gradient(y)) return rapt_zeros_like(y);
    if (!rapt_jvp(1, &y, s->count, s->leaves, tangents, &product, 0)) return NULL;
    return product ? product : rapt_zeros_like(y);
}

/* The same by differences of fourth order, as gradcheck's are. */
static rapt_tensor *moved(const subject *s, double distance)
{
    RAPT_NO_GRADIENT;
    rapt_tensor *tangents[most_leaves], *saved[most_leaves];
    draw_tangents(s, tangents);
    for (int i = 0; i < s->count; i++) {
        saved[i] = rapt_clone(s->leaves[i]);
        rapt_add_in_place(s->leaves[i], tangents[i], distance);
    }
    rapt_tensor *y = subject_call(s), *own = y ? rapt_clone(y) : NULL;
    for (int i = 0; i < s->count; i++) rapt_copy(s->leaves[i], saved[i]);
    return own;
}

static rapt_tensor *difference_along_tangents(const subject *s)
{
    static const double step = 1e-4, places[] = {-2, -1, 1, 2}, weights[] = {1, -8, 8, -1};
    rapt_tensor *sum = NULL;
    for (int i = 0; i < 4; i++) {
        rapt_tensor *part = rapt_mul_scalar(moved(s, places[i] * step), weights[i] / (12 * step));
        sum = i ? rapt_add(sum, part) : part;
    }
    return sum;
}

/* As array_error, of which the slack is absolute, or relative to the largest element. */
static double difference(const rapt_tensor *got, const rapt_tensor *expected, double absolute, double relative)
{
    if (!got || !expected) return (double)INFINITY;
    array a = array_read(got), b = array_read(expected);
    const double error = array_error(&a, &b, absolute + relative * array_largest(&b));
    array_free(&a);
    array_free(&b);
    return error;
}

static double slack_of_differences(const rapt_tensor *y)
{
    array values = array_read(y);
    const double largest = array_largest(&values);
    array_free(&values);
    return near_zero + rounding * largest;
}

static void check_forward_mode(const subject *s, entry *e)
{
    RAPT_SCOPE;
    rapt_tensor *y = subject_call(s), *product = y ? forward_mode(s, y) : NULL;
    const double error =
        product ? difference(product, difference_along_tangents(s), slack_of_differences(y), 0) : (double)INFINITY;
    if (!(error <= allowed))
        entry_fail(e, "%s: forward mode is off by %.3g of the derivative: %s", s->c.name, error,
                   rapt_error() ? rapt_error() : "another number");
    entry_note(e, of_forward_mode, error);
    rapt_clear_error();
}

/* The gradients of y along a random cotangent, NULL where there are none. */
static bool gradients_of(rapt_tensor *y, int count, rapt_tensor *const *leaves, rapt_tensor **gradients, int flags)
{
    for (int i = 0; i < count; i++) gradients[i] = NULL;
    rapt_tensor *cotangent = y ? numbers_like(y, 77) : NULL;
    return cotangent &&
           (!rapt_requires_gradient(y) || rapt_gradients(1, &y, &cotangent, count, leaves, gradients, flags));
}

/* The gradient of one leaf: wanted alone, or as if the others were constants. NULL where there is none. */
static bool gradient_alone(const subject *s, int leaf, bool others_are_constant, rapt_tensor **gradient)
{
    for (int i = 0; i < s->count && others_are_constant; i++)
        if (i != leaf) rapt_refuse_gradient(s->leaves[i]);
    const bool good = gradients_of(subject_call(s), 1, &s->leaves[leaf], gradient, 0);
    for (int i = 0; i < s->count && others_are_constant; i++) rapt_require_gradient(s->leaves[i]);
    return good;
}

/* What is not wanted is not computed, or not kept: a gradient alone must be the one that it is among all. */
static void check_each_alone(const subject *s, entry *e)
{
    RAPT_SCOPE;
    rapt_tensor *all[most_leaves];
    bool good = gradients_of(subject_call(s), s->count, s->leaves, all, 0);
    for (int i = 0; i < 2 * s->count && good; i++) {
        RAPT_SCOPE;
        rapt_tensor *alone;
        const bool others_are_constant = i >= s->count;
        good = gradient_alone(s, i % s->count, others_are_constant, &alone);
        const rapt_tensor *among_all = all[i % s->count];
        if (good && !same_bits(alone, among_all) && (alone || among_all))
            entry_fail(e, "%s: the gradient of leaf %d has other bits where %s", s->c.name, i % s->count,
                       others_are_constant ? "the others are constants" : "it is wanted alone");
    }
    if (!good) entry_fail(e, "%s: gradients one by one: %s", s->c.name, rapt_error() ? rapt_error() : "");
    rapt_clear_error();
}

void check_derivatives(const subject *s, bool whole, entry *e)
{
    check_by_differences(s, whole, false, e);
    check_by_differences(s, whole, true, e);
    check_forward_mode(s, e);
    check_each_alone(s, e);
}

/* The result, what forward mode gives, and the gradients of all leaves. */
static bool results_of(const subject *s, rapt_tensor *results[most_leaves + 2])
{
    rapt_tensor *y = subject_call(s);
    if (!y) return false;
    results[0] = rapt_detach(y);
    results[1] = forward_mode(s, y);
    const bool good = gradients_of(y, s->count, s->leaves, results + 2, RAPT_RETAIN_GRAPH);
    for (int i = 0; i < s->count && good; i++)
        if (!results[i + 2]) results[i + 2] = rapt_zeros_like(s->leaves[i]);
    return good && results[1];
}

void check_float32(const subject *single, const subject *twice, entry *e)
{
    const double digits = single->layer && single->layer->float32 > 0 ? single->layer->float32 : 1e-5;
    RAPT_SCOPE;
    rapt_tensor *got[most_leaves + 2], *expected[most_leaves + 2];
    if (!results_of(single, got) || !results_of(twice, expected)) {
        entry_fail(e, "%s in float32: %s", single->c.name, rapt_error());
        rapt_clear_error();
        return;
    }
    for (int i = 0; i < single->count + 2; i++) {
        const double error = difference(got[i], expected[i], 0, 1);
        if (!(error <= digits))
            entry_fail(e, "%s: %s %d in float32 is off by %.3g of its size", single->c.name,
                       i == 0   ? "result"
                       : i == 1 ? "forward mode"
                                : "gradient",
                       i < 2 ? 0 : i - 2, error);
        entry_note(e, of_float32, error);
    }
}
