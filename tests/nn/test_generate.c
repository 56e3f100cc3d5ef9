/* Greedy and sampled sequences: what is drawn how often, what stops when, and what bad settings give. */
#include "token_models.h"

#include <stdlib.h>

#include "nn/generate.h"

static const double infinity = (double)INFINITY;

static const double *ranked;

static int by_rank(const void *a, const void *b)
{
    int64_t i = *(const int64_t *)a, j = *(const int64_t *)b;
    if (ranked[i] != ranked[j]) return ranked[i] > ranked[j] ? -1 : 1;
    return (i > j) - (i < j);
}

Test(generate, ranking_is_a_stable_sort)
{
    RAPT_SCOPE;
    rapt_seed(1);
    for (int64_t count = 1; count < 60; count++) {
        rapt_tensor *numbers = rapt_cast(rapt_randint(0, count, RAPT_SHAPE(count)), RAPT_FLOAT64);
        double *values = rapt_data_for_writing(numbers);
        if (count % 3 == 0) values[count / 2] = -infinity;
        int64_t places[60], sorted[60];
        for (int64_t i = 0; i < count; i++) places[i] = sorted[i] = i;
        ranked = values;
        qsort(sorted, (size_t)count, sizeof *sorted, by_rank);
        rapt_rank_places(values, count, places);
        for (int64_t i = 0; i < count; i++) cr_assert_eq(places[i], sorted[i], "rank %d of %d", (int)i, (int)count);
        for (int64_t few = 1; few <= count; few++) {
            rapt_rank_few(values, count, few, places);
            cr_expect_arr_eq(places, sorted, (size_t)few * sizeof *places, "the first %d of %d", (int)few, (int)count);
        }
    }
}

/* `rows` draws from one row of logits. */
static const int64_t *draws(int64_t rows, int64_t classes, const double *logits, const rapt_generation *how)
{
    rapt_tensor *row = doubles(RAPT_SHAPE(1, classes), logits);
    rapt_tensor *picks = rapt_sample(rapt_expand(row, RAPT_SHAPE(rows, classes)), how);
    cr_assert_not_null(picks, "%s", rapt_error());
    expect_shape(picks, RAPT_SHAPE(rows));
    return rapt_data(picks);
}

Test(generate, greedy_takes_the_first_of_the_likeliest)
{
    RAPT_SCOPE;
    const rapt_generation greedy = {0};
    rapt_tensor *logits = doubles(RAPT_SHAPE(3, 4), (double[]){1, 3, 3, 2, -infinity, -5, -4, -infinity, 0, 0, 0, 0});
    rapt_random_state before = rapt_random_get_state();
    for (int dtype = RAPT_FLOAT32; dtype <= RAPT_FLOAT64; dtype++) {
        const int64_t *picks = rapt_data(rapt_sample(rapt_cast(logits, (rapt_dtype)dtype), &greedy));
        cr_expect(picks[0] == 1 && picks[1] == 2 && picks[2] == 0);
    }
    cr_expect_eq(rapt_random_get_state().offset, before.offset, "greedy draws no random numbers");
    rapt_tensor *strided = rapt_transpose(rapt_contiguous(rapt_transpose(logits, 0, 1)), 0, 1);
    const int64_t *picks = rapt_data(rapt_sample(strided, &greedy));
    cr_expect(picks[0] == 1 && picks[1] == 2 && picks[2] == 0);
    expect_shape(rapt_sample(rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(0, 4)), &greedy), RAPT_SHAPE(0));
    expect_no_error();
}

/* χ² of the counts against probabilities; tokens of probability 0 must not come. */
static double chi_square(int64_t rows, const int64_t *picks, int64_t classes, const double *probabilities)
{
    double counts[16] = {0}, sum = 0;
    for (int64_t i = 0; i < rows; i++) counts[picks[i]]++;
    for (int64_t v = 0; v < classes; v++) {
        double expected = probabilities[v] * (double)rows;
        if (expected == 0)
            cr_expect_eq(counts[v], 0, "token %d came %g times", (int)v, counts[v]);
        else
            sum += (counts[v] - expected) * (counts[v] - expected) / expected;
    }
    return sum;
}

