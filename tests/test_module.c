/* Modules: names, walks, counts, printing, modes, casts, and constructors that fail. */
#include "node.h"

#include <stdio.h>
#include <stdlib.h>

static rapt_module *tree_new(void)
{
    RAPT_SCOPE;
    rapt_module *root = node_new(), *unnamed = node_new(), *left = node_new(), *deep = node_new();
    rapt_module_add_parameter(root, "weight", rapt_rand(RAPT_FLOAT32, RAPT_SHAPE(2, 3)));
    rapt_module_add_child(root, "", unnamed);
    rapt_module_add_child(root, "left", left);
    rapt_module_add_buffer(root, "steps", rapt_arange(RAPT_INT64, 0, 5, 1));
    rapt_module_add_parameter(unnamed, "inner", rapt_rand(RAPT_FLOAT32, RAPT_SHAPE(7)));
    rapt_module_add_child(left, "deep", deep);
    rapt_module_add_parameter(left, "weight", rapt_rand(RAPT_FLOAT32, 0, NULL));
    rapt_module_add_parameter(deep, "bias", rapt_rand(RAPT_FLOAT32, RAPT_SHAPE(4)));
    rapt_module_add_buffer(deep, "mean", rapt_rand(RAPT_FLOAT32, RAPT_SHAPE(4)));
    return rapt_module_finish(root);
}

static bool add_name(const char *name, rapt_tensor *tensor, void *context)
{
    cr_expect_not_null(tensor);
    strcat(strcat(context, name), " ");
    return true;
}

static void expect_names(const rapt_module *module, int what, const char *expected)
{
    char names[500] = "";
    cr_expect(rapt_module_visit(module, what, add_name, names));
    cr_expect_str_eq(names, expected);
}

static bool stop_at_left(const char *name, rapt_tensor *tensor, void *context)
{
    (void)tensor;
    ++*(int *)context;
    return strncmp(name, "left", 4) != 0;
}

Test(module, visit_goes_in_the_order_of_adding)
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

Test(module, find)
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

Test(module, only_parameters_count_and_have_gradients)
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

Test(module, print)
{
    rapt_module *net = (rapt_module *)RAPT_SEQUENTIAL((rapt_module *)rapt_linear_new(2, 16, RAPT_BIAS),
                                                      rapt_activation_new("tanh", rapt_tanh),
                                                      (rapt_module *)rapt_linear_new(16, 1, RAPT_NO_BIAS),
                                                      (rapt_module *)rapt_additive_attention_new(2, 3, 4, 0.25));
    char *text = NULL;
    size_t size;
    FILE *stream = open_memstream(&text, &size);
    rapt_module_print(net, stream);
    rapt_module_print(net, NULL);
    rapt_module_print(NULL, stream);
    fclose(stream);
    cr_expect_str_eq(text, "Sequential()  88 parameters\n"
                           "  0: Linear(2 -> 16, bias)  48 parameters\n"
                           "  1: Activation(tanh)  0 parameters\n"
                           "  2: Linear(16 -> 1)  16 parameters\n"
                           "  3: Attention(dropout 0.25)  24 parameters\n"
                           "    Additive()  24 parameters\n"
                           "      W_k: Linear(3 -> 4)  12 parameters\n"
                           "      W_q: Linear(2 -> 4)  8 parameters\n"
                           "      w_v: Linear(4 -> 1)  4 parameters\n");
    free(text);
    rapt_module_free(net);
    expect_no_error();
}

Test(module, training_and_evaluation_reach_everything_below)
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

Test(module, members_are_shared)
{
    const int64_t before = live_bytes();
    rapt_module *node = node_new();
    {
        RAPT_SCOPE;
        rapt_tensor *tensor = rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(100));
        cr_expect_eq(rapt_module_add_parameter(node, "one", tensor), tensor);
        cr_expect_eq(rapt_module_add_buffer(node, "two", tensor), tensor);
    }
    cr_expect_eq(rapt_at(rapt_module_find(node, "two"), (int64_t[]){99}), 1);
    rapt_module_free(node);
    rapt_module_free(NULL);
    cr_expect_eq(live_bytes(), before);
}

/* The empty name may be used again and again; a clash of full names below it shows when they are needed. */
Test(module, children_without_a_name)
{
    RAPT_SCOPE;
    rapt_module *root = node_new();
    for (int i = 0; i < 2; i++) {
        rapt_module *child = rapt_module_add_child(root, "", node_new());
        rapt_module_add_parameter(child, i ? "b" : "a", rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(i + 1)));
    }
    root = rapt_module_finish(root);
    expect_names(root, RAPT_PARAMETERS, "a b ");
    rapt_module_add_parameter(root, "b", rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(1)));
    rapt_archive *archive = rapt_archive_new();
    cr_expect_not(rapt_module_to_archive(root, NULL, archive));
    expect_error(RAPT_ERROR_VALUE, "b");
    rapt_archive_free(archive);
    rapt_module_free(root);
}

Test(module, names_that_grow_too_long_are_an_error)
{
    RAPT_SCOPE;
    char name[101] = "";
    memset(name, 'n', 100);
    rapt_module *root = node_new(), *node = root;
    for (int depth = 0; depth < 5; depth++) node = rapt_module_add_child(node, name, node_new());
    rapt_module_add_parameter(node, "weights", rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(1)));
    cr_expect(rapt_module_finish(root));
    cr_expect_null(rapt_module_find(root, "weights"));
    expect_error(RAPT_ERROR_VALUE, "longer than 511");
    rapt_module_free(root);

    root = node = node_new();
    for (int depth = 0; depth < 5; depth++) node = rapt_module_add_child(node, name, node_new());
    rapt_module_add_parameter(node, "weight", rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(1)));
    cr_expect_eq(rapt_module_parameter_count(root), 1, "511 bytes fit");
    rapt_module_free(root);
    expect_no_error();
}

Test(module, forward)
{
    RAPT_SCOPE;
    rapt_module *node = node_new();
    cr_expect_null(rapt_module_forward(node, rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(1))));
    expect_error(RAPT_ERROR_UNSUPPORTED, "Node");
    cr_expect_null(rapt_module_forward(node, NULL));
    expect_error(RAPT_ERROR_NULL, "input");
    cr_expect_null(rapt_module_forward(NULL, NULL));
    expect_error(RAPT_ERROR_NULL, "module");
    rapt_module_free(node);
}

Test(module, cast)
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
