/* LayerNorm: the last axis brought to mean 0 and variance 1, then scaled and shifted. */
#include <stdio.h>

#include <rapt/layers.h>

#include "nn/entry.h"
#include "nn/options.h"

static rapt_tensor *forward(rapt_module *module, rapt_tensor *x)
{
    rapt_layer_norm *layer_norm = (rapt_layer_norm *)module;
    return rapt_layer_normalize(x, layer_norm->weight, layer_norm->bias, layer_norm->epsilon);
}

static void describe(const rapt_module *module, char *text, size_t size)
{
    snprintf(text, size, "%lld", (long long)rapt_count(((const rapt_layer_norm *)module)->weight));
}

static const rapt_module_class kind = {.name = "LayerNorm", .forward = forward, .describe = describe};

rapt_layer_norm *rapt_layer_norm_new(int64_t size, int flags)
{
    if (!rapt_check_size(kind.name, "size", size) || !rapt_check_flags(kind.name, flags)) return NULL;
    RAPT_SCOPE;
    rapt_layer_norm *layer_norm = rapt_module_new(sizeof *layer_norm, &kind);
    if (!layer_norm) return NULL;
    rapt_module *module = &layer_norm->module;
    layer_norm->epsilon = 1e-5;
    layer_norm->weight = rapt_module_add_parameter(module, "weight", rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(size)));
    if (flags & RAPT_BIAS)
        layer_norm->bias = rapt_module_add_parameter(module, "bias", rapt_zeros(RAPT_FLOAT32, RAPT_SHAPE(size)));
    return rapt_module_finish(module);
}

rapt_tensor *rapt_layer_norm_forward(rapt_layer_norm *layer_norm, rapt_tensor *x)
{
    return rapt_layer_forward(kind.name, (rapt_module *)layer_norm, x);
}
