/* Steps of attention: masks, normalisers, scoring functions, attention pooling with one and with many heads. */
#include <string.h>

#include "compare.h"

/* The word under a key that begins with the prefix. */
static int64_t prefixed(const run *r, const char *prefix, const char *key)
{
    char full[64];
    snprintf(full, sizeof full, "%s%s", prefix, key);
    return step_integer(r, full);
}

rapt_mask step_mask(const run *r, int first, const char *prefix)
{
    return (rapt_mask){.valid_lengths = step_input(r, first),
                       .seen = step_input(r, first + 1),
                       .bias = step_input(r, first + 2),
                       .relative_bias = step_input(r, first + 3),
                       .causal = prefixed(r, prefix, "causal"),
                       .window = prefixed(r, prefix, "window"),
                       .offset = prefixed(r, prefix, "offset"),
                       .fills_million = prefixed(r, prefix, "million")};
}

static bool says(const run *r, const char *key, const char *text)
{
    return record_says(r->step, key, text);
}

/* The step's scoring function; NULL and an error when the name is none. */
static rapt_scoring *scoring_of(const run *r)
{
    int64_t query_size = step_integer(r, "query_size"), key_size = step_integer(r, "key_size");
    double width = step_real(r, "width");
    bool learns = step_integer(r, "learns");
    if (says(r, "scoring", "dot")) return rapt_dot_product_scoring_new();
    if (says(r, "scoring", "scaled_dot")) return rapt_scaled_dot_product_scoring_new();
    if (says(r, "scoring", "padded_dot")) return rapt_padded_dot_product_scoring_new();
    if (says(r, "scoring", "bilinear")) return rapt_bilinear_scoring_new(query_size, key_size);
    if (says(r, "scoring", "additive"))
        return rapt_additive_scoring_new(query_size, key_size, step_integer(r, "hidden"));
    if (says(r, "scoring", "cosine")) return rapt_cosine_scoring_new(width, learns);
    if (says(r, "scoring", "log_gaussian")) return rapt_gaussian_scoring_new(width, learns);
    if (says(r, "scoring", "gaussian"))
        return rapt_regression_kernel_scoring_new(RAPT_REGRESSION_KERNEL_GAUSSIAN, width, learns);
    if (says(r, "scoring", "boxcar"))
        return rapt_regression_kernel_scoring_new(RAPT_REGRESSION_KERNEL_BOXCAR, width, false);
    if (says(r, "scoring", "constant"))
        return rapt_regression_kernel_scoring_new(RAPT_REGRESSION_KERNEL_CONSTANT, width, false);
    if (says(r, "scoring", "epanechnikov"))
        return rapt_regression_kernel_scoring_new(RAPT_REGRESSION_KERNEL_EPANECHNIKOV, width, learns);
    if (says(r, "scoring", "relative"))
        return rapt_relative_scoring_new(query_size, step_integer(r, "value_size"), step_integer(r, "reach"));
    rapt_fail(RAPT_ERROR_VALUE, "compare", "there is no such scoring function");
    return NULL;
}

static rapt_normalizer *normalizer_of(const run *r)
{
    if (says(r, "normalizer", "sum")) return rapt_masked_sum;
    if (says(r, "normalizer", "none")) return rapt_masked_none;
    if (says(r, "normalizer", "hard")) return rapt_masked_hard;
    return says(r, "normalizer", "uniform") ? rapt_masked_uniform : rapt_masked_softmax;
}

static rapt_attention *attention_of(const run *r)
{
    rapt_attention *attention = rapt_attention_new(scoring_of(r), 0);
    if (attention) attention->normalizer = normalizer_of(r);
    if (attention) attention->keep_weights = step_integer(r, "weights_too");
    return attention;
}

static void by_relative_position(run *r)
{
    step_give(r, rapt_by_relative_position(step_input(r, 0), step_integer(r, "queries"), step_integer(r, "keys"),
                                           step_integer(r, "offset"), step_integer(r, "by_query")));
}

/* Expanded, since it may have any shape that broadcasts to the scores'. */
static void mask_seen(run *r)
{
    rapt_tensor *scores = step_input(r, 0);
    rapt_mask mask = step_mask(r, 1, "");
    step_give(r, rapt_expand(rapt_mask_seen(&mask, scores), rapt_rank(scores), rapt_shape(scores)));
}

static void mask_add_biases(run *r)
{
    rapt_mask mask = step_mask(r, 1, "");
    step_give(r, rapt_mask_add_biases(&mask, step_input(r, 0)));
}

static void normalize(run *r)
{
    rapt_mask mask = step_mask(r, 1, "");
    step_give(r, normalizer_of(r)(step_input(r, 0), &mask));
}

static void score(run *r)
{
    rapt_scoring *scoring = step_module(r, scoring_of(r));
    step_give(r, rapt_score(scoring, step_input(r, 0), step_input(r, 1)));
}

static void attention(run *r)
{
    rapt_mask mask = step_mask(r, 3, "");
    rapt_attention *layer = step_module(r, attention_of(r));
    rapt_tensor *queries = step_input(r, 0), *keys = step_input(r, 1), *values = step_input(r, 2);
    if (step_integer(r, "prepared"))
        step_give(r, rapt_attention_pool(layer, queries, rapt_attention_prepare(layer, keys, &mask), values, &mask));
    else
        step_give(r, rapt_attention_forward(layer, queries, keys, values, &mask));
    if (layer && step_integer(r, "weights_too")) step_give(r, layer->weights);
}

static void multi_head(run *r)
{
    rapt_mask mask = step_mask(r, 3, "");
    rapt_attention *pooling = record_text(r->step, "scoring") ? attention_of(r) : NULL;
    rapt_multi_head_attention *layer = rapt_multi_head_attention_new(
        &(rapt_multi_head_attention_config){.hidden = step_integer(r, "size"),
                                            .heads = (int)step_integer(r, "heads"),
                                            .groups = step_integer(r, "groups"),
                                            .query_size = step_integer(r, "in_query"),
                                            .key_size = step_integer(r, "in_key"),
                                            .value_size = step_integer(r, "in_value"),
                                            .value_hidden = step_integer(r, "value_hidden"),
                                            .output_size = step_integer(r, "out_size"),
                                            .bias = step_integer(r, "bias"),
                                            .pooling = pooling,
                                            .rotary = step_integer(r, "rotary") ? rapt_rotary_new() : NULL,
                                            .names = step_integer(r, "gpt2") ? RAPT_NAMES_GPT2 : RAPT_NAMES_PYTORCH});
    layer = step_module(r, layer);
    if (!layer || !rapt_multi_head_attention_set_head_mask(layer, step_input(r, 7))) return;
    layer->pooling->keep_weights = step_integer(r, "weights_too");
    step_give(r, rapt_multi_head_attention_forward(layer, step_input(r, 0), step_input(r, 1), step_input(r, 2), &mask,
                                                   NULL));
    if (step_integer(r, "weights_too")) step_give(r, layer->pooling->weights);
}

const step_row steps_attention[] = {
    {"by_relative_position", by_relative_position},
    {"mask_seen", mask_seen},
    {"mask_add_biases", mask_add_biases},
    {"masked_softmax", normalize},
    {"masked_sum", normalize},
    {"masked_none", normalize},
    {"masked_hard", normalize},
    {"masked_uniform", normalize},
    {"score", score},
    {"attention", attention},
    {"multi_head", multi_head},
    {NULL, NULL},
};
