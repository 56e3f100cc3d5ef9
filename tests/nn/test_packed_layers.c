/* Layers of attention on packed sequences give what each sequence gives alone: multi-head, Transformer, GPT. */
#include "modules.h"

#include "largest.h"

enum { sequences = 4, all_rows = 11, source_rows = 14, hidden = 8 };
static const int64_t lengths[] = {3, 0, 7, 1}, source_lengths[] = {5, 2, 1, 6};

static rapt_tensor *starts_of(const int64_t *of)
{
    return rapt_packing_starts(rapt_from(RAPT_INT64, RAPT_SHAPE(sequences), of));
}

/* Sequence b of packed rows, as a batch of one. */
static rapt_tensor *sequence(rapt_tensor *rows, const int64_t *of, int b)
{
    int64_t first = 0;
    for (int i = 0; i < b; i++) first += of[i];
    return rapt_unsqueeze(rapt_slice(rows, 0, first, first + of[b], 1), 0);
}

static bool sum_gradients(const char *name, rapt_tensor *parameter, void *context)
{
    (void)name;
    rapt_tensor *gradient = rapt_gradient(parameter);
    double *sums = context;
    if (!gradient) return true;
    sums[0] += rapt_item(rapt_sum(gradient, RAPT_ALL_AXES, false));
    sums[1] += rapt_item(rapt_sum(rapt_mul(gradient, gradient), RAPT_ALL_AXES, false));
    return true;
}

/* Differentiates Σ y², and puts two numbers made of all gradients into sums. */
static void differentiate(rapt_module *module, int count, rapt_tensor *const *ys, double sums[2])
{
    rapt_tensor *loss = NULL;
    for (int i = 0; i < count; i++) {
        rapt_tensor *one = rapt_sum(rapt_mul(ys[i], ys[i]), RAPT_ALL_AXES, false);
        loss = loss ? rapt_add(loss, one) : one;
    }
    rapt_module_clear_gradients(module);
    cr_assert(rapt_backward(loss), "%s", rapt_error());
    sums[0] = sums[1] = 0;
    rapt_module_visit(module, RAPT_PARAMETERS, sum_gradients, sums);
}

static void expect_same_gradients(rapt_module *module, rapt_tensor *packed, int count, rapt_tensor *const *alone)
{
    double got[2], expected[2];
    differentiate(module, 1, &packed, got);
    differentiate(module, count, alone, expected);
    for (int i = 0; i < 2; i++)
        cr_expect(fabs(got[i] - expected[i]) <= 1e-11 * fabs(expected[i]), "%.17g, alone %.17g", got[i], expected[i]);
}

Test(packed_layers, multi_head_attention)
{
    for (int variant = 0; variant < 4; variant++) {
        RAPT_SCOPE;
        rapt_seed(1);
        rapt_multi_head_attention_config config = {.hidden = hidden, .heads = 4, .bias = true};
        if (variant == 1) config.rotary = rapt_rotary_new();
        if (variant == 2) config.groups = 2;
        if (variant == 3) config.pooling = rapt_additive_attention_new(2, 2, 5, 0);
        rapt_multi_head_attention *m = rapt_multi_head_attention_new(&config);
        cr_assert(m && rapt_module_cast(&m->module, RAPT_FLOAT64), "%s", rapt_error());
        rapt_tensor *x = rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(all_rows, hidden)),
                    *source = rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(source_rows, hidden)),
                    *values = rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(source_rows, hidden)), *alone[2 * sequences];
        rapt_mask self = {.starts = starts_of(lengths), .causal = true, .offset = variant == 1 ? 2 : 0};
        rapt_mask cross = {.starts = self.starts, .key_starts = starts_of(source_lengths)};
        rapt_tensor *y = rapt_multi_head_attention_forward(m, x, x, x, &self, NULL);
        rapt_tensor *z = rapt_multi_head_attention_forward(m, x, source, values, &cross, NULL);
        cr_assert(y && z, "%s", rapt_error());
        expect_shape(y, RAPT_SHAPE(all_rows, hidden));
        for (int b = 0; b < sequences; b++) {
            rapt_tensor *one = sequence(x, lengths, b), *other = sequence(source, source_lengths, b),
                        *third = sequence(values, source_lengths, b);
            alone[b] = rapt_multi_head_attention_forward(m, one, one, one,
                                                         RAPT_MASK(.causal = true, .offset = self.offset), NULL);
            alone[sequences + b] = rapt_multi_head_attention_forward(m, one, other, third, NULL, NULL);
            cr_expect_leq(relative_difference(sequence(y, lengths, b), alone[b]), 1e-14, "variant %d", variant);
            cr_expect_leq(relative_difference(sequence(z, lengths, b), alone[sequences + b]), 1e-14, "variant %d",
                          variant);
        }
        rapt_tensor *both[] = {y, z};
        expect_same_gradients(&m->module, rapt_concat(2, both, 0), 2 * sequences, alone);
        rapt_module_free(&m->module);
    }
    expect_no_error();
}

