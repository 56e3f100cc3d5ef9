/* Dot products as scoring functions: plain, scaled by √d, and of vectors of different sizes. */
#include <math.h>

#include <rapt/attention.h>

#include "nn/fused_dot.h"
#include "nn/scoring.h"

/* qᵀk */
static rapt_tensor *dot(rapt_tensor *queries, rapt_tensor *keys)
{
    return rapt_matmul(queries, rapt_transpose(keys, -2, -1));
}

static rapt_tensor *score(rapt_scoring *scoring, rapt_tensor *queries, rapt_tensor *keys)
{
    return rapt_check_pair(scoring, queries, RAPT_ANY_SIZE, keys, RAPT_SIZE_OF_QUERIES) ? dot(queries, keys) : NULL;
}

static rapt_tensor *score_scaled(rapt_scoring *scoring, rapt_tensor *queries, rapt_tensor *keys)
{
    if (!rapt_check_pair(scoring, queries, RAPT_ANY_SIZE, keys, RAPT_SIZE_OF_QUERIES)) return NULL;
    RAPT_SCOPE;
    /* qᵀk / √d, the scale on the smaller side */
    return rapt_keep(dot(rapt_mul_scalar(queries, 1 / sqrt((double)rapt_size(queries, -1))), keys));
}

/* What would meet the padding's zeros is left out instead. */
static rapt_tensor *score_padded(rapt_scoring *scoring, rapt_tensor *queries, rapt_tensor *keys)
{
    if (!rapt_check_pair(scoring, queries, RAPT_ANY_SIZE, keys, RAPT_ANY_SIZE)) return NULL;
    RAPT_SCOPE;
    int64_t query_size = rapt_size(queries, -1), key_size = rapt_size(keys, -1);
    int64_t shorter = query_size < key_size ? query_size : key_size, longer = query_size + key_size - shorter;
    rapt_tensor *scaled = rapt_mul_scalar(rapt_slice(queries, -1, 0, shorter, 1), 1 / sqrt((double)longer));
    return rapt_keep(dot(scaled, rapt_slice(keys, -1, 0, shorter, 1)));
}

static rapt_tensor *attend(rapt_scoring *scoring, const rapt_attention_call *call)
{
    rapt_tensor *queries = call->queries, *keys = call->keys;
    if (!rapt_check_sizes(scoring, queries, RAPT_ANY_SIZE, keys, RAPT_SIZE_OF_QUERIES)) return NULL;
    return rapt_fused_dot(queries, keys, 1, call);
}

static rapt_tensor *attend_scaled(rapt_scoring *scoring, const rapt_attention_call *call)
{
    rapt_tensor *queries = call->queries, *keys = call->keys;
    if (!rapt_check_sizes(scoring, queries, RAPT_ANY_SIZE, keys, RAPT_SIZE_OF_QUERIES)) return NULL;
    return rapt_fused_dot(queries, keys, 1 / sqrt((double)rapt_size(queries, -1)), call);
}

static rapt_tensor *attend_padded(rapt_scoring *scoring, const rapt_attention_call *call)
{
    rapt_tensor *queries = call->queries, *keys = call->keys;
    if (!rapt_check_sizes(scoring, queries, RAPT_ANY_SIZE, keys, RAPT_ANY_SIZE)) return NULL;
    int64_t query_size = rapt_size(queries, -1), key_size = rapt_size(keys, -1);
    int64_t shorter = query_size < key_size ? query_size : key_size, longer = query_size + key_size - shorter;
    return rapt_fused_dot(rapt_slice(queries, -1, 0, shorter, 1), rapt_slice(keys, -1, 0, shorter, 1),
                          1 / sqrt((double)longer), call);
}

static const rapt_module_class kind = {.name = "DotProduct"}, scaled_kind = {.name = "ScaledDotProduct"},
                               padded_kind = {.name = "PaddedDotProduct"};

static rapt_scoring *scoring_new(const rapt_module_class *which,
                                 rapt_tensor *(*plain)(rapt_scoring *, rapt_tensor *, rapt_tensor *),
                                 rapt_tensor *(*fused)(rapt_scoring *, const rapt_attention_call *))
{
    rapt_scoring *scoring = rapt_module_new(sizeof *scoring, which);
    if (!scoring) return NULL;
    scoring->score = plain;
    scoring->attend = fused;
    scoring->attends_seen_only = true;
    return scoring;
}

rapt_scoring *rapt_dot_product_scoring_new(void)
{
    return scoring_new(&kind, score, attend);
}

rapt_scoring *rapt_scaled_dot_product_scoring_new(void)
{
    return scoring_new(&scaled_kind, score_scaled, attend_scaled);
}

rapt_scoring *rapt_padded_dot_product_scoring_new(void)
{
    return scoring_new(&padded_kind, score_padded, attend_padded);
}

rapt_attention *rapt_dot_product_attention_new(double dropout)
{
    return rapt_attention_new(rapt_scaled_dot_product_scoring_new(), dropout);
}
