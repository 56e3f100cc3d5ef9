/* Prepared keys carry their exponentials, which are made anew once somebody has written to the numbers. */
#include "modules.h"

#include "../../../nn/attention/fused_additive.h"

enum { batch = 2, queries = 4, keys = 5, hidden = 3 };

/* What keys give is what a copy of their numbers gives. */
static void expect_their_numbers(rapt_tensor *prepared, const char *what)
{
    RAPT_SCOPE;
    const int64_t count = rapt_size(prepared, 1);
    rapt_tensor *asking = rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(batch, queries, hidden)),
                *weight = rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(hidden)),
                *values = rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(batch, count, 2));
    const rapt_resolved_mask mask = {.batch = batch, .heads = 1, .queries = queries, .keys = count};
    const rapt_attention_call call = {.values = values, .mask = &mask};
    rapt_tensor *out = rapt_fused_additive(asking, prepared, weight, &call),
                *expected = rapt_fused_additive(asking, rapt_clone(prepared), weight, &call);
    cr_assert(out && expected, "%s", rapt_error());
    cr_expect(same_bits(out, expected), "%s", what);
}

Test(additive_keys, are_those_that_were_written_last)
{
    RAPT_SCOPE;
    RAPT_NO_GRADIENT;
    rapt_tensor *projected = rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(batch, keys, hidden));
    rapt_tensor *prepared = rapt_additive_keys(projected);
    cr_assert_not_null(prepared, "%s", rapt_error());
    expect_their_numbers(prepared, "as they were prepared");
    cr_assert(rapt_scale_in_place(projected, -0.5), "%s", rapt_error());
    expect_their_numbers(prepared, "the projection has changed");
    prepared = rapt_additive_keys(projected);
    cr_assert(prepared && rapt_fill(rapt_select(prepared, 1, 2), 0.25), "%s", rapt_error());
    expect_their_numbers(prepared, "a key has changed");
    prepared = rapt_additive_keys(projected);
    expect_their_numbers(rapt_slice(prepared, 1, 1, keys, 1), "some of the keys");
}

/* The gradient of the keys' weight, which were prepared before anyone knew that those behind `length` are padding. */
static rapt_tensor *gradient_with_padding(double padding)
{
    enum { all = 300, length = 186 };
    rapt_seed(3);
    rapt_attention *attention = rapt_additive_attention_new(hidden, hidden, hidden, 0);
    rapt_tensor *asking = rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(1, queries, hidden)),
                *read = rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(1, all, hidden)),
                *values = rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(1, all, 2));
    cr_assert(rapt_fill(rapt_slice(read, 1, length, all, 1), padding));
    rapt_tensor *prepared = rapt_attention_prepare(attention, read, NULL);
    const rapt_mask mask = {.valid_lengths = rapt_from(RAPT_INT64, RAPT_SHAPE(1), (int64_t[]){length})};
    rapt_tensor *pooled = rapt_attention_pool(attention, asking, prepared, values, &mask);
    cr_assert(rapt_backward(rapt_sum(rapt_mul(pooled, pooled), RAPT_ALL_AXES, false)), "%s", rapt_error());
    rapt_tensor *weight = rapt_module_find(&attention->module, "W_k.weight");
    cr_assert_not_null(weight);
    rapt_tensor *gradient = rapt_clone(rapt_gradient(weight));
    rapt_module_free(&attention->module);
    return gradient;
}

Test(additive_keys, that_turn_out_to_be_padding_change_no_bit)
{
    RAPT_SCOPE;
    rapt_tensor *clean = gradient_with_padding(0.5);
    cr_expect(same_bits(clean, gradient_with_padding((double)NAN)), "NaN");
    cr_expect(same_bits(clean, gradient_with_padding((double)INFINITY)), "infinity");
}
