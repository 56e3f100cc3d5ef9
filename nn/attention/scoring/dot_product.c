/* Dot products as scoring functions: plain, scaled by √d, and of vectors of different sizes. */
#include <math.h>

#include <rapt/attention.h>

#include "nn/fused_dot.h"
#include "scoring.h"

typedef struct dot_product {
    rapt_scoring scoring;
    bool is_scaled; /* by 1 / √d with the longer vectors' size d */
    bool is_padded; /* sizes may differ: the shorter vectors have zeros behind them */
} dot_product;

static int64_t key_size(const dot_product *d)
{
    return d->is_padded ? RAPT_ANY_SIZE : RAPT_SIZE_OF_QUERIES;
}

/* Leaves out what the padding's zeros would be multiplied with; the scale. */
static double prepare_pair(const dot_product *d, rapt_tensor **queries, rapt_tensor **keys)
{
    const int64_t q = rapt_size(*queries, -1), k = rapt_size(*keys, -1), shorter = q < k ? q : k;
    if (q > shorter) *queries = rapt_slice(*queries, -1, 0, shorter, 1);
    if (k > shorter) *keys = rapt_slice(*keys, -1, 0, shorter, 1);
    return d->is_scaled ? 1 / sqrt((double)(q + k - shorter)) : 1;
}

static rapt_tensor *score(rapt_scoring *scoring, rapt_tensor *queries, rapt_tensor *keys)
{
    const dot_product *d = (const dot_product *)scoring;
    if (!rapt_check_pair(scoring, queries, RAPT_ANY_SIZE, keys, key_size(d))) return NULL;
    RAPT_SCOPE;
    const double scale = prepare_pair(d, &queries, &keys);
    return rapt_keep(rapt_dot_scores(queries, keys, scale));
}

static rapt_tensor *attend(rapt_scoring *scoring, const rapt_attention_call *call)
{
    const dot_product *d = (const dot_product *)scoring;
    rapt_tensor *queries = call->queries, *keys = call->keys;
    if (!rapt_check_sizes(scoring, queries, RAPT_ANY_SIZE, keys, key_size(d))) return NULL;
    const double scale = prepare_pair(d, &queries, &keys);
    return rapt_fused_dot(queries, keys, scale, call);
}

static const rapt_module_class kind = {.name = "DotProduct"}, scaled_kind = {.name = "ScaledDotProduct"},
                               padded_kind = {.name = "PaddedDotProduct"};

static rapt_scoring *scoring_new(const rapt_module_class *which)
{
    dot_product *d = rapt_module_new(sizeof *d, which);
    if (!d) return NULL;
    d->scoring.score = score;
    d->scoring.attend = attend;
    d->is_padded = which == &padded_kind;
    d->is_scaled = d->is_padded || which == &scaled_kind;
    return rapt_module_finish(&d->scoring.module);
}

rapt_scoring *rapt_dot_product_scoring_new(void)
{
    return scoring_new(&kind);
}

rapt_scoring *rapt_scaled_dot_product_scoring_new(void)
{
    return scoring_new(&scaled_kind);
}

rapt_scoring *rapt_padded_dot_product_scoring_new(void)
{
    return scoring_new(&padded_kind);
}

rapt_attention *rapt_dot_product_attention_new(double dropout)
{
    return rapt_attention_new(rapt_scaled_dot_product_scoring_new(), dropout);
}
