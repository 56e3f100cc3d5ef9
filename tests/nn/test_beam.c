/* Beam search: against brute force, and against the same search written plainly; and what generation refuses. */
#include "token_models.h"

/* First token 0 has 0.6, but what follows it is uncertain (0.5); after token 1 (0.4) comes 1 for sure nearly (0.9). */
static double tempting(const int64_t *history, int64_t length, int64_t token)
{
    if (length == 1) return token == 0 ? log(0.6) : log(0.4);
    if (history[1] == 0) return log(0.5);
    return token == 1 ? log(0.9) : log(0.1);
}

Test(beam, two_beams_see_what_greedy_misses)
{
    RAPT_SCOPE;
    reader r = {.vocabulary = 2, .define = tempting};
    rapt_tensor *prompt = prompt_of(1, 1, (int64_t[]){0});
    expect_tokens(generate_with(&r, prompt, &(rapt_generation){.length = 2}), 1, 2, (int64_t[]){0, 0});
    expect_tokens(generate_with(&r, prompt, &(rapt_generation){.length = 2, .beams = 2}), 1, 2, (int64_t[]){1, 1});
    cr_expect(r.rows_of_call[0] == 1 && r.rows_of_call[1] == 2);
}

/* First 0.4, 0.35, 0.25 for the end (2); then all four tokens alike. */
static double third(const int64_t *history, int64_t length, int64_t token)
{
    static const double first[] = {0.4, 0.35, 0.25, 0};
    (void)history;
    return length == 1 ? log(first[token]) : log(0.25);
}

Test(beam, an_end_counts_only_where_it_would_have_been_carried_on)
{
    RAPT_SCOPE;
    reader r = {.vocabulary = 4, .define = third};
    rapt_generation how = {.length = 3, .beams = 2, .stops = true, .end_token = 2};
    rapt_tensor *prompt = prompt_of(1, 1, (int64_t[]){0});
    expect_tokens(generate_with(&r, prompt, &how), 1, 3, (int64_t[]){0, 0, 0});
    how.beams = 3;
    expect_tokens(generate_with(&r, prompt, &how), 1, 1, (int64_t[]){2});
}

/* --- brute force --- */

typedef struct best {
    double score;
    int64_t length, tokens[most_length];
} best;

/* Tries all continuations of history[0 … length), which has log probability log_p. */
static void try_all(const reader *r, const rapt_generation *how, int64_t *history, int64_t prompt, int64_t length,
                    double log_p, best *b)
{
    const int64_t generated = length - prompt;
    bool ended = how->stops && generated > 0 && history[length - 1] == how->end_token;
    if (ended || generated == how->length) {
        double score = log_p / pow((double)generated, how->length_penalty);
        if (score <= b->score) return;
        b->score = score;
        b->length = generated;
        memcpy(b->tokens, history + prompt, (size_t)generated * sizeof *history);
        return;
    }
    double next[16];
    log_probabilities(r, history, length, next);
    for (int64_t v = 0; v < r->vocabulary; v++) {
        history[length] = v;
        try_all(r, how, history, prompt, length + 1, log_p + next[v], b);
    }
}

static void expect_best(rapt_tensor *found, const best *b, const char *what, int number)
{
    cr_assert_not_null(found, "%s", rapt_error());
    cr_assert_eq(rapt_size(found, 1), b->length, "%s %d: length %d, not %d", what, number, (int)rapt_size(found, 1),
                 (int)b->length);
    cr_expect(memcmp(rapt_data(found), b->tokens, (size_t)b->length * sizeof *b->tokens) == 0, "%s %d", what, number);
}

Test(beam, enough_beams_find_the_best_of_all_sequences)
{
    static const double penalties[] = {0, 1, 2, -1};
    for (int number = 0; number < 60; number++) {
        RAPT_SCOPE;
        reader r = {.vocabulary = 3, .seed = (uint64_t)number};
        const rapt_generation how = {.length = 4,
                                     .beams = 81,
                                     .stops = number % 5 != 4,
                                     .end_token = 1,
                                     .length_penalty = penalties[number % 4]};
        int64_t history[most_length] = {2, 0};
        best b = {.score = -(double)INFINITY};
        try_all(&r, &how, history, 2, 2, 0, &b);
        expect_best(generate_with(&r, prompt_of(1, 2, history), &how), &b, "brute force", number);
    }
}

/* --- the same search, written plainly and without stopping early --- */

typedef struct hypothesis {
    double log_p;
    int64_t tokens[most_length];
} hypothesis;

/* The likeliest of all that is not taken yet; −1: none. */
static int likeliest(const hypothesis *h, int count)
{
    int found = -1;
    for (int i = 0; i < count; i++)
        if (h[i].log_p > -(double)INFINITY && (found < 0 || h[i].log_p > h[found].log_p)) found = i;
    return found;
}

