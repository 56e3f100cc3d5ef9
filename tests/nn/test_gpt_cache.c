/* What a GPT has read: its cache step by step, and generation with it. */
#include "gpt.h"

Test(gpt_cache, cached_steps_are_the_whole)
{
    RAPT_SCOPE;
    RAPT_NO_GRADIENT;
    rapt_seed(3);
    for (int number = 0; number < variants; number++) {
        const rapt_gpt_config c = variant(number);
        rapt_gpt *gpt = drawn_gpt(&c);
        rapt_gpt_cache *cache = rapt_gpt_cache_new(gpt);
        rapt_tensor *tokens = random_tokens(3, 8), *whole = rapt_gpt_forward(gpt, tokens, NULL), *steps[8];
        for (int round = 0; round < 2; round++) { /* after a clear it is as new */
            const int64_t ends[] = {3, 4, 5, 7, 8};
            for (int64_t i = 0, at = 0; i < 5; at = ends[i++])
                steps[i] = rapt_gpt_forward(gpt, rapt_slice(tokens, 1, at, ends[i], 1), cache);
            expect_equal("steps", rapt_concat(5, steps, 1), whole);
            cr_expect_eq(rapt_gpt_cache_length(cache), 8);
            rapt_gpt_cache_clear(cache);
        }
        rapt_tensor *rows = rapt_from(RAPT_INT64, RAPT_SHAPE(2), (int64_t[]){2, 0});
        rapt_gpt_forward(gpt, rapt_slice(tokens, 1, 0, 6, 1), cache);
        cr_expect(rapt_gpt_cache_select(cache, rows), "%s", rapt_error());
        expect_equal("selected",
                     rapt_gpt_forward(gpt, rapt_index_select(rapt_slice(tokens, 1, 6, 8, 1), 0, rows), cache),
                     rapt_index_select(rapt_slice(whole, 1, 6, 8, 1), 0, rows));
        rapt_gpt_cache_free(cache);
        rapt_module_free(&gpt->module);
    }
    expect_no_error();
}

/* Tokens are kept as they come: a context that nobody fills costs nothing. */
Test(gpt_cache, takes_memory_for_what_it_has_read)
{
    RAPT_SCOPE;
    RAPT_NO_GRADIENT;
    rapt_seed(4);
    rapt_gpt_config c = variant(10);
    c.context = INT64_MAX / 8;
    rapt_gpt *gpt = drawn_gpt(&c);
    rapt_gpt_cache *cache = rapt_gpt_cache_new(gpt);
    rapt_tensor *tokens = random_tokens(2, 40), *whole = rapt_gpt_forward(gpt, tokens, NULL);
    rapt_tensor *rows = rapt_from(RAPT_INT64, RAPT_SHAPE(2), (int64_t[]){0, 1});
    for (int64_t i = 0; i < 40; i++) {
        RAPT_SCOPE;
        rapt_tensor *step = rapt_gpt_forward(gpt, rapt_slice(tokens, 1, i, i + 1, 1), cache);
        cr_assert(step, "%s", rapt_error());
        expect_equal("step", step, rapt_slice(whole, 1, i, i + 1, 1));
        if (i % 3 == 0) cr_assert(rapt_gpt_cache_select(cache, rows), "%s", rapt_error());
    }
    rapt_gpt_cache_free(cache);
    rapt_module_free(&gpt->module);
    expect_no_error();
}

/* Generation without a cache: all logits anew at each step, greedy. */
static rapt_tensor *generate_slowly(rapt_gpt *gpt, rapt_tensor *tokens, int64_t length)
{
    const int64_t first = rapt_size(tokens, 1);
    for (int64_t i = 0; i < length; i++) {
        rapt_tensor *logits = rapt_select(rapt_gpt_forward(gpt, tokens, NULL), 1, -1);
        rapt_tensor *parts[] = {tokens, rapt_argmax(logits, -1, true)};
        tokens = rapt_concat(2, parts, 1);
    }
    return rapt_contiguous(rapt_slice(tokens, 1, first, first + length, 1));
}

