/* Walks through modules: names, order, counts, modes. */
#include "module_tree.h"

#include <stdio.h>

#include <rapt/optim.h>

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

typedef struct growth {
    rapt_module *module;
    int visits;
} growth;

/* Enough of them that the list of members moves. */
static bool add_beside(const char *name, rapt_tensor *tensor, void *context)
{
    growth *g = context;
    g->visits++;
    char beside[32];
    for (int i = 0; i < 20 && !strchr(name, '.'); i++) {
        snprintf(beside, sizeof beside, "%s_%d", name, i);
        if (!rapt_module_add_parameter(g->module, beside, rapt_zeros_like(tensor))) return false;
    }
    return true;
}

Test(module_walk, a_visitor_may_add_members)
{
    RAPT_SCOPE;
    rapt_module *node = node_new(), *child = node_new();
    rapt_module_add_parameter(node, "a", rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(2)));
    rapt_module_add_child(node, "child", child);
    rapt_module_add_parameter(child, "weight", rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(2)));
    rapt_module_add_parameter(node, "b", rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(2)));
    growth g = {.module = node};
    cr_expect(rapt_module_visit(node, RAPT_PARAMETERS, add_beside, &g), "%s", rapt_error());
    cr_expect_eq(g.visits, 3);
    cr_expect_eq(rapt_module_parameter_count(node), 2 * (3 + 2 * 20));
    rapt_module_free(node);
    expect_no_error();
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

static bool add_module(const char *name, rapt_module *module, void *context)
{
    char text[64];
    snprintf(text, sizeof text, "%s:%d ", name, module->count);
    strcat(context, text);
    return strcmp(name, "stop") != 0;
}

Test(module_walk, visit_comes_to_each_module_once)
{
    rapt_module *tree = tree_new(), *last = node_new();
    char names[200] = "";
    cr_expect(rapt_module_visit_modules(tree, add_module, names));
    cr_expect_str_eq(names, ":4 :1 left:2 left.deep:2 ");
    rapt_module_add_child(tree, "again", rapt_module_find_module(tree, "left"));
    rapt_module_add_child(tree, "stop", node_new());
    rapt_module_add_child(tree, "last", last);
    *names = '\0';
    cr_expect_not(rapt_module_visit_modules(tree, add_module, names));
    cr_expect_str_eq(names, ":7 :1 left:2 left.deep:2 stop:0 ");
    expect_no_error();
    cr_expect_not(rapt_module_visit_modules(NULL, add_module, names));
    expect_error(RAPT_ERROR_NULL, "module_visit_modules: module is NULL");
    cr_expect_not(rapt_module_visit_modules(tree, NULL, NULL));
    expect_error(RAPT_ERROR_NULL, "module_visit_modules: visitor is NULL");
    *names = '\0';
    rapt_memory_fail_after(0);
    cr_expect_not(rapt_module_visit_modules(tree, add_module, names), "it would come to left twice");
    rapt_memory_fail_after(-1);
    expect_error(RAPT_ERROR_MEMORY, "no memory to visit 1 modules");
    cr_expect_str_eq(names, ":7 :1 ");
    rapt_module_free(tree);
    cr_expect_eq(freed, 6);
}

static bool add_child_below(const char *name, rapt_module *module, void *context)
{
    (void)name;
    ++*(int *)context;
    char beside[32];
    for (int i = 0; i < 20 && module->count < 20; i++) {
        snprintf(beside, sizeof beside, "child_%d", i);
        if (!rapt_module_add_child(module, beside, node_new())) return false;
    }
    return true;
}

Test(module_walk, a_visitor_may_add_children)
{
    rapt_module *node = node_new();
    int visits = 0;
    rapt_module_add_child(node, "child", node_new());
    cr_expect(rapt_module_visit_modules(node, add_child_below, &visits), "%s", rapt_error());
    cr_expect_eq(visits, 2);
    rapt_module_free(node);
    expect_no_error();
}