Test(generate, draws_have_the_models_probabilities)
{
    RAPT_SCOPE;
    rapt_seed(2);
    enum { rows = 40000, classes = 5 };
    const double logits[] = {0, 1, -1, -infinity, 0.5};
    static const rapt_generation ways[] = {{.temperature = 1},
                                           {.temperature = 0.5},
                                           {.temperature = 3},
                                           {.temperature = 1, .top_k = 2},
                                           {.temperature = 1, .top_k = 3},
                                           {.temperature = 1, .top_p = 0.8},
                                           {.temperature = 2, .top_k = 9, .top_p = 1}};
    static const int kept[] = {4, 4, 4, 2, 3, 3, 4}; /* p is 0.18, 0.48, 0.06, 0, 0.29 at temperature 1 */
    static const int order[] = {1, 4, 0, 2};
    for (int way = 0; way < (int)(sizeof kept / sizeof *kept); way++) {
        double p[classes] = {0}, sum = 0;
        for (int i = 0; i < kept[way]; i++) sum += p[order[i]] = exp(logits[order[i]] / ways[way].temperature);
        for (int v = 0; v < classes; v++) p[v] /= sum;
        double x = chi_square(rows, draws(rows, classes, logits, &ways[way]), classes, p);
        cr_expect_lt(x, 25, "way %d: chi square %g", way, x); /* of 3 degrees at most: p < 2e-5 */
    }
}

/* Which tokens come in 3000 draws, as bits. */
static unsigned drawn_tokens(int64_t classes, const double *logits, const rapt_generation *how)
{
    unsigned seen = 0;
    const int64_t *picks = draws(3000, classes, logits, how);
    for (int i = 0; i < 3000; i++) seen |= 1u << picks[i];
    return seen;
}

Test(generate, top_k_and_top_p_keep_exactly_what_they_say)
{
    RAPT_SCOPE;
    rapt_seed(3);
    const double logits[] = {log(0.1), log(0.4), log(0.2), log(0.3)}, equal[] = {2, 2, 2, 2};
    static const unsigned by_k[] = {15, 2, 10, 14, 15, 15};
    for (int64_t k = 0; k <= 5; k++)
        cr_expect_eq(drawn_tokens(4, logits, &(rapt_generation){.temperature = 1, .top_k = k}), by_k[k], "k %d",
                     (int)k);
    cr_expect_eq(drawn_tokens(4, equal, &(rapt_generation){.temperature = 1, .top_k = 2}), 3, "the first of equals");
    cr_expect_eq(drawn_tokens(4, equal, &(rapt_generation){.temperature = 1, .top_p = 0.5}), 3, "exactly half");
    const struct {
        double p;
        int64_t k;
        unsigned tokens;
    } nuclei[] = {{1e-300, 0, 2}, {0.39, 0, 2}, {0.41, 0, 10}, {0.69, 0, 10}, {0.71, 0, 14}, {0.91, 0, 15},
                  {1, 0, 15},     {0.56, 2, 2}, {0.58, 2, 10}, {0.99, 3, 14}, {0.75, 3, 10}, {0.79, 3, 14}};
    for (size_t i = 0; i < sizeof nuclei / sizeof *nuclei; i++)
        cr_expect_eq(drawn_tokens(4, logits,
                                  &(rapt_generation){.temperature = 1, .top_p = nuclei[i].p, .top_k = nuclei[i].k}),
                     nuclei[i].tokens, "p %g after k %d", nuclei[i].p, (int)nuclei[i].k);
    cr_expect_eq(drawn_tokens(4, logits, &(rapt_generation){.temperature = 1e-300}), 2, "cold is greedy");
    cr_expect_eq(drawn_tokens(4, logits, &(rapt_generation){.temperature = 1e300}), 15);
    expect_no_error();
}