Test(gpt_cache, generates_with_its_cache_what_it_generates_without)
{
    RAPT_SCOPE;
    RAPT_NO_GRADIENT;
    rapt_seed(5);
    rapt_gpt_config c = tiny;
    c.context = 20;
    rapt_gpt *gpt = drawn_gpt(&c);
    rapt_gpt_cache *cache = rapt_gpt_cache_new(gpt);
    rapt_token_model model = rapt_gpt_token_model(cache);
    rapt_tensor *prompt = random_tokens(3, 4), *slow = generate_slowly(gpt, prompt, 16);
    cr_expect(same_bits(rapt_generate(&model, prompt, &(rapt_generation){.length = 16}), slow));
    /* it goes on from what the cache holds */
    rapt_gpt_cache_clear(cache);
    rapt_gpt_forward(gpt, rapt_slice(prompt, 1, 0, 3, 1), cache);
    cr_expect(same_bits(rapt_generate(&model, rapt_slice(prompt, 1, 3, 4, 1), &(rapt_generation){.length = 16}), slow));
    /* beams: their caches follow them */
    rapt_gpt_cache_clear(cache);
    const rapt_generation beams = {.length = 10, .beams = 3, .stops = true, .end_token = 4};
    rapt_tensor *together = rapt_generate(&model, prompt, &beams);
    for (int64_t b = 0; b < 3; b++) {
        rapt_gpt_cache_clear(cache);
        rapt_tensor *alone = rapt_generate(&model, rapt_slice(prompt, 0, b, b + 1, 1), &beams);
        rapt_tensor *row = rapt_slice(rapt_slice(together, 0, b, b + 1, 1), 1, 0, rapt_size(alone, 1), 1);
        cr_expect(same_bits(rapt_contiguous(row), alone));
    }
    rapt_gpt_cache_free(cache);
    rapt_module_free(&gpt->module);
    expect_no_error();
}

Test(gpt_cache, text_grows_beyond_the_context)
{
    RAPT_SCOPE;
    RAPT_NO_GRADIENT;
    rapt_seed(6);
    rapt_gpt *gpt = drawn_gpt(&tiny);
    rapt_gpt_cache *cache = rapt_gpt_cache_new(gpt);
    const rapt_token_model model = rapt_gpt_token_model(cache);
    rapt_tensor *prompt = random_tokens(2, 3);
    rapt_tensor *text = rapt_generate(&model, prompt, &(rapt_generation){.length = 14});
    expect_shape(text, RAPT_SHAPE(2, 14));
    /* context 8: 3 + 6 is the first to overflow, and then each 4 read leave room for 5 more */
    rapt_tensor *parts[] = {prompt, text}, *all = rapt_concat(2, parts, 1);
    const int64_t begins[] = {0, 5, 10}, ends[] = {9, 14, 17};
    for (int i = 0; i < 3; i++) {
        const int64_t read = i == 0 ? 3 : 4;
        rapt_tensor *begin = rapt_contiguous(rapt_slice(all, 1, begins[i], begins[i] + read, 1));
        cr_expect(same_bits(rapt_contiguous(rapt_slice(all, 1, begins[i] + read, ends[i], 1)),
                            generate_slowly(gpt, begin, ends[i] - begins[i] - read)),
                  "part %d", i);
    }
    /* a prompt that is too long counts by its end */
    rapt_gpt_cache_clear(cache);
    rapt_tensor *prompts = random_tokens(1, 30), *end = rapt_contiguous(rapt_slice(prompts, 1, 26, 30, 1));
    cr_expect(same_bits(rapt_generate(&model, prompts, &(rapt_generation){.length = 5}), generate_slowly(gpt, end, 5)));
    rapt_gpt_cache_free(cache);
    rapt_module_free(&gpt->module);
    expect_no_error();
}

Test(gpt_cache, a_failed_step_or_selection_leaves_the_cache_as_it_was)
{
    RAPT_SCOPE;
    RAPT_NO_GRADIENT;
    rapt_gpt *gpt = drawn_gpt(&tiny);
    rapt_tensor *tokens = random_tokens(3, 6), *rows = rapt_from(RAPT_INT64, RAPT_SHAPE(2), (int64_t[]){2, 0});
    rapt_tensor *whole = rapt_index_select(rapt_gpt_forward(gpt, tokens, NULL), 0, rows);
    rapt_gpt_cache *cache = rapt_gpt_cache_new(gpt);
    for (int failed = 0; rapt_gpt_cache_length(cache) == 0; failed++) { /* what fails at first does not tie the batch */
        rapt_memory_fail_after(failed);
        rapt_gpt_forward(gpt, rapt_slice(tokens, 0, 0, 1 + failed % 3, 1), cache);
        rapt_memory_fail_after(-1);
        if (rapt_error()) expect_error(RAPT_ERROR_MEMORY, "no memory");
        cr_assert_lt(failed, 1000);
    }
    rapt_gpt_cache_clear(cache);
    rapt_gpt_forward(gpt, rapt_slice(tokens, 1, 0, 4, 1), cache);
    tokens = rapt_index_select(rapt_slice(tokens, 1, 4, 6, 1), 0, rows);
    int failures[2] = {0};
    for (bool done = false; !done; failures[0] += !done) {
        rapt_memory_fail_after(failures[0]);
        done = rapt_gpt_cache_select(cache, rows);
        rapt_memory_fail_after(-1);
        if (!done) expect_error(RAPT_ERROR_MEMORY, "no memory");
        cr_assert_lt(failures[0], 1000);
    }
    for (rapt_tensor *y = NULL; !y; failures[1] += !y) {
        rapt_memory_fail_after(failures[1]);
        y = rapt_gpt_forward(gpt, tokens, cache);
        rapt_memory_fail_after(-1);
        if (y) expect_equal("in the end", y, rapt_slice(whole, 1, 4, 6, 1));
        if (!y) expect_error(RAPT_ERROR_MEMORY, "no memory");
        cr_assert_eq(rapt_gpt_cache_length(cache), y ? 6 : 4);
        cr_assert_lt(failures[1], 1000);
    }
    cr_expect(failures[0] > 5 && failures[1] > 20, "%d and %d failures", failures[0], failures[1]);
    rapt_gpt_cache_free(cache);
    rapt_module_free(&gpt->module);
}

