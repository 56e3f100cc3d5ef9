/* Fused dot-product attention in a decoder's loop: the gradients of the keys and values that all steps share. */
#include "fused_dot.h"

#include <stdio.h>

#include "nn/fused_dot.h"

enum { steps = 5, batch = 3, size = 21, gradient_count = 3 };

/* The next queries are the last answer. Keys and values are two tensors or one, and have heads or none. */
typedef struct decoder {
    rapt_attention *attention;
    rapt_tensor *queries, *keys, *values;
    rapt_mask mask;
    int flags;
} decoder;

typedef struct sizes {
    int64_t groups, queries, keys; /* groups 0: no axis of heads, else two heads for each group */
    bool one_tensor, is_gaussian;
    int64_t window; /* of keys that a step sees, others than the last step; 0: all */
} sizes;

/* Few queries and many of them, keys in one part and in several. */
static const sizes cases[] = {
    {0, 1, 11, false, false, 0},  {0, 1, 300, true, false, 0},  {0, 7, 40, false, false, 0},
    {0, 9, 600, true, false, 0},  {2, 1, 600, false, false, 0}, {1, 3, 35, true, false, 0},
    {0, 1, 40, false, false, 12}, {0, 8, 300, true, false, 90}, {1, 2, 50, false, true, 15},
    {0, 1, 50, false, true, 0},   {0, 1, 30, true, true, 0},    {2, 6, 33, false, true, 0},
};
enum { case_count = sizeof cases / sizeof *cases };

static rapt_tensor *draw(rapt_dtype dtype, int64_t heads, int64_t length)
{
    return heads ? leaf(dtype, RAPT_SHAPE(batch, heads, length, size)) : leaf(dtype, RAPT_SHAPE(batch, length, size));
}

static decoder new_decoder(rapt_dtype dtype, const sizes *s)
{
    rapt_seed(5);
    decoder d = {.attention = s->is_gaussian ? rapt_attention_new(rapt_gaussian_scoring_new(4, false), 0)
                                             : rapt_dot_product_attention_new(0)};
    d.queries = draw(dtype, 2 * s->groups, s->queries);
    d.keys = draw(dtype, s->groups, s->keys);
    d.values = s->one_tensor ? d.keys : draw(dtype, s->groups, s->keys);
    d.mask.window = s->window;
    d.mask.valid_lengths = rapt_from(RAPT_INT64, RAPT_SHAPE(batch), (const int64_t[]){s->keys, s->keys / 2 + 1, 1});
    cr_assert(d.attention && d.values && d.mask.valid_lengths, "%s", rapt_error());
    return d;
}

static rapt_tensor *decode(const decoder *d)
{
    rapt_tensor *x = d->queries, *keys = rapt_attention_prepare(d->attention, d->keys, NULL);
    rapt_mask mask = d->mask;
    for (int t = 0; t < steps; t++) {
        if (mask.window) mask.offset = t * rapt_size(keys, -2) / steps;
        x = rapt_attention_pool(d->attention, x, keys, d->values, &mask);
    }
    cr_assert(x, "%s", rapt_error());
    return rapt_sum(rapt_mul(x, x), RAPT_ALL_AXES, false);
}

static void differentiate_decoder(const decoder *d, rapt_tensor *root, rapt_tensor **gradients)
{
    rapt_tensor *wanted[] = {d->queries, d->keys, d->values};
    cr_assert(rapt_gradients(1, &root, NULL, gradient_count, wanted, gradients, d->flags), "%s", rapt_error());
}

Test(fused_dot_decoder, gradients_are_those_of_the_plain_way)
{
    for (int i = 0; i < case_count; i++) {
        RAPT_SCOPE;
        char what[32];
        rapt_tensor *fused[gradient_count], *plain[gradient_count];
        decoder d = new_decoder(RAPT_FLOAT64, &cases[i]);
        differentiate_decoder(&d, decode(&d), fused);
        d.attention->plain = true;
        differentiate_decoder(&d, decode(&d), plain);
        for (int k = 0; k < gradient_count; k++) {
            snprintf(what, sizeof what, "case %d, gradient %d", i, k);
            expect_values(what, fused[k], rapt_count(plain[k]), values_of(plain[k]), 1e-12);
        }
        rapt_module_free(&d.attention->module);
    }
    expect_no_error();
}

