/* A step of a token model: its logits, checked, and the rows of its batch that go on. */
#include "nn/generate.h"

static const char op[] = "generate";

static bool check_logits(const rapt_tensor *logits, int64_t rows, const rapt_generation *how, int64_t *vocabulary)
{
    char text[128];
    bool fits = rapt_rank(logits) == 2 && rapt_size(logits, 0) == rows && rapt_size(logits, 1) >= 1 &&
                rapt_dtype_is_floating(rapt_get_dtype(logits));
    rapt_describe(logits, text, sizeof text);
    if (!fits)
        return rapt_fail(RAPT_ERROR_SHAPE, op, "the model gave %s; floating logits (%lld, vocabulary) expected", text,
                         (long long)rows);
    if (*vocabulary != 0)
        return rapt_size(logits, 1) == *vocabulary ||
               rapt_fail(RAPT_ERROR_SHAPE, op, "the model gave %s after a vocabulary of %lld", text,
                         (long long)*vocabulary);
    *vocabulary = rapt_size(logits, 1);
    return !how->stops || (how->end_token >= 0 && how->end_token < *vocabulary) ||
           rapt_fail(RAPT_ERROR_VALUE, op, "end_token %lld of a vocabulary of %lld", (long long)how->end_token,
                     (long long)*vocabulary);
}

/* What a step gave, if it is logits of so many rows. */
static rapt_tensor *accept(rapt_tensor *logits, int64_t rows, const rapt_generation *how, int64_t *vocabulary)
{
    if (logits) return check_logits(logits, rows, how, vocabulary) ? logits : NULL;
    rapt_fail(RAPT_ERROR_NULL, op, "the model gave NULL");
    return NULL;
}

rapt_tensor *rapt_next_logits(const rapt_token_model *model, rapt_tensor *tokens, const rapt_generation *how,
                              int64_t *vocabulary)
{
    if (!tokens) return NULL;
    return accept(model->next(model->context, tokens), rapt_size(tokens, 0), how, vocabulary);
}

rapt_tensor *rapt_first_logits(const rapt_token_model *model, const rapt_prompt *prompt, const rapt_generation *how,
                               int64_t *vocabulary)
{
    if (!prompt->starts) return rapt_next_logits(model, prompt->tokens, how, vocabulary);
    return accept(model->begin_packed(model->context, prompt->tokens, prompt->starts), prompt->batch, how, vocabulary);
}

bool rapt_select_rows(const rapt_token_model *model, int64_t count, const int64_t *rows)
{
    if (!model->select) return true;
    rapt_tensor *kept = rapt_from(RAPT_INT64, RAPT_SHAPE(count), rows);
    return kept && (model->select(model->context, kept) ||
                    rapt_fail(RAPT_ERROR_VALUE, op, "the model's function select failed"));
}