static void keep(best *b, const hypothesis *h, int64_t length, double penalty)
{
    double score = h->log_p / pow((double)length, penalty);
    if (score <= b->score) return;
    *b = (best){.score = score, .length = length};
    memcpy(b->tokens, h->tokens, sizeof b->tokens);
}

static void search_plainly(const reader *r, const rapt_generation *how, int64_t prompt, best *b)
{
    static hypothesis live[8], all[64];
    int live_count = 1;
    live[0] = (hypothesis){0};
    for (int64_t step = 0; step < how->length; step++) {
        int count = 0;
        for (int i = 0; i < live_count; i++) {
            int64_t history[most_length] = {prompt};
            double next[16];
            memcpy(history + 1, live[i].tokens, (size_t)step * sizeof *history);
            log_probabilities(r, history, step + 1, next);
            for (int64_t v = 0; v < r->vocabulary; v++) {
                all[count] = live[i];
                all[count].tokens[step] = v;
                all[count++].log_p += next[v];
            }
        }
        live_count = 0;
        for (int rank = 0, at; rank < 2 * how->beams && (at = likeliest(all, count)) >= 0; rank++) {
            bool ends = how->stops && all[at].tokens[step] == how->end_token;
            if (ends && rank < how->beams) keep(b, &all[at], step + 1, how->length_penalty);
            if (!ends && live_count < how->beams) live[live_count++] = all[at];
            all[at].log_p = -(double)INFINITY;
        }
    }
    if (live_count > 0) keep(b, &live[0], how->length, how->length_penalty);
}

Test(beam, stopping_early_changes_nothing)
{
    static const double penalties[] = {0, 0.7, 1, 3, -0.5};
    int fewer_steps = 0;
    for (int number = 0; number < 300; number++) {
        RAPT_SCOPE;
        reader r = {.vocabulary = 5, .seed = (uint64_t)(1000 + number)};
        const rapt_generation how = {.length = 9,
                                     .beams = 2 + number % 4,
                                     .stops = number % 7 != 6,
                                     .end_token = 3,
                                     .length_penalty = penalties[number % 5]};
        best b = {.score = -(double)INFINITY};
        search_plainly(&r, &how, number % 5, &b);
        expect_best(generate_with(&r, prompt_of(1, 1, (int64_t[]){number % 5}), &how), &b, "plain search", number);
        fewer_steps += r.calls < 9;
    }
    cr_expect_gt(fewer_steps, 100, "%d of 300 stopped early", fewer_steps);
}

/* Row 0 ends at once for sure; the others go on for sure. */
static double one_ends(const int64_t *history, int64_t length, int64_t token)
{
    (void)length;
    return token == (history[0] == 0 ? 1 : 2) ? 50 : 0;
}

Test(beam, decided_items_leave_the_batch)
{
    RAPT_SCOPE;
    reader r = {.vocabulary = 3, .define = one_ends};
    const rapt_generation how = {.length = 4, .beams = 3, .stops = true, .end_token = 1, .padding = 7};
    expect_tokens(generate_with(&r, prompt_of(2, 1, (int64_t[]){0, 2}), &how), 2, 4,
                  (int64_t[]){1, 7, 7, 7, 2, 2, 2, 2});
    cr_expect(r.rows_of_call[0] == 2 && r.rows_of_call[1] == 3 && r.calls == 4);
    expect_tokens(generate_with(&r, prompt_of(1, 1, (int64_t[]){0}), &how), 1, 1, (int64_t[]){1});
    cr_expect_eq(r.calls, 1);
    rapt_generation none = how;
    none.length = 0;
    expect_tokens(generate_with(&r, prompt_of(2, 1, (int64_t[]){0, 2}), &none), 2, 0, NULL);
    expect_tokens(generate_with(&r, rapt_zeros(RAPT_INT64, RAPT_SHAPE(0, 1)), &how), 0, 0, NULL);
    expect_no_error();
}

/* Only token 0 may ever come. */
static double only_zero(const int64_t *history, int64_t length, int64_t token)
{
    (void)history, (void)length;
    return token == 0 ? 0 : -(double)INFINITY;
}

Test(beam, tokens_that_are_ruled_out_never_come)
{
    RAPT_SCOPE;
    reader r = {.vocabulary = 3, .define = only_zero};
    const rapt_generation how = {.length = 3, .beams = 4, .stops = true, .end_token = 1};
    expect_tokens(generate_with(&r, prompt_of(1, 1, (int64_t[]){0}), &how), 1, 3, (int64_t[]){0, 0, 0});
    reader single = {.vocabulary = 1, .define = only_zero};
    expect_tokens(generate_with(&single, prompt_of(1, 1, (int64_t[]){0}), &(rapt_generation){.length = 2, .beams = 5}),
                  1, 2, (int64_t[]){0, 0});
    expect_no_error();
}