Test(packed_layers, transformer)
{
    for (int norm_first = 0; norm_first < 2; norm_first++) {
        RAPT_SCOPE;
        rapt_seed(1);
        const rapt_transformer_config config = {.hidden = hidden,
                                                .heads = 2,
                                                .feed_forward = 12,
                                                .encoder_layers = 2,
                                                .decoder_layers = 2,
                                                .norm_first = norm_first,
                                                .attention_bias = true};
        rapt_transformer *t = rapt_transformer_new(&config);
        cr_assert(t && rapt_module_cast(&t->module, RAPT_FLOAT64), "%s", rapt_error());
        rapt_tensor *target = rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(all_rows, hidden)), *alone[sequences],
                    *source = rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(source_rows, hidden));
        rapt_tensor *starts = starts_of(lengths), *source_starts = starts_of(source_lengths);
        rapt_tensor *y = rapt_transformer_forward(t, source, target, RAPT_MASK(.starts = source_starts),
                                                  RAPT_MASK(.starts = starts, .causal = true),
                                                  RAPT_MASK(.starts = starts, .key_starts = source_starts));
        cr_assert(y, "%s", rapt_error());
        expect_shape(y, RAPT_SHAPE(all_rows, hidden));
        for (int b = 0; b < sequences; b++) {
            alone[b] = rapt_transformer_forward(t, sequence(source, source_lengths, b), sequence(target, lengths, b),
                                                NULL, RAPT_MASK(.causal = true), NULL);
            cr_expect_leq(relative_difference(sequence(y, lengths, b), alone[b]), 1e-13);
        }
        expect_same_gradients(&t->module, y, sequences, alone);
        rapt_module_free(&t->module);
    }
    expect_no_error();
}

Test(packed_layers, gpt)
{
    for (int positions = RAPT_POSITIONS_LEARNED; positions <= RAPT_POSITIONS_ALIBI; positions++) {
        RAPT_SCOPE;
        rapt_seed(1);
        const rapt_gpt_config config = {.vocabulary = 20,
                                        .context = 7,
                                        .hidden = hidden,
                                        .layers = 2,
                                        .heads = 2,
                                        .bias = true,
                                        .positions = (rapt_gpt_positions)positions,
                                        .rms_norm = positions == RAPT_POSITIONS_ROTARY,
                                        .rotary_halves = positions == RAPT_POSITIONS_ROTARY,
                                        .untied = positions == RAPT_POSITIONS_ROTARY,
                                        .window = positions == RAPT_POSITIONS_LEARNED ? 3 : 0};
        rapt_gpt *gpt = rapt_gpt_new(&config);
        cr_assert(gpt && rapt_module_cast(&gpt->module, RAPT_FLOAT64), "%s", rapt_error());
        rapt_tensor *tokens = rapt_randint(0, 20, RAPT_SHAPE(all_rows)), *starts = starts_of(lengths);
        rapt_tensor *y = rapt_gpt_forward_packed(gpt, tokens, starts), *alone[sequences];
        cr_assert(y, "%s", rapt_error());
        expect_shape(y, RAPT_SHAPE(all_rows, 20));
        int count = 0;
        for (int b = 0; b < sequences; b++) {
            if (lengths[b] == 0) continue;
            alone[count] = rapt_gpt_forward(gpt, sequence(tokens, lengths, b), NULL);
            cr_expect_leq(relative_difference(sequence(y, lengths, b), alone[count++]), 1e-13, "positions %d",
                          positions);
        }
        expect_same_gradients(&gpt->module, y, count, alone);
        rapt_tensor *head = gpt->lm_head ? gpt->lm_head->weight : gpt->wte->weight;
        cr_expect(same_bits(rapt_affine(rapt_gpt_hidden(gpt, tokens, starts), head, NULL), y));
        rapt_tensor *targets = rapt_randint(0, 20, RAPT_SHAPE(all_rows));
        cr_expect_leq(relative_difference(rapt_gpt_loss_packed(gpt, tokens, starts, targets, NULL),
                                          rapt_cross_entropy(y, targets, NULL)),
                      1e-14);
        cr_expect_null(rapt_gpt_forward_packed(gpt, tokens, rapt_arange(RAPT_INT64, 0, 12, 11)));
        expect_error(RAPT_ERROR_VALUE, "the context is 7");
        cr_expect_null(rapt_gpt_forward_packed(gpt, rapt_randint(0, 20, RAPT_SHAPE(5)), starts));
        expect_error(RAPT_ERROR_SHAPE, "tokens (11)");
        cr_expect_null(rapt_gpt_forward_packed(gpt, tokens, NULL));
        expect_error(RAPT_ERROR_NULL, "starts");
        rapt_module_free(&gpt->module);
    }
    expect_no_error();
}

