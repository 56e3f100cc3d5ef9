/* The cases of gpt.py: a decoder-only language model. */
#include "parity.h"

#define GPT(name, ...)                                                                                                 \
    static void name(parity *p)                                                                                        \
    {                                                                                                                  \
        const rapt_gpt_config config =                                                                                 \
            {.vocabulary = 11, .context = 6, .hidden = 8, .layers = 2, .heads = 2, __VA_ARGS__};                       \
        rapt_gpt *gpt = parity_module(p, rapt_gpt_new(&config));                                                       \
        parity_output(p, "y", rapt_gpt_forward(gpt, parity_input(p, "tokens"), NULL));                                 \
    }
GPT(gpt, .bias = true, .kind = RAPT_FEED_FORWARD_GELU)
GPT(gpt_no_bias, .kind = RAPT_FEED_FORWARD_GELU)
GPT(gpt_grouped, .bias = true, .kind = RAPT_FEED_FORWARD_GELU, .groups = 1)
GPT(gpt_swiglu, .bias = true, .kind = RAPT_FEED_FORWARD_SWIGLU)
GPT(gpt_gelu_tanh, .bias = true, .kind = RAPT_FEED_FORWARD_GELU_TANH, .window = 3)
GPT(gpt_llama, .kind = RAPT_FEED_FORWARD_SWIGLU, .groups = 1, .positions = RAPT_POSITIONS_ROTARY, .rms_norm = true,
    .feed_forward = 12, .rotary_halves = true, .rotary_base = 100, .untied = true)
GPT(gpt_qwen, .kind = RAPT_FEED_FORWARD_SWIGLU, .groups = 1, .positions = RAPT_POSITIONS_ROTARY, .rms_norm = true,
    .feed_forward = 12, .rotary_halves = true, .rotary_base = 100, .head_size = 6, .norm_heads = true)
GPT(gpt_scaled, .bias = true, .kind = RAPT_FEED_FORWARD_GELU, .positions = RAPT_POSITIONS_ROTARY, .rotary_halves = true,
    .rotary_base = 1000, .head_size = 10, .rotary_scaling = {8, 1, 4, 64})
GPT(gpt_interpolated, .bias = true, .kind = RAPT_FEED_FORWARD_GELU, .positions = RAPT_POSITIONS_ROTARY,
    .rotary_scaling = {.factor = 4})
GPT(gpt_sinusoidal, .bias = true, .kind = RAPT_FEED_FORWARD_GELU, .positions = RAPT_POSITIONS_SINUSOIDAL)
GPT(gpt_rotary, .bias = true, .kind = RAPT_FEED_FORWARD_GELU, .positions = RAPT_POSITIONS_ROTARY)
GPT(gpt_alibi, .bias = true, .kind = RAPT_FEED_FORWARD_GELU, .positions = RAPT_POSITIONS_ALIBI)

const parity_case parity_gpt[] = {
    PARITY(gpt),
    PARITY(gpt_no_bias),
    PARITY(gpt_grouped),
    PARITY(gpt_swiglu),
    PARITY(gpt_gelu_tanh),
    PARITY(gpt_llama),
    PARITY(gpt_qwen),
    PARITY(gpt_scaled),
    PARITY(gpt_interpolated),
    PARITY(gpt_sinusoidal),
    PARITY(gpt_rotary),
    PARITY(gpt_alibi),
    {0},
};
