/* Attention pooling: scores → masked softmax → dropout → weighted sum of the values. */
#include <rapt/attention.h>

#include <stdio.h>

static void destroy(rapt_module *module)
{
    rapt_release(((rapt_attention *)module)->weights);
}

static void describe(const rapt_module *module, char *text, size_t size)
{
    snprintf(text, size, "dropout %g", ((const rapt_attention *)module)->dropout);
}

static const rapt_module_class kind = {.name = "Attention", .destroy = destroy, .describe = describe};

rapt_attention *rapt_attention_new(rapt_scoring *scoring, double dropout)
{
    rapt_attention *attention = NULL;
    if (dropout >= 0 && dropout <= 1)
        attention = rapt_module_new(sizeof *attention, &kind);
    else
        rapt_fail(RAPT_ERROR_VALUE, "Attention", "dropout %g; 0 to 1 expected", dropout);
    if (attention) attention->dropout = dropout;
    rapt_module *module = attention ? &attention->module : NULL;
    rapt_scoring *added = rapt_module_add_child(module, "", (rapt_module *)scoring);
    if (attention) attention->scoring = added;
    return rapt_module_finish(module);
}

static bool check_rank(const char *what, const rapt_tensor *tensor)
{
    char text[128];
    if (!tensor) return rapt_fail(RAPT_ERROR_NULL, "Attention", "the %s are NULL", what);
    return rapt_rank(tensor) == 3 ||
           rapt_fail(RAPT_ERROR_SHAPE, "Attention", "%s of shape (B, length, size) expected, not %s", what,
                     rapt_describe(tensor, text, sizeof text));
}

rapt_tensor *rapt_attention_prepare(rapt_attention *attention, rapt_tensor *keys)
{
    if (!attention) {
        rapt_fail(RAPT_ERROR_NULL, "Attention", "the layer is NULL");
        return NULL;
    }
    if (!check_rank("keys", keys)) return NULL;
    rapt_scoring *scoring = attention->scoring;
    return scoring->prepare ? scoring->prepare(scoring, keys) : keys;
}

static bool keep_weights(rapt_attention *attention, rapt_tensor *weights)
{
    rapt_tensor *kept = rapt_detach(weights);
    if (!kept) return false;
    rapt_release(attention->weights);
    attention->weights = rapt_retain(kept);
    return true;
}

rapt_tensor *rapt_attention_pool(rapt_attention *attention, rapt_tensor *queries, rapt_tensor *prepared_keys,
                                 rapt_tensor *values, rapt_tensor *valid_lengths)
{
    if (!attention) {
        rapt_fail(RAPT_ERROR_NULL, "Attention", "the layer is NULL");
        return NULL;
    }
    if (!check_rank("queries", queries) || !check_rank("keys", prepared_keys) || !check_rank("values", values))
        return NULL;
    RAPT_SCOPE;
    rapt_scoring *scoring = attention->scoring;
    rapt_tensor *weights = rapt_masked_softmax(scoring->score(scoring, queries, prepared_keys), valid_lengths);
    if (!weights || (attention->keep_weights && !keep_weights(attention, weights))) return NULL;
    bool drops = attention->module.training && attention->dropout > 0;
    return rapt_keep(rapt_matmul(drops ? rapt_drop(weights, attention->dropout) : weights, values));
}

rapt_tensor *rapt_attention_forward(rapt_attention *attention, rapt_tensor *queries, rapt_tensor *keys,
                                    rapt_tensor *values, rapt_tensor *valid_lengths)
{
    rapt_tensor *prepared = rapt_attention_prepare(attention, keys);
    return prepared ? rapt_attention_pool(attention, queries, prepared, values, valid_lengths) : NULL;
}
