/* The fields of structs that other languages fill in. */
#include <rapt/fields.h>

#include <string.h>

#include <rapt/gpt.h>

#define KIND(member)                                                                                                   \
    _Generic((member), bool: 'b', int: 'i', unsigned: 'i', int64_t: 'l', double: 'd', rapt_tensor *: 't', default: 'p')
#define FIELD(type, field)                                                                                             \
    {                                                                                                                  \
        .name = #field, .kind = KIND(((type *)NULL)->field), .offset = offsetof(type, field)                           \
    }

/* Those of rotary_scaling, which languages without structs in structs fill in one by one. */
#define SCALING(type)                                                                                                  \
    {"rotary_scaling_factor", 'd', offsetof(type, rotary_scaling.factor)},                                             \
        {"rotary_scaling_low_turns", 'd', offsetof(type, rotary_scaling.low_turns)},                                   \
        {"rotary_scaling_high_turns", 'd', offsetof(type, rotary_scaling.high_turns)},                                 \
    {                                                                                                                  \
        "rotary_scaling_context", 'l', offsetof(type, rotary_scaling.context)                                          \
    }

#define MASK(field) FIELD(rapt_mask, field)
static const rapt_field mask[] = {
    MASK(valid_lengths), MASK(first_keys),   MASK(causal),       MASK(dilation),      MASK(prefix_lengths),
    MASK(window),        MASK(window_left),  MASK(window_right), MASK(block),         MASK(blocks_before),
    MASK(documents),     MASK(query_places), MASK(offset),       MASK(seen),          MASK(bias),
    MASK(relative_bias), MASK(starts),       MASK(key_starts),   MASK(fills_million), {NULL, 0, 0},
};

#define HEADS(field) FIELD(rapt_multi_head_attention_config, field)
static const rapt_field heads[] = {
    HEADS(hidden),       HEADS(heads),       HEADS(groups),     HEADS(query_size), HEADS(key_size), HEADS(value_size),
    HEADS(value_hidden), HEADS(output_size), HEADS(bias),       HEADS(dropout),    HEADS(pooling),  HEADS(sinks),
    HEADS(rotary),       HEADS(names),       HEADS(norm_heads), {NULL, 0, 0},
};

#define TRANSFORMER(field) FIELD(rapt_transformer_config, field)
static const rapt_field transformer[] = {
    TRANSFORMER(hidden),
    TRANSFORMER(heads),
    TRANSFORMER(groups),
    TRANSFORMER(feed_forward),
    TRANSFORMER(kind),
    TRANSFORMER(encoder_layers),
    TRANSFORMER(decoder_layers),
    TRANSFORMER(norm_first),
    TRANSFORMER(attention_bias),
    TRANSFORMER(no_bias),
    TRANSFORMER(final_norm),
    TRANSFORMER(dropout),
    TRANSFORMER(attention_dropout),
    TRANSFORMER(feed_forward_dropout),
    TRANSFORMER(sinks),
    TRANSFORMER(rotary),
    TRANSFORMER(names),
    TRANSFORMER(recompute),
    TRANSFORMER(rms_norm),
    TRANSFORMER(rotary_halves),
    TRANSFORMER(rotary_base),
    TRANSFORMER(norm_epsilon),
    TRANSFORMER(head_size),
    TRANSFORMER(norm_heads),
    SCALING(rapt_transformer_config),
    {NULL, 0, 0},
};

#define GPT(field) FIELD(rapt_gpt_config, field)
static const rapt_field gpt[] = {
    GPT(vocabulary),    GPT(context),
    GPT(hidden),        GPT(layers),
    GPT(heads),         GPT(groups),
    GPT(dropout),       GPT(bias),
    GPT(positions),     GPT(kind),
    GPT(sinks),         GPT(recompute),
    GPT(untied),        GPT(rms_norm),
    GPT(rotary_halves), GPT(rotary_base),
    GPT(norm_epsilon),  GPT(feed_forward),
    GPT(window),        GPT(head_size),
    GPT(norm_heads),    SCALING(rapt_gpt_config),
    {NULL, 0, 0},
};

#define GENERATION(field) FIELD(rapt_generation, field)
static const rapt_field generation[] = {
    GENERATION(length),         GENERATION(temperature), GENERATION(top_k),     GENERATION(top_p),   GENERATION(beams),
    GENERATION(length_penalty), GENERATION(stops),       GENERATION(end_token), GENERATION(padding), {NULL, 0, 0},
};

static const struct {
    const char *name;
    const rapt_field *fields;
    size_t size;
} structs[] = {
    {"rapt_mask", mask, sizeof(rapt_mask)},
    {"rapt_multi_head_attention_config", heads, sizeof(rapt_multi_head_attention_config)},
    {"rapt_transformer_config", transformer, sizeof(rapt_transformer_config)},
    {"rapt_gpt_config", gpt, sizeof(rapt_gpt_config)},
    {"rapt_generation", generation, sizeof(rapt_generation)},
};

const rapt_field *rapt_fields_of(const char *name, size_t *size)
{
    for (size_t i = 0; name && size && i < sizeof structs / sizeof *structs; i++) {
        if (strcmp(structs[i].name, name) != 0) continue;
        *size = structs[i].size;
        return structs[i].fields;
    }
    if (!name || !size)
        rapt_fail(RAPT_ERROR_NULL, "fields_of", "%s is NULL", name ? "size" : "name");
    else
        rapt_fail(RAPT_ERROR_VALUE, "fields_of", "the fields of '%.100s' are not listed", name);
    return NULL;
}
