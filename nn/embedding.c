/* Embedding: a table of vectors, looked up by index. */
#include <stdio.h>

#include <rapt/layers.h>

#include "nn/entry.h"
#include "nn/options.h"

static rapt_tensor *forward(rapt_module *module, rapt_tensor *indices)
{
    return rapt_embed(((rapt_embedding *)module)->weight, indices);
}

static void describe(const rapt_module *module, char *text, size_t size)
{
    const rapt_tensor *weight = ((const rapt_embedding *)module)->weight;
    snprintf(text, size, "%lld x %lld", (long long)rapt_size(weight, 0), (long long)rapt_size(weight, 1));
}

static const rapt_module_class kind = {.name = "Embedding", .forward = forward, .describe = describe};

rapt_embedding *rapt_embedding_new(int64_t count, int64_t size)
{
    if (!rapt_check_size(kind.name, "count", count) || !rapt_check_size(kind.name, "size", size)) return NULL;
    RAPT_SCOPE;
    rapt_embedding *embedding = rapt_module_new(sizeof *embedding, &kind);
    if (!embedding) return NULL;
    embedding->weight =
        rapt_module_add_parameter(&embedding->module, "weight", rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(count, size)));
    return rapt_module_finish(&embedding->module);
}

rapt_tensor *rapt_embedding_forward(rapt_embedding *embedding, rapt_tensor *indices)
{
    return rapt_layer_forward(kind.name, (rapt_module *)embedding, indices);
}
