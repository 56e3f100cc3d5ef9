/* The engine: what backward computes, what it frees, and the rules of leaves, modes and changes in place. */
#include <criterion/criterion.h>
#include <math.h>

#include <rapt.h>

#include "expect.h"

static rapt_tensor *constant(double value)
{
    return rapt_full(RAPT_FLOAT64, RAPT_SHAPE(3), value);
}

static rapt_tensor *leaf(double value)
{
    return rapt_require_gradient(constant(value));
}

static rapt_tensor *total(rapt_tensor *x)
{
    return rapt_sum(x, RAPT_ALL_AXES, false);
}

/* All elements are that. */
static void expect_all(const rapt_tensor *x, double value)
{
    cr_expect(x, "NULL, expected %g: %s", value, rapt_error());
    for (int64_t i = 0; x && i < rapt_count(x); i++)
        cr_expect_float_eq(rapt_at(x, &i), value, 1e-12, "element %d is %g, expected %g", (int)i, rapt_at(x, &i),
                           value);
}

Test(autograd, gradients_accumulate_until_cleared)
{
    RAPT_SCOPE;
    rapt_tensor *x = leaf(2);
    cr_expect_null(rapt_gradient(x));
    for (int i = 1; i <= 3; i++) {
        cr_expect(rapt_backward(total(rapt_mul(x, x))));
        expect_all(rapt_gradient(x), 4 * i);
    }
    rapt_clear_gradient(x);
    cr_expect_null(rapt_gradient(x));
    cr_expect(rapt_backward(total(x)));
    expect_all(rapt_gradient(x), 1);
    expect_no_error();
}

/* The first gradient to arrive is not the tensor that somebody else still holds. */
Test(autograd, accumulating_changes_no_tensor_of_the_caller)
{
    RAPT_SCOPE;
    rapt_tensor *x = leaf(2), *start = constant(5), *sum = rapt_add(x, x);
    for (int i = 1; i <= 2; i++) {
        cr_expect(rapt_backward_from(1, &sum, &start, RAPT_RETAIN_GRAPH));
        expect_all(start, 5);
        expect_all(rapt_gradient(x), 10 * i);
    }
    rapt_tensor *y = leaf(1), *same = rapt_reshape(y, RAPT_SHAPE(3));
    cr_expect(rapt_backward_from(1, &same, &start, 0));
    cr_expect(rapt_scale_in_place(rapt_gradient(y), 2));
    expect_all(start, 5);
}

Test(autograd, several_roots)
{
    RAPT_SCOPE;
    rapt_tensor *x = leaf(2), *square = rapt_mul(x, x),
                *roots[] = {total(square), rapt_mul_scalar(square, 10), total(x)};
    rapt_tensor *gradients[] = {NULL, constant(0.5), rapt_scalar(RAPT_FLOAT64, 7)};
    cr_expect(rapt_backward_from(3, roots, gradients, 0), "%s", rapt_error());
    expect_all(rapt_gradient(x), 4 + 10 * 0.5 * 4 + 7);
}

Test(autograd, one_root_given_twice)
{
    RAPT_SCOPE;
    rapt_tensor *x = leaf(2), *root = total(rapt_exp(x)), *roots[] = {root, root};
    cr_expect(rapt_backward_from(2, roots, NULL, 0));
    expect_all(rapt_gradient(x), 2 * exp(2));
}

Test(autograd, shared_subgraphs_are_walked_once)
{
    RAPT_SCOPE;
    rapt_tensor *x = leaf(1), *y = x;
    for (int i = 0; i < 60; i++) y = rapt_mul_scalar(rapt_add(y, y), 0.5); /* 2^60 paths */
    cr_expect(rapt_backward(total(y)));
    expect_all(rapt_gradient(x), 1);
}

Test(autograd, a_graph_is_freed_unless_retained)
{
    RAPT_SCOPE;
    rapt_tensor *x = leaf(3), *root = total(rapt_exp(rapt_mul(x, x)));
    double slope = 6 * exp(9);
    for (int i = 1; i <= 3; i++) {
        cr_expect(rapt_backward_from(1, &root, NULL, i < 3 ? RAPT_RETAIN_GRAPH : 0));
        cr_expect_float_eq(rapt_at(rapt_gradient(x), (const int64_t[]){1}), i * slope, 1e-8);
    }
    cr_expect_not(rapt_backward(root));
    expect_error(RAPT_ERROR_GRAPH, "backward: the graph of sum was freed by an earlier backward; RAPT_RETAIN_GRAPH");
    cr_expect_float_eq(rapt_at(rapt_gradient(x), (const int64_t[]){1}), 3 * slope, 1e-8);
    /* half of it is still there, half was freed with the other root */
    rapt_tensor *shared = rapt_exp(x), *first = total(shared), *second = total(rapt_neg(shared));
    cr_expect(rapt_backward(first));
    cr_expect_not(rapt_backward(second));
    expect_error(RAPT_ERROR_GRAPH, "the graph of exp was freed");
}

