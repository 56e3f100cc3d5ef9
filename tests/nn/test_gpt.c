/* GPT: names, sizes, initial values, its formula, causality, errors, and that it learns. */
#include <stdlib.h>

#include "gpt.h"

#include <rapt/optim.h>

Test(gpt, names_are_nanogpts)
{
    rapt_gpt *gpt = rapt_gpt_new(&tiny);
    expect_parameter(gpt, "transformer.wte.weight", RAPT_SHAPE(11, 8));
    expect_parameter(gpt, "transformer.wpe.weight", RAPT_SHAPE(8, 8));
    expect_parameter(gpt, "transformer.h.1.ln_1.weight", RAPT_SHAPE(8));
    expect_parameter(gpt, "transformer.h.1.ln_1.bias", RAPT_SHAPE(8));
    expect_parameter(gpt, "transformer.h.1.attn.c_attn.weight", RAPT_SHAPE(24, 8));
    expect_parameter(gpt, "transformer.h.1.attn.c_attn.bias", RAPT_SHAPE(24));
    expect_parameter(gpt, "transformer.h.1.attn.c_proj.weight", RAPT_SHAPE(8, 8));
    expect_parameter(gpt, "transformer.h.1.ln_2.bias", RAPT_SHAPE(8));
    expect_parameter(gpt, "transformer.h.1.mlp.c_fc.weight", RAPT_SHAPE(32, 8));
    expect_parameter(gpt, "transformer.h.1.mlp.c_proj.weight", RAPT_SHAPE(8, 32));
    expect_parameter(gpt, "transformer.h.1.mlp.c_proj.bias", RAPT_SHAPE(8));
    expect_parameter(gpt, "transformer.ln_f.bias", RAPT_SHAPE(8));
    rapt_module_free(&gpt->module);

    rapt_gpt_config c = tiny;
    c.bias = false;
    c.kind = RAPT_FEED_FORWARD_SWIGLU;
    c.groups = 2;
    c.positions = RAPT_POSITIONS_ROTARY;
    gpt = rapt_gpt_new(&c);
    cr_expect_null(rapt_module_find(&gpt->module, "transformer.wpe.weight"));
    cr_expect_null(rapt_module_find(&gpt->module, "transformer.ln_f.bias"));
    cr_expect_null(rapt_module_find(&gpt->module, "transformer.h.0.attn.c_attn.bias"));
    expect_parameter(gpt, "transformer.h.0.attn.c_attn.weight", RAPT_SHAPE(8 + 2 * 4, 8));
    expect_parameter(gpt, "transformer.h.0.mlp.c_gated.weight", RAPT_SHAPE(21, 8));
    rapt_module_free(&gpt->module);

    c.untied = c.rms_norm = c.bias = true;
    c.feed_forward = 12;
    gpt = rapt_gpt_new(&c);
    expect_parameter(gpt, "lm_head.weight", RAPT_SHAPE(11, 8));
    expect_parameter(gpt, "transformer.ln_f.weight", RAPT_SHAPE(8));
    cr_expect_null(rapt_module_find(&gpt->module, "transformer.ln_f.bias"));
    cr_expect_null(rapt_module_find(&gpt->module, "transformer.h.0.ln_1.bias"));
    expect_parameter(gpt, "transformer.h.0.mlp.c_gated.weight", RAPT_SHAPE(12, 8));
    expect_parameter(gpt, "transformer.h.0.mlp.c_fc.bias", RAPT_SHAPE(12));
    rapt_module_free(&gpt->module);
    expect_no_error();
}

/* Tied embeddings, positions, ln_f; of each block two norms, four projections with their biases. */
static int64_t defined_count(int64_t vocabulary, int64_t context, int64_t n, int64_t blocks)
{
    int64_t attention = 3 * n * n + 3 * n + n * n + n, feed_forward = 4 * n * n + 4 * n + 4 * n * n + n;
    return vocabulary * n + context * n + 2 * n + blocks * (4 * n + attention + feed_forward);
}

