/* Generation from prompts of different lengths goes on with each sequence as it would alone. */
#include "modules.h"

#include <rapt/generate.h>
#include <rapt/gpt.h>

enum { prompts = 4, all_tokens = 14, vocabulary = 23 };
static const int64_t lengths[prompts] = {3, 1, 7, 3};

/* So large that every token before decides the next one, and far from ties. */
static bool fill_matrix(const char *name, rapt_tensor *parameter, void *context)
{
    (void)name;
    (void)context;
    return rapt_rank(parameter) < 2 || rapt_fill_normal(parameter, 0, 0.7);
}

static rapt_gpt *gpt_of(rapt_gpt_positions positions, int64_t context)
{
    const rapt_gpt_config config = {.vocabulary = vocabulary,
                                    .context = context,
                                    .hidden = 12,
                                    .layers = 2,
                                    .heads = 2,
                                    .groups = positions == RAPT_POSITIONS_ROTARY ? 1 : 2,
                                    .bias = true,
                                    .positions = positions};
    rapt_gpt *gpt = rapt_gpt_new(&config);
    cr_assert(gpt && rapt_module_cast(&gpt->module, RAPT_FLOAT64), "%s", rapt_error());
    cr_assert(rapt_module_visit(&gpt->module, RAPT_PARAMETERS, fill_matrix, NULL));
    rapt_module_train(&gpt->module, false);
    return gpt;
}

static rapt_tensor *starts_of_prompts(void)
{
    return rapt_packing_starts(rapt_from(RAPT_INT64, RAPT_SHAPE(prompts), lengths));
}

static rapt_tensor *prompt_of(rapt_tensor *tokens, int b)
{
    int64_t first = 0;
    for (int i = 0; i < b; i++) first += lengths[i];
    return rapt_unsqueeze(rapt_slice(tokens, 0, first, first + lengths[b], 1), 0);
}

/* The same tokens; what a sequence that stopped lacks is padding, −1. */
static void expect_as_alone(rapt_gpt *gpt, rapt_tensor *tokens, const rapt_generation *how)
{
    rapt_gpt_cache *cache = rapt_gpt_cache_new(gpt);
    rapt_token_model model = rapt_gpt_token_model(cache);
    rapt_tensor *all = rapt_generate_packed(&model, tokens, starts_of_prompts(), how);
    cr_assert(all, "%s", rapt_error());
    for (int b = 0; b < prompts; b++) {
        rapt_gpt_cache_clear(cache);
        rapt_tensor *alone = rapt_generate(&model, prompt_of(tokens, b), how);
        cr_assert(alone, "%s", rapt_error());
        for (int64_t i = 0; i < rapt_size(all, 1); i++) {
            const int64_t expected = i < rapt_size(alone, 1) ? rapt_at_int64(alone, (int64_t[]){0, i}) : how->padding;
            cr_expect_eq(rapt_at_int64(all, (int64_t[]){b, i}), expected, "positions %d, prompt %d, token %lld of %lld",
                         (int)gpt->config.positions, b, (long long)i, (long long)rapt_size(all, 1));
        }
    }
    rapt_gpt_cache_free(cache);
}

Test(generate_packed, each_sequence_goes_on_as_alone)
{
    for (int positions = RAPT_POSITIONS_LEARNED; positions <= RAPT_POSITIONS_ALIBI; positions++)
        for (int context = 6; context <= 40; context += 17) { /* the first is shorter than a prompt */
            RAPT_SCOPE;
            rapt_seed((uint64_t)context);
            rapt_gpt *gpt = gpt_of((rapt_gpt_positions)positions, context);
            rapt_tensor *tokens = rapt_randint(0, vocabulary, RAPT_SHAPE(all_tokens));
            expect_as_alone(gpt, tokens, &(rapt_generation){.length = 25});
            expect_as_alone(gpt, tokens, &(rapt_generation){.length = 12, .beams = 3});
            for (int64_t end = 0; end < vocabulary; end += 5)
                expect_as_alone(gpt, tokens,
                                &(rapt_generation){.length = 12, .stops = true, .end_token = end, .padding = -1});
            rapt_module_free(&gpt->module);
        }
    expect_no_error();
}

Test(generate_packed, logits_are_those_of_each_alone)
{
    for (int positions = RAPT_POSITIONS_LEARNED; positions <= RAPT_POSITIONS_ALIBI; positions++) {
        RAPT_SCOPE;
        RAPT_NO_GRADIENT;
        rapt_seed(4);
        rapt_gpt *gpt = gpt_of((rapt_gpt_positions)positions, 20);
        rapt_gpt_cache *cache = rapt_gpt_cache_new(gpt);
        rapt_token_model model = rapt_gpt_token_model(cache);
        rapt_tensor *tokens = rapt_randint(0, vocabulary, RAPT_SHAPE(all_tokens)),
                    *more = rapt_randint(0, vocabulary, RAPT_SHAPE(prompts, 2));
        rapt_tensor *first = model.begin_packed(model.context, tokens, starts_of_prompts());
        rapt_tensor *second = model.next(model.context, more);
        cr_assert(first && second, "%s", rapt_error());
        cr_expect_eq(rapt_gpt_cache_length(cache), 9);
        for (int b = 0; b < prompts; b++) {
            rapt_tensor *parts[] = {prompt_of(tokens, b), rapt_slice(more, 0, b, b + 1, 1)};
            rapt_tensor *logits = rapt_gpt_forward(gpt, rapt_concat(2, parts, 1), NULL);
            rapt_tensor *expected[] = {rapt_select(rapt_select(logits, 1, lengths[b] - 1), 0, 0),
                                       rapt_select(rapt_select(logits, 1, -1), 0, 0)};
            expect_close("first", values_of(rapt_select(first, 0, b)), values_of(expected[0]), vocabulary, 1e-12);
            expect_close("second", values_of(rapt_select(second, 0, b)), values_of(expected[1]), vocabulary, 1e-12);
        }
        rapt_gpt_cache_free(cache);
        rapt_module_free(&gpt->module);
    }
    expect_no_error();
}