Test(autograd, create_graph_gives_higher_derivatives)
{
    RAPT_SCOPE;
    rapt_tensor *x = leaf(2), *y = rapt_pow_scalar(x, 4);
    const double derivatives[] = {4 * 8, 12 * 4, 24 * 2, 24};
    for (int order = 0; order < 4; order++) {
        rapt_tensor *root = total(y), *next;
        cr_assert(rapt_gradients(1, &root, NULL, 1, &x, &next, RAPT_CREATE_GRAPH), "%s", rapt_error());
        expect_all(next, derivatives[order]);
        cr_expect(rapt_requires_gradient(next) == (order < 3));
        y = next;
    }
    cr_expect_null(rapt_gradient(x));
    cr_expect(rapt_backward_from(1, (rapt_tensor *[]){total(rapt_exp(x))}, NULL, RAPT_CREATE_GRAPH));
    cr_expect(rapt_requires_gradient(rapt_gradient(x)));
    cr_expect(rapt_backward(total(rapt_mul(rapt_gradient(x), x))), "%s", rapt_error());
    expect_all(rapt_gradient(x), exp(2) + exp(2) + 2 * exp(2));
}

Test(autograd, without_create_graph_gradients_have_no_graph)
{
    RAPT_SCOPE;
    rapt_tensor *x = leaf(2), *root = total(rapt_exp(x)), *gradient;
    cr_expect(rapt_gradients(1, &root, NULL, 1, &x, &gradient, RAPT_RETAIN_GRAPH));
    cr_expect_not(rapt_requires_gradient(gradient));
    cr_expect(rapt_backward(root));
    cr_expect_not(rapt_requires_gradient(rapt_gradient(x)));
}

Test(autograd, gradients_of_interior_tensors)
{
    RAPT_SCOPE;
    rapt_tensor *x = leaf(2), *other = leaf(1), *middle = rapt_mul(x, x), *root = total(rapt_exp(middle));
    rapt_tensor *inputs[] = {middle, x, other, x, root}, *results[5];
    cr_assert(rapt_gradients(1, &root, NULL, 5, inputs, results, 0), "%s", rapt_error());
    expect_all(results[0], exp(4));
    expect_all(results[1], 4 * exp(4));
    cr_expect_null(results[2], "what the root does not depend on has no gradient");
    cr_expect(results[3] == results[1], "an input named twice has one gradient");
    cr_expect_eq(rapt_item(results[4]), 1);
    cr_expect(!rapt_gradient(x) && !rapt_gradient(other), "leaves are left alone");
    expect_no_error();
}

/* A list may be what the roots begin with, the inputs, and where the results go. */
Test(autograd, gradients_may_take_the_place_of_what_was_given)
{
    RAPT_SCOPE;
    rapt_tensor *x = leaf(3), *y = rapt_mul(x, x), *list[] = {constant(10)}, *inputs[] = {x};
    cr_assert(rapt_gradients(1, &y, list, 1, &x, list, RAPT_RETAIN_GRAPH), "%s", rapt_error());
    expect_all(list[0], 60);
    list[0] = constant(10);
    cr_assert(rapt_gradients(1, &y, list, 1, inputs, inputs, RAPT_RETAIN_GRAPH), "%s", rapt_error());
    expect_all(inputs[0], 60);
    cr_expect_not(rapt_gradients(1, &y, (rapt_tensor *[]){rapt_scalar(RAPT_FLOAT64, 1)}, 1, &x, list, 0));
    expect_error(RAPT_ERROR_SHAPE, "gradients: the gradient is float64 []");
    cr_expect_null(list[0]);
    list[0] = x;
    cr_expect_not(rapt_gradients(1, &y, NULL, 1, NULL, list, 0));
    expect_error(RAPT_ERROR_NULL, "gradients: inputs is NULL");
    cr_expect_null(list[0]);
}