Test(gpt, sizes_are_gpt2s)
{
    cr_expect_eq(defined_count(50257, 1024, 768, 12), 124439808, "GPT-2's own number");
    rapt_gpt *gpt = rapt_gpt_new(&tiny);
    cr_expect_eq(rapt_module_parameter_count(&gpt->module), defined_count(11, 8, 8, 2));
    rapt_module_free(&gpt->module);
    /* nanoGPT's characters: 0.80 million, of which it does not count the positions */
    gpt = rapt_gpt_new(&(rapt_gpt_config){
        .vocabulary = 65, .context = 64, .hidden = 128, .layers = 4, .heads = 4, .kind = RAPT_FEED_FORWARD_GELU});
    cr_expect_eq(rapt_module_parameter_count(&gpt->module) - 64 * 128, 795904);
    rapt_module_free(&gpt->module);
}

Test(gpt, initial_values)
{
    rapt_seed(1);
    rapt_gpt *gpt = rapt_gpt_new(&(rapt_gpt_config){.vocabulary = 500,
                                                    .context = 100,
                                                    .hidden = 128,
                                                    .layers = 8,
                                                    .heads = 4,
                                                    .bias = true,
                                                    .kind = RAPT_FEED_FORWARD_GELU});
    static const char *const plain[] = {"transformer.wte.weight", "transformer.wpe.weight",
                                        "transformer.h.7.attn.c_attn.weight", "transformer.h.0.mlp.c_fc.weight"};
    static const char *const added[] = {"transformer.h.7.attn.c_proj.weight", "transformer.h.0.mlp.c_proj.weight"};
    for (int i = 0; i < 4; i++) expect_moments(rapt_module_find(&gpt->module, plain[i]), 0, 0.02 * 0.02, 3);
    for (int i = 0; i < 2; i++) expect_moments(rapt_module_find(&gpt->module, added[i]), 0, 0.02 * 0.02 / 16, 3);
    static const char *const zeros[] = {"attn.c_attn.bias", "attn.c_proj.bias", "mlp.c_fc.bias", "mlp.c_proj.bias",
                                        "ln_1.bias"};
    for (int i = 0; i < 5; i++) {
        RAPT_SCOPE;
        char name[64];
        snprintf(name, sizeof name, "transformer.h.3.%s", zeros[i]);
        rapt_tensor *tensor = rapt_module_find(&gpt->module, name);
        cr_expect(tensor && rapt_item(rapt_max(rapt_abs(tensor), RAPT_ALL_AXES, false)) == 0, "%s", name);
    }
    cr_expect_eq(rapt_at(rapt_module_find(&gpt->module, "transformer.ln_f.weight"), (int64_t[]){5}), 1);
    rapt_module_free(&gpt->module);
}

