/* Multi-head attention: W_o [f(W_q q, W_k k, W_v v)], the heads as items of a larger batch. */
#include <rapt/attention.h>

#include <stdio.h>

static void describe(const rapt_module *module, char *text, size_t size)
{
    const rapt_multi_head_attention *m = (const rapt_multi_head_attention *)module;
    snprintf(text, size, "%lld in %d heads", (long long)m->hidden, m->heads);
}

static const rapt_module_class kind = {.name = "MultiHeadAttention", .describe = describe};

static rapt_linear *project(rapt_module *module, const char *name, int64_t in, int64_t hidden, bool bias)
{
    rapt_linear *linear = rapt_linear_new(in ? in : hidden, hidden, bias ? RAPT_BIAS : RAPT_NO_BIAS);
    return rapt_module_add_child(module, name, (rapt_module *)linear);
}

rapt_multi_head_attention *rapt_multi_head_attention_new(const rapt_multi_head_attention_config *config)
{
    const char *op = kind.name;
    rapt_attention *pooling = config ? config->pooling : NULL;
    rapt_multi_head_attention *m = NULL;
    if (!config)
        rapt_fail(RAPT_ERROR_NULL, op, "the configuration is NULL");
    else if (config->heads < 1 || config->hidden < 1 || config->hidden % config->heads != 0)
        rapt_fail(RAPT_ERROR_VALUE, op, "hidden size %lld and %d heads; a multiple of 1 or more heads expected",
                  (long long)config->hidden, config->heads);
    else
        m = rapt_module_new(sizeof *m, &kind);
    if (!m) {
        rapt_module_free((rapt_module *)pooling);
        return NULL;
    }
    rapt_module *module = &m->module;
    m->hidden = config->hidden;
    m->heads = config->heads;
    m->query = project(module, "W_q", config->query_size, config->hidden, config->bias);
    m->key = project(module, "W_k", config->key_size, config->hidden, config->bias);
    m->value = project(module, "W_v", config->value_size, config->hidden, config->bias);
    m->output = project(module, "W_o", 0, config->hidden, config->bias);
    if (!pooling) pooling = rapt_dot_product_attention_new(config->dropout);
    m->pooling = rapt_module_add_child(module, "attention", (rapt_module *)pooling);
    return rapt_module_finish(module);
}

/* (B, T, hidden) → (B·heads, T, hidden / heads): head i of item b is item b·heads + i */
static rapt_tensor *split_heads(const rapt_multi_head_attention *m, rapt_tensor *x)
{
    if (!x) return NULL;
    int64_t batch = rapt_size(x, 0), length = rapt_size(x, 1), size = m->hidden / m->heads;
    x = rapt_permute(rapt_reshape(x, RAPT_SHAPE(batch, length, m->heads, size)), RAPT_AXES(0, 2, 1, 3));
    return rapt_reshape(x, RAPT_SHAPE(batch * m->heads, length, size));
}

/* The inverse of split_heads. */
static rapt_tensor *join_heads(const rapt_multi_head_attention *m, rapt_tensor *x)
{
    if (!x) return NULL;
    int64_t batch = rapt_size(x, 0) / m->heads, length = rapt_size(x, 1), size = rapt_size(x, 2);
    x = rapt_permute(rapt_reshape(x, RAPT_SHAPE(batch, m->heads, length, size)), RAPT_AXES(0, 2, 1, 3));
    return rapt_reshape(x, RAPT_SHAPE(batch, length, m->heads * size));
}

/* (B) or (B, Q) → (B·heads) or (B·heads, Q): every item's lengths once for each of its heads */
static rapt_tensor *repeat_lengths(const rapt_multi_head_attention *m, rapt_tensor *lengths)
{
    int64_t batch = rapt_size(lengths, 0);
    if (rapt_rank(lengths) == 1) {
        lengths = rapt_expand(rapt_unsqueeze(lengths, 1), RAPT_SHAPE(batch, m->heads));
        return rapt_reshape(lengths, RAPT_SHAPE(batch * m->heads));
    }
    int64_t queries = rapt_size(lengths, 1);
    lengths = rapt_expand(rapt_unsqueeze(lengths, 1), RAPT_SHAPE(batch, m->heads, queries));
    return rapt_reshape(lengths, RAPT_SHAPE(batch * m->heads, queries));
}

static bool check_lengths(rapt_tensor *lengths, rapt_tensor *queries)
{
    char text[128];
    int rank = lengths ? rapt_rank(lengths) : 1;
    bool fits = !lengths || ((rank == 1 || rank == 2) && rapt_size(lengths, 0) == rapt_size(queries, 0));
    return fits || rapt_fail(RAPT_ERROR_SHAPE, kind.name, "valid lengths (B) or (B, Q) with B = %lld expected, not %s",
                             (long long)rapt_size(queries, 0), rapt_describe(lengths, text, sizeof text));
}

rapt_tensor *rapt_multi_head_attention_forward(rapt_multi_head_attention *m, rapt_tensor *queries, rapt_tensor *keys,
                                               rapt_tensor *values, rapt_tensor *valid_lengths)
{
    if (!m) {
        rapt_fail(RAPT_ERROR_NULL, kind.name, "the layer is NULL");
        return NULL;
    }
    rapt_tensor *const inputs[] = {queries, keys, values};
    for (int i = 0; i < 3; i++) {
        char text[128];
        if (inputs[i] && rapt_rank(inputs[i]) == 3) continue;
        rapt_fail(inputs[i] ? RAPT_ERROR_SHAPE : RAPT_ERROR_NULL, kind.name,
                  "queries, keys and values of shape (B, length, size) expected; input %d is %s", i,
                  inputs[i] ? rapt_describe(inputs[i], text, sizeof text) : "NULL");
        return NULL;
    }
    if (!check_lengths(valid_lengths, queries)) return NULL;
    RAPT_SCOPE;
    rapt_tensor *q = split_heads(m, rapt_linear_forward(m->query, queries));
    rapt_tensor *k = split_heads(m, rapt_linear_forward(m->key, keys));
    rapt_tensor *v = split_heads(m, rapt_linear_forward(m->value, values));
    rapt_tensor *lengths = valid_lengths ? repeat_lengths(m, valid_lengths) : NULL;
    if (!q || !k || !v || (valid_lengths && !lengths)) return NULL;
    rapt_tensor *pooled = rapt_attention_forward(m->pooling, q, k, v, lengths);
    return rapt_keep(rapt_linear_forward(m->output, join_heads(m, pooled)));
}
