/* One layer of an encoder: self-attention, then feed-forward. Causal, and with a cache, it is a block of a GPT. */
#include "attention/attention.h"
#include "attention_cache.h"
#include "nn/entry.h"
#include "tensor/random.h"
#include "transformer.h"

static const rapt_module_class kind = {.name = "EncoderLayer"};

rapt_encoder_layer *rapt_encoder_layer_with(const rapt_transformer_config *config, rapt_rotary *rotary)
{
    if (!rapt_transformer_check(kind.name, config, 1)) return NULL;
    rapt_encoder_layer *layer = rapt_module_new(sizeof *layer, &kind);
    if (!layer) return NULL;
    rapt_module *module = &layer->module;
    const bool is_gpt = config->names == RAPT_NAMES_GPT2;
    layer->self_attn = rapt_module_add_child(module, is_gpt ? "attn" : "self_attn",
                                             (rapt_module *)rapt_transformer_attention_new(config, true, rotary));
    layer->feed_forward =
        rapt_module_add_child(module, is_gpt ? "mlp" : "", (rapt_module *)rapt_transformer_feed_forward_new(config));
    layer->norm1 =
        rapt_module_add_child(module, is_gpt ? "ln_1" : "norm1", (rapt_module *)rapt_transformer_add_norm_new(config));
    layer->norm2 =
        rapt_module_add_child(module, is_gpt ? "ln_2" : "norm2", (rapt_module *)rapt_transformer_add_norm_new(config));
    layer->recompute = config->recompute;
    return rapt_module_finish(module);
}

rapt_encoder_layer *rapt_encoder_layer_new(const rapt_transformer_config *config)
{
    return rapt_encoder_layer_with(config, NULL);
}

static rapt_tensor *forward(rapt_encoder_layer *layer, rapt_tensor *x, const rapt_mask *mask,
                            rapt_attention_cache *cache, rapt_tensor **weights)
{
    RAPT_SCOPE;
    rapt_tensor *y = rapt_add_norm_input(layer->norm1, x);
    y = rapt_multi_head_attention_weigh(layer->self_attn, y, y, y, mask, cache, weights);
    if (y && weights) rapt_keep(*weights);
    x = rapt_add_norm_forward(layer->norm1, x, y);
    y = rapt_feed_forward_forward(layer->feed_forward, rapt_add_norm_input(layer->norm2, x));
    return rapt_keep(rapt_add_norm_forward(layer->norm2, x, y));
}

static bool forward_again(rapt_tensor *const *inputs, rapt_tensor **outputs, void *context)
{
    const rapt_layer_call *call = context;
    rapt_tensor **weights = rapt_layer_weights(call, 0, outputs);
    outputs[0] = forward((rapt_encoder_layer *)call->layer, inputs[0], call->masks[0], NULL, weights);
    return outputs[0] != NULL;
}

rapt_tensor *rapt_encoder_layer_forward(rapt_encoder_layer *layer, rapt_tensor *x, const rapt_mask *mask,
                                        rapt_attention_cache *cache)
{
    RAPT_UNDO_DRAWS;
    RAPT_ENTER((rapt_module *)layer);
    if (!layer || !x) {
        rapt_fail(RAPT_ERROR_NULL, kind.name, "%s is NULL", layer ? "the input" : "the layer");
        return NULL;
    }
    if (!layer->recompute || cache) {
        const int64_t length = cache ? cache->length : 0;
        x = forward(layer, x, mask, cache, NULL);
        if (!x && cache && cache->length != length) rapt_attention_cache_return(cache, length);
        return x;
    }
    const rapt_layer_call call = {&layer->module, {mask}, {layer->self_attn->pooling}};
    return rapt_layer_recompute(forward_again, &call, 1, &x);
}
