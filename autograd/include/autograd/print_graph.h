/* Printing a graph whose leaves have names. */
#ifndef RAPT_AUTOGRAD_PRINT_GRAPH_H
#define RAPT_AUTOGRAD_PRINT_GRAPH_H

#include <rapt/graph.h>

#include "tensor/core.h"

/* What a leaf is called; NULL: nothing, and then it is a "leaf". */
typedef const char *rapt_leaf_name(const rapt_graph_link *leaf, void *context);

/* rapt_print_graph of arguments that are there, under the name of an op. name may be NULL. */
bool rapt_print_named_graph(const char *op, FILE *stream, const rapt_tensor *tensor, bool dot, rapt_leaf_name *name,
                            void *context);

#endif
