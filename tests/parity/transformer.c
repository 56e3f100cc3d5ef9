/* The cases of transformer.py: the blocks of Transformers. */
#include "parity.h"

enum { gelu = 1, pre_norm = 2, no_bias = 4, no_padding = 8, no_final_norm = 16 };

/* The option is a set of the flags above. */
static rapt_transformer_config config(const parity *p)
{
    return (rapt_transformer_config){
        .hidden = 8,
        .heads = 2,
        .feed_forward = 12,
        .kind = p->option & gelu ? RAPT_FEED_FORWARD_GELU : RAPT_FEED_FORWARD_RELU,
        .encoder_layers = 2,
        .decoder_layers = 2,
        .norm_first = p->option & pre_norm,
        .attention_bias = !(p->option & no_bias),
        .final_norm = !(p->option & no_final_norm),
    };
}

static rapt_mask padding(parity *p)
{
    return (rapt_mask){.valid_lengths = p->option & no_padding ? NULL : parity_input(p, "valid_lengths")};
}

static void feed_forward(parity *p, rapt_feed_forward_config sizes)
{
    rapt_feed_forward *layer = parity_module(p, rapt_feed_forward_new(&sizes));
    parity_output(p, "y", rapt_feed_forward_forward(layer, parity_input(p, "x")));
}

static void feed_forward_relu(parity *p)
{
    feed_forward(p, (rapt_feed_forward_config){.in = 5, .inner = 8, .out = 3, .bias = true});
}

static void swiglu(parity *p)
{
    feed_forward(
        p, (rapt_feed_forward_config){.in = 5, .inner = 8, .out = 5, .kind = RAPT_FEED_FORWARD_SWIGLU, .bias = true});
}

static void add_norm(parity *p)
{
    rapt_add_norm *layer = parity_module(p, rapt_add_norm_new(6, RAPT_BIAS, 0));
    parity_output(p, "y", rapt_add_norm_forward(layer, parity_input(p, "x"), parity_input(p, "y")));
}

static void encoder_layer(parity *p)
{
    rapt_transformer_config c = config(p);
    rapt_mask mask = padding(p);
    rapt_encoder_layer *layer = parity_module(p, rapt_encoder_layer_new(&c));
    parity_output(p, "y", rapt_encoder_layer_forward(layer, parity_input(p, "x"), &mask, NULL));
}

static void encoder_layer_causal(parity *p)
{
    rapt_transformer_config c = config(p);
    rapt_encoder_layer *layer = parity_module(p, rapt_encoder_layer_new(&c));
    parity_output(p, "y", rapt_encoder_layer_forward(layer, parity_input(p, "x"), RAPT_MASK(.causal = true), NULL));
}

static void decoder_layer(parity *p)
{
    rapt_transformer_config c = config(p);
    rapt_mask mask = padding(p);
    rapt_decoder_layer *layer = parity_module(p, rapt_decoder_layer_new(&c));
    rapt_tensor *x = parity_input(p, "x"), *memory = parity_input(p, "memory");
    parity_output(p, "y", rapt_decoder_layer_forward(layer, x, memory, RAPT_MASK(.causal = true), &mask, NULL));
}

static void encoder(parity *p)
{
    rapt_transformer_config c = config(p);
    rapt_mask mask = padding(p);
    rapt_transformer_encoder *layer = parity_module(p, rapt_transformer_encoder_new(&c));
    parity_output(p, "y", rapt_transformer_encoder_forward(layer, parity_input(p, "x"), &mask, NULL));
}

static void decoder(parity *p)
{
    rapt_transformer_config c = config(p);
    rapt_mask mask = padding(p);
    rapt_transformer_decoder *layer = parity_module(p, rapt_transformer_decoder_new(&c));
    rapt_tensor *x = parity_input(p, "x"), *memory = parity_input(p, "memory");
    parity_output(p, "y", rapt_transformer_decoder_forward(layer, x, memory, RAPT_MASK(.causal = true), &mask, NULL));
}

static void transformer(parity *p)
{
    rapt_transformer_config c = config(p);
    rapt_mask mask = padding(p), target = {.causal = true, .valid_lengths = parity_input(p, "target_lengths")};
    rapt_transformer *layer = parity_module(p, rapt_transformer_new(&c));
    parity_output(p, "y",
                  rapt_transformer_forward(layer, parity_input(p, "source"), parity_input(p, "target"), &mask, &target,
                                           &mask));
}

const parity_case parity_transformer[] = {
    PARITY_AS(feed_forward, feed_forward_relu, 0),
    PARITY(swiglu),
    PARITY(add_norm),
    PARITY_AS(encoder_layer_post_relu, encoder_layer, 0),
    PARITY_AS(encoder_layer_post_gelu, encoder_layer, gelu),
    PARITY_AS(encoder_layer_pre_relu, encoder_layer, pre_norm),
    PARITY_AS(encoder_layer_pre_gelu, encoder_layer, pre_norm | gelu),
    PARITY_AS(encoder_layer_no_bias, encoder_layer, no_bias),
    PARITY(encoder_layer_causal),
    PARITY_AS(decoder_layer_post_relu, decoder_layer, 0),
    PARITY_AS(decoder_layer_post_gelu, decoder_layer, gelu),
    PARITY_AS(decoder_layer_pre_relu, decoder_layer, pre_norm),
    PARITY_AS(decoder_layer_pre_gelu, decoder_layer, pre_norm | gelu),
    PARITY_AS(encoder_post, encoder, 0),
    PARITY_AS(encoder_pre, encoder, pre_norm),
    PARITY_AS(encoder_no_norm, encoder, no_padding | no_final_norm),
    PARITY_AS(decoder_post, decoder, 0),
    PARITY_AS(decoder_pre, decoder, pre_norm),
    PARITY_AS(transformer_post, transformer, 0),
    PARITY_AS(transformer_pre, transformer, pre_norm),
    {0},
};
