/* The encoder of a Transformer: layers one after the other. */
#include "transformer.h"

#include <stdio.h>
#include <stdlib.h>

#include "attention/multi_head.h"
#include "attention_cache.h"
#include "nn/entry.h"
#include "tensor/random.h"
#include "tensor/scratch.h"

static void destroy(rapt_module *module)
{
    free(((rapt_transformer_encoder *)module)->layers);
}

static void describe(const rapt_module *module, char *text, size_t size)
{
    snprintf(text, size, "%d layers", ((const rapt_transformer_encoder *)module)->count);
}

static const rapt_module_class kind = {.name = "TransformerEncoder", .destroy = destroy, .describe = describe};

rapt_transformer_encoder *rapt_transformer_encoder_new(const rapt_transformer_config *config)
{
    if (!rapt_transformer_check(kind.name, config, config ? config->encoder_layers : 0)) return NULL;
    rapt_transformer_encoder *encoder = rapt_module_new(sizeof *encoder, &kind);
    if (!encoder) return NULL;
    const int count = config->encoder_layers;
    rapt_module *list = rapt_layer_list_new();
    encoder->layers = calloc((size_t)count, sizeof *encoder->layers);
    encoder->count = count;
    bool good = list && (encoder->layers || rapt_fail(RAPT_ERROR_MEMORY, kind.name, "no memory for %d layers", count));
    for (int i = 0; i < count && good; i++) {
        encoder->layers[i] = rapt_encoder_layer_with(config, i > 0 ? encoder->layers[0]->self_attn->rotary : NULL);
        good = rapt_layer_list_add(list, i, (rapt_module *)encoder->layers[i]);
    }
    rapt_module_add_child(&encoder->module, config->names == RAPT_NAMES_GPT2 ? "h" : "layers",
                          rapt_module_finish(list));
    rapt_transformer_add_final_norm(&encoder->module, config, &encoder->norm, &encoder->rms_norm);
    if (!good) encoder->module.failed = true;
    return rapt_module_finish(&encoder->module);
}

rapt_ring_call rapt_transformer_encoder_begin(const rapt_transformer_encoder *encoder)
{
    return rapt_ring_begin(rapt_multi_head_ring(encoder->layers[0]->self_attn));
}

rapt_tensor *rapt_transformer_encoder_forward(rapt_transformer_encoder *encoder, rapt_tensor *x, const rapt_mask *mask,
                                              rapt_attention_cache *caches)
{
    RAPT_UNDO_DRAWS;
    RAPT_ENTER((rapt_module *)encoder);
    if (!encoder || !x) {
        rapt_fail(RAPT_ERROR_NULL, kind.name, "%s is NULL", encoder ? "the input" : "the encoder");
        return NULL;
    }
    RAPT_SCOPE;
    const rapt_ring_call across = rapt_transformer_encoder_begin(encoder);
    int64_t *lengths = caches ? rapt_scratch_list(kind.name, encoder->count, sizeof *lengths) : NULL;
    if (caches && !lengths) x = NULL;
    for (int i = 0; i < encoder->count && lengths; i++) lengths[i] = caches[i].length;
    for (int i = 0; i < encoder->count && x; i++)
        x = rapt_encoder_layer_forward(encoder->layers[i], x, mask, caches ? &caches[i] : NULL);
    if (x) x = rapt_norm_forward(encoder->norm, encoder->rms_norm, x);
    for (int i = 0; i < encoder->count && lengths && !x; i++) rapt_attention_cache_return(&caches[i], lengths[i]);
    return rapt_keep(rapt_ring_end(&across, kind.name, x));
}
