/* Leaves: whose memory their gradients are, and what may happen while they are added to. */
#include <criterion/criterion.h>

#include <rapt.h>

#include "expect.h"

static rapt_tensor *leaf(double value)
{
    return rapt_require_gradient(rapt_full(RAPT_FLOAT64, RAPT_SHAPE(2, 2), value));
}

static double at(const rapt_tensor *x, int64_t i)
{
    return rapt_at(x, (int64_t[]){i / 2, i % 2});
}

static void expect_gradient(const rapt_tensor *leaf, double value)
{
    cr_assert(rapt_gradient(leaf), "%s", rapt_error());
    for (int64_t i = 0; i < 4; i++)
        cr_expect_float_eq(at(rapt_gradient(leaf), i), value, 1e-12, "%g, not %g", at(rapt_gradient(leaf), i), value);
}

static const int both_ways[] = {0, RAPT_CREATE_GRAPH};

Test(leaf, a_start_that_is_used_again_changes_no_gradient)
{
    for (int way = 0; way < 2; way++) {
        RAPT_SCOPE;
        rapt_tensor *w = leaf(1), *flat = rapt_reshape(w, RAPT_SHAPE(4)),
                    *start = rapt_full(RAPT_FLOAT64, RAPT_SHAPE(4), 3);
        cr_expect(rapt_backward_from(1, &flat, &start, both_ways[way]), "%s", rapt_error());
        cr_expect(rapt_fill(start, 0));
        expect_gradient(w, 3);
    }
}

Test(leaf, memory_of_somebody_else_holds_no_gradient)
{
    for (int way = 0; way < 2; way++) {
        RAPT_SCOPE;
        double numbers[] = {7, 7, 7, 7};
        rapt_tensor *w = leaf(1), *more = rapt_add_scalar(w, 1);
        rapt_tensor *start = rapt_wrap(RAPT_FLOAT64, 2, (int64_t[]){2, 2}, NULL, numbers, NULL, NULL);
        cr_expect(rapt_backward_from(1, &more, &start, both_ways[way]), "%s", rapt_error());
        for (int i = 0; i < 4; i++) numbers[i] = 0;
        expect_gradient(w, 7);
    }
}

Test(leaf, a_gradient_that_is_changed_changes_no_other)
{
    for (int way = 0; way < 2; way++) {
        RAPT_SCOPE;
        rapt_tensor *a = leaf(1), *b = leaf(1), *y = rapt_mul_scalar(rapt_add(a, b), 3), *start = rapt_ones_like(y);
        cr_expect(rapt_backward_from(1, &y, &start, both_ways[way]), "%s", rapt_error());
        cr_expect(rapt_scale_in_place(rapt_gradient(a), 0.5), "%s", rapt_error());
        expect_gradient(a, 1.5);
        expect_gradient(b, 3);
    }
}

/* The gradient is part of the start's graph, and is not changed with it. */
Test(leaf, a_gradient_that_somebody_keeps_is_not_added_to)
{
    RAPT_SCOPE;
    rapt_tensor *x = leaf(1), *start = rapt_full(RAPT_FLOAT64, RAPT_SHAPE(2, 2), 3), *kept = NULL;
    for (int i = 0; i < 4; i++) {
        rapt_tensor *y = rapt_add(x, start);
        cr_assert(rapt_backward_from(1, &y, &start, 0), "%s", rapt_error());
        if (i == 1) kept = rapt_retain(rapt_gradient(x));
    }
    expect_gradient(x, 12);
    cr_expect_eq(at(kept, 3), 6);
    cr_expect_eq(at(start, 3), 3);
    rapt_release(kept);
}

Test(leaf, a_start_that_is_a_leaf_itself)
{
    for (int view = 0; view < 2; view++) {
        RAPT_SCOPE;
        rapt_tensor *w = leaf(1), *root = view ? rapt_reshape(w, RAPT_SHAPE(4)) : w, *slope;
        rapt_tensor *start = rapt_require_gradient(rapt_full(RAPT_FLOAT64, rapt_rank(root), rapt_shape(root), 3));
        cr_assert(rapt_backward_from(1, &root, &start, RAPT_CREATE_GRAPH), "%s", rapt_error());
        cr_expect(rapt_fill(start, 0));
        expect_gradient(w, 3);
        rapt_tensor *square = rapt_sum(rapt_mul(rapt_gradient(w), rapt_gradient(w)), RAPT_ALL_AXES, false);
        cr_assert(rapt_gradients(1, &square, NULL, 1, &start, &slope, 0), "%s", rapt_error());
        cr_expect_eq(rapt_at(slope, (int64_t[]){0, 0}), 6);
    }
}