Test(module_walk, find_module)
{
    rapt_module *tree = tree_new(), *left = rapt_module_find_module(tree, "left");
    cr_assert_not_null(left);
    cr_expect_eq(rapt_module_find(left, "weight"), rapt_module_find(tree, "left.weight"));
    cr_expect_eq(rapt_module_find_module(tree, "left.deep"), rapt_module_find_module(left, "deep"));
    cr_expect_eq(rapt_module_find_module(tree, ""), tree);
    rapt_module *below = node_new();
    rapt_module_add_child(rapt_module_find_module(left, "deep"), "", below);
    rapt_module_add_child(below, "under", node_new());
    cr_expect_not_null(rapt_module_find_module(tree, "left.deep.under"), "behind an empty name");
    const char *missing[] = {"weight", "left.", ".left", "deep", "left.weight", "left.deep.", "LEFT"};
    for (int i = 0; i < 7; i++) cr_expect_null(rapt_module_find_module(tree, missing[i]), "'%s'", missing[i]);
    expect_no_error();
    cr_expect_null(rapt_module_find_module(tree, NULL));
    expect_error(RAPT_ERROR_NULL, "module_find_module: name is NULL");
    cr_expect_null(rapt_module_find_module(NULL, ""));
    expect_error(RAPT_ERROR_NULL, "module_find_module: module is NULL");
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

/* --- what stands in several places --- */

/* root: left.deep, right.deep and right.again are one module; so are the tensors left.tied and deep.bias. */
static rapt_module *shared_tree_new(void)
{
    RAPT_SCOPE;
    rapt_module *root = node_new(), *left = node_new(), *right = node_new(), *deep = node_new();
    rapt_module_add_child(root, "left", left);
    rapt_module_add_child(root, "right", right);
    rapt_module_add_child(left, "deep", deep);
    rapt_module_add_child(right, "deep", deep);
    rapt_module_add_child(right, "again", deep);
    rapt_tensor *bias = rapt_module_add_parameter(deep, "bias", rapt_rand(RAPT_FLOAT32, RAPT_SHAPE(4)));
    rapt_module_add_buffer(deep, "mean", rapt_rand(RAPT_FLOAT32, RAPT_SHAPE(4)));
    rapt_module_add_parameter(left, "tied", bias);
    rapt_module_add_parameter(right, "own", rapt_rand(RAPT_FLOAT32, RAPT_SHAPE(3)));
    return rapt_module_finish(root);
}

Test(module_walk, walks_come_once_and_names_are_all_good)
{
    rapt_module *tree = shared_tree_new();
    expect_names(tree, RAPT_PARAMETERS, "left.deep.bias right.own ");
    expect_names(tree, RAPT_BUFFERS, "left.deep.mean ");
    expect_names(tree, RAPT_PARAMETERS | RAPT_BUFFERS, "left.deep.bias left.deep.mean right.own ");
    cr_expect_eq(rapt_module_parameter_count(tree), 4 + 3);
    static const char *const names[] = {"left.deep.bias", "left.tied", "right.deep.bias", "right.again.bias"};
    rapt_tensor *bias = rapt_module_find(tree, names[0]);
    for (int i = 1; i < 4; i++) cr_expect_eq(rapt_module_find(tree, names[i]), bias, "%s", names[i]);
    cr_expect_null(rapt_module_find(tree, "right.tied"));
    rapt_module_free(tree);
    cr_expect_eq(freed, 4);
    expect_no_error();
}

/* One step of SGD from 1 with a gradient of 1 at each of two places: 1 − 0.5 · 2. */
Test(module_walk, an_optimizer_has_a_shared_parameter_once)
{
    rapt_module *tree = shared_tree_new();
    rapt_tensor *bias = rapt_module_find(tree, "left.tied");
    rapt_fill(bias, 1);
    rapt_optimizer *sgd = rapt_sgd_new(tree, &(rapt_sgd_config){.learning_rate = 0.5});
    {
        RAPT_SCOPE;
        rapt_tensor *sum = rapt_sum(rapt_add(bias, rapt_module_find(tree, "right.deep.bias")), RAPT_ALL_AXES, false);
        cr_expect(rapt_backward(sum));
        rapt_optimizer_step(sgd);
        expect_values("bias", bias, 4, (double[]){0, 0, 0, 0}, 0);
        cr_expect(rapt_backward(rapt_sum(bias, RAPT_ALL_AXES, false)));
    }
    rapt_module_clear_gradients(tree);
    cr_expect_null(rapt_gradient(bias));
    rapt_optimizer_free(sgd);
    rapt_module_free(tree);
    expect_no_error();
}

Test(module_walk, modes_reach_what_is_shared)
{
    rapt_module *root = node_new(), *child = node_new();
    rapt_module_add_child(root, "a", child);
    rapt_module_add_child(root, "b", child);
    rapt_module_train(root, false);
    cr_expect_not(child->training);
    rapt_memory_fail_after(0);
    rapt_module_train(root, true);
    rapt_memory_fail_after(-1);
    cr_expect(child->training, "it does without memory");
    rapt_module_free(root);
    expect_no_error();
}

/* Every module holds the one before twice: 2^100 paths. */
Test(module_walk, many_paths_take_no_time)
{
    RAPT_SCOPE;
    rapt_module *node = node_new();
    rapt_module_add_parameter(node, "weight", rapt_rand(RAPT_FLOAT32, RAPT_SHAPE(3)));
    for (int i = 0; i < 100; i++) {
        rapt_module *parent = node_new();
        rapt_module_add_child(parent, "a", node);
        rapt_module_add_child(parent, "b", node);
        node = parent;
    }
    rapt_module *last = node_new();
    rapt_module_add_child(node, "c", last);
    rapt_module_add_child(node, "d", last);
    cr_expect_eq(rapt_module_parameter_count(node), 3);
    cr_expect_null(rapt_module_add_child(last, "e", node), "a cycle is looked for");
    expect_error(RAPT_ERROR_VALUE, "'e'");
    FILE *nowhere = fopen("/dev/null", "w");
    cr_expect(nowhere && rapt_module_print(node, nowhere));
    fclose(nowhere);
    rapt_module_train(node, false);
    rapt_module_clear_gradients(node);
    cr_expect(rapt_module_cast(node, RAPT_FLOAT64));
    rapt_archive *archive = rapt_archive_new();
    cr_expect(rapt_module_to_archive(node, NULL, archive));
    cr_expect_eq(rapt_archive_count(archive), 1);
    cr_expect(rapt_module_from_archive(node, NULL, archive));
    rapt_archive_free(archive);
    rapt_module_free(node);
    cr_expect_eq(freed, 102);
    expect_no_error();
}

/* So many that they would not come to an end in time, were each looked for among all. */
Test(module_walk, many_members, .timeout = 250)
{
    enum { count = 200000 };
    RAPT_SCOPE;
    char name[16];
    rapt_module *node = node_new();
    for (int i = 0; i < count; i++) {
        RAPT_SCOPE;
        snprintf(name, sizeof name, "weight_%d", i);
        rapt_module_add_parameter(node, name, rapt_scalar(RAPT_FLOAT32, i));
    }
    rapt_optimizer *sgd = rapt_sgd_new(node, NULL);
    rapt_archive *archive = rapt_module_snapshot(node);
    cr_expect(sgd && rapt_module_from_archive(node, NULL, archive));
    cr_expect_eq(rapt_item(rapt_module_find(node, name)), count - 1);
    cr_expect_null(rapt_module_add_parameter(node, "weight_7", rapt_scalar(RAPT_FLOAT32, 0)));
    expect_error(RAPT_ERROR_VALUE, "'weight_7' is in use");
    rapt_archive_free(archive);
    rapt_optimizer_free(sgd);
    rapt_module_free(node);
    expect_no_error();
}
