/* GPTs of a few kinds, for the tests. */
#ifndef RAPT_TESTS_GPT_H
#define RAPT_TESTS_GPT_H

#include "transformer.h"

#include <rapt/gpt.h>

static const rapt_gpt_config tiny = {
    .vocabulary = 11, .context = 8, .hidden = 8, .layers = 2, .heads = 4, .bias = true, .kind = RAPT_FEED_FORWARD_GELU};

static inline rapt_gpt *drawn_gpt(const rapt_gpt_config *c)
{
    return drawn(rapt_gpt_new(c));
}

static inline rapt_tensor *random_tokens(int64_t batch, int64_t length)
{
    return rapt_randint(0, tiny.vocabulary, RAPT_SHAPE(batch, length));
}

/* All kinds of positions, with and without groups; LLaMA's kind; a window, beside GELU by tanh; and LLaMA's kind with
 * heads of another size, normed, whose angles are scaled. */
static inline rapt_gpt_config variant(int number)
{
    rapt_gpt_config c = tiny;
    if (number == 8 || number == 10) {
        c.bias = false;
        c.positions = RAPT_POSITIONS_ROTARY;
        c.kind = RAPT_FEED_FORWARD_SWIGLU;
        c.untied = c.rms_norm = c.rotary_halves = true;
        c.rotary_base = 100;
        c.norm_epsilon = 1e-3;
        c.feed_forward = 12;
        c.groups = 2;
        if (number == 10) {
            c.head_size = 6;
            c.norm_heads = true;
            c.rotary_scaling = (rapt_rotary_scaling){8, 1, 4, 64};
        }
        return c;
    }
    if (number == 9) {
        c.kind = RAPT_FEED_FORWARD_GELU_TANH;
        c.window = 3;
        return c;
    }
    c.positions = (rapt_gpt_positions)(number % 4);
    c.groups = number < 4 ? 0 : 2;
    return c;
}
enum { variants = 11 };

#endif
