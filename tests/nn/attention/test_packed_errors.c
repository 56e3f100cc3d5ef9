/* Attention of packed sequences: no rows at all, and masks that make no sense. */
#include <criterion/criterion.h>
#include <math.h>

#include <rapt/nn.h>

#include "expect.h"
#include "integers.h"

Test(packed_errors, no_sequences_and_no_rows)
{
    RAPT_SCOPE;
    rapt_attention *attention = rapt_additive_attention_new(4, 4, 3, 0);
    rapt_tensor *x = rapt_require_gradient(rapt_zeros(RAPT_FLOAT32, RAPT_SHAPE(0, 4)));
    rapt_tensor *none = rapt_zeros(RAPT_INT64, RAPT_SHAPE(1)), *empty = rapt_zeros(RAPT_INT64, RAPT_SHAPE(3));
    rapt_tensor *const starts[] = {none, empty};
    for (int i = 0; i < 2; i++) {
        rapt_tensor *out = rapt_attention_forward(attention, x, x, x, RAPT_MASK(.starts = starts[i]));
        cr_assert(out, "%s", rapt_error());
        cr_expect_eq(rapt_count(out), 0);
        cr_expect(rapt_backward(rapt_sum(out, RAPT_ALL_AXES, false)), "%s", rapt_error());
    }
    rapt_module_free(&attention->module);
}

static rapt_tensor *own_normalizer(rapt_tensor *scores, const rapt_mask *mask)
{
    return rapt_masked_softmax(scores, mask);
}

/* No sequences are a batch of 0, not one sequence without rows. */
Test(packed_errors, no_sequences_are_packed)
{
    RAPT_SCOPE;
    rapt_tensor *x = rapt_require_gradient(rapt_zeros(RAPT_FLOAT32, RAPT_SHAPE(0, 4))),
                *none = rapt_zeros(RAPT_INT64, RAPT_SHAPE(1)), *places = rapt_zeros(RAPT_INT64, RAPT_SHAPE(0));
    const rapt_mask masks[] = {{.starts = none},
                               {.starts = none, .causal = true, .dilation = 2},
                               {.starts = none, .valid_lengths = places},
                               {.starts = none, .query_places = places, .documents = places}};
    for (int way = 0; way < 16; way++) {
        rapt_attention *attention =
            way & 1 ? rapt_additive_attention_new(4, 4, 3, 0.5) : rapt_dot_product_attention_new(0.5);
        attention->plain = way & 2;
        if (way & 4) attention->normalizer = own_normalizer;
        if (way & 8) rapt_attention_modify(attention, "prefix", rapt_prefix_modification_new(places));
        for (int i = 0; i < 8; i++) {
            attention->keep_weights = i & 1;
            rapt_tensor *y = rapt_attention_forward(attention, x, x, x, &masks[i / 2]);
            cr_assert(y, "way %d, mask %d: %s", way, i / 2, rapt_error());
            cr_expect_eq(rapt_count(y), 0);
            cr_expect(rapt_backward(rapt_sum(y, RAPT_ALL_AXES, false)), "way %d: %s", way, rapt_error());
            const rapt_tensor *weights = attention->keep_weights ? attention->weights : NULL;
            cr_expect(!weights || (rapt_rank(weights) == 3 && rapt_size(weights, 0) == 0 && rapt_size(weights, 1) == 0),
                      "way %d, mask %d", way, i / 2);
        }
        rapt_module_free(&attention->module);
    }
    cr_expect_null(rapt_error(), "%s", rapt_error());
}

Test(packed_errors, masks_that_make_no_sense_are_errors)
{
    RAPT_SCOPE;
    rapt_attention *attention = rapt_dot_product_attention_new(0);
    rapt_tensor *x = rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(5, 4)),
                *starts = rapt_packing_starts(int64_of(2, (int64_t[]){2, 3}));
    const struct {
        rapt_mask mask;
        rapt_error_code code;
        const char *part;
    } bad[] = {
        {{.starts = rapt_packing_starts(int64_of(2, (int64_t[]){2, 2}))}, RAPT_ERROR_SHAPE, "5 queries"},
        {{.starts = starts, .key_starts = rapt_packing_starts(int64_of(2, (int64_t[]){2, 2}))},
         RAPT_ERROR_SHAPE,
         "5 keys"},
        {{.starts = starts, .key_starts = rapt_packing_starts(int64_of(1, (int64_t[]){5}))},
         RAPT_ERROR_SHAPE,
         "one number"},
        {{.starts = starts, .seen = rapt_ones(RAPT_BOOL, RAPT_SHAPE(5, 5))}, RAPT_ERROR_UNSUPPORTED, "seen"},
        {{.starts = starts, .bias = rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(5, 5))}, RAPT_ERROR_UNSUPPORTED, "bias"},
        {{.starts = starts, .fills_million = true}, RAPT_ERROR_UNSUPPORTED, "fills_million"},
        {{.starts = starts, .valid_lengths = rapt_ones(RAPT_INT64, RAPT_SHAPE(5))},
         RAPT_ERROR_SHAPE,
         "valid lengths (2)"},
        {{.starts = starts, .relative_bias = rapt_full(RAPT_FLOAT32, RAPT_SHAPE(1), -(double)INFINITY)},
         RAPT_ERROR_UNSUPPORTED,
         "relative_bias"},
        {{.starts = rapt_cast(starts, RAPT_FLOAT32)}, RAPT_ERROR_DTYPE, "int64"},
        {{.starts = starts, .documents = starts}, RAPT_ERROR_SHAPE, "documents (K), (1, K) or (B, K) expected"},
        {{.starts = starts, .documents = int64_of(5, (int64_t[]){3, 4, 1, 2, 1})},
         RAPT_ERROR_VALUE,
         "the mask's documents fall from 2 to 1 at key 2 of sequence 1"},
        {{.starts = starts, .query_places = starts}, RAPT_ERROR_SHAPE, "query_places (Q), (1, Q) or (B, Q) expected"},
        {{.starts = starts, .causal = true, .prefix_lengths = starts}, RAPT_ERROR_SHAPE, "prefix lengths (2) or (1)"},
        {{.starts = starts, .first_keys = starts}, RAPT_ERROR_UNSUPPORTED, "first_keys beside starts"},
        {{.starts = starts, .valid_lengths = rapt_ones(RAPT_INT64, RAPT_SHAPE(2, 5))},
         RAPT_ERROR_SHAPE,
         "valid lengths (2) expected beside starts, not int64 [2, 5]"},
        {{.starts = starts, .causal = true, .prefix_lengths = rapt_ones(RAPT_INT64, RAPT_SHAPE(2, 1))},
         RAPT_ERROR_SHAPE,
         "prefix lengths (2) or (1) expected beside starts, not int64 [2, 1]"},
        {{.key_starts = starts}, RAPT_ERROR_NULL, "the mask has key_starts, but no starts"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        cr_expect_null(rapt_attention_forward(attention, x, x, x, &bad[i].mask));
        expect_error(bad[i].code, bad[i].part);
    }
    rapt_tensor *batch = rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(1, 2, 5, 4));
    cr_expect_null(rapt_attention_forward(attention, batch, batch, batch, RAPT_MASK(.starts = starts)));
    expect_error(RAPT_ERROR_SHAPE, "(rows, size)");
    cr_expect_null(rapt_masked_softmax(rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(1, 5, 5)), RAPT_MASK(.starts = starts)));
    expect_error(RAPT_ERROR_UNSUPPORTED, "not for scores");
    rapt_module_free(&attention->module);
}
