/* A small tree of modules, and the names in one. */
#ifndef RAPT_TESTS_MODULE_TREE_H
#define RAPT_TESTS_MODULE_TREE_H

#include "node.h"

static inline rapt_module *tree_new(void)
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

static inline bool add_name(const char *name, rapt_tensor *tensor, void *context)
{
    cr_expect_not_null(tensor);
    strcat(strcat(context, name), " ");
    return true;
}

static inline void expect_names(const rapt_module *module, int what, const char *expected)
{
    char names[500] = "";
    cr_expect(rapt_module_visit(module, what, add_name, names));
    cr_expect_str_eq(names, expected);
}

#endif
