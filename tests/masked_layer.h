/* A layer of attention with two heads for tests of masks, and its steps with a cache. */
#ifndef RAPT_TESTS_MASKED_LAYER_H
#define RAPT_TESTS_MASKED_LAYER_H

#include "modules.h"

enum { masked_length = 12, masked_hidden = 8 };

static inline rapt_multi_head_attention *masked_layer(bool rotary)
{
    rapt_multi_head_attention_config c = {.hidden = masked_hidden, .heads = 2, .bias = true};
    if (rotary) c.rotary = rapt_rotary_new();
    rapt_seed(4);
    return in_float64(rapt_multi_head_attention_new(&c));
}

static inline rapt_tensor *masked_rows(void)
{
    return rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(2, masked_length, masked_hidden));
}

/* With a cache, step by step, a query sees what it sees of the whole: its place moves with the offset. */
static inline void expect_steps_are_the_whole(const rapt_mask *masks, size_t count)
{
    RAPT_SCOPE;
    RAPT_NO_GRADIENT;
    rapt_multi_head_attention *m = masked_layer(true);
    rapt_tensor *x = masked_rows();
    for (const rapt_mask *mask = masks; mask < masks + count; mask++) {
        rapt_tensor *whole = rapt_multi_head_attention_forward(m, x, x, x, mask, NULL);
        rapt_attention_cache cache = {0};
        for (int64_t t = 0; t < masked_length; t++) {
            rapt_tensor *now = rapt_slice(x, 1, t, t + 1, 1);
            rapt_tensor *y = rapt_multi_head_attention_forward(m, now, now, now, mask, &cache);
            expect_values("step", y, 2 * masked_hidden, values_of(rapt_slice(whole, 1, t, t + 1, 1)), 1e-12);
        }
        rapt_attention_cache_clear(&cache);
    }
    rapt_module_free(&m->module);
    expect_no_error();
}

#endif