Test(generate_packed, what_cannot_be_is_an_error)
{
    RAPT_SCOPE;
    RAPT_NO_GRADIENT;
    rapt_gpt *gpt = gpt_of(RAPT_POSITIONS_LEARNED, 20);
    rapt_gpt_cache *cache = rapt_gpt_cache_new(gpt);
    rapt_token_model model = rapt_gpt_token_model(cache), plain = model;
    const rapt_generation how = {.length = 3};
    rapt_tensor *tokens = rapt_zeros(RAPT_INT64, RAPT_SHAPE(3));
    rapt_tensor *starts = rapt_packing_starts(rapt_from(RAPT_INT64, RAPT_SHAPE(2), ((int64_t[]){2, 1}))),
                *empty = rapt_packing_starts(rapt_from(RAPT_INT64, RAPT_SHAPE(2), ((int64_t[]){3, 0})));
    plain.begin_packed = NULL;
    cr_expect_null(rapt_generate_packed(&plain, tokens, starts, &how));
    expect_error(RAPT_ERROR_UNSUPPORTED, "begin_packed");
    cr_expect_null(rapt_generate_packed(&model, tokens, empty, &how));
    expect_error(RAPT_ERROR_VALUE, "prompt 1 is empty");
    cr_expect_null(rapt_generate_packed(&model, rapt_zeros(RAPT_INT64, RAPT_SHAPE(4)), starts, &how));
    expect_error(RAPT_ERROR_SHAPE, "prompts (3)");
    cr_expect_null(rapt_generate_packed(&model, tokens, NULL, &how));
    expect_error(RAPT_ERROR_NULL, "starts");
    cr_expect_null(model.begin_packed(model.context, rapt_zeros(RAPT_INT64, RAPT_SHAPE(2)), starts));
    expect_error(RAPT_ERROR_SHAPE, "2 tokens");
    cr_expect_null(model.begin_packed(model.context, tokens, empty));
    expect_error(RAPT_ERROR_VALUE, "sequence 1 is empty");
    cr_expect_null(model.begin_packed(model.context, rapt_unsqueeze(tokens, 1), starts));
    expect_error(RAPT_ERROR_SHAPE, "tokens (rows)");
    cr_expect_null(model.begin_packed(model.context, rapt_zeros(RAPT_FLOAT32, RAPT_SHAPE(3)), starts));
    expect_error(RAPT_ERROR_SHAPE, "of integers");
    cr_expect_eq(rapt_gpt_cache_length(cache), 0);
    cr_assert(rapt_gpt_forward(gpt, rapt_unsqueeze(tokens, 0), cache));
    cr_expect_null(model.begin_packed(model.context, tokens, starts));
    expect_error(RAPT_ERROR_UNSUPPORTED, "empty one");
    rapt_gpt_cache_free(cache);
    rapt_module_free(&gpt->module);
}

/* Keys before an item's first are not read, whatever they hold. */
Test(generate_packed, first_keys_hide_what_is_before_them)
{
    RAPT_SCOPE;
    rapt_attention *attention = rapt_dot_product_attention_new(0);
    rapt_tensor *q = rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(2, 3, 4)), *k = rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(2, 5, 4));
    rapt_tensor *first = rapt_from(RAPT_INT64, RAPT_SHAPE(2), ((int64_t[]){2, 0}));
    rapt_fill(rapt_slice(rapt_slice(k, 0, 0, 1, 1), 1, 0, 2, 1), NAN);
    for (int plain = 0; plain < 2; plain++) {
        attention->plain = plain;
        rapt_tensor *y = rapt_attention_forward(attention, q, k, k, RAPT_MASK(.first_keys = first, .causal = true));
        cr_assert(y, "%s", rapt_error());
        rapt_tensor *seen = rapt_slice(rapt_slice(k, 0, 0, 1, 1), 1, 2, 3, 1);
        expect_close("query 2 of item 0", values_of(rapt_select(rapt_select(y, 0, 0), 0, 2)), values_of(seen), 4,
                     1e-15);
        const double zeros[4] = {0};
        expect_close("query 1 of item 0", values_of(rapt_select(rapt_select(y, 0, 0), 0, 1)), zeros, 4, 0);
    }
    cr_expect_null(
        rapt_attention_forward(attention, q, k, k, RAPT_MASK(.first_keys = rapt_ones(RAPT_INT64, RAPT_SHAPE(3)))));
    expect_error(RAPT_ERROR_SHAPE, "first keys (B)");
    rapt_module_free(&attention->module);
}