Test(generate, the_seed_decides)
{
    RAPT_SCOPE;
    const rapt_generation how = {.length = 20, .temperature = 1};
    reader r = {.vocabulary = 7, .seed = 1};
    rapt_tensor *prompt = prompt_of(2, 1, (int64_t[]){3, 4}), *sequences[3];
    for (int i = 0; i < 3; i++) {
        rapt_seed(i == 2 ? 6 : 5);
        sequences[i] = generate_with(&r, prompt, &how);
    }
    cr_expect(same_bits(sequences[0], sequences[1]));
    cr_expect_not(same_bits(sequences[0], sequences[2]));
}

/* The token after n is n + 1. */
static double counting(const int64_t *history, int64_t length, int64_t token)
{
    return token == history[length - 1] + 1 ? 1 : 0;
}

Test(generate, sequences_stop_are_padded_and_leave_the_batch)
{
    RAPT_SCOPE;
    reader r = {.vocabulary = 10, .define = counting};
    rapt_tensor *prompt = rapt_from(RAPT_INT32, RAPT_SHAPE(3, 2), (int32_t[]){0, 3, 0, 6, 1, 4});
    const rapt_generation how = {.length = 20, .stops = true, .end_token = 8, .padding = -1};
    expect_tokens(generate_with(&r, prompt, &how), 3, 5, (int64_t[]){4, 5, 6, 7, 8, 7, 8, -1, -1, -1, 5, 6, 7, 8, -1});
    const int64_t rows[] = {3, 3, 2, 2, 1};
    cr_expect_eq(r.calls, 5, "no step after all are finished");
    for (int i = 0; i < 5; i++) cr_expect_eq(r.rows_of_call[i], rows[i]);
    cr_expect(r.tokens_of_call[0] == 2 && r.tokens_of_call[1] == 1, "the prompt first, then one by one");
    cr_expect_eq(r.selections, 2, "only where somebody leaves and somebody stays");

    rapt_generation shorter = how;
    shorter.length = 2;
    expect_tokens(generate_with(&r, prompt, &shorter), 3, 2, (int64_t[]){4, 5, 7, 8, 5, 6});
    cr_expect_eq(r.selections, 0, "not after the last step");
    shorter.stops = false;
    shorter.length = 3;
    expect_tokens(generate_with(&r, prompt, &shorter), 3, 3, (int64_t[]){4, 5, 6, 7, 8, 9, 5, 6, 7});
    rapt_generation padded = how; /* by a number that no double is */
    padded.padding = (INT64_C(1) << 53) + 1;
    for (padded.beams = 0; padded.beams <= 2; padded.beams += 2) {
        const rapt_tensor *tokens = generate_with(&r, prompt, &padded);
        cr_expect_eq(rapt_at_int64(tokens, (int64_t[]){1, 4}), padded.padding);
    }
    shorter.length = 0;
    expect_tokens(generate_with(&r, prompt, &shorter), 3, 0, NULL);
    expect_tokens(generate_with(&r, rapt_zeros(RAPT_INT64, RAPT_SHAPE(0, 2)), &how), 0, 0, NULL);
    cr_expect_eq(r.calls, 0);
    cr_expect(rapt_is_recording());
    expect_no_error();
}

Test(generate, items_of_a_batch_are_independent)
{
    RAPT_SCOPE;
    rapt_seed(4);
    reader r = {.vocabulary = 6, .seed = 11};
    rapt_tensor *prompt = rapt_randint(0, 6, RAPT_SHAPE(20, 3));
    for (int beams = 1; beams <= 3; beams += 2) {
        const rapt_generation how = {.length = 12, .stops = true, .end_token = 2, .padding = 9, .beams = beams};
        rapt_tensor *together = generate_with(&r, prompt, &how);
        for (int64_t b = 0; b < 20; b++) {
            rapt_tensor *alone = generate_with(&r, rapt_slice(prompt, 0, b, b + 1, 1), &how);
            const int64_t length = rapt_size(alone, 1), width = rapt_size(together, 1);
            const int64_t *one = rapt_data(alone), *row = (const int64_t *)rapt_data(together) + b * width;
            for (int64_t t = 0; t < width; t++) cr_assert_eq(row[t], t < length ? one[t] : 9);
        }
    }
}

