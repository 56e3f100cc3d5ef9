/* Models of tokens for the tests of generation: one whose logits depend on all that was read, and one that is a
 * table. */
#ifndef RAPT_TESTS_TOKEN_MODELS_H
#define RAPT_TESTS_TOKEN_MODELS_H

#include "modules.h"

#include <rapt/generate.h>

enum { most_rows = 400, most_length = 64, most_calls = 64 };

/* Remembers what each row has read. Logits are a hash of that, or what `define` says. */
typedef struct reader {
    int64_t vocabulary;
    uint64_t seed;
    double (*define)(const int64_t *history, int64_t length, int64_t token); /* NULL: the hash */
    int64_t rows, length, history[most_rows][most_length];
    int calls, selections;
    int64_t rows_of_call[most_calls], tokens_of_call[most_calls];
} reader;

static inline double hashed_logit(uint64_t seed, const int64_t *history, int64_t length, int64_t token)
{
    uint64_t h = seed;
    for (int64_t i = 0; i <= length; i++) {
        h = (h ^ (uint64_t)(i < length ? history[i] : token + 100)) * 0x9E3779B97F4A7C15u;
        h ^= h >> 29;
    }
    return 6 * (double)(h >> 11) * 0x1p-53;
}

static inline double logit_of(const reader *r, const int64_t *history, int64_t length, int64_t token)
{
    return r->define ? r->define(history, length, token) : hashed_logit(r->seed, history, length, token);
}

static inline rapt_tensor *reader_next(void *context, rapt_tensor *tokens)
{
    reader *r = context;
    const int64_t rows = rapt_size(tokens, 0), added = rapt_size(tokens, 1), *token = rapt_data(tokens);
    cr_assert(rapt_get_dtype(tokens) == RAPT_INT64 && rapt_is_contiguous(tokens) && !rapt_is_recording());
    cr_assert(r->calls == 0 || rows == r->rows, "%lld rows, not %lld", (long long)rows, (long long)r->rows);
    cr_assert(rows <= most_rows && r->length + added <= most_length && r->calls < most_calls);
    r->rows = rows;
    for (int64_t b = 0; b < rows; b++)
        for (int64_t t = 0; t < added; t++) r->history[b][r->length + t] = *token++;
    r->length += added;
    r->rows_of_call[r->calls] = rows;
    r->tokens_of_call[r->calls++] = added;
    rapt_tensor *logits = rapt_empty(RAPT_FLOAT64, RAPT_SHAPE(rows, r->vocabulary));
    if (!logits) return NULL;
    double *logit = rapt_data_for_writing(logits);
    for (int64_t b = 0; b < rows; b++)
        for (int64_t v = 0; v < r->vocabulary; v++) *logit++ = logit_of(r, r->history[b], r->length, v);
    return logits;
}

static inline bool reader_select(void *context, rapt_tensor *rows)
{
    reader *r = context;
    static int64_t before[most_rows][most_length];
    memcpy(before, r->history, sizeof before);
    const int64_t *row = rapt_data(rows);
    r->rows = rapt_count(rows);
    r->selections++;
    for (int64_t b = 0; b < r->rows; b++) memcpy(r->history[b], before[row[b]], sizeof before[0]);
    return true;
}

/* The reader starts anew. */
static inline rapt_tensor *generate_with(reader *r, rapt_tensor *prompt, const rapt_generation *how)
{
    r->rows = r->length = r->calls = r->selections = 0;
    return rapt_generate(&(rapt_token_model){.context = r, .next = reader_next, .select = reader_select}, prompt, how);
}

static inline rapt_tensor *prompt_of(int64_t rows, int64_t length, const int64_t *tokens)
{
    return rapt_from(RAPT_INT64, RAPT_SHAPE(rows, length), tokens);
}

static inline void expect_tokens(rapt_tensor *tokens, int64_t rows, int64_t length, const int64_t *expected)
{
    expect_shape(tokens, RAPT_SHAPE(rows, length));
    cr_assert_eq(rapt_get_dtype(tokens), RAPT_INT64);
    for (int64_t i = 0; i < rows * length; i++)
        cr_expect_eq(((const int64_t *)rapt_data(tokens))[i], expected[i], "token %lld is %lld, not %lld", (long long)i,
                     (long long)((const int64_t *)rapt_data(tokens))[i], (long long)expected[i]);
}

/* log p of each token after that history. */
static inline void log_probabilities(const reader *r, const int64_t *history, int64_t length, double *log_p)
{
    double sum = 0;
    for (int64_t v = 0; v < r->vocabulary; v++) sum += exp(log_p[v] = logit_of(r, history, length, v));
    for (int64_t v = 0; v < r->vocabulary; v++) log_p[v] -= log(sum);
}

#endif
