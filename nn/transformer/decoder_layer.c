/* One layer of a decoder: self-attention, attention over the encoder's output, then feed-forward. */
#include "attention/attention.h"
#include "attention_cache.h"
#include "nn/entry.h"
#include "tensor/random.h"
#include "transformer.h"

static const rapt_module_class kind = {.name = "DecoderLayer"};

rapt_decoder_layer *rapt_decoder_layer_with(const rapt_transformer_config *config, rapt_rotary *rotary)
{
    if (!rapt_transformer_check(kind.name, config, 1)) return NULL;
    if (config->names == RAPT_NAMES_GPT2) {
        rapt_fail(RAPT_ERROR_UNSUPPORTED, kind.name, "GPT-2 has no such layer, so there are no names of it");
        return NULL;
    }
    rapt_decoder_layer *layer = rapt_module_new(sizeof *layer, &kind);
    if (!layer) return NULL;
    rapt_module *module = &layer->module;
    layer->self_attn =
        rapt_module_add_child(module, "self_attn", (rapt_module *)rapt_transformer_attention_new(config, true, rotary));
    layer->multihead_attn = rapt_module_add_child(module, "multihead_attn",
                                                  (rapt_module *)rapt_transformer_attention_new(config, false, NULL));
    layer->feed_forward = rapt_module_add_child(module, "", (rapt_module *)rapt_transformer_feed_forward_new(config));
    rapt_add_norm **const norms[] = {&layer->norm1, &layer->norm2, &layer->norm3};
    static const char *const names[] = {"norm1", "norm2", "norm3"};
    for (int i = 0; i < 3; i++)
        *norms[i] = rapt_module_add_child(module, names[i], (rapt_module *)rapt_transformer_add_norm_new(config));
    layer->recompute = config->recompute;
    return rapt_module_finish(module);
}

rapt_decoder_layer *rapt_decoder_layer_new(const rapt_transformer_config *config)
{
    return rapt_decoder_layer_with(config, NULL);
}

void rapt_decoder_cache_clear(rapt_decoder_cache *cache)
{
    if (!cache) return;
    rapt_attention_cache_clear(&cache->self);
    rapt_attention_cache_clear(&cache->memory);
}

bool rapt_decoder_cache_select(rapt_decoder_cache *cache, rapt_tensor *rows)
{
    if (!cache) return rapt_fail(RAPT_ERROR_NULL, kind.name, "the cache is NULL");
    rapt_decoder_cache selected = {rapt_attention_cache_share(&cache->self),
                                   rapt_attention_cache_share(&cache->memory)};
    bool good =
        rapt_attention_cache_select(&selected.self, rows) && rapt_attention_cache_select(&selected.memory, rows);
    rapt_decoder_cache old = good ? *cache : selected;
    if (good) *cache = selected;
    rapt_decoder_cache_clear(&old);
    return good;
}

static rapt_tensor *forward(rapt_decoder_layer *layer, rapt_tensor *x, rapt_tensor *memory, const rapt_mask *mask,
                            const rapt_mask *memory_mask, rapt_decoder_cache *cache, rapt_tensor **const weights[2])
{
    RAPT_SCOPE;
    rapt_mask moved; /* its queries come behind those of the steps before */
    if (!rapt_mask_move(kind.name, memory_mask, cache ? cache->self.length : 0, &moved)) return NULL;
    rapt_tensor *y = rapt_add_norm_input(layer->norm1, x);
    y = rapt_multi_head_attention_weigh(layer->self_attn, y, y, y, mask, cache ? &cache->self : NULL, weights[0]);
    x = rapt_add_norm_forward(layer->norm1, x, y);
    y = rapt_multi_head_attention_weigh(layer->multihead_attn, rapt_add_norm_input(layer->norm2, x), memory, memory,
                                        memory_mask || cache ? &moved : NULL, cache ? &cache->memory : NULL,
                                        weights[1]);
    for (int k = 0; y && k < 2; k++)
        if (weights[k]) rapt_keep(*weights[k]);
    x = rapt_add_norm_forward(layer->norm2, x, y);
    y = rapt_feed_forward_forward(layer->feed_forward, rapt_add_norm_input(layer->norm3, x));
    return rapt_keep(rapt_add_norm_forward(layer->norm3, x, y));
}

static bool forward_again(rapt_tensor *const *inputs, rapt_tensor **outputs, void *context)
{
    const rapt_layer_call *call = context;
    rapt_tensor **const weights[] = {rapt_layer_weights(call, 0, outputs), rapt_layer_weights(call, 1, outputs)};
    outputs[0] =
        forward((rapt_decoder_layer *)call->layer, inputs[0], inputs[1], call->masks[0], call->masks[1], NULL, weights);
    return outputs[0] != NULL;
}

rapt_tensor *rapt_decoder_layer_forward(rapt_decoder_layer *layer, rapt_tensor *x, rapt_tensor *memory,
                                        const rapt_mask *mask, const rapt_mask *memory_mask, rapt_decoder_cache *cache)
{
    RAPT_UNDO_DRAWS;
    RAPT_ENTER((rapt_module *)layer);
    if (!layer || !x) {
        rapt_fail(RAPT_ERROR_NULL, kind.name, "%s is NULL", layer ? "the input" : "the layer");
        return NULL;
    }
    if (cache && cache->memory.length > 0) memory = NULL; /* it is projected already */
    if (!layer->recompute || cache || !memory) {
        const int64_t length = cache ? cache->self.length : 0, memory_length = cache ? cache->memory.length : 0;
        x = forward(layer, x, memory, mask, memory_mask, cache, (rapt_tensor * *const[2]){0});
        if (!x && cache && cache->self.length != length) rapt_attention_cache_return(&cache->self, length);
        if (!x && cache && cache->memory.length != memory_length)
            rapt_attention_cache_return(&cache->memory, memory_length);
        return x;
    }
    const rapt_layer_call call = {&layer->module,
                                  {mask, memory_mask},
                                  {layer->self_attn->pooling, layer->multihead_attn->pooling}};
    return rapt_layer_recompute(forward_again, &call, 2, (rapt_tensor *[]){x, memory});
}