/* It holds a whole context of two sequences, which may have begun with different lengths. */
static rapt_gpt_cache *filled_cache(rapt_gpt *gpt, bool packed)
{
    rapt_gpt_cache *cache = rapt_gpt_cache_new(gpt);
    const rapt_token_model model = rapt_gpt_token_model(cache);
    rapt_seed(8);
    rapt_tensor *tokens = rapt_randint(0, tiny.vocabulary, RAPT_SHAPE(2 * tiny.context));
    rapt_tensor *starts = rapt_from(RAPT_INT64, RAPT_SHAPE(3), (int64_t[]){0, 3, 3 + tiny.context});
    rapt_tensor *logits = packed ? model.begin_packed(cache, rapt_slice(tokens, 0, 0, 3 + tiny.context, 1), starts)
                                 : model.next(cache, rapt_reshape(tokens, RAPT_SHAPE(2, tiny.context)));
    cr_assert(logits, "%s", rapt_error());
    return cache;
}

Test(gpt_cache, a_failed_step_beyond_the_context_leaves_the_cache_as_it_was)
{
    RAPT_SCOPE;
    rapt_gpt *gpt = drawn_gpt(&tiny);
    rapt_tensor *token = rapt_ones(RAPT_INT64, RAPT_SHAPE(2, 1)),
                *unknown = rapt_full(RAPT_INT64, RAPT_SHAPE(2, 1), 99);
    for (int packed = 0; packed < 2; packed++) {
        RAPT_NO_GRADIENT;
        rapt_gpt_cache *untried = filled_cache(gpt, packed), *cache = filled_cache(gpt, packed);
        const rapt_token_model model = rapt_gpt_token_model(cache);
        rapt_tensor *expected = rapt_gpt_token_model(untried).next(untried, token), *logits = NULL;
        cr_expect_null(model.next(cache, unknown));
        expect_error(RAPT_ERROR_VALUE, "99");
        cr_expect_eq(rapt_gpt_cache_length(cache), tiny.context);
        int failures = 0;
        for (; !logits; failures += !logits) {
            rapt_memory_fail_after(failures);
            logits = model.next(cache, token);
            rapt_memory_fail_after(-1);
            if (!logits) {
                expect_error(RAPT_ERROR_MEMORY, "no memory");
                cr_assert_eq(rapt_gpt_cache_length(cache), tiny.context);
            }
            cr_assert_lt(failures, 1000);
        }
        cr_expect_gt(failures, 20);
        cr_expect(expected && same_bits(logits, expected));
        cr_expect_eq(rapt_gpt_cache_length(cache), rapt_gpt_cache_length(untried));
        rapt_gpt_cache_free(untried);
        rapt_gpt_cache_free(cache);
    }
    rapt_module_free(&gpt->module);
    expect_no_error();
}

static void expect_refused(const rapt_token_model *model, rapt_tensor *tokens, rapt_error_code code, const char *text)
{
    cr_expect_null(model->next(model->context, tokens));
    expect_error(code, text);
}

