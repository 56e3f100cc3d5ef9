/* A module of no kind in particular that counts how many of its like were freed. */
#ifndef RAPT_TESTS_NODE_H
#define RAPT_TESTS_NODE_H

#include "modules.h"

static int freed;

static void count_freed(rapt_module *module)
{
    (void)module;
    freed++;
}

static const rapt_module_class node_kind = {.name = "Node", .destroy = count_freed};

static inline rapt_module *node_new(void)
{
    rapt_module *node = rapt_module_new(sizeof *node, &node_kind);
    cr_assert_not_null(node, "%s", rapt_error());
    return node;
}

#endif