Test(autograd, roots_are_checked)
{
    RAPT_SCOPE;
    rapt_tensor *x = leaf(2), *y = rapt_exp(x), *none = NULL, *result;
    cr_expect_not(rapt_backward(y));
    expect_error(RAPT_ERROR_SHAPE, "backward: a root of shape [3] needs a gradient");
    cr_expect_not(rapt_backward(NULL));
    expect_error(RAPT_ERROR_NULL, "backward: root is NULL");
    cr_expect_not(rapt_backward(total(constant(1))));
    expect_error(RAPT_ERROR_GRAPH, "backward: the root");
    cr_expect_not(rapt_backward_from(1, &y, (rapt_tensor *[]){rapt_ones(RAPT_FLOAT64, RAPT_SHAPE(2))}, 0));
    expect_error(RAPT_ERROR_SHAPE, "[2]");
    cr_expect_not(rapt_backward_from(1, &y, (rapt_tensor *[]){rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(3))}, 0));
    expect_error(RAPT_ERROR_SHAPE, "float32");
    cr_expect_not(rapt_backward_from(1, NULL, NULL, 0));
    expect_error(RAPT_ERROR_NULL, "roots");
    cr_expect_not(rapt_gradients(1, &y, NULL, 1, &none, &result, 0));
    expect_error(RAPT_ERROR_NULL, "gradients: input 0");
    cr_expect_not(rapt_gradients(1, &y, NULL, 1, &x, &result, 0));
    expect_error(RAPT_ERROR_SHAPE, "gradients: ");
    cr_expect(!result && !rapt_gradient(x));
}

Test(autograd, nothing_is_recorded_while_recording_is_off)
{
    RAPT_SCOPE;
    rapt_tensor *x = leaf(2), *outside = rapt_exp(x), *inside;
    {
        RAPT_NO_GRADIENT;
        cr_expect_not(rapt_is_recording());
        inside = rapt_mul(outside, x);
        {
            bool before = rapt_set_recording(true);
            cr_expect_not(before);
            cr_expect(rapt_requires_gradient(rapt_exp(x)));
            rapt_restore_recording(&before);
        }
        cr_expect_not(rapt_is_recording());
    }
    cr_expect(rapt_is_recording());
    cr_expect(!rapt_requires_gradient(inside) && rapt_requires_gradient(outside));
    expect_all(inside, 2 * exp(2));
}

Test(autograd, detach_is_the_same_memory_outside_the_graph)
{
    RAPT_SCOPE;
    rapt_tensor *x = leaf(2), *detached = rapt_detach(x);
    cr_expect(rapt_data(detached) == rapt_data(x) && !rapt_requires_gradient(detached) && rapt_requires_gradient(x));
    cr_expect(rapt_backward(total(rapt_mul(x, rapt_detach(rapt_mul(x, x))))));
    expect_all(rapt_gradient(x), 4);
    cr_expect_null(rapt_detach(NULL));
    expect_error(RAPT_ERROR_NULL, "detach");
}

Test(autograd, leaves)
{
    RAPT_SCOPE;
    rapt_tensor *x = leaf(2), *result = rapt_exp(x);
    cr_expect(rapt_require_gradient(x) == x && rapt_requires_gradient(x) && rapt_requires_gradient(result));
    cr_expect_null(rapt_require_gradient(result));
    expect_error(RAPT_ERROR_GRAPH, "require_gradient: the tensor is the result of a recorded op");
    cr_expect_null(rapt_require_gradient(rapt_zeros(RAPT_INT64, RAPT_SHAPE(2))));
    expect_error(RAPT_ERROR_DTYPE, "require_gradient: int64");
    cr_expect_null(rapt_require_gradient(NULL));
    expect_error(RAPT_ERROR_NULL, "require_gradient");
    cr_expect(!rapt_requires_gradient(NULL) && !rapt_requires_gradient(rapt_argmax(x, 0, false)));
    cr_expect(rapt_backward(total(result)));
    cr_expect_null(rapt_gradient(result), "only leaves keep a gradient");
    rapt_tensor *view = rapt_require_gradient(rapt_slice(constant(1), 0, 0, 3, 2));
    cr_expect(rapt_backward(total(rapt_mul_scalar(view, 3))));
    expect_all(rapt_gradient(view), 3);
    cr_expect_eq(rapt_count(rapt_gradient(view)), 2);
}

/* A leaf that is dropped before backward takes its gradient along; the graph goes on without it. */
Test(autograd, a_leaf_may_go_before_backward)
{
    RAPT_SCOPE;
    rapt_tensor *y = leaf(2), *root;
    {
        RAPT_SCOPE;
        rapt_tensor *x = leaf(5);
        root = rapt_keep(total(rapt_mul(x, y)));
    }
    cr_expect(rapt_backward(root), "%s", rapt_error());
    expect_all(rapt_gradient(y), 5);
}