/* A table: the logits after token t are row t of a (V, V) matrix. It carries nothing, and tells what it costs. */
typedef struct table {
    rapt_tensor *logits;
    int64_t calls, system_allocations[most_calls], live[most_calls];
} table;

static rapt_tensor *table_next(void *context, rapt_tensor *tokens)
{
    table *t = context;
    rapt_memory_statistics now = rapt_memory_get_statistics();
    t->system_allocations[t->calls] = now.system_allocations;
    t->live[t->calls++] = now.live_bytes;
    return rapt_embed(t->logits, rapt_select(tokens, 1, -1));
}

Test(generate, steps_give_back_their_memory)
{
    RAPT_SCOPE;
    rapt_seed(5);
    static const rapt_generation ways[] = {{.length = 50},
                                           {.length = 50, .temperature = 1},
                                           {.length = 50, .temperature = 1, .top_k = 30, .top_p = 0.9},
                                           {.length = 50, .beams = 4}};
    for (int way = 0; way < 4; way++) {
        table t = {.logits = rapt_require_gradient(rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(1000, 1000)))};
        rapt_tensor *prompt = rapt_randint(0, 1000, RAPT_SHAPE(8, 1));
        expect_shape(rapt_generate(&(rapt_token_model){.context = &t, .next = table_next}, prompt, &ways[way]),
                     RAPT_SHAPE(8, 50));
        cr_expect_eq(t.live[2], t.live[49]);
        cr_expect_eq(t.system_allocations[3], t.system_allocations[49]);
    }
    expect_no_error();
}

Test(generate, the_same_bits_at_any_number_of_threads)
{
    RAPT_SCOPE;
    rapt_tensor *logits = rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(64, 3000)), *picks[2];
    for (int i = 0; i < 2; i++) {
        cr_assert(rapt_set_threads(i ? 4 : 1));
        rapt_seed(7);
        picks[i] = rapt_sample(logits, &(rapt_generation){.temperature = 1, .top_p = 0.95});
    }
    cr_expect(same_bits(picks[0], picks[1]));
}

/* The next token is the last one and 1 more; there are 200. */
static rapt_tensor *count_on(void *context, rapt_tensor *tokens)
{
    (void)context;
    const int64_t rows = rapt_size(tokens, 0), added = rapt_size(tokens, 1), *token = rapt_data(tokens);
    rapt_tensor *logits = rapt_full(RAPT_FLOAT64, RAPT_SHAPE(rows, 200), -infinity);
    double *logit = logits ? rapt_data_for_writing(logits) : NULL;
    for (int64_t b = 0; logit && b < rows; b++) logit[200 * b + token[(b + 1) * added - 1] + 1] = 0;
    return logits;
}

/* Memory is for what is generated, whatever might have been. */
Test(generate, without_a_limit)
{
    RAPT_SCOPE;
    const rapt_token_model model = {.next = count_on};
    rapt_tensor *prompt = prompt_of(2, 1, (int64_t[]){0, 130});
    for (int beams = 0; beams <= 2; beams += 2) {
        const rapt_generation how = {.length = INT64_MAX,
                                     .stops = true,
                                     .end_token = 199,
                                     .padding = -7,
                                     .beams = beams};
        rapt_tensor *sequences = rapt_generate(&model, prompt, &how);
        cr_assert(sequences, "%s", rapt_error());
        expect_shape(sequences, RAPT_SHAPE(2, 199));
        const int64_t *token = rapt_data(sequences);
        for (int64_t i = 0; i < 199; i++) {
            cr_assert_eq(token[i], i + 1, "%d beams, token %d", beams, (int)i);
            cr_assert_eq(token[199 + i], i < 69 ? i + 131 : -7, "%d beams, token %d", beams, (int)i);
        }
    }
    expect_no_error();
}