/* Without derivatives of the gradient no graph hangs on it, and the start is not added to. */
Test(leaf, a_start_with_a_graph_is_not_the_gradient)
{
    RAPT_SCOPE;
    rapt_tensor *w = leaf(1), *start = rapt_mul_scalar(leaf(2), 2);
    for (int i = 1; i <= 2; i++) {
        cr_expect(rapt_backward_from(1, &w, &start, 0), "%s", rapt_error());
        expect_gradient(w, 4 * i);
        cr_expect_not(rapt_requires_gradient(rapt_gradient(w)));
        cr_expect_eq(at(start, 0), 4);
    }
}

/* w³, whose gradient's gradient's gradient is 6. */
Test(leaf, gradients_that_are_kept_have_derivatives)
{
    RAPT_SCOPE;
    rapt_tensor *w = leaf(2), *root = rapt_sum(rapt_exp(rapt_mul_scalar(w, 0.5)), RAPT_ALL_AXES, false);
    double slope = 0.5 * 2.718281828459045;
    for (int order = 1; order <= 3; order++, slope *= 0.5) {
        rapt_clear_gradient(w);
        cr_assert(rapt_backward_from(1, &root, NULL, RAPT_CREATE_GRAPH), "%s", rapt_error());
        expect_gradient(w, slope);
        root = rapt_sum(rapt_gradient(w), RAPT_ALL_AXES, false);
    }
}

/* The gradient of a sum repeats one number. */
Test(leaf, a_gradient_that_is_owned_can_be_changed)
{
    for (int way = 0; way < 2; way++) {
        RAPT_SCOPE;
        rapt_tensor *w = leaf(1), *root = rapt_sum(w, RAPT_ALL_AXES, false);
        cr_expect(rapt_backward_from(1, &root, NULL, both_ways[way]), "%s", rapt_error());
        cr_expect(rapt_own_gradient(w) && rapt_scale_in_place(rapt_gradient(w), 0.5), "%s", rapt_error());
        expect_gradient(w, 0.5);
    }
}

static rapt_tensor *cleared;
static int heard;

static void clear_its_gradient(rapt_error_code code, const char *message)
{
    cr_expect_eq(code, RAPT_ERROR_NOT_FINITE, "%s", message);
    rapt_clear_gradient(cleared);
    heard++;
}

/* 2 · 0.7 · 10³⁰⁸ is a number, twice that is none. */
Test(leaf, an_error_handler_may_clear_the_gradient_that_could_not_be_added_to, .timeout = 20)
{
    RAPT_SCOPE;
    cleared = leaf(1);
    rapt_tensor *root = rapt_sum(rapt_mul_scalar(rapt_mul(cleared, cleared), 0.7e308), RAPT_ALL_AXES, false);
    rapt_tensor *start = rapt_ones_like(root);
    rapt_error_handler *before = rapt_on_error(clear_its_gradient);
    rapt_hunt_not_finite(true);
    cr_expect(rapt_backward_from(1, &root, &start, RAPT_CREATE_GRAPH), "%s", rapt_error());
    cr_expect_not(rapt_backward_from(1, &root, &start, RAPT_CREATE_GRAPH));
    rapt_hunt_not_finite(false);
    rapt_on_error(before);
    cr_expect_eq(heard, 1, "heard once");
    cr_expect_null(rapt_gradient(cleared));
    expect_error(RAPT_ERROR_NOT_FINITE, "add");
}

static rapt_tensor *keep_forward(rapt_call *call)
{
    return rapt_clone(rapt_call_input(call, 0));
}

static double lent[] = {7, 7, 7, 7};
static int releases;

static void clear_when_released(void *owner)
{
    (void)owner;
    rapt_clear_gradient(cleared);
    releases++;
}

/* A gradient in memory of the program's own, which knows when it is no longer used. */
static bool lend_vjp(rapt_call *call)
{
    return rapt_call_give(call, 0, rapt_wrap(RAPT_FLOAT64, RAPT_SHAPE(2, 2), NULL, lent, clear_when_released, NULL));
}

static const rapt_op lending = {.name = "lending", .forward = keep_forward, .vjp = lend_vjp};

/* Not under a lock, which what it calls may want. */
Test(leaf, lent_memory_may_clear_gradients_when_it_is_released, .timeout = 20)
{
    for (int way = 0; way < 2; way++) {
        RAPT_SCOPE;
        cleared = leaf(1);
        rapt_tensor *w = leaf(1), *root = rapt_sum(RAPT_APPLY(&lending, NULL, w), RAPT_ALL_AXES, false);
        for (int time = 1; time <= 2; time++) {
            releases = 0;
            cr_expect(rapt_backward_from(1, &root, NULL, RAPT_RETAIN_GRAPH | both_ways[way]), "%s", rapt_error());
            cr_expect_eq(releases, 1);
            expect_gradient(w, 7 * time);
        }
    }
}
