/* Head terms of attention's normaliser, a number for each head: the sinks of softmax, the biases of sigmoid. */
#include <math.h>

#include "nn/pooling.h"
#include "normalizers.h"

static const char *const name = "Attention";

static bool has_sinks(const rapt_attention *attention)
{
    return attention->sinks || attention->sink != -(double)INFINITY;
}

static bool has_biases(const rapt_attention *attention)
{
    return attention->sigmoid_biases || attention->sigmoid_bias != 0;
}

bool rapt_attention_has_head_terms(const rapt_attention *attention)
{
    return has_sinks(attention) || has_biases(attention);
}

/* Registers a parameter (heads), of that value at first; NULL after an error. */
static rapt_tensor *learn(rapt_attention *attention, const char *parameter, int64_t heads, double value)
{
    if (heads < 1) {
        rapt_fail(RAPT_ERROR_VALUE, name, "%s for %lld heads; 1 or more expected", parameter, (long long)heads);
        return NULL;
    }
    return rapt_module_add_parameter(&attention->module, parameter,
                                     rapt_full(RAPT_FLOAT32, 1, (const int64_t[]){heads}, value));
}

static bool check_layer(const rapt_attention *attention)
{
    return attention || rapt_fail(RAPT_ERROR_NULL, name, "the layer is NULL");
}

rapt_tensor *rapt_attention_learn_sinks(rapt_attention *attention, int64_t heads)
{
    RAPT_SCOPE;
    if (!check_layer(attention)) return NULL;
    if (attention->normalizer != rapt_masked_softmax || attention->sink != -(double)INFINITY) {
        rapt_fail(RAPT_ERROR_UNSUPPORTED, name, "learned sinks beside %s; softmax without a sink expected",
                  attention->normalizer == rapt_masked_softmax ? "a constant sink"
                                                               : "a normaliser that is not softmax");
        return NULL;
    }
    rapt_tensor *sinks = learn(attention, "sinks", heads, 0);
    if (sinks) attention->sinks = sinks;
    return sinks;
}

rapt_tensor *rapt_attention_learn_sigmoid(rapt_attention *attention, int64_t heads, double bias)
{
    RAPT_SCOPE;
    if (!check_layer(attention)) return NULL;
    if (has_sinks(attention)) {
        rapt_fail(RAPT_ERROR_UNSUPPORTED, name, "sigmoid beside a sink, which is for softmax");
        return NULL;
    }
    rapt_tensor *biases = learn(attention, "sigmoid_biases", heads, bias);
    if (!biases) return NULL;
    attention->sigmoid_biases = biases;
    attention->sigmoid_bias = 0;
    attention->normalizer = rapt_masked_sigmoid;
    return biases;
}

bool rapt_check_head_terms(const char *op, const char *what, const rapt_tensor *head_terms, rapt_dtype dtype,
                           int64_t heads)
{
    char text[128];
    if (!head_terms) return rapt_fail(RAPT_ERROR_NULL, op, "the %s are NULL", what);
    if (head_terms->rank != 1 || (head_terms->shape[0] != heads && head_terms->shape[0] != 1))
        return rapt_fail(RAPT_ERROR_SHAPE, op, "%s of shape (%lld) or (1) expected, not %s", what, (long long)heads,
                         rapt_describe(head_terms, text, sizeof text));
    return head_terms->dtype == dtype ||
           rapt_fail(RAPT_ERROR_DTYPE, op, "the %s are %s, the scores %s; one dtype expected " RAPT_CAST_CURE, what,
                     rapt_dtype_name(head_terms->dtype), rapt_dtype_name(dtype));
}

/* Do the fields go together? */
static bool check_fields(const rapt_attention *attention, const rapt_resolved_mask *mask)
{
    if (has_sinks(attention) && attention->normalizer != rapt_masked_softmax)
        return rapt_fail(RAPT_ERROR_UNSUPPORTED, name, "a sink beside a normaliser that is not rapt_masked_softmax");
    if (has_biases(attention) && attention->normalizer != rapt_masked_sigmoid)
        return rapt_fail(RAPT_ERROR_UNSUPPORTED, name,
                         "a sigmoid_bias beside a normaliser that is not rapt_masked_sigmoid");
    if (attention->sinks && attention->sink != -(double)INFINITY)
        return rapt_fail(RAPT_ERROR_VALUE, name, "sink %g beside learned sinks; -inf expected", attention->sink);
    if (attention->sigmoid_biases && attention->sigmoid_bias != 0)
        return rapt_fail(RAPT_ERROR_VALUE, name, "sigmoid_bias %g beside learned ones; 0 expected",
                         attention->sigmoid_bias);
    if (!(attention->sink < (double)INFINITY))
        return rapt_fail(RAPT_ERROR_VALUE, name, "sink %g; a number or -inf expected", attention->sink);
    if (!isfinite(attention->sigmoid_bias))
        return rapt_fail(RAPT_ERROR_VALUE, name, "sigmoid_bias %g; a number expected", attention->sigmoid_bias);
    return !has_sinks(attention) || !mask->fills_million ||
           rapt_fail(RAPT_ERROR_UNSUPPORTED, name, "the mask's fills_million does not go with sinks");
}

bool rapt_resolve_head_terms(const rapt_attention *attention, const rapt_resolved_mask *mask, rapt_dtype dtype,
                             rapt_tensor **head_terms)
{
    const bool is_sigmoid = attention->normalizer == rapt_masked_sigmoid;
    rapt_tensor *learned = is_sigmoid ? attention->sigmoid_biases : attention->sinks;
    *head_terms = NULL;
    if (!check_fields(attention, mask)) return false;
    if (!is_sigmoid && !has_sinks(attention)) return true;
    if (!learned)
        *head_terms = rapt_full(dtype, 1, &mask->heads, is_sigmoid ? attention->sigmoid_bias : attention->sink);
    else if (rapt_check_head_terms(name, is_sigmoid ? "sigmoid_biases" : "sinks", learned, dtype, mask->heads))
        *head_terms =
            rapt_contiguous(learned->shape[0] == mask->heads ? learned : rapt_expand(learned, 1, &mask->heads));
    return *head_terms != NULL;
}