Test(gpt, is_its_formula)
{
    RAPT_SCOPE;
    RAPT_NO_GRADIENT;
    rapt_seed(2);
    for (int number = 0; number < variants; number++) {
        const rapt_gpt_config c = variant(number);
        rapt_gpt *gpt = drawn_gpt(&c);
        rapt_tensor *tokens = random_tokens(2, 6), *x = rapt_embed(gpt->wte->weight, tokens);
        rapt_mask mask = {.causal = true, .window_left = c.window};
        if (c.positions == RAPT_POSITIONS_LEARNED)
            x = rapt_add(x, rapt_slice(rapt_module_find(&gpt->module, "transformer.wpe.weight"), 0, 0, 6, 1));
        if (c.positions == RAPT_POSITIONS_SINUSOIDAL)
            x = rapt_add(rapt_mul_scalar(x, sqrt(8)), rapt_sinusoidal(RAPT_FLOAT64, 0, 6, 8));
        if (c.positions == RAPT_POSITIONS_ALIBI) { /* slopes 1/4, 1/16, 1/64, 1/256 */
            double bias[4][6][6];
            for (int h = 0; h < 4; h++)
                for (int i = 0; i < 6; i++)
                    for (int j = 0; j < 6; j++) bias[h][i][j] = -abs(i - j) / pow(4, h + 1);
            mask.bias = doubles(RAPT_SHAPE(1, 4, 6, 6), &bias[0][0][0]);
        }
        for (int i = 0; i < 2; i++) x = rapt_encoder_layer_forward(gpt->blocks->layers[i], x, &mask, NULL);
        const rapt_encoder_layer *first = gpt->blocks->layers[0];
        cr_expect_eq(first->self_attn->rotary != NULL, c.positions == RAPT_POSITIONS_ROTARY);
        cr_expect_eq(first->self_attn->rotary, gpt->blocks->layers[1]->self_attn->rotary, "one table for all layers");
        if (c.rotary_halves) cr_expect(first->self_attn->rotary->halves && first->self_attn->rotary->base == 100);
        cr_expect_eq(first->norm2->rms_norm != NULL, c.rms_norm);
        cr_expect_eq(first->self_attn->head_size, c.head_size ? c.head_size : 2);
        cr_expect_eq(first->self_attn->q_norm != NULL, c.norm_heads);
        if (c.norm_heads)
            cr_expect(first->self_attn->q_norm->epsilon == 1e-3 && first->self_attn->k_norm->epsilon == 1e-3);
        if (c.rms_norm) cr_expect(first->norm2->rms_norm->epsilon == 1e-3 && !first->norm2->norm);
        cr_assert_not_null(x, "%s", rapt_error());
        x = c.rms_norm ? defined_rms_norm(gpt->blocks->rms_norm, 1e-3, x) : defined_norm(gpt->blocks->norm, x);
        expect_equal("hidden", rapt_gpt_hidden(gpt, tokens, NULL), x);
        cr_expect_eq(gpt->lm_head != NULL, c.untied);
        rapt_tensor *head = rapt_module_find(&gpt->module, c.untied ? "lm_head.weight" : "transformer.wte.weight");
        x = rapt_matmul(x, rapt_transpose(head, 0, 1));
        expect_equal("logits", rapt_gpt_forward(gpt, tokens, NULL), x);
        rapt_module_free(&gpt->module);
    }
    expect_no_error();
}

Test(gpt, a_later_token_changes_no_bit_before_it)
{
    RAPT_SCOPE;
    rapt_seed(4);
    for (int number = 0; number < 4; number++) {
        const rapt_gpt_config c = variant(number);
        rapt_gpt *gpt = rapt_gpt_new(&c);
        for (int64_t changed = 1; changed < 8; changed++) {
            rapt_tensor *tokens = random_tokens(2, 8), *other = rapt_clone(tokens);
            rapt_fill(rapt_slice(other, 1, changed, 8, 1), 4);
            rapt_tensor *a = rapt_gpt_forward(gpt, tokens, NULL), *b = rapt_gpt_forward(gpt, other, NULL);
            cr_expect(same_bits(rapt_contiguous(rapt_slice(a, 1, 0, changed, 1)),
                                rapt_contiguous(rapt_slice(b, 1, 0, changed, 1))));
        }
        rapt_module_free(&gpt->module);
    }
}

Test(gpt, learns_a_pattern)
{
    static const int numbers[] = {0, 1, 2, 3, 8, 9};
    rapt_seed(7);
    for (int k = 0; k < 6; k++) {
        const int number = numbers[k];
        rapt_gpt_config c = variant(number);
        c.dropout = 0.02;
        c.hidden = 16;
        rapt_gpt *gpt = rapt_gpt_new(&c);
        rapt_optimizer *adam = rapt_adam_new(&gpt->module, &(rapt_adam_config){.learning_rate = 1e-2});
        static const int64_t pattern[] = {1, 1, 2, 3, 5, 8}; /* what follows a 1 depends on what was before */
        double loss = 0;
        enum { steps = 300, last_steps = 50 };
        for (int step = 0; step < steps; step++) {
            RAPT_SCOPE;
            int64_t tokens[4][9];
            for (int b = 0; b < 4; b++)
                for (int t = 0; t < 9; t++) tokens[b][t] = pattern[(b + step + t) % 6];
            rapt_tensor *all = rapt_from(RAPT_INT64, RAPT_SHAPE(4, 9), tokens);
            rapt_tensor *y = rapt_gpt_loss(gpt, rapt_slice(all, 1, 0, 8, 1), rapt_slice(all, 1, 1, 9, 1), NULL);
            cr_assert(rapt_backward(y) && rapt_optimizer_step(adam), "%s", rapt_error());
            /* the mean of the last ones, which dropout lets jump */
            if (step >= steps - last_steps) loss += rapt_item(y) / last_steps;
        }
        cr_expect_lt(loss, 0.2, "variant %d: loss %g", number, loss);
        rapt_module_train(&gpt->module, false);
        rapt_gpt_cache *cache = rapt_gpt_cache_new(gpt);
        const rapt_token_model model = rapt_gpt_token_model(cache);
        RAPT_SCOPE;
        rapt_tensor *text =
            rapt_generate(&model, rapt_from(RAPT_INT64, RAPT_SHAPE(1, 3), pattern), &(rapt_generation){.length = 3});
        cr_expect(memcmp(rapt_data(text), pattern + 3, 3 * sizeof *pattern) == 0, "variant %d", number);
        rapt_gpt_cache_free(cache);
        rapt_optimizer_free(adam);
        rapt_module_free(&gpt->module);
    }
    expect_no_error();
}