/* --- errors --- */

Test(beam, settings_that_cannot_be)
{
    RAPT_SCOPE;
    rapt_tensor *logits = rapt_zeros(RAPT_FLOAT32, RAPT_SHAPE(2, 3));
    const double inf = (double)INFINITY, nan = (double)NAN;
    const struct {
        rapt_generation how;
        const char *part;
    } bad[] = {{{.length = -1}, "length -1"},
               {{.temperature = -1}, "temperature -1"},
               {{.temperature = nan}, "temperature"},
               {{.temperature = inf}, "temperature inf"},
               {{.temperature = 1, .top_k = -2}, "top_k -2"},
               {{.temperature = 1, .top_p = 1.5}, "top_p 1.5"},
               {{.temperature = 1, .top_p = nan}, "top_p"},
               {{.top_k = 5}, "without a temperature"},
               {{.top_p = 0.5}, "without a temperature"},
               {{.beams = -1}, "-1 beams"},
               {{.beams = 2, .temperature = 1}, "either beams or sampling"},
               {{.beams = 2, .top_k = 1}, "either beams or sampling"},
               {{.beams = 2, .length_penalty = inf}, "length_penalty inf"},
               {{.length = 10, .beams = 2, .length_penalty = 400}, "length_penalty 400 for 10 tokens"},
               {{.length = 10, .beams = 2, .length_penalty = -1000}, "length_penalty -1000 for 10 tokens"}};
    reader r = {.vocabulary = 3};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        cr_expect_null(rapt_sample(logits, &bad[i].how));
        expect_error(RAPT_ERROR_VALUE, bad[i].part);
        cr_expect_null(generate_with(&r, prompt_of(1, 1, (int64_t[]){0}), &bad[i].how));
        expect_error(RAPT_ERROR_VALUE, bad[i].part);
    }
    cr_expect_null(rapt_sample(logits, &(rapt_generation){.beams = 2}));
    expect_error(RAPT_ERROR_UNSUPPORTED, "rapt_generate");
    cr_expect_null(rapt_sample(logits, NULL));
    expect_error(RAPT_ERROR_NULL, "settings");
    cr_expect_null(rapt_sample(NULL, &(rapt_generation){0}));
    expect_error(RAPT_ERROR_NULL, "NULL");
    cr_expect_null(rapt_sample(rapt_select(logits, 0, 0), &(rapt_generation){0}));
    expect_error(RAPT_ERROR_SHAPE, "[3]");
    cr_expect_null(rapt_sample(rapt_zeros(RAPT_FLOAT32, RAPT_SHAPE(2, 0)), &(rapt_generation){0}));
    expect_error(RAPT_ERROR_SHAPE, "[2, 0]");
    cr_expect_null(rapt_sample(rapt_zeros(RAPT_INT64, RAPT_SHAPE(2, 3)), &(rapt_generation){0}));
    expect_error(RAPT_ERROR_DTYPE, "int64");
}

/* What a bad model gives at its second step, by number. */
static rapt_tensor *bad_next(void *context, rapt_tensor *tokens)
{
    const int64_t rows = rapt_size(tokens, 0);
    int *calls = context, kind = calls[1];
    if (calls[0]++ == 0) return rapt_zeros(RAPT_FLOAT32, RAPT_SHAPE(rows, 4));
    switch (kind) {
    case 0:
        return rapt_full(RAPT_FLOAT32, RAPT_SHAPE(rows, 4), (double)NAN);
    case 1:
        return rapt_full(RAPT_FLOAT32, RAPT_SHAPE(rows, 4), -(double)INFINITY);
    case 2:
        return rapt_full(RAPT_FLOAT32, RAPT_SHAPE(rows, 4), (double)INFINITY);
    case 3:
        return NULL;
    case 4:
        return rapt_zeros(RAPT_FLOAT32, RAPT_SHAPE(rows, 5));
    case 5:
        return rapt_zeros(RAPT_FLOAT32, RAPT_SHAPE(rows + 1, 4));
    case 6:
        return rapt_zeros(RAPT_INT64, RAPT_SHAPE(rows, 4));
    case 7:
        return rapt_zeros(RAPT_FLOAT32, RAPT_SHAPE(rows, 1, 4));
    default:
        return rapt_add(tokens, NULL);
    }
}

