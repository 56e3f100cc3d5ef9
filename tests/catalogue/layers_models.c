/* Rows: the Transformer and its parts, under masks, with lengths and packed, against the plain way. */
#include "masks.h"

/* axis: 0 post-norm, ReLU; 1 pre-norm by RMSNorm, SwiGLU, rotary positions, fewer heads of keys; 2 GELU, sinks,
 * recomputed; 3 GELU by tanh, of an add and norm RMSNorm behind the sum */
static rapt_transformer_config config_of(const op_sample *s)
{
    rapt_transformer_config config = {.hidden = 4,
                                      .heads = 2,
                                      .feed_forward = 3,
                                      .kind =
                                          (rapt_feed_forward_kind[]){RAPT_FEED_FORWARD_RELU, RAPT_FEED_FORWARD_SWIGLU,
                                                                     RAPT_FEED_FORWARD_GELU,
                                                                     RAPT_FEED_FORWARD_GELU_TANH}[s->axis],
                                      .encoder_layers = 1,
                                      .decoder_layers = 1,
                                      .attention_bias = true,
                                      .dropout = 0.125};
    config.norm_first = config.rotary = config.final_norm = config.rms_norm = config.rotary_halves = s->axis == 1;
    config.rotary_base = s->axis == 1 ? 100 : 0;
    config.norm_epsilon = s->axis == 1 ? 1e-3 : 0;
    config.head_size = s->axis == 1 ? 4 : 0;
    config.groups = s->axis == 1 ? 1 : 2;
    config.sinks = config.recompute = s->axis == 2;
    return config;
}

static void *make_feed_forward(const op_sample *s)
{
    const rapt_feed_forward_config config =
        {.in = 4, .inner = 3, .out = 2, .bias = s->axis != 1, .kind = config_of(s).kind, .dropout = 0.25};
    return rapt_feed_forward_new(&config);
}

static void *make_add_norm(const op_sample *s)
{
    rapt_add_norm *add_norm = rapt_add_norm_new(4, s->axis % 2 == 1 ? RAPT_RMS_NORM : RAPT_BIAS, 0.25);
    add_norm->norm_first = s->axis == 1;
    return add_norm;
}

#define MAKE_BLOCK(id)                                                                                                 \
    static void *make_##id(const op_sample *s)                                                                         \
    {                                                                                                                  \
        const rapt_transformer_config config = config_of(s);                                                           \
        return rapt_##id##_new(&config);                                                                               \
    }
MAKE_BLOCK(encoder_layer)
MAKE_BLOCK(decoder_layer)
MAKE_BLOCK(transformer_encoder)
MAKE_BLOCK(transformer_decoder)
MAKE_BLOCK(transformer)

LAYER_FUNCTION(call_feed_forward, rapt_feed_forward_forward(m, in[0]))

static rapt_tensor *feed_forward_by_ops(void *m, rapt_tensor *const *in, const op_sample *s)
{
    const rapt_feed_forward *f = m;
    (void)s;
    rapt_tensor *inner = rapt_linear_forward(f->linear1, in[0]);
    if (f->kind == RAPT_FEED_FORWARD_SWIGLU)
        inner = rapt_mul(rapt_silu(inner), rapt_linear_forward(f->linear3, in[0]));
    else if (f->kind == RAPT_FEED_FORWARD_GELU_TANH)
        inner = rapt_gelu_tanh(inner);
    else
        inner = f->kind == RAPT_FEED_FORWARD_RELU ? rapt_relu(inner) : rapt_gelu(inner);
    return rapt_linear_forward(f->linear2, f->module.training ? rapt_drop(inner, f->dropout) : inner);
}

/* norm(x + dropout f(x)), or x + dropout f(norm x), with tanh as f */
LAYER_FUNCTION(call_add_norm, rapt_add_norm_forward(m, in[0], rapt_tanh(rapt_add_norm_input(m, in[0]))))

static rapt_tensor *norm_by_ops(const rapt_add_norm *a, rapt_tensor *x)
{
    if (a->norm) return rapt_layer_normalize(x, a->norm->weight, a->norm->bias, 1e-5);
    return rapt_rms_normalize(x, a->rms_norm->weight, 1e-6);
}

static rapt_tensor *add_norm_by_ops(void *m, rapt_tensor *const *in, const op_sample *s)
{
    const rapt_add_norm *a = m;
    (void)s;
    rapt_tensor *f = rapt_tanh(a->norm_first ? norm_by_ops(a, in[0]) : in[0]);
    rapt_tensor *sum = rapt_add(in[0], a->module.training ? rapt_drop(f, a->dropout) : f);
    return a->norm_first ? sum : norm_by_ops(a, sum);
}

/* in: x; lengths or NULL */
static rapt_tensor *call_encoder_layer(void *m, rapt_tensor *const *in, const op_sample *s)
{
    const rapt_mask mask = mask_of(s->variant, in[0], in[0], in[1]);
    return rapt_encoder_layer_forward(m, in[0], &mask, NULL);
}

static rapt_tensor *call_transformer_encoder(void *m, rapt_tensor *const *in, const op_sample *s)
{
    const rapt_mask mask = mask_of(s->variant, in[0], in[0], in[1]);
    return rapt_transformer_encoder_forward(m, in[0], &mask, NULL);
}

static rapt_mask mask_of_target(const op_sample *s, rapt_tensor *x)
{
    return (rapt_mask){.causal = true, .starts = s->variant == packed ? two_starts(rapt_size(x, 0)) : NULL};
}

