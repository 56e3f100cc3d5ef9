/* The layer of multi-head attention: its configuration and its parameters. */
#include "multi_head.h"

#include <rapt/initialize.h>

#include <stdio.h>

#include "nn/options.h"
#include "tensor/core.h"
#include "tensor/debug.h"

static void destroy(rapt_module *module)
{
    rapt_release(((rapt_multi_head_attention *)module)->head_mask);
}

static void describe(const rapt_module *module, char *text, size_t size)
{
    const rapt_multi_head_attention *m = (const rapt_multi_head_attention *)module;
    int used = snprintf(text, size, "%lld in %lld heads", (long long)(m->heads * m->head_size), (long long)m->heads);
    if (m->groups != m->heads && used > 0 && (size_t)used < size)
        snprintf(text + used, size - (size_t)used, ", keys in %lld", (long long)m->groups);
}

const rapt_module_class rapt_multi_head_kind = {.name = "MultiHeadAttention", .destroy = destroy, .describe = describe};

static bool check_config(const rapt_multi_head_attention_config *c)
{
    const char *op = rapt_multi_head_kind.name;
    const int64_t sizes[] = {c->query_size, c->key_size, c->value_size, c->output_size, c->value_hidden};
    if (c->heads < 1 || c->hidden < 1 || c->hidden % c->heads != 0)
        return rapt_fail(RAPT_ERROR_VALUE, op,
                         "hidden size %lld and %lld heads; a multiple of 1 or more heads expected",
                         (long long)c->hidden, (long long)c->heads);
    if (c->groups < 0 || (c->groups > 0 && c->heads % c->groups != 0))
        return rapt_fail(RAPT_ERROR_VALUE, op, "%lld groups for %lld heads; a divisor of the number of heads expected",
                         (long long)c->groups, (long long)c->heads);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (sizes[i] < 0)
            return rapt_fail(RAPT_ERROR_VALUE, op, "a size of %lld; 1 or more, or 0 for the hidden size, expected",
                             (long long)sizes[i]);
    if (c->value_hidden % c->heads != 0)
        return rapt_fail(RAPT_ERROR_VALUE, op, "values of size %lld and %lld heads; a multiple expected",
                         (long long)c->value_hidden, (long long)c->heads);
    if (c->hidden > INT64_MAX / 4 || c->value_hidden > INT64_MAX / 4)
        return rapt_fail(RAPT_ERROR_MEMORY, op, "hidden sizes %lld and %lld are too large", (long long)c->hidden,
                         (long long)c->value_hidden);
    for (int i = 1; i < RAPT_ATTENTION_PARTS && c->names == RAPT_NAMES_GPT2; i++)
        if ((sizes[i] ? sizes[i] : c->hidden) != (sizes[0] ? sizes[0] : c->hidden))
            return rapt_fail(RAPT_ERROR_VALUE, op, "GPT-2's names are for queries, keys and values of one size");
    if (c->pooling && c->dropout != 0)
        return rapt_fail(RAPT_ERROR_VALUE, op, "dropout %g beside a pooling, which has its own; 0 expected",
                         c->dropout);
    if (c->rotary && c->hidden / c->heads % 2 != 0)
        return rapt_fail(RAPT_ERROR_VALUE, op, "heads of size %lld; rotary positions need an even size",
                         (long long)(c->hidden / c->heads));
    return rapt_check_names(op, c->names);
}

void rapt_multi_head_part_sizes(const rapt_multi_head_attention *m, int64_t sizes[RAPT_ATTENTION_PARTS])
{
    sizes[0] = m->heads * m->head_size;
    sizes[1] = m->groups * m->head_size;
    sizes[2] = m->groups * m->value_size;
}

static rapt_tensor *add_weight(rapt_module *module, const char *name, int64_t out, int64_t in)
{
    rapt_tensor *weight = rapt_empty(RAPT_FLOAT32, RAPT_SHAPE(out, in));
    bool good = weight && rapt_init_xavier_uniform(weight, 1);
    return rapt_module_add_parameter(module, name, good ? weight : NULL);
}