Test(autograd, changes_in_place)
{
    RAPT_SCOPE;
    rapt_tensor *x = leaf(2), *y = rapt_exp(x), *one = constant(1);
    cr_expect_not(rapt_add_in_place(y, one, 1));
    expect_error(RAPT_ERROR_GRAPH, "add_in_place: ");
    cr_expect_not(rapt_fill(y, 1));
    expect_error(RAPT_ERROR_GRAPH, "fill: ");
    cr_expect_null(rapt_data_for_writing(y));
    expect_error(RAPT_ERROR_GRAPH, "data_for_writing: ");
    expect_all(y, exp(2));
    cr_expect(rapt_add_in_place(x, one, 1), "an optimizer may change a leaf");
    expect_all(x, 3);
    cr_expect(rapt_backward(total(y)), "exp needs its output, not its input: %s", rapt_error());
    expect_all(rapt_gradient(x), exp(2));
}

Test(autograd, a_saved_tensor_that_was_changed_is_an_error)
{
    RAPT_SCOPE;
    rapt_tensor *x = leaf(2), *factor = constant(3), *root = total(rapt_mul(x, factor));
    rapt_tensor *view = rapt_reshape(factor, RAPT_SHAPE(3, 1));
    cr_expect(rapt_fill(view, 4), "through a view of it");
    cr_expect_not(rapt_backward(root));
    expect_error(RAPT_ERROR_GRAPH, "mul: a tensor that its gradient needs was changed in place");
    cr_expect_null(rapt_gradient(x));
}

Test(autograd, versions_count_changes)
{
    RAPT_SCOPE;
    rapt_tensor *x = constant(1), *view = rapt_reshape(x, RAPT_SHAPE(1, 3)), *copy = rapt_clone(x);
    uint64_t before = rapt_version(x), of_copy = rapt_version(copy);
    cr_expect(rapt_fill(view, 2) && rapt_scale_in_place(x, 2) && rapt_data_for_writing(view));
    cr_expect(rapt_version(x) == before + 3 && rapt_version(view) == before + 3 && rapt_version(copy) == of_copy);
    rapt_exp(x);
    rapt_data(x);
    cr_expect_eq(rapt_version(x), before + 3);
}

Test(autograd, gradients_keep_the_dtype_of_their_leaf)
{
    RAPT_SCOPE;
    rapt_tensor *x = rapt_require_gradient(rapt_full(RAPT_FLOAT32, RAPT_SHAPE(2), 3));
    rapt_tensor *wide = rapt_cast(x, RAPT_FLOAT64);
    cr_expect(rapt_backward(total(rapt_mul(wide, wide))));
    cr_expect_eq(rapt_get_dtype(rapt_gradient(x)), RAPT_FLOAT32);
    expect_all(rapt_gradient(x), 6);
}

static rapt_tensor *some_sum(rapt_tensor *x, int kind)
{
    if (kind == 0) return rapt_mul_scalar(rapt_sum(x, RAPT_AXES(0), false), 2);
    if (kind == 1) return rapt_sum(rapt_mul(x, x), RAPT_AXES(0), false);
    return rapt_sum(rapt_expand(rapt_unsqueeze(x, 0), RAPT_SHAPE(4, 3, 0)), RAPT_AXES(0, 1), false);
}

/* An empty expanded view is no sum that grows in place by accident, in whatever order gradients arrive. */
Test(autograd, gradients_of_empty_tensors)
{
    RAPT_SCOPE;
    rapt_tensor *x = rapt_require_gradient(rapt_zeros(RAPT_FLOAT64, RAPT_SHAPE(3, 0)));
    for (int order = 0; order < 6; order++) {
        const int first = order % 3, second = (first + 1 + order / 3) % 3, third = 3 - first - second;
        rapt_tensor *one = some_sum(x, first), *two = some_sum(x, second), *three = some_sum(x, third);
        cr_expect(rapt_backward(rapt_sum(rapt_add(rapt_add(one, two), three), RAPT_ALL_AXES, false)), "%s",
                  rapt_error());
        cr_assert(rapt_gradient(x) && rapt_same_shape(rapt_gradient(x), x));
        rapt_clear_error();
    }
    rapt_tensor *empty = rapt_expand(x, RAPT_SHAPE(3, 0));
    cr_expect(rapt_is_contiguous(empty) && rapt_stride(empty, 0) == 1 && rapt_fill(rapt_detach(empty), 1));
}
