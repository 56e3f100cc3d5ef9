/* A module's tensors and their names, side by side. */
#include <stdlib.h>
#include <string.h>

#include <rapt/module.h>

#include "nn/entry.h"

static bool add_one(const char *name, rapt_tensor *tensor, void *context)
{
    (void)name, (void)tensor;
    ++*(int *)context;
    return true;
}

static bool append(const char *name, rapt_tensor *tensor, void *context)
{
    rapt_tensor_list *list = context;
    char *copy = strdup(name);
    if (!copy) return rapt_fail(RAPT_ERROR_MEMORY, "module_list", "no memory for the name %s", name);
    list->names[list->count] = copy;
    list->tensors[list->count++] = rapt_retain(tensor);
    return true;
}

rapt_tensor_list *rapt_module_list(const rapt_module *module, int what)
{
    int count = 0;
    if (!rapt_module_is_there("module_list", module) || !rapt_check_what("module_list", what)) return NULL;
    if (!rapt_module_visit(module, what, add_one, &count)) return NULL;
    rapt_tensor_list *list = calloc(1, sizeof *list);
    if (list) {
        list->tensors = calloc((size_t)count + 1, sizeof *list->tensors);
        list->names = calloc((size_t)count + 1, sizeof *list->names);
    }
    if (!list || !list->tensors || !list->names)
        rapt_fail(RAPT_ERROR_MEMORY, "module_list", "no memory for a list of %d tensors", count);
    else if (rapt_module_visit(module, what, append, list))
        return list;
    rapt_tensor_list_free(list);
    return NULL;
}

void rapt_tensor_list_free(rapt_tensor_list *list)
{
    if (!list || rapt_was_freed("tensor_list_free", list)) return;
    for (int i = 0; i < list->count; i++) {
        rapt_release(list->tensors[i]);
        free(list->names[i]);
    }
    free(list->tensors);
    free(list->names);
    rapt_free_object(list, "list of tensors");
}
