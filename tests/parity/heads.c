/* The cases of heads.py: multi-head attention and positions. */
#include "parity.h"

enum { heads = 4 };

#define CONFIG(...) (&(const rapt_multi_head_attention_config){.hidden = 8, .heads = heads, __VA_ARGS__})

static void attend(parity *p, rapt_multi_head_attention *layer, rapt_tensor *q, rapt_tensor *k, rapt_tensor *v,
                   const rapt_mask *mask)
{
    if (layer) layer->pooling->keep_weights = true;
    parity_output(p, "y", rapt_multi_head_attention_forward(layer, q, k, v, mask, NULL));
    parity_output(p, "weights", layer ? layer->pooling->weights : NULL);
}

static void self(parity *p, const rapt_multi_head_attention_config *config, const rapt_mask *mask)
{
    rapt_multi_head_attention *layer = parity_module(p, rapt_multi_head_attention_new(config));
    rapt_tensor *x = parity_input(p, "x");
    attend(p, layer, x, x, x, mask);
}

static void cross(parity *p, const rapt_multi_head_attention_config *config)
{
    rapt_multi_head_attention *layer = parity_module(p, rapt_multi_head_attention_new(config));
    attend(p, layer, parity_input(p, "q"), parity_input(p, "k"), parity_input(p, "v"), NULL);
}

#define SELF(name, mask, ...)                                                                                          \
    static void name(parity *p)                                                                                        \
    {                                                                                                                  \
        self(p, CONFIG(__VA_ARGS__), mask);                                                                            \
    }
#define CROSS(name, ...)                                                                                               \
    static void name(parity *p)                                                                                        \
    {                                                                                                                  \
        cross(p, CONFIG(__VA_ARGS__));                                                                                 \
    }
#define PADDING .valid_lengths = parity_input(p, "valid_lengths")
SELF(packed, NULL, .bias = true)
SELF(packed_no_bias, NULL, .bias = false)
CROSS(two_inputs, .bias = true)
CROSS(sizes, .bias = true, .key_size = 6, .value_size = 3)
CROSS(sizes_no_bias, .bias = false, .key_size = 6, .value_size = 3)
SELF(padding, RAPT_MASK(PADDING), .bias = true)
SELF(causal, RAPT_MASK(.causal = true), .bias = true)
SELF(causal_padding, RAPT_MASK(.causal = true, PADDING), .bias = true)
SELF(bias, RAPT_MASK(.bias = parity_input(p, "bias")), .bias = true)
SELF(grouped, RAPT_MASK(PADDING), .bias = true, .groups = 2)
SELF(multi_query, NULL, .bias = true, .groups = 1)
SELF(value_sizes, NULL, .bias = true, .value_hidden = 12, .output_size = 5)
SELF(rotary, RAPT_MASK(.causal = true), .bias = true, .rotary = rapt_rotary_new())
SELF(additive_heads, RAPT_MASK(PADDING), .bias = true, .pooling = rapt_additive_attention_new(2, 2, 3, 0))

static void head_mask(parity *p)
{
    rapt_multi_head_attention *layer = parity_module(p, rapt_multi_head_attention_new(CONFIG(.bias = true)));
    rapt_multi_head_attention_set_head_mask(layer, parity_input(p, "head_mask"));
    rapt_tensor *x = parity_input(p, "x");
    attend(p, layer, x, x, x, NULL);
}

const parity_case parity_multi_head[] = {
    PARITY(packed),
    PARITY(packed_no_bias),
    PARITY_AS(cross, two_inputs, 0),
    PARITY(sizes),
    PARITY(sizes_no_bias),
    PARITY(padding),
    PARITY(causal),
    PARITY(causal_padding),
    PARITY(bias),
    PARITY(grouped),
    PARITY(multi_query),
    PARITY(value_sizes),
    PARITY(rotary),
    PARITY(additive_heads),
    PARITY(head_mask),
    {0},
};

static void sinusoidal(parity *p)
{
    rapt_sinusoidal_positions *layer = parity_module(p, rapt_sinusoidal_positions_new(8, 0));
    parity_output(p, "y", rapt_sinusoidal_positions_forward(layer, parity_input(p, "x"), 0));
}

static void sinusoidal_odd(parity *p)
{
    parity_output(p, "y", rapt_add(parity_input(p, "x"), rapt_sinusoidal(p->dtype, 300, 5, 7)));
}

static void learned(parity *p)
{
    rapt_learned_positions *layer = parity_module(p, rapt_learned_positions_new(7, 4, 0));
    parity_output(p, "y", rapt_learned_positions_forward(layer, parity_input(p, "x"), 1));
}

static void rotate(parity *p)
{
    parity_output(p, "y", rapt_rotate(parity_input(p, "x"), 3, 10000, p->option));
}

/* Scaled dot product whose scores have that bias by relative position. */
static void pool(parity *p, rapt_tensor *relative_bias)
{
    rapt_attention *pooling = rapt_dot_product_attention_new(0);
    if (!pooling) return;
    pooling->keep_weights = true;
    parity_output(p, "y",
                  rapt_attention_forward(pooling, parity_input(p, "q"), parity_input(p, "k"), parity_input(p, "v"),
                                         RAPT_MASK(.relative_bias = relative_bias)));
    parity_output(p, "weights", rapt_detach(pooling->weights));
    rapt_module_free(&pooling->module);
}

static void alibi(parity *p)
{
    rapt_alibi *layer = parity_module(p, rapt_alibi_new(p->option));
    pool(p, rapt_alibi_forward(layer, p->dtype, 4));
}

static void relative_bias(parity *p)
{
    rapt_relative_bias *layer = parity_module(p, rapt_relative_bias_new(4, 2));
    pool(p, rapt_relative_bias_forward(layer));
}

const parity_case parity_positions[] = {
    PARITY(sinusoidal),
    PARITY(sinusoidal_odd),
    PARITY(learned),
    PARITY_AS(rotate, rotate, false),
    PARITY_AS(rotate_halves, rotate, true),
    PARITY_AS(alibi_4, alibi, 4),
    PARITY_AS(alibi_6, alibi, 6),
    PARITY(relative_bias),
    {0},
};