/* Within the context and beyond it. */
Test(gpt_cache, a_step_takes_integers_of_its_batch)
{
    RAPT_SCOPE;
    RAPT_NO_GRADIENT;
    rapt_gpt *gpt = drawn_gpt(&tiny);
    rapt_gpt_cache *cache = rapt_gpt_cache_new(gpt);
    const rapt_token_model model = rapt_gpt_token_model(cache);
    for (int64_t held = 0; held <= 4; held += 4) {
        if (held > 0) cr_assert(model.next(cache, random_tokens(2, held)), "%s", rapt_error());
        for (int64_t length = 3; length <= 9; length += 6) {
            expect_refused(&model, NULL, RAPT_ERROR_NULL, "tokens is NULL");
            expect_refused(&model, random_tokens(2, 0), RAPT_ERROR_SHAPE, "tokens (B, T)");
            expect_refused(&model, rapt_zeros(RAPT_INT64, RAPT_SHAPE(length)), RAPT_ERROR_SHAPE, "tokens (B, T)");
            expect_refused(&model, rapt_full(RAPT_FLOAT32, RAPT_SHAPE(2, length), 1.7), RAPT_ERROR_DTYPE,
                           "tokens of float32; int64 or int32 expected");
            if (held > 0)
                expect_refused(&model, random_tokens(3, length), RAPT_ERROR_SHAPE,
                               "tokens of 3 sequences after those of 2 in the cache");
            cr_expect_eq(rapt_gpt_cache_length(cache), held);
        }
    }
    rapt_gpt_cache_free(cache);
    rapt_module_free(&gpt->module);
    expect_no_error();
}

/* Nothing may be recorded beside a cache, which is found out behind the first dropout. */
Test(gpt_cache, a_failed_step_draws_nothing)
{
    RAPT_SCOPE;
    rapt_gpt_config dropping = tiny;
    dropping.dropout = 0.3;
    rapt_gpt *gpt = rapt_gpt_new(&dropping);
    rapt_gpt_cache *cache = rapt_gpt_cache_new(gpt);
    const rapt_token_model model = rapt_gpt_token_model(cache);
    const rapt_random_state before = rapt_random_get_state();
    rapt_tensor *row = rapt_ones(RAPT_INT64, RAPT_SHAPE(3)),
                *starts = rapt_from(RAPT_INT64, RAPT_SHAPE(3), (int64_t[]){0, 1, 3});
    for (int way = 0; way < 3; way++) {
        cr_expect_null(way == 0 ? model.begin_packed(cache, row, starts)
                                : model.next(cache, rapt_ones(RAPT_INT64, RAPT_SHAPE(2, way == 1 ? 3 : 9))));
        expect_error(RAPT_ERROR_UNSUPPORTED, "NO_GRADIENT");
        const rapt_random_state after = rapt_random_get_state();
        cr_expect(after.seed == before.seed && after.offset == before.offset, "way %d", way);
    }
    rapt_gpt_cache_free(cache);
    rapt_module_free(&gpt->module);
}

/* A context may be raised while a cache is filled. */
Test(gpt_cache, grows_with_the_context)
{
    RAPT_SCOPE;
    RAPT_NO_GRADIENT;
    rapt_gpt_config c = tiny;
    c.positions = RAPT_POSITIONS_ROTARY;
    c.context = 4;
    rapt_gpt *gpt = drawn_gpt(&c);
    rapt_gpt_cache *cache = rapt_gpt_cache_new(gpt);
    rapt_tensor *tokens = random_tokens(2, 7);
    cr_assert(rapt_gpt_forward(gpt, rapt_slice(tokens, 1, 0, 3, 1), cache), "%s", rapt_error());
    cr_expect_null(rapt_gpt_forward(gpt, rapt_slice(tokens, 1, 3, 7, 1), cache));
    expect_error(RAPT_ERROR_VALUE, "4 tokens after 3 in the cache; the context is 4");
    gpt->config.context = 7;
    rapt_tensor *y = rapt_gpt_forward(gpt, rapt_slice(tokens, 1, 3, 7, 1), cache);
    cr_assert(y, "%s", rapt_error());
    expect_equal("raised", y, rapt_slice(rapt_gpt_forward(gpt, tokens, NULL), 1, 3, 7, 1));
    cr_expect_eq(rapt_gpt_cache_length(cache), 7);
    /* what does not fit any more goes on with its latter half, of the first tokens too */
    rapt_token_model model = rapt_gpt_token_model(cache);
    rapt_tensor *next = rapt_slice(tokens, 1, 0, 1, 1);
    rapt_tensor *parts[] = {rapt_slice(tokens, 1, 5, 7, 1), next};
    expect_equal("next", rapt_unsqueeze(model.next(model.context, next), 1),
                 rapt_slice(rapt_gpt_forward(gpt, rapt_concat(2, parts, 1), NULL), 1, 2, 3, 1));
    rapt_gpt_cache_free(cache);
    rapt_module_free(&gpt->module);
    expect_no_error();
}
