/* Walks through modules: names, order, counts, modes. */
#include "module_tree.h"

static bool stop_at_left(const char *name, rapt_tensor *tensor, void *context)
{
    (void)tensor;
    ++*(int *)context;
    return strncmp(name, "left", 4) != 0;
}

Test(module_walk, visit_goes_in_the_order_of_adding)
{
    rapt_module *tree = tree_new();
    cr_assert_not_null(tree, "%s", rapt_error());
    expect_names(tree, RAPT_PARAMETERS, "weight inner left.deep.bias left.weight ");
    expect_names(tree, RAPT_BUFFERS, "left.deep.mean steps ");
    expect_names(tree, RAPT_PARAMETERS | RAPT_BUFFERS, "weight inner left.deep.bias left.deep.mean left.weight steps ");
    expect_names(tree, 0, "");
    int visits = 0;
    cr_expect_not(rapt_module_visit(tree, RAPT_PARAMETERS, stop_at_left, &visits));
    cr_expect_eq(visits, 3);
    expect_no_error();
    cr_expect_not(rapt_module_visit(NULL, RAPT_PARAMETERS, stop_at_left, &visits));
    expect_error(RAPT_ERROR_NULL, "module");
    cr_expect_not(rapt_module_visit(tree, RAPT_PARAMETERS, NULL, NULL));
    expect_error(RAPT_ERROR_NULL, "visitor");
    rapt_module_free(tree);
    cr_expect_eq(freed, 4);
}

Test(module_walk, find)
{
    rapt_module *tree = tree_new();
    expect_shape(rapt_module_find(tree, "left.deep.bias"), RAPT_SHAPE(4));
    expect_shape(rapt_module_find(tree, "inner"), RAPT_SHAPE(7));
    cr_expect_eq(rapt_get_dtype(rapt_module_find(tree, "steps")), RAPT_INT64);
    const char *missing[] = {"left", "left.", ".inner", "", "bias", "left.deep.bias.", "WEIGHT"};
    for (int i = 0; i < 7; i++) cr_expect_null(rapt_module_find(tree, missing[i]), "'%s'", missing[i]);
    expect_no_error();
    cr_expect_null(rapt_module_find(tree, NULL));
    expect_error(RAPT_ERROR_NULL, "name");
    cr_expect_null(rapt_module_find(NULL, "weight"));
    expect_error(RAPT_ERROR_NULL, "module");
    rapt_module_free(tree);
}

Test(module_walk, only_parameters_count_and_have_gradients)
{
    rapt_module *tree = tree_new();
    cr_expect_eq(rapt_module_parameter_count(tree), 6 + 7 + 1 + 4);
    cr_expect(rapt_requires_gradient(rapt_module_find(tree, "left.weight")));
    cr_expect_not(rapt_requires_gradient(rapt_module_find(tree, "left.deep.mean")));
    {
        RAPT_SCOPE;
        cr_expect(rapt_backward(rapt_sum(rapt_module_find(tree, "inner"), RAPT_ALL_AXES, false)));
    }
    cr_expect_not_null(rapt_gradient(rapt_module_find(tree, "inner")));
    rapt_module_clear_gradients(tree);
    cr_expect_null(rapt_gradient(rapt_module_find(tree, "inner")));
    rapt_module_free(tree);
    expect_no_error();
}

Test(module_walk, training_and_evaluation_reach_everything_below)
{
    rapt_module *root = node_new(), *child = node_new(), *grandchild = node_new();
    rapt_module_add_child(root, "a", child);
    rapt_module_add_child(child, "", grandchild);
    cr_expect(root->training && child->training && grandchild->training);
    rapt_module_train(root, false);
    cr_expect(!root->training && !child->training && !grandchild->training);
    rapt_module_train(child, true);
    cr_expect(!root->training && child->training && grandchild->training);
    rapt_module_train(NULL, true);
    rapt_module_free(root);
    expect_no_error();
}
