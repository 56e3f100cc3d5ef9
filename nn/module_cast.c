/* Conversion of a module to another dtype: everything is made first, then exchanged, which cannot fail. */
#include <stdlib.h>

#include "autograd/leaf.h"
#include "nn/entry.h"

/* The same values in that dtype, a leaf if the tensor is one. The elements count as changed, for graphs that saved
 * the tensor itself (of leaves they save the elements). */
static rapt_tensor *convert(rapt_tensor *tensor, rapt_dtype dtype)
{
    RAPT_NO_GRADIENT;
    rapt_tensor *cast = rapt_cast(tensor, dtype);
    if (!cast || (tensor->link && tensor->link->kind->is_leaf && !rapt_require_gradient(cast))) return NULL;
    cast->storage->version = tensor->storage->version + 1;
    return cast;
}

static bool convert_all(const rapt_tensor_list *list, rapt_dtype dtype, rapt_tensor **casts)
{
    for (int i = 0; i < list->count; i++) {
        rapt_tensor *tensor = list->tensors[i];
        if (!rapt_is_floating(tensor) || tensor->dtype == dtype) continue;
        casts[i] = convert(tensor, dtype);
        if (!casts[i]) return false;
    }
    return true;
}

bool rapt_module_cast(rapt_module *module, rapt_dtype dtype)
{
    const char *op = "module_cast";
    if (!rapt_module_is_there(op, module)) return false;
    if (!rapt_dtype_is_floating(dtype))
        return rapt_fail(RAPT_ERROR_DTYPE, op, "%s is not floating", rapt_dtype_name(dtype));
    RAPT_SCOPE; /* which drops the old elements, and the gradients with them */
    rapt_tensor_list *list = rapt_module_list(module, RAPT_PARAMETERS | RAPT_BUFFERS);
    if (!list) return false;
    rapt_tensor **casts = calloc((size_t)list->count + 1, sizeof(rapt_tensor *));
    bool good = casts || rapt_fail(RAPT_ERROR_MEMORY, op, "no memory for %d tensors", list->count);
    good = good && convert_all(list, dtype, casts);
    for (int i = 0; i < list->count && good; i++) {
        rapt_clear_gradient(list->tensors[i]);
        if (casts[i]) rapt_leaves_exchange(list->tensors[i], casts[i]);
    }
    free(casts);
    rapt_tensor_list_free(list);
    return good;
}
