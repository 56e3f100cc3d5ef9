/* Multi-head attention: what bad input gives, and what no memory does. */
#include "multi_head_reference.h"

Test(multi_head_errors, constructor)
{
    const int64_t before = live_bytes();
    const struct {
        config c;
        const char *message;
    } bad[] = {
        {{.hidden = 10, .heads = 3}, "hidden size 10 and 3 heads; a multiple of 1 or more heads expected"},
        {{.hidden = 10, .heads = 0}, "heads"},
        {{.hidden = 0, .heads = 2}, "heads"},
        {{.hidden = 10, .heads = -2}, "heads"},
        {{.hidden = 8, .heads = 4, .groups = 3}, "3 groups for 4 heads; a divisor of the number of heads expected"},
        {{.hidden = 8, .heads = 4, .groups = 8}, "8 groups for 4 heads"},
        {{.hidden = 8, .heads = 4, .groups = -1}, "-1 groups for 4 heads"},
        {{.hidden = 8, .heads = 4, .key_size = -1}, "a size of -1"},
        {{.hidden = 8, .heads = 4, .output_size = -5}, "a size of -5"},
        {{.hidden = 8, .heads = 4, .value_hidden = 6}, "values of size 6 and 4 heads"},
        {{.hidden = 8, .heads = 2, .dropout = 0.1}, "dropout 0.1 beside a pooling, which has its own"},
        {{.hidden = 9, .heads = 3}, "heads of size 3; rotary positions need an even size"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        config c = bad[i].c;
        c.pooling = rapt_additive_attention_new(2, 2, 2, 0);
        c.rotary = rapt_rotary_new();
        cr_expect_null(rapt_multi_head_attention_new(&c), "and what it was given is freed");
        expect_error(RAPT_ERROR_VALUE, bad[i].message);
    }
    const config gpt = {.hidden = 8, .heads = 2, .key_size = 5, .names = RAPT_NAMES_GPT2};
    cr_expect_null(rapt_multi_head_attention_new(&gpt));
    expect_error(RAPT_ERROR_VALUE, "GPT-2's names are for queries, keys and values of one size");
    cr_expect_null(rapt_multi_head_attention_new(NULL));
    expect_error(RAPT_ERROR_NULL, "configuration");
    cr_expect_null(rapt_multi_head_attention_new(&(config){.hidden = 4, .heads = 2, .dropout = 2}));
    expect_error(RAPT_ERROR_VALUE, "dropout 2");
    cr_expect_null(rapt_multi_head_attention_new(&(config){.hidden = INT64_MAX - 1, .heads = 1}));
    expect_error(RAPT_ERROR_MEMORY, "too large");
    cr_expect_null(rapt_multi_head_attention_new(&(config){.hidden = (int64_t)1 << 40, .heads = 2}));
    expect_error(RAPT_ERROR_MEMORY, "1099511627776");
    cr_expect_eq(live_bytes(), before);
}

Test(multi_head_errors, forward)
{
    RAPT_SCOPE;
    rapt_multi_head_attention *m = multi_head(&(config){.hidden = 4, .heads = 2, .key_size = 6}, RAPT_FLOAT32);
    rapt_tensor *good[] = {rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(2, 3, 4)), rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(2, 5, 6)),
                           rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(2, 5, 4))};
    const char *const names[] = {"queries", "keys", "values"};
    cr_expect_null(rapt_multi_head_attention_forward(NULL, good[0], good[1], good[2], NULL, NULL));
    expect_error(RAPT_ERROR_NULL, "the layer");
    for (int i = 0; i < 3; i++) {
        const int64_t size = i == 1 ? 6 : 4;
        rapt_tensor *in[] = {good[0], good[1], good[2]};
        rapt_tensor *bad[] = {NULL, rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(6, size)),
                              rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(2, 5, 7)),
                              rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(3, 5, size))};
        for (int k = 0; k < 4; k++) {
            in[i] = bad[k];
            cr_expect_null(rapt_multi_head_attention_forward(m, in[0], in[1], in[2], NULL, NULL));
            cr_expect(strstr(rapt_error(), k < 3 || i > 0 ? names[i] : "keys"), "%s", rapt_error());
            expect_error(k == 0 ? RAPT_ERROR_NULL : RAPT_ERROR_SHAPE, k == 0 ? "NULL" : "expected, not float32 [");
        }
        in[i] = rapt_ones(RAPT_FLOAT64, RAPT_SHAPE(2, 5, size));
        cr_expect_null(rapt_multi_head_attention_forward(m, in[0], in[1], in[2], NULL, NULL));
        expect_error(RAPT_ERROR_DTYPE, "float64");
    }
    rapt_tensor *six = rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(2, 6, 4));
    cr_expect_null(rapt_multi_head_attention_forward(m, good[0], good[1], six, NULL, NULL));
    expect_error(RAPT_ERROR_SHAPE, "5 keys and 6 values");
    rapt_tensor *masks[] = {rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(3)), rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(1, 2)),
                            rapt_ones(RAPT_INT64, RAPT_SHAPE(2))};
    for (int i = 0; i < 3; i++) {
        cr_expect(!rapt_multi_head_attention_set_head_mask(m, masks[i]));
        expect_error(RAPT_ERROR_SHAPE, "a floating head mask of shape (2) expected, not ");
    }
    cr_expect(!rapt_multi_head_attention_set_head_mask(NULL, NULL));
    expect_error(RAPT_ERROR_NULL, "the layer");
    cr_expect(!rapt_multi_head_attention_set_head_mask(m, rapt_ones(RAPT_FLOAT64, RAPT_SHAPE(2))));
    expect_error(RAPT_ERROR_DTYPE, "a head mask of float32, as the layer is, expected, not of float64");
    cr_expect(rapt_multi_head_attention_forward(m, good[0], good[1], good[2], NULL, NULL), "it has none");
    rapt_module_free(&m->module);
}

/* The allocator fails at every place of forward and backward in turn: an error, never a crash or a leak. */
Test(multi_head_errors, no_memory)
{
    const int64_t before = live_bytes();
    for (int variant = 0; variant < 3; variant++) {
        config c = {.hidden = 4, .heads = 2, .bias = true, .groups = variant == 1};
        if (variant == 2) c.key_size = c.value_size = 3;
        if (variant < 2) c.rotary = rapt_rotary_new();
        rapt_multi_head_attention *m = multi_head(&c, RAPT_FLOAT32);
        m->pooling->keep_weights = variant == 1;
        bool done = false;
        for (int64_t failures = 0; !done; failures++) {
            RAPT_SCOPE;
            rapt_tensor *x = rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(2, 3, 4)),
                        *y = rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(2, 5, variant == 2 ? 3 : 4));
            rapt_tensor *lengths = rapt_ones(RAPT_INT64, RAPT_SHAPE(2));
            rapt_memory_fail_after(failures);
            rapt_tensor *output =
                rapt_multi_head_attention_forward(m, x, y, y, RAPT_MASK(.valid_lengths = lengths), NULL);
            done = rapt_backward(rapt_sum(output, RAPT_ALL_AXES, false));
            rapt_memory_fail_after(-1);
            if (!done) expect_error(RAPT_ERROR_MEMORY, "no memory");
            rapt_module_clear_gradients(&m->module);
            cr_assert_lt(failures, 1000);
        }
        rapt_module_free(&m->module);
    }
    cr_expect_eq(live_bytes(), before);
    expect_no_error();
}