Test(gpt, loss_is_that_of_its_logits)
{
    RAPT_SCOPE;
    rapt_seed(3);
    const rapt_gpt_config c = variant(0);
    rapt_gpt *gpt = drawn_gpt(&c);
    rapt_tensor *tokens = random_tokens(2, 6), *targets = random_tokens(2, 6), *gradients[2];
    const rapt_cross_entropy_options options[] = {{.has_ignore_index = true, .ignore_index = 1},
                                                  {.reduction = RAPT_REDUCE_NONE, .label_smoothing = 0.1}};
    for (int i = 0; i < 2; i++) {
        rapt_tensor *losses[] = {rapt_cross_entropy(rapt_gpt_forward(gpt, tokens, NULL), targets, &options[i]),
                                 rapt_gpt_loss(gpt, tokens, targets, &options[i])};
        expect_values("loss", losses[1], rapt_count(losses[0]), values_of(losses[0]), 1e-14);
        for (int k = 0; k < 2; k++) {
            rapt_clear_gradient(gpt->wte->weight);
            cr_assert(rapt_backward(rapt_sum(losses[k], RAPT_ALL_AXES, false)), "%s", rapt_error());
            gradients[k] = rapt_clone(rapt_gradient(gpt->wte->weight));
        }
        expect_values("gradient", gradients[1], rapt_count(gradients[0]), values_of(gradients[0]), 1e-13);
    }
    rapt_module_free(&gpt->module);
    expect_no_error();
    cr_expect_null(rapt_gpt_loss(NULL, tokens, targets, NULL));
    expect_error(RAPT_ERROR_NULL, "model");
}

#define EXPECT_BAD(field, value, part)                                                                                 \
    do {                                                                                                               \
        rapt_gpt_config bad = tiny;                                                                                    \
        bad.field = (value);                                                                                           \
        cr_expect_null(rapt_gpt_new(&bad));                                                                            \
        expect_error(RAPT_ERROR_VALUE, (part));                                                                        \
    } while (0)

static void *make_gpt(void)
{
    return rapt_gpt_new(&tiny);
}

Test(gpt, bad_configurations)
{
    const int64_t before = live_bytes();
    EXPECT_BAD(vocabulary, 0, "a vocabulary of 0");
    EXPECT_BAD(context, -1, "a context of -1");
    EXPECT_BAD(hidden, INT64_MAX, "hidden size");
    EXPECT_BAD(heads, 3, "3 heads");
    EXPECT_BAD(groups, 3, "3 groups");
    EXPECT_BAD(layers, 0, "0 layers");
    EXPECT_BAD(dropout, 1.5, "dropout 1.5");
    EXPECT_BAD(positions, (rapt_gpt_positions)4, "positions 4");
    cr_expect_null(rapt_gpt_new(NULL));
    expect_error(RAPT_ERROR_NULL, "configuration");
    cr_expect_eq(live_bytes(), before);
    cr_expect_geq(expect_clean_failures("GPT", make_gpt), 20);
}