static void add_projections(rapt_multi_head_attention *m, const int64_t inputs[RAPT_ATTENTION_PARTS],
                            const rapt_multi_head_attention_config *c)
{
    static const rapt_module_class in_kind = {.name = "InProjection"};
    const bool is_gpt = c->names == RAPT_NAMES_GPT2;
    rapt_module *module = &m->module, *in = is_gpt ? rapt_module_new(sizeof *in, &in_kind) : module;
    int64_t sizes[RAPT_ATTENTION_PARTS];
    rapt_multi_head_part_sizes(m, sizes);
    const int64_t rows = sizes[0] + sizes[1] + sizes[2];
    if (inputs[0] == inputs[1] && inputs[1] == inputs[2]) {
        m->in_proj_weight = add_weight(in, is_gpt ? "weight" : "in_proj_weight", rows, inputs[0]);
    } else {
        m->q_proj_weight = add_weight(module, "q_proj_weight", sizes[0], inputs[0]);
        m->k_proj_weight = add_weight(module, "k_proj_weight", sizes[1], inputs[1]);
        m->v_proj_weight = add_weight(module, "v_proj_weight", sizes[2], inputs[2]);
    }
    if (c->bias)
        m->in_proj_bias =
            rapt_module_add_parameter(in, is_gpt ? "bias" : "in_proj_bias", rapt_zeros(RAPT_FLOAT32, RAPT_SHAPE(rows)));
    if (is_gpt) rapt_module_add_child(module, "c_attn", rapt_module_finish(in));
    rapt_linear *output = rapt_linear_new(m->heads * m->value_size, c->output_size ? c->output_size : c->hidden,
                                          c->bias ? RAPT_BIAS : RAPT_NO_BIAS);
    if (output && output->bias) rapt_fill(output->bias, 0);
    m->out_proj = rapt_module_add_child(module, is_gpt ? "c_proj" : "out_proj", (rapt_module *)output);
}

rapt_multi_head_attention *rapt_multi_head_attention_new(const rapt_multi_head_attention_config *c)
{
    RAPT_SCOPE;
    if (!c) {
        rapt_fail(RAPT_ERROR_NULL, rapt_multi_head_kind.name, "the configuration is NULL");
        return NULL;
    }
    rapt_multi_head_attention *m = check_config(c) ? rapt_module_new(sizeof *m, &rapt_multi_head_kind) : NULL;
    if (!m) { /* what is new of its parts goes with it */
        rapt_module_add_child(NULL, NULL, (rapt_module *)c->pooling);
        rapt_module_add_child(NULL, NULL, (rapt_module *)c->rotary);
        return NULL;
    }
    const int64_t inputs[RAPT_ATTENTION_PARTS] = {c->query_size ? c->query_size : c->hidden,
                                                  c->key_size ? c->key_size : c->hidden,
                                                  c->value_size ? c->value_size : c->hidden};
    m->heads = c->heads;
    m->groups = c->groups ? c->groups : c->heads;
    m->head_size = c->hidden / c->heads;
    m->value_size = (c->value_hidden ? c->value_hidden : c->hidden) / c->heads;
    add_projections(m, inputs, c);
    rapt_attention *pooling = c->pooling ? c->pooling : rapt_dot_product_attention_new(c->dropout);
    m->pooling = rapt_module_add_child(&m->module, "attention", (rapt_module *)pooling);
    if (c->sinks && m->pooling && !m->pooling->sinks && !rapt_attention_learn_sinks(m->pooling, m->heads))
        m->module.failed = true;
    if (c->norm_heads) {
        m->q_norm = rapt_module_add_child(&m->module, "q_norm", (rapt_module *)rapt_rms_norm_new(m->head_size));
        m->k_norm = rapt_module_add_child(&m->module, "k_norm", (rapt_module *)rapt_rms_norm_new(m->head_size));
    }
    if (c->rotary) m->rotary = rapt_module_add_child(&m->module, "rotary", (rapt_module *)c->rotary);
    return rapt_module_finish(&m->module);
}

bool rapt_multi_head_attention_set_head_mask(rapt_multi_head_attention *m, rapt_tensor *mask)
{
    char text[128];
    if (!m) return rapt_fail(RAPT_ERROR_NULL, rapt_multi_head_kind.name, "the layer is NULL");
    if (rapt_was_freed(rapt_multi_head_kind.name, m)) return false;
    if (mask && (mask->rank != 1 || mask->shape[0] != m->heads || !rapt_is_floating(mask)))
        return rapt_fail(RAPT_ERROR_SHAPE, rapt_multi_head_kind.name,
                         "a floating head mask of shape (%lld) expected, not %s", (long long)m->heads,
                         rapt_describe(mask, text, sizeof text));
    const rapt_dtype dtype = m->out_proj->weight->dtype;
    if (mask && mask->dtype != dtype)
        return rapt_fail(RAPT_ERROR_DTYPE, rapt_multi_head_kind.name,
                         "a head mask of %s, as the layer is, expected, not of %s", rapt_dtype_name(dtype),
                         rapt_dtype_name(mask->dtype));
    rapt_retain(mask);
    rapt_release(m->head_mask);
    m->head_mask = mask;
    return true;
}
