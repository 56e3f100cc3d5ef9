/* Conversion of modules to another dtype. */
#include "module_tree.h"

Test(module_cast, cast)
{
    RAPT_SCOPE;
    rapt_module *tree = tree_new();
    rapt_tensor *bias = rapt_module_find(tree, "left.deep.bias"), *before = rapt_clone(bias);
    cr_expect(rapt_backward(rapt_sum(bias, RAPT_ALL_AXES, false)));
    cr_expect(rapt_module_cast(tree, RAPT_FLOAT64), "%s", rapt_error());
    cr_expect_eq(rapt_module_find(tree, "left.deep.bias"), bias, "in place: pointers stay good");
    cr_expect_eq(rapt_get_dtype(bias), RAPT_FLOAT64);
    cr_expect_eq(rapt_get_dtype(rapt_module_find(tree, "left.deep.mean")), RAPT_FLOAT64);
    cr_expect_eq(rapt_get_dtype(rapt_module_find(tree, "steps")), RAPT_INT64);
    cr_expect_null(rapt_gradient(bias));
    expect_values("float64", bias, 4, values_of(before), 0);
    cr_expect(rapt_requires_gradient(bias));
    cr_expect_not(rapt_requires_gradient(rapt_module_find(tree, "left.deep.mean")));
    cr_expect(rapt_backward(rapt_sum(rapt_mul(bias, bias), RAPT_ALL_AXES, false)), "%s", rapt_error());
    cr_expect_eq(rapt_get_dtype(rapt_gradient(bias)), RAPT_FLOAT64);
    cr_expect(rapt_module_cast(tree, RAPT_FLOAT32));
    cr_expect(same_bits(bias, before), "and back");
    cr_expect_null(rapt_gradient(bias));
    expect_no_error();
    cr_expect_not(rapt_module_cast(tree, RAPT_INT64));
    expect_error(RAPT_ERROR_DTYPE, "int64");
    cr_expect_not(rapt_module_cast(NULL, RAPT_FLOAT64));
    expect_error(RAPT_ERROR_NULL, "module");
    rapt_module_free(tree);
}

static bool keep_copy(const char *name, rapt_tensor *tensor, void *archive)
{
    RAPT_NO_GRADIENT;
    return rapt_archive_add(archive, name, rapt_clone(tensor));
}

static bool is_as_before(const char *name, rapt_tensor *tensor, void *archive)
{
    cr_expect(same_bits(tensor, rapt_archive_find(archive, name)), "%s", name);
    cr_expect_eq(rapt_requires_gradient(tensor), !strstr(name, "mean") && !strstr(name, "steps"), "%s", name);
    return true;
}

Test(module_cast, without_memory_nothing_is_cast)
{
    RAPT_SCOPE;
    rapt_module *tree = tree_new();
    rapt_tensor *bias = rapt_module_find(tree, "left.deep.bias");
    rapt_archive *before = rapt_archive_new();
    rapt_module_visit(tree, RAPT_PARAMETERS | RAPT_BUFFERS, keep_copy, before);
    cr_expect(rapt_backward(rapt_sum(bias, RAPT_ALL_AXES, false)));
    rapt_tensor *gradient = rapt_gradient(bias);
    int failures = 0;
    for (;; failures++) {
        rapt_memory_fail_after(failures);
        const bool good = rapt_module_cast(tree, RAPT_FLOAT64);
        rapt_memory_fail_after(-1);
        if (good) break;
        expect_error(RAPT_ERROR_MEMORY, "memory");
        rapt_module_visit(tree, RAPT_PARAMETERS | RAPT_BUFFERS, is_as_before, before);
        cr_expect_eq(rapt_gradient(bias), gradient);
        cr_assert_lt(failures, 100);
    }
    cr_expect_geq(failures, 5 + 4, "five tensors, four leaves");
    cr_expect_eq(rapt_get_dtype(bias), RAPT_FLOAT64);
    rapt_archive_free(before);
    rapt_module_free(tree);
}

/* A graph recorded before has the old elements of parameters; those of buffers are gone. */
Test(module_cast, backward_through_what_was_computed_before)
{
    RAPT_SCOPE;
    rapt_module *node = node_new();
    const float numbers[] = {2, 3};
    rapt_tensor *weight = rapt_module_add_parameter(node, "weight", rapt_from(RAPT_FLOAT32, RAPT_SHAPE(2), numbers));
    rapt_tensor *scale = rapt_module_add_buffer(node, "scale", rapt_from(RAPT_FLOAT32, RAPT_SHAPE(2), numbers));
    rapt_tensor *x = rapt_require_gradient(rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(2)));
    rapt_tensor *weighted = rapt_sum(rapt_mul(x, weight), RAPT_ALL_AXES, false);
    rapt_tensor *scaled = rapt_sum(rapt_mul(x, scale), RAPT_ALL_AXES, false);
    cr_expect(rapt_module_cast(node, RAPT_FLOAT64));
    cr_expect(rapt_backward(weighted), "%s", rapt_error());
    expect_values("of x", rapt_gradient(x), 2, (double[]){2, 3}, 0);
    cr_expect_null(rapt_gradient(weight), "it is another leaf now");
    cr_expect_not(rapt_backward(scaled));
    expect_error(RAPT_ERROR_GRAPH, "changed in place");
    rapt_module_free(node);
}

Test(module_cast, tied_weights_are_cast_once)
{
    RAPT_SCOPE;
    rapt_module *root = node_new(), *child = node_new();
    rapt_tensor *weight = rapt_module_add_parameter(root, "weight", rapt_rand(RAPT_FLOAT32, RAPT_SHAPE(3)));
    rapt_module_add_parameter(child, "weight", weight);
    rapt_module_add_child(root, "a", child);
    rapt_module_add_child(root, "b", child);
    const double first = rapt_at(weight, (int64_t[]){0});
    cr_expect(rapt_module_cast(root, RAPT_FLOAT64));
    cr_expect_eq(rapt_get_dtype(weight), RAPT_FLOAT64);
    cr_expect_eq(rapt_at(weight, (int64_t[]){0}), first);
    rapt_module_free(root);
    expect_no_error();
}

Test(module_cast, to_the_same_dtype_drops_gradients_only)
{
    RAPT_SCOPE;
    rapt_linear *linear = rapt_linear_new(2, 2, RAPT_BIAS);
    const void *elements = rapt_data(linear->weight);
    rapt_tensor *before = rapt_sum(linear->weight, RAPT_ALL_AXES, false);
    cr_expect(rapt_backward(rapt_sum(linear->weight, RAPT_ALL_AXES, false)));
    cr_expect(rapt_module_cast(&linear->module, RAPT_FLOAT32));
    cr_expect_null(rapt_gradient(linear->weight));
    cr_expect_eq(rapt_data(linear->weight), elements);
    cr_expect(rapt_backward(before), "%s", rapt_error());
    cr_expect_not_null(rapt_gradient(linear->weight), "it stays itself, in graphs of before too");
    rapt_module_free(&linear->module);
    expect_no_error();
}
