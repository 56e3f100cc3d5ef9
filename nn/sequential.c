/* Sequential: layers one after the other; and ops of one tensor as layers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rapt/layers.h>

#include "nn/entry.h"

typedef struct activation {
    rapt_module module;
    rapt_activation_function *function;
    char *name;
} activation;

static rapt_tensor *activation_forward(rapt_module *module, rapt_tensor *x)
{
    return ((activation *)module)->function(x);
}

static void activation_describe(const rapt_module *module, char *text, size_t size)
{
    snprintf(text, size, "%s", ((const activation *)module)->name);
}

static void activation_destroy(rapt_module *module)
{
    free(((activation *)module)->name);
}

static const rapt_module_class activation_kind = {.name = "Activation",
                                                  .forward = activation_forward,
                                                  .destroy = activation_destroy,
                                                  .describe = activation_describe};

rapt_module *rapt_activation_new(const char *name, rapt_activation_function *function)
{
    if (!name || !function) {
        rapt_fail(RAPT_ERROR_NULL, "Activation", "%s is NULL", name ? "function" : "name");
        return NULL;
    }
    activation *layer = rapt_module_new(sizeof *layer, &activation_kind);
    if (!layer) return NULL;
    layer->function = function;
    layer->name = strdup(name);
    if (!layer->name)
        layer->module.failed = !rapt_fail(RAPT_ERROR_MEMORY, activation_kind.name, "no memory for the name %s", name);
    return rapt_module_finish(&layer->module);
}

static rapt_tensor *forward(rapt_module *module, rapt_tensor *x)
{
    for (int i = 0; i < module->count && x; i++) /* it may have been given tensors, too */
        if (module->entries[i].child) x = rapt_module_forward(module->entries[i].child, x);
    return x;
}

static const rapt_module_class kind = {.name = "Sequential", .forward = forward};

rapt_sequential *rapt_sequential_new(int count, rapt_module *const *layers)
{
    if (count < 0 || (count > 0 && !layers)) {
        rapt_fail(count < 0 ? RAPT_ERROR_VALUE : RAPT_ERROR_NULL, kind.name,
                  count < 0 ? "%d layers" : "the %d layers are NULL", count);
        return NULL;
    }
    rapt_sequential *sequential = rapt_module_new(sizeof *sequential, &kind);
    for (int i = 0; i < count; i++) rapt_module_retain(layers[i]); /* what stands here twice outlives a failure */
    for (int i = 0; i < count; i++) {
        char name[16];
        snprintf(name, sizeof name, "%d", i);
        rapt_module_add_child(sequential ? &sequential->module : NULL, name, layers[i]);
    }
    for (int i = 0; i < count; i++) rapt_module_free(layers[i]);
    return rapt_module_finish(sequential ? &sequential->module : NULL);
}

rapt_tensor *rapt_sequential_forward(rapt_sequential *sequential, rapt_tensor *x)
{
    return rapt_layer_forward(kind.name, (rapt_module *)sequential, x);
}