Test(gpt, bad_inputs)
{
    RAPT_SCOPE;
    rapt_gpt *gpt = rapt_gpt_new(&tiny), *other = rapt_gpt_new(&tiny);
    rapt_gpt_cache *cache = rapt_gpt_cache_new(gpt);
    cr_expect_null(rapt_gpt_forward(NULL, random_tokens(1, 2), NULL));
    expect_error(RAPT_ERROR_NULL, "model");
    cr_expect_null(rapt_gpt_forward(gpt, NULL, NULL));
    expect_error(RAPT_ERROR_NULL, "tokens");
    cr_expect_null(rapt_gpt_forward(gpt, rapt_zeros(RAPT_INT64, RAPT_SHAPE(3)), NULL));
    expect_error(RAPT_ERROR_SHAPE, "[3]");
    cr_expect_null(rapt_gpt_forward(gpt, rapt_zeros(RAPT_INT64, RAPT_SHAPE(3, 0)), NULL));
    expect_error(RAPT_ERROR_SHAPE, "[3, 0]");
    cr_expect_null(rapt_gpt_forward(gpt, rapt_zeros(RAPT_FLOAT32, RAPT_SHAPE(3, 2)), NULL));
    expect_error(RAPT_ERROR_DTYPE, "float32");
    cr_expect_null(rapt_gpt_forward(gpt, rapt_full(RAPT_INT64, RAPT_SHAPE(3, 2), 11), NULL));
    expect_error(RAPT_ERROR_VALUE, "11");
    cr_expect_null(rapt_gpt_forward(gpt, random_tokens(1, 9), NULL));
    expect_error(RAPT_ERROR_VALUE, "9 tokens after 0 in the cache; the context is 8");
    cr_expect_null(rapt_gpt_forward(gpt, random_tokens(1, 2), cache));
    expect_error(RAPT_ERROR_UNSUPPORTED, "RAPT_NO_GRADIENT");
    RAPT_NO_GRADIENT;
    cr_expect_null(rapt_gpt_forward(other, random_tokens(1, 2), cache));
    expect_error(RAPT_ERROR_VALUE, "another model");
    expect_shape(rapt_gpt_forward(gpt, random_tokens(2, 5), cache), RAPT_SHAPE(2, 5, 11));
    cr_expect_null(rapt_gpt_forward(gpt, random_tokens(2, 4), cache));
    expect_error(RAPT_ERROR_VALUE, "4 tokens after 5 in the cache; the context is 8");
    cr_expect_null(rapt_gpt_forward(gpt, random_tokens(3, 1), cache));
    expect_error(RAPT_ERROR_SHAPE, "3");
    cr_expect_not(rapt_gpt_cache_select(cache, rapt_from(RAPT_INT64, RAPT_SHAPE(1), (int64_t[]){2})));
    expect_error(RAPT_ERROR_VALUE, "2");
    cr_expect_not(rapt_gpt_cache_select(cache, NULL));
    expect_error(RAPT_ERROR_NULL, "rows");
    cr_expect_not(rapt_gpt_cache_select(NULL, NULL));
    expect_error(RAPT_ERROR_NULL, "cache");
    cr_expect_eq(rapt_gpt_cache_length(cache), 5, "as it was");
    expect_shape(rapt_gpt_forward(gpt, random_tokens(2, 3), cache), RAPT_SHAPE(2, 3, 11));
    expect_no_error();
    cr_expect_eq(rapt_gpt_cache_length(NULL), 0);
    expect_error(RAPT_ERROR_NULL, "cache");
    cr_expect_null(rapt_gpt_cache_new(NULL));
    expect_error(RAPT_ERROR_NULL, "model");
    cr_expect_null(rapt_gpt_token_model(NULL).next);
    expect_error(RAPT_ERROR_NULL, "cache");
    rapt_gpt_cache_clear(NULL);
    rapt_gpt_cache_free(NULL);
    rapt_gpt_cache_free(cache);
    rapt_module_free(&gpt->module);
    rapt_module_free(&other->module);
}
