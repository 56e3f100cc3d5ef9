/* The parts that encoder and decoder have in common, made from one configuration. */
#include "transformer.h"

#include <float.h>
#include <stdio.h>

#include "nn/options.h"
#include "tensor/core.h"

static bool check_number(const char *op, const char *name, double number)
{
    return (number >= 0 && number <= (double)FLT_MAX) ||
           rapt_fail(RAPT_ERROR_VALUE, op, "a %s of %g; a finite number of at least 0 expected, also as float32", name,
                     number);
}

bool rapt_transformer_check(const char *op, const rapt_transformer_config *c, int layers)
{
    if (!c) return rapt_fail(RAPT_ERROR_NULL, op, "the configuration is NULL");
    if (layers < 1) return rapt_fail(RAPT_ERROR_VALUE, op, "%d layers; 1 or more expected", layers);
    int64_t all_heads;
    if (c->hidden < 1 || c->heads < 1 || (c->head_size == 0 && c->hidden % c->heads != 0))
        return rapt_fail(RAPT_ERROR_VALUE, op,
                         "hidden size %lld and %lld heads; a multiple of 1 or more heads expected, or a head_size",
                         (long long)c->hidden, (long long)c->heads);
    if (c->head_size < 0 || __builtin_mul_overflow(c->head_size, c->heads, &all_heads))
        return rapt_fail(RAPT_ERROR_VALUE, op, "%lld heads with a head_size of %lld; 0 or more expected, of 64 bits",
                         (long long)c->heads, (long long)c->head_size);
    if (c->feed_forward < 1)
        return rapt_fail(RAPT_ERROR_VALUE, op, "a feed-forward size of %lld; 1 or more expected",
                         (long long)c->feed_forward);
    if (!c->rotary && (c->rotary_halves || c->rotary_base > 0 || c->rotary_scaling.factor != 0))
        return rapt_fail(RAPT_ERROR_VALUE, op,
                         "rotary_halves, a rotary_base or rotary_scaling, but positions are not rotary");
    return rapt_check_rotary_scaling(op, &c->rotary_scaling) && rapt_check_names(op, c->names) &&
           check_number(op, "rotary_base", c->rotary_base) && check_number(op, "norm_epsilon", c->norm_epsilon) &&
           rapt_check_probability(op, "dropout", c->dropout) &&
           rapt_check_probability(op, "attention_dropout", c->attention_dropout) &&
           rapt_check_probability(op, "feed_forward_dropout", c->feed_forward_dropout);
}

static void set_epsilon(double epsilon, rapt_layer_norm *norm, rapt_rms_norm *rms_norm)
{
    if (epsilon > 0 && norm) norm->epsilon = epsilon;
    if (epsilon > 0 && rms_norm) rms_norm->epsilon = epsilon;
}

static rapt_rotary *rotary_new(const rapt_transformer_config *c)
{
    rapt_rotary *rotary = rapt_rotary_new();
    if (!rotary) return NULL;
    rotary->halves = c->rotary_halves;
    rotary->scaling = c->rotary_scaling;
    if (c->rotary_base > 0) rotary->base = c->rotary_base;
    return rotary;
}

rapt_multi_head_attention *rapt_transformer_attention_new(const rapt_transformer_config *c, bool is_self,
                                                          rapt_rotary *rotary)
{
    const int64_t head_size = c->head_size > 0 ? c->head_size : c->hidden / c->heads;
    rapt_multi_head_attention_config config = {.hidden = head_size * c->heads,
                                               .heads = c->heads,
                                               .query_size = c->hidden,
                                               .key_size = c->hidden,
                                               .value_size = c->hidden,
                                               .output_size = c->hidden,
                                               .norm_heads = c->norm_heads,
                                               .groups = c->groups,
                                               .bias = c->attention_bias,
                                               .dropout = c->attention_dropout,
                                               .sinks = c->sinks,
                                               .names = c->names};
    if (c->scoring) {
        config.pooling = rapt_attention_new(c->scoring(head_size, c->context), c->attention_dropout);
        if (!config.pooling) return NULL;
        config.dropout = 0; /* the pooling has it */
    }
    if (c->rotary && is_self) {
        config.rotary = rotary ? rotary : rotary_new(c);
        if (!config.rotary) {
            rapt_module_add_child(NULL, NULL, (rapt_module *)config.pooling);
            return NULL;
        }
    }
    rapt_multi_head_attention *attention = rapt_multi_head_attention_new(&config);
    if (attention) {
        set_epsilon(c->norm_epsilon, NULL, attention->q_norm);
        set_epsilon(c->norm_epsilon, NULL, attention->k_norm);
    }
    return attention;
}

rapt_feed_forward *rapt_transformer_feed_forward_new(const rapt_transformer_config *c)
{
    return rapt_feed_forward_new(&(rapt_feed_forward_config){.in = c->hidden,
                                                             .inner = c->feed_forward,
                                                             .out = c->hidden,
                                                             .kind = c->kind,
                                                             .bias = !c->no_bias,
                                                             .dropout = c->feed_forward_dropout,
                                                             .names = c->names});
}

/* --- norms --- */

void rapt_norm_add(rapt_module *module, const char *name, int64_t size, int flags, rapt_layer_norm **norm,
                   rapt_rms_norm **rms_norm)
{
    if (flags == RAPT_RMS_NORM)
        *rms_norm = rapt_module_add_child(module, name, (rapt_module *)rapt_rms_norm_new(size));
    else
        *norm = rapt_module_add_child(module, name, (rapt_module *)rapt_layer_norm_new(size, flags));
}

rapt_tensor *rapt_norm_forward(rapt_layer_norm *norm, rapt_rms_norm *rms_norm, rapt_tensor *x)
{
    if (rms_norm) return rapt_rms_norm_forward(rms_norm, x);
    return norm ? rapt_layer_norm_forward(norm, x) : x;
}

static int norm_flags(const rapt_transformer_config *c)
{
    return c->rms_norm ? RAPT_RMS_NORM : c->no_bias ? RAPT_NO_BIAS : RAPT_BIAS;
}

rapt_add_norm *rapt_transformer_add_norm_new(const rapt_transformer_config *c)
{
    rapt_add_norm *add_norm = rapt_add_norm_new(c->hidden, norm_flags(c), c->dropout);
    if (!add_norm) return NULL;
    add_norm->norm_first = c->norm_first;
    set_epsilon(c->norm_epsilon, add_norm->norm, add_norm->rms_norm);
    return add_norm;
}

void rapt_transformer_add_final_norm(rapt_module *module, const rapt_transformer_config *c, rapt_layer_norm **norm,
                                     rapt_rms_norm **rms_norm)
{
    if (!c->final_norm) return;
    rapt_norm_add(module, c->names == RAPT_NAMES_GPT2 ? "ln_f" : "norm", c->hidden, norm_flags(c), norm, rms_norm);
    set_epsilon(c->norm_epsilon, *norm, *rms_norm);
}

rapt_module *rapt_layer_list_new(void)
{
    static const rapt_module_class kind = {.name = "Layers"};
    return rapt_module_new(sizeof(rapt_module), &kind);
}

bool rapt_layer_list_add(rapt_module *list, int index, rapt_module *layer)
{
    char name[16];
    snprintf(name, sizeof name, "%d", index);
    return rapt_module_add_child(list, name, layer) != NULL;
}