Test(packed_layers, positions_at_places_are_those_of_an_offset)
{
    RAPT_SCOPE;
    rapt_sinusoidal_positions *sinusoidal = rapt_sinusoidal_positions_new(6, 0);
    rapt_learned_positions *learned = rapt_learned_positions_new(20, 6, 0);
    rapt_rotary *rotary = rapt_rotary_new();
    rapt_tensor *x = rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(2, 3, 6)), *heads = rapt_unsqueeze(x, 1);
    const int64_t at[] = {4, 5, 6, 9, 10, 11};
    rapt_tensor *one = rapt_from(RAPT_INT64, RAPT_SHAPE(3), at), *each = rapt_from(RAPT_INT64, RAPT_SHAPE(2, 3), at);
    cr_expect(same_bits(rapt_sinusoidal_positions_forward_at(sinusoidal, x, one),
                        rapt_sinusoidal_positions_forward(sinusoidal, x, 4)));
    cr_expect(
        same_bits(rapt_learned_positions_forward_at(learned, x, one), rapt_learned_positions_forward(learned, x, 4)));
    cr_expect(same_bits(rapt_rotary_forward_at(rotary, x, one), rapt_rotary_forward(rotary, x, 4)));
    rapt_tensor *second = rapt_slice(x, 0, 1, 2, 1);
    cr_expect(same_bits(rapt_slice(rapt_sinusoidal_positions_forward_at(sinusoidal, x, each), 0, 1, 2, 1),
                        rapt_sinusoidal_positions_forward(sinusoidal, second, 9)));
    cr_expect(same_bits(rapt_slice(rapt_rotary_forward_at(rotary, heads, rapt_unsqueeze(each, 1)), 0, 1, 2, 1),
                        rapt_rotary_forward(rotary, rapt_slice(heads, 0, 1, 2, 1), 9)));
    cr_expect_null(rapt_rotary_forward_at(rotary, x, rapt_zeros(RAPT_INT64, RAPT_SHAPE(4))));
    expect_error(RAPT_ERROR_SHAPE, "without its last axis");
    cr_expect_null(rapt_learned_positions_forward_at(learned, x, rapt_full(RAPT_INT64, RAPT_SHAPE(3), 20)));
    rapt_clear_error();
    cr_expect_null(rapt_learned_positions_forward_at(learned, x, rapt_full(RAPT_INT64, RAPT_SHAPE(3), -1)));
    rapt_clear_error();
    rapt_module_free(&sinusoidal->module);
    rapt_module_free(&learned->module);
    rapt_module_free(&rotary->module);
}

Test(packed_layers, what_cannot_be_packed_is_an_error)
{
    RAPT_SCOPE;
    rapt_multi_head_attention *m =
        rapt_multi_head_attention_new(&(rapt_multi_head_attention_config){.hidden = hidden, .heads = 2});
    rapt_tensor *x = rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(1, all_rows, hidden)), *rows = rapt_select(x, 0, 0);
    const rapt_mask mask = {.starts = starts_of(lengths)};
    rapt_attention_cache cache = {0};
    cr_expect_null(rapt_multi_head_attention_forward(m, x, x, x, &mask, NULL));
    expect_error(RAPT_ERROR_SHAPE, "(rows, 8)");
    RAPT_NO_GRADIENT;
    cr_assert(rapt_multi_head_attention_forward(m, rows, rows, rows, &mask, &cache), "%s", rapt_error());
    cr_expect_eq(cache.length, 7);
    cr_expect_null(rapt_multi_head_attention_forward(m, rows, rows, rows, &mask, &cache));
    expect_error(RAPT_ERROR_UNSUPPORTED, "empty cache");
    rapt_attention_cache_clear(&cache);
    rapt_module_free(&m->module);
}
