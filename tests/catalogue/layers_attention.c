/* Rows: attention and multi-head attention under all kinds of masks, against the plain way. */
#include "masks.h"

static void *make_attention(const op_sample *s)
{
    (void)s;
    return rapt_attention_new(rapt_bilinear_scoring_new(3, 2), 0.25);
}

static void *make_multi_head_attention(const op_sample *s)
{
    const bool apart = s->axis == 1;
    rapt_multi_head_attention_config config = {.hidden = 4,
                                               .heads = 2,
                                               .bias = true,
                                               .dropout = 0.25,
                                               .sinks = s->axis == 2};
    if (apart) {
        config.groups = 1;
        config.norm_heads = true;
        config.rotary = rapt_rotary_new();
    }
    return rapt_multi_head_attention_new(&config);
}

LAYER_MAKE(dot_product_attention, rapt_dot_product_attention_new(0.25))
LAYER_MAKE(additive_attention, rapt_additive_attention_new(3, 2, 4, 0.25))

/* in: queries, keys, values; lengths or NULL */
static rapt_tensor *call_attention(void *m, rapt_tensor *const *in, const op_sample *s)
{
    const rapt_mask mask = mask_of(s->variant, in[0], in[1], in[3]);
    return rapt_attention_forward(m, in[0], in[1], in[2], &mask);
}

static rapt_tensor *call_multi_head(void *m, rapt_tensor *const *in, const op_sample *s)
{
    const rapt_mask mask = mask_of(s->variant, in[0], in[1], in[3]);
    return rapt_multi_head_attention_forward(m, in[0], in[1], in[2], &mask, NULL);
}

static rapt_tensor *attention_by_definition(void *m, rapt_tensor *const *in, const op_sample *s)
{
    rapt_attention *attention = m;
    attention->plain = true;
    rapt_tensor *y = call_attention(m, in, s);
    attention->plain = false;
    return y;
}

static rapt_tensor *multi_head_by_definition(void *m, rapt_tensor *const *in, const op_sample *s)
{
    rapt_multi_head_attention *attention = m;
    attention->pooling->plain = true;
    rapt_tensor *y = call_multi_head(m, in, s);
    attention->pooling->plain = false;
    return y;
}

/* Queries and keys of these sizes under each mask; with heads; packed; without items and without keys; large. */
#define SAMPLES_OF(name, q, k)                                                                                         \
    static const op_sample name[] = {                                                                                  \
        {.in = {SHAPE(2, 2, q), SHAPE(2, 3, k), SHAPE(2, 3, 2), ABSENT}},                                              \
        {.in = {SHAPE(1, 3, q), SHAPE(1, 4, k), SHAPE(1, 4, 1), ABSENT}, .variant = causal},                           \
        {.in = {SHAPE(2, 2, q), SHAPE(2, 3, k), SHAPE(2, 3, 2), SHAPE(2)}, .limit = 3, .variant = by_lengths},         \
        {.in = {SHAPE(1, 4, q), SHAPE(1, 5, k), SHAPE(1, 5, 1), ABSENT}, .variant = in_window},                        \
        {.in = {SHAPE(1, 4, q), SHAPE(1, 4, k), SHAPE(1, 4, 1), ABSENT}, .variant = in_documents},                     \
        {.in = {SHAPE(2, 2, q), SHAPE(2, 3, k), SHAPE(2, 3, 1), ABSENT}, .variant = biased},                           \
        {.in = {SHAPE(4, q), SHAPE(5, k), SHAPE(5, 2), ABSENT}, .variant = packed},                                    \
        {.in = {SHAPE(1, 2, 2, q), SHAPE(1, 1, 3, k), SHAPE(1, 1, 3, 2), ABSENT}, .variant = causal},                  \
        {.in = {SHAPE(0, 2, q), SHAPE(0, 3, k), SHAPE(0, 3, 2), ABSENT}},                                              \
        {.in = {SHAPE(2, 2, q), SHAPE(2, 0, k), SHAPE(2, 0, 2), ABSENT}},                                              \
        {.in = {SHAPE(2, 67, q), SHAPE(2, 131, k), SHAPE(2, 131, 5), ABSENT}, .variant = causal, .large = true},       \
    };
SAMPLES_OF(of_one_size, 3, 3)
SAMPLES_OF(of_two_sizes, 3, 2)

/* axis: 1: fewer keys' heads, norms of them and rotary positions; 2: sinks */
static const op_sample with_heads[] = {
    {.in = {SHAPE(2, 2, 4), SHAPE(2, 3, 4), SHAPE(2, 3, 4), ABSENT}},
    {.in = {SHAPE(1, 3, 4), SHAPE(1, 4, 4), SHAPE(1, 4, 4), ABSENT}, .variant = causal, .axis = 1},
    {.in = {SHAPE(2, 2, 4), SHAPE(2, 3, 4), SHAPE(2, 3, 4), SHAPE(2)}, .limit = 3, .variant = by_lengths, .axis = 2},
    {.in = {SHAPE(1, 4, 4), SHAPE(1, 5, 4), SHAPE(1, 5, 4), ABSENT}, .variant = in_window},
    {.in = {SHAPE(1, 4, 4), SHAPE(1, 4, 4), SHAPE(1, 4, 4), ABSENT}, .variant = in_documents},
    {.in = {SHAPE(2, 2, 4), SHAPE(2, 3, 4), SHAPE(2, 3, 4), ABSENT}, .variant = biased},
    {.in = {SHAPE(4, 4), SHAPE(5, 4), SHAPE(5, 4), ABSENT}, .variant = packed},
    {.in = {SHAPE(0, 2, 4), SHAPE(0, 3, 4), SHAPE(0, 3, 4), ABSENT}},
    {.in = {SHAPE(2, 67, 4), SHAPE(2, 131, 4), SHAPE(2, 131, 4), ABSENT}, .variant = causal, .large = true},
};

#define ROW(id, sample_array)                                                                                          \
    .row = {.name = #id, .domain = {[3] = length64}, .differentiable = 7, .optional = 8, SAMPLES(sample_array)},       \
    .make = make_##id

static const layer_row rows[] = {
    {ROW(attention, of_two_sizes), .call = call_attention, .definition = attention_by_definition},
    {ROW(dot_product_attention, of_one_size), .call = call_attention, .definition = attention_by_definition},
    {ROW(additive_attention, of_two_sizes), .call = call_attention, .definition = attention_by_definition},
    {ROW(multi_head_attention, with_heads), .call = call_multi_head, .definition = multi_head_by_definition},
};

LAYER_FAMILY(layers_attention, rows);