Test(beam, models_that_go_wrong)
{
    static const struct {
        rapt_error_code code;
        const char *part;
    } expected[] = {{RAPT_ERROR_VALUE, "no distribution"},
                    {RAPT_ERROR_VALUE, "no distribution"},
                    {RAPT_ERROR_VALUE, "no distribution"},
                    {RAPT_ERROR_NULL, "the model gave NULL"},
                    {RAPT_ERROR_SHAPE, "vocabulary of 4"},
                    {RAPT_ERROR_SHAPE, "(2, vocabulary)"},
                    {RAPT_ERROR_SHAPE, "floating logits"},
                    {RAPT_ERROR_SHAPE, "vocabulary)"},
                    {RAPT_ERROR_NULL, "add"}};
    static const rapt_generation ways[] = {{.length = 3}, {.length = 3, .temperature = 1}, {.length = 3, .beams = 2}};
    for (int kind = 0; kind < 9; kind++)
        for (int way = 0; way < 3; way++) {
            RAPT_SCOPE;
            int calls[] = {0, kind};
            rapt_tensor *prompt = rapt_zeros(RAPT_INT64, RAPT_SHAPE(way == 2 ? 1 : 2, 1));
            cr_expect_null(rapt_generate(&(rapt_token_model){.context = calls, .next = bad_next}, prompt, &ways[way]));
            expect_error(expected[kind].code, expected[kind].part);
            cr_expect(rapt_is_recording());
        }
}

static bool no_select(void *context, rapt_tensor *rows)
{
    (void)context, (void)rows;
    return false;
}

Test(beam, prompts_and_models_that_cannot_be)
{
    RAPT_SCOPE;
    reader r = {.vocabulary = 4};
    const rapt_generation how = {.length = 3}, ends = {.length = 3, .stops = true, .end_token = 4};
    rapt_tensor *prompt = rapt_zeros(RAPT_INT64, RAPT_SHAPE(2, 1));
    cr_expect_null(rapt_generate(NULL, prompt, &how));
    expect_error(RAPT_ERROR_NULL, "the model");
    cr_expect_null(rapt_generate(&(rapt_token_model){0}, prompt, &how));
    expect_error(RAPT_ERROR_NULL, "next");
    cr_expect_null(generate_with(&r, NULL, &how));
    expect_error(RAPT_ERROR_NULL, "prompt");
    cr_expect_null(generate_with(&r, prompt, NULL));
    expect_error(RAPT_ERROR_NULL, "settings");
    cr_expect_null(generate_with(&r, rapt_zeros(RAPT_FLOAT32, RAPT_SHAPE(2, 1)), &how));
    expect_error(RAPT_ERROR_DTYPE, "float32");
    cr_expect_null(generate_with(&r, rapt_zeros(RAPT_INT64, RAPT_SHAPE(2)), &how));
    expect_error(RAPT_ERROR_SHAPE, "(B, T)");
    cr_expect_null(generate_with(&r, rapt_zeros(RAPT_INT64, RAPT_SHAPE(2, 0)), &how));
    expect_error(RAPT_ERROR_SHAPE, "(B, T)");
    cr_expect_null(generate_with(&r, prompt, &ends));
    expect_error(RAPT_ERROR_VALUE, "end_token 4 of a vocabulary of 4");
    const rapt_token_model stubborn = {.context = &r, .next = reader_next, .select = no_select};
    r.rows = r.length = r.calls = 0;
    cr_expect_null(rapt_generate(&stubborn, prompt, &(rapt_generation){.length = 3, .beams = 2}));
    expect_error(RAPT_ERROR_VALUE, "select");
}

Test(beam, without_memory)
{
    RAPT_SCOPE;
    static const rapt_generation ways[] = {{.length = 3, .stops = true, .end_token = 1},
                                           {.length = 3, .temperature = 1, .top_k = 3, .top_p = 0.9},
                                           {.length = 3, .beams = 3, .stops = true, .end_token = 1}};
    reader r = {.vocabulary = 5, .seed = 3};
    rapt_tensor *prompt = rapt_zeros(RAPT_INT64, RAPT_SHAPE(3, 1));
    for (int way = 0; way < 3; way++) {
        int failures = 0;
        for (bool done = false; !done; failures++) {
            const int64_t before = live_bytes();
            RAPT_SCOPE;
            r.rows = r.length = r.calls = 0;
            rapt_memory_fail_after(failures);
            rapt_scope scope = rapt_scope_begin();
            done = rapt_generate(&(rapt_token_model){.context = &r, .next = reader_next, .select = reader_select},
                                 prompt, &ways[way]) != NULL;
            rapt_scope_end(scope);
            rapt_memory_fail_after(-1);
            if (!done) expect_error(RAPT_ERROR_MEMORY, "no memory");
            cr_assert_eq(live_bytes(), before);
            cr_assert_lt(failures, 1000);
        }
        cr_expect_gt(failures, 5);
    }
}
