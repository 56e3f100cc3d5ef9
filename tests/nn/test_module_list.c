/* A module's tensors and names side by side. */
#include "module_tree.h"

Test(module_list, is_what_a_visit_shows)
{
    rapt_module *tree = tree_new();
    rapt_tensor_list *parameters = rapt_module_list(tree, RAPT_PARAMETERS);
    rapt_tensor_list *all = rapt_module_list(tree, RAPT_PARAMETERS | RAPT_BUFFERS);
    static const char *const names[] = {"weight", "inner", "left.deep.bias", "left.deep.mean", "left.weight", "steps"};
    cr_assert(parameters && all, "%s", rapt_error());
    cr_expect_eq(parameters->count, 4);
    cr_assert_eq(all->count, 6);
    for (int i = 0; i < 6; i++) {
        cr_expect_str_eq(all->names[i], names[i]);
        cr_expect_eq(all->tensors[i], rapt_module_find(tree, names[i]));
    }
    rapt_module_free(tree);
    cr_expect_eq(rapt_count(all->tensors[0]), 6, "the list has shares of its own");
    rapt_tensor_list_free(parameters);
    rapt_tensor_list_free(all);
    rapt_tensor_list_free(NULL);
    expect_no_error();
}

Test(module_list, gradients_of_all_parameters)
{
    RAPT_SCOPE;
    rapt_linear *linear = rapt_linear_new(3, 1, RAPT_BIAS);
    rapt_tensor_list *parameters = rapt_module_list(&linear->module, RAPT_PARAMETERS);
    rapt_tensor *x = rapt_arange(RAPT_FLOAT32, 0, 3, 1), *gradients[2], *y = rapt_linear_forward(linear, x);
    cr_expect(rapt_gradients(1, &y, NULL, parameters->count, parameters->tensors, gradients, 0));
    expect_values("weight", gradients[0], 3, (double[]){0, 1, 2}, 0);
    expect_values("bias", gradients[1], 1, (double[]){1}, 0);
    rapt_tensor_list_free(parameters);
    rapt_module_free(&linear->module);
}

Test(module_list, of_nothing_and_errors)
{
    rapt_module *node = node_new(), *tree = tree_new();
    rapt_tensor_list *list = rapt_module_list(node, RAPT_PARAMETERS);
    cr_assert_not_null(list);
    cr_expect_eq(list->count, 0);
    rapt_tensor_list_free(list);
    cr_expect_null(rapt_module_list(NULL, RAPT_PARAMETERS));
    expect_error(RAPT_ERROR_NULL, "module");
    rapt_memory_fail_after(0);
    list = rapt_module_list(tree, RAPT_PARAMETERS);
    rapt_memory_fail_after(-1);
    cr_expect_null(list);
    expect_error(RAPT_ERROR_MEMORY, "memory");
    rapt_module_free(node);
    rapt_module_free(tree);
}
