/* The graph behind a tensor, in which parameters have their names. */
#include <rapt/module_views.h>

#include "autograd/print_graph.h"

static const char *name_of(const rapt_graph_link *leaf, void *parameters)
{
    const rapt_tensor_list *list = parameters;
    for (int i = 0; i < list->count; i++)
        if (list->tensors[i]->link == leaf) return list->names[i];
    return NULL;
}

bool rapt_module_print_graph(const rapt_module *module, FILE *stream, const rapt_tensor *tensor, bool dot)
{
    const char *op = "module_print_graph";
    if (!module || !stream || !tensor) return rapt_fail_null(op, !module ? "module" : stream ? "tensor" : "stream");
    rapt_tensor_list *list = rapt_module_list(module, RAPT_PARAMETERS);
    const bool good = list && rapt_print_named_graph(op, stream, tensor, dot, name_of, list);
    rapt_tensor_list_free(list);
    return good;
}