Test(fused_dot_decoder, same_bits_again_and_on_any_number_of_threads)
{
    for (int i = 0; i < case_count; i++) {
        RAPT_SCOPE;
        rapt_tensor *gradients[4][gradient_count];
        decoder d = new_decoder(RAPT_FLOAT32, &cases[i]);
        d.flags = RAPT_RETAIN_GRAPH;
        rapt_tensor *root = decode(&d);
        for (int run = 0; run < 4; run++) {
            cr_assert(rapt_set_threads(run / 2 * 3 + 1));
            differentiate_decoder(&d, root, gradients[run]);
            for (int k = 0; k < gradient_count; k++)
                cr_expect(same_bits(gradients[0][k], gradients[run][k]), "case %d: gradient %d in run %d", i, k, run);
        }
        rapt_module_free(&d.attention->module);
    }
    expect_no_error();
}

/* A copy that holds the number where keys are hidden. */
static rapt_tensor *pad(rapt_tensor *x, double number)
{
    rapt_tensor *copy = rapt_clone(x);
    const int axis = rapt_rank(x) - 2;
    const int64_t length = rapt_size(x, axis), valid[] = {length, length / 2 + 1, 1};
    for (int i = 0; i < batch; i++)
        cr_assert(rapt_fill(rapt_slice(rapt_slice(copy, 0, i, i + 1, 1), axis, valid[i], length, 1), number));
    return rapt_require_gradient(copy);
}

Test(fused_dot_decoder, NaN_in_padding_shows_in_no_gradient)
{
    for (int i = 0; i < case_count; i++) {
        RAPT_SCOPE;
        rapt_tensor *gradients[2][gradient_count];
        for (int has_nan = 0; has_nan < 2; has_nan++) {
            decoder d = new_decoder(RAPT_FLOAT32, &cases[i]);
            d.keys = pad(d.keys, has_nan ? (double)NAN : 0);
            d.values = cases[i].one_tensor ? d.keys : pad(d.values, has_nan ? (double)NAN : 0);
            differentiate_decoder(&d, decode(&d), gradients[has_nan]);
            rapt_module_free(&d.attention->module);
        }
        for (int k = 0; k < gradient_count; k++) {
            cr_expect(same_bits(gradients[0][k], gradients[1][k]), "case %d: gradient %d", i, k);
            cr_expect(isfinite(largest_of(gradients[1][k])), "case %d: gradient %d", i, k);
        }
        for (int k = 1; k < gradient_count; k++)
            cr_expect(largest_of(rapt_sub(gradients[1][k], pad(gradients[1][k], 0))) == 0, "case %d: padding", i);
    }
    expect_no_error();
}

/* One gradient of the keys and one of the values, whatever the number of steps. */
Test(fused_dot_decoder, a_step_has_no_gradient_of_its_own)
{
    for (int64_t queries = 1; queries <= 10; queries += 9) {
        RAPT_SCOPE;
        enum { length = 4000 };
        rapt_tensor *gradients[gradient_count];
        cr_assert(rapt_set_threads(1));
        decoder d = new_decoder(RAPT_FLOAT32, &(sizes){.queries = queries, .keys = length});
        rapt_tensor *root = decode(&d);
        const int64_t before = live_bytes(), each = rapt_count(d.keys) * (int64_t)sizeof(float);
        rapt_memory_reset_peak();
        differentiate_decoder(&d, root, gradients);
        const int64_t peak = rapt_memory_get_statistics().peak_bytes - before;
        cr_expect_lt(peak, 5 * each / 2, "%lld queries: %lld bytes, a gradient of the keys has %lld",
                     (long long)queries, (long long)peak, (long long)each);
        rapt_module_free(&d.attention->module);
    }
    expect_no_error();
}

/* Inputs of the op itself that the layer would not let through. */
Test(fused_dot_decoder, inputs_of_different_ranks_are_an_error)
{
    RAPT_SCOPE;
    rapt_tensor *flat = draw(RAPT_FLOAT32, 0, 4), *split = draw(RAPT_FLOAT32, 1, 4);
    rapt_resolved_mask mask;
    cr_assert(rapt_resolve_mask("test", NULL, RAPT_FLOAT32, batch, 1, 4, 4, &mask));
    rapt_attention_call call = {.values = flat, .mask = &mask};
    cr_expect_null(rapt_fused_dot(flat, split, 1, &call));
    expect_error(RAPT_ERROR_SHAPE, "keys [3, 1, 4, 21], values [3, 4, 21]");
    cr_expect_null(rapt_fused_gaussian(split, split, &call));
    expect_error(RAPT_ERROR_SHAPE, "queries [3, 1, 4, 21]");
    cr_expect_null(rapt_fused_dot(flat, NULL, 1, &call));
    rapt_tensor *pooled = rapt_fused_dot(flat, flat, 1, &call);
    expect_shape(pooled, RAPT_SHAPE(batch, 4, size));
}
