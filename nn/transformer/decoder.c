/* The decoder of a Transformer: layers one after the other, all over the same memory. */
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
    free(((rapt_transformer_decoder *)module)->layers);
}

static void describe(const rapt_module *module, char *text, size_t size)
{
    snprintf(text, size, "%d layers", ((const rapt_transformer_decoder *)module)->count);
}

static const rapt_module_class kind = {.name = "TransformerDecoder", .destroy = destroy, .describe = describe};

rapt_transformer_decoder *rapt_transformer_decoder_new(const rapt_transformer_config *config)
{
    if (!rapt_transformer_check(kind.name, config, config ? config->decoder_layers : 0)) return NULL;
    rapt_transformer_decoder *decoder = rapt_module_new(sizeof *decoder, &kind);
    if (!decoder) return NULL;
    const int count = config->decoder_layers;
    rapt_module *list = rapt_layer_list_new();
    decoder->layers = calloc((size_t)count, sizeof *decoder->layers);
    decoder->count = count;
    bool good = list && (decoder->layers || rapt_fail(RAPT_ERROR_MEMORY, kind.name, "no memory for %d layers", count));
    for (int i = 0; i < count && good; i++) {
        decoder->layers[i] = rapt_decoder_layer_with(config, i > 0 ? decoder->layers[0]->self_attn->rotary : NULL);
        good = rapt_layer_list_add(list, i, (rapt_module *)decoder->layers[i]);
    }
    rapt_module_add_child(&decoder->module, "layers", rapt_module_finish(list));
    rapt_transformer_add_final_norm(&decoder->module, config, &decoder->norm, &decoder->rms_norm);
    if (!good) decoder->module.failed = true;
    return rapt_module_finish(&decoder->module);
}

/* Where keys of the memory go round another ring, nobody knows in which one a rank that fails is awaited. */
static rapt_ring_call begin(const rapt_transformer_decoder *decoder)
{
    const rapt_decoder_layer *layer = decoder->layers[0];
    rapt_ring *ring = rapt_multi_head_ring(layer->self_attn);
    return rapt_ring_begin(ring == rapt_multi_head_ring(layer->multihead_attn) ? ring : NULL);
}

rapt_tensor *rapt_transformer_decoder_forward(rapt_transformer_decoder *decoder, rapt_tensor *x, rapt_tensor *memory,
                                              const rapt_mask *mask, const rapt_mask *memory_mask,
                                              rapt_decoder_cache *caches)
{
    RAPT_UNDO_DRAWS;
    RAPT_ENTER((rapt_module *)decoder);
    if (!decoder || !x) {
        rapt_fail(RAPT_ERROR_NULL, kind.name, "%s is NULL", decoder ? "the input" : "the decoder");
        return NULL;
    }
    RAPT_SCOPE;
    const rapt_ring_call across = begin(decoder);
    int64_t(*lengths)[2] = caches ? rapt_scratch_list(kind.name, decoder->count, sizeof *lengths) : NULL;
    if (caches && !lengths) x = NULL;
    for (int i = 0; i < decoder->count && lengths; i++) {
        lengths[i][0] = caches[i].self.length;
        lengths[i][1] = caches[i].memory.length;
    }
    for (int i = 0; i < decoder->count && x; i++)
        x = rapt_decoder_layer_forward(decoder->layers[i], x, memory, mask, memory_mask, caches ? &caches[i] : NULL);
    if (x) x = rapt_norm_forward(decoder->norm, decoder->rms_norm, x);
    for (int i = 0; i < decoder->count && lengths && !x; i++) {
        rapt_attention_cache_return(&caches[i].self, lengths[i][0]);
        rapt_attention_cache_return(&caches[i].memory, lengths[i][1]);
    }
    return rapt_keep(rapt_ring_end(&across, kind.name, x));
}
