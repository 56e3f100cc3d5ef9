/* What the parts of a Transformer share. */
#ifndef RAPT_NN_TRANSFORMER_H
#define RAPT_NN_TRANSFORMER_H

#include <rapt/transformer.h>

#include "attention/ring/ring.h"

/* False and an error when the configuration is NULL or a number in it cannot be; `layers` is what the op makes. */
bool rapt_transformer_check(const char *op, const rapt_transformer_config *config, int layers);

/* A layer's attention; that over the memory has no rotary positions. NULL after an error. */
rapt_multi_head_attention *rapt_transformer_attention_new(const rapt_transformer_config *config, bool is_self,
                                                          rapt_rotary *rotary);

/* Layers of a Transformer that turn by one table of angles: rotary is another layer's, or NULL for one of their own. */
rapt_encoder_layer *rapt_encoder_layer_with(const rapt_transformer_config *config, rapt_rotary *rotary);
rapt_decoder_layer *rapt_decoder_layer_with(const rapt_transformer_config *config, rapt_rotary *rotary);

rapt_feed_forward *rapt_transformer_feed_forward_new(const rapt_transformer_config *config);
rapt_add_norm *rapt_transformer_add_norm_new(const rapt_transformer_config *config);

/* Adds the norm after the last layer, if the configuration has one, of whichever kind. */
void rapt_transformer_add_final_norm(rapt_module *module, const rapt_transformer_config *config, rapt_layer_norm **norm,
                                     rapt_rms_norm **rms_norm);

/* Adds a norm: RMSNorm where the flags say so, else a layer norm. */
void rapt_norm_add(rapt_module *module, const char *name, int64_t size, int flags, rapt_layer_norm **norm,
                   rapt_rms_norm **rms_norm);

/* Through the one that there is; without any x itself. */
rapt_tensor *rapt_norm_forward(rapt_layer_norm *norm, rapt_rms_norm *rms_norm, rapt_tensor *x);

/* What a layer is called with, beside tensors. */
typedef struct rapt_layer_call {
    rapt_module *layer;
    const rapt_mask *masks[2];     /* of itself and of the memory; each may be NULL */
    rapt_attention *attentions[2]; /* those that keep their weights; NULL: there is none */
} rapt_layer_call;

/* rapt_recompute_many of a layer: the function's context is a copy of the call that holds all that it needs. It sets
 * output 0, and those of the weights that it is to keep (rapt_layer_weights), which are then in the graph too. */
rapt_tensor *rapt_layer_recompute(rapt_recompute_many_function *function, const rapt_layer_call *call, int count,
                                  rapt_tensor *const *inputs);

/* In such a function: where the weights of attention k of the call go; NULL where they are not kept. */
rapt_tensor **rapt_layer_weights(const rapt_layer_call *call, int k, rapt_tensor **outputs);

/* Begins a call of a stack, all of whose attention goes across one ring or none. */
rapt_ring_call rapt_transformer_encoder_begin(const rapt_transformer_encoder *encoder);

/* A module that only holds a stack's layers, "0", "1", …; NULL when there is no memory for it. */
rapt_module *rapt_layer_list_new(void);
bool rapt_layer_list_add(rapt_module *list, int index, rapt_module *layer);

#endif