/* in: x, memory; lengths of the memory or NULL */
static rapt_tensor *call_decoder_layer(void *m, rapt_tensor *const *in, const op_sample *s)
{
    const rapt_mask mask = mask_of_target(s, in[0]), memory_mask = mask_of(s->variant, in[0], in[1], in[2]);
    return rapt_decoder_layer_forward(m, in[0], in[1], &mask, &memory_mask, NULL);
}

static rapt_tensor *call_transformer_decoder(void *m, rapt_tensor *const *in, const op_sample *s)
{
    const rapt_mask mask = mask_of_target(s, in[0]), memory_mask = mask_of(s->variant, in[0], in[1], in[2]);
    return rapt_transformer_decoder_forward(m, in[0], in[1], &mask, &memory_mask, NULL);
}

/* in: target, source; lengths of the source or NULL */
static rapt_tensor *call_transformer(void *m, rapt_tensor *const *in, const op_sample *s)
{
    const rapt_mask target_mask = mask_of_target(s, in[0]), source_mask = mask_of(s->variant, in[1], in[1], in[2]),
                    memory_mask = mask_of(s->variant, in[0], in[1], in[2]);
    return rapt_transformer_forward(m, in[1], in[0], &source_mask, &target_mask, &memory_mask);
}

static void make_plain(rapt_multi_head_attention *attention, bool plain)
{
    if (attention) attention->pooling->plain = plain;
}

static void make_encoder_layer_plain(rapt_encoder_layer *layer, bool plain)
{
    make_plain(layer->self_attn, plain);
}

static void make_decoder_layer_plain(rapt_decoder_layer *layer, bool plain)
{
    make_plain(layer->self_attn, plain);
    make_plain(layer->multihead_attn, plain);
}

static void make_transformer_encoder_plain(rapt_transformer_encoder *encoder, bool plain)
{
    for (int i = 0; i < encoder->count; i++) make_encoder_layer_plain(encoder->layers[i], plain);
}

static void make_transformer_decoder_plain(rapt_transformer_decoder *decoder, bool plain)
{
    for (int i = 0; i < decoder->count; i++) make_decoder_layer_plain(decoder->layers[i], plain);
}

static void make_transformer_plain(rapt_transformer *transformer, bool plain)
{
    make_transformer_encoder_plain(transformer->encoder, plain);
    make_transformer_decoder_plain(transformer->decoder, plain);
}

#define PLAIN(id)                                                                                                      \
    static rapt_tensor *id##_by_definition(void *m, rapt_tensor *const *in, const op_sample *s)                        \
    {                                                                                                                  \
        make_##id##_plain(m, true);                                                                                    \
        rapt_tensor *y = call_##id(m, in, s);                                                                          \
        make_##id##_plain(m, false);                                                                                   \
        return y;                                                                                                      \
    }
PLAIN(encoder_layer)
PLAIN(decoder_layer)
PLAIN(transformer_encoder)
PLAIN(transformer_decoder)
PLAIN(transformer)

static const op_sample vectors[] = {{.in = {SHAPE(2, 4)}},
                                    {.in = {SHAPE(4)}, .axis = 1},
                                    {.in = {SHAPE(2, 3, 4)}, .axis = 2},
                                    {.in = {SHAPE(0, 4)}},
                                    {.in = {SHAPE(3, 1, 4)}, .axis = 1},
                                    {.in = {SHAPE(3, 4)}, .axis = 3}};
static const op_sample sequences[] = {
    {.in = {SHAPE(2, 3, 4), ABSENT}},
    {.in = {SHAPE(1, 4, 4), ABSENT}, .variant = causal, .axis = 1},
    {.in = {SHAPE(2, 3, 4), SHAPE(2)}, .limit = 3, .variant = by_lengths, .axis = 2},
    {.in = {SHAPE(5, 4), ABSENT}, .variant = packed, .axis = 1},
    {.in = {SHAPE(0, 3, 4), ABSENT}, .axis = 2},
};
static const op_sample pairs[] = {
    {.in = {SHAPE(2, 3, 4), SHAPE(2, 4, 4), ABSENT}},
    {.in = {SHAPE(1, 3, 4), SHAPE(1, 2, 4), ABSENT}, .axis = 1},
    {.in = {SHAPE(2, 2, 4), SHAPE(2, 3, 4), SHAPE(2)}, .limit = 3, .variant = by_lengths, .axis = 2},
    {.in = {SHAPE(5, 4), SHAPE(4, 4), ABSENT}, .variant = packed, .axis = 1},
    {.in = {SHAPE(0, 3, 4), SHAPE(0, 2, 4), ABSENT}, .axis = 2},
};
#define ROW(id, differentiable_inputs, lengths, sample_array)                                                          \
    .row = {.name = #id,                                                                                               \
            .domain = {[lengths] = length64},                                                                          \
            .differentiable = differentiable_inputs,                                                                   \
            SAMPLES(sample_array)},                                                                                    \
    .make = make_##id, .call = call_##id
static const layer_row rows[] = {
    {ROW(feed_forward, 1, 1, vectors), .definition = feed_forward_by_ops},
    {ROW(add_norm, 1, 1, vectors), .definition = add_norm_by_ops, .needs_spread = true},
    {ROW(encoder_layer, 1, 1, sequences), .definition = encoder_layer_by_definition},
    {ROW(decoder_layer, 3, 2, pairs), .definition = decoder_layer_by_definition},
    {ROW(transformer_encoder, 1, 1, sequences), .definition = transformer_encoder_by_definition},
    {ROW(transformer_decoder, 3, 2, pairs), .definition = transformer_decoder_by_definition},
    /* five norms of four numbers behind each other */
    {ROW(transformer, 3, 2, pairs), .definition = transformer_by_definition, .float32 = 3e-5},
};

LAYER_FAMILY(layers_models, rows);
