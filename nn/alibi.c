/* Relative biases for the scores of each head: ALiBi's fixed slopes, and learned numbers. */
#include <rapt/positions.h>

#include <math.h>
#include <stdio.h>

#include "nn/alibi.h"
#include "nn/entry.h"
#include "tensor/core.h"
#include "tensor/debug.h"

bool rapt_check_reach(const char *op, int64_t reach)
{
    if (reach < 0) return rapt_fail(RAPT_ERROR_VALUE, op, "reach %lld; 0 or more expected", (long long)reach);
    return reach <= (INT64_MAX - 1) / 2 || rapt_fail(RAPT_ERROR_VALUE, op,
                                                     "reach %lld is too large: 2 reach + 1 positions are more than 64 "
                                                     "bits can count",
                                                     (long long)reach);
}

static bool check(const char *op, int64_t heads, int64_t reach)
{
    if (heads < 1) return rapt_fail(RAPT_ERROR_VALUE, op, "%lld heads; 1 or more expected", (long long)heads);
    return rapt_check_reach(op, reach);
}

/* --- ALiBi --- */

double rapt_alibi_slope(int64_t head, int64_t heads)
{
    int64_t power = 1;
    while (power <= heads / 2) power *= 2;
    const double place = head < power ? (double)head + 1 : (double)(head - power) + 0.5;
    return exp2(-8 * place / (double)power);
}

static void describe_alibi(const rapt_module *module, char *text, size_t size)
{
    snprintf(text, size, "%lld heads", (long long)((const rapt_alibi *)module)->heads);
}

static const rapt_module_class alibi_kind = {.name = "ALiBi", .describe = describe_alibi};

rapt_alibi *rapt_alibi_new(int64_t heads)
{
    if (!check(alibi_kind.name, heads, 0)) return NULL;
    rapt_alibi *alibi = rapt_module_new(sizeof *alibi, &alibi_kind);
    if (!alibi) return NULL;
    alibi->heads = heads;
    return rapt_module_finish(&alibi->module);
}

rapt_tensor *rapt_alibi_forward(rapt_alibi *alibi, rapt_dtype dtype, int64_t reach)
{
    const char *op = alibi_kind.name;
    if (!alibi) {
        rapt_fail(RAPT_ERROR_NULL, op, "the layer is NULL");
        return NULL;
    }
    if (rapt_was_freed(op, alibi)) return NULL;
    if (!rapt_dtype_is_floating(dtype)) {
        rapt_fail(RAPT_ERROR_DTYPE, op, "biases in %s; float32 or float64 expected", rapt_dtype_name(dtype));
        return NULL;
    }
    if (!check(op, alibi->heads, reach)) return NULL;
    RAPT_ENTER(&alibi->module);
    RAPT_SCOPE;
    rapt_tensor *biases = rapt_new(op, RAPT_FLOAT64, RAPT_SHAPE(alibi->heads, 1, 2 * reach + 1));
    if (!biases) return NULL;
    double *bias = (double *)(void *)biases->data;
    for (int64_t head = 0; head < alibi->heads; head++) {
        const double m = rapt_alibi_slope(head, alibi->heads);
        for (int64_t position = -reach; position <= reach; position++) *bias++ = -m * fabs((double)position);
    }
    return rapt_keep(rapt_cast(biases, dtype));
}

/* --- learned --- */

static void describe_learned(const rapt_module *module, char *text, size_t size)
{
    const rapt_tensor *weight = ((const rapt_relative_bias *)module)->weight;
    snprintf(text, size, "%lld heads, reach %lld", (long long)rapt_size(weight, 0),
             (long long)rapt_size(weight, 1) / 2);
}

static const rapt_module_class learned_kind = {.name = "RelativeBias", .describe = describe_learned};

rapt_relative_bias *rapt_relative_bias_new(int64_t heads, int64_t reach)
{
    if (!check(learned_kind.name, heads, reach)) return NULL;
    RAPT_SCOPE;
    rapt_relative_bias *bias = rapt_module_new(sizeof *bias, &learned_kind);
    if (!bias) return NULL;
    bias->weight =
        rapt_module_add_parameter(&bias->module, "weight", rapt_zeros(RAPT_FLOAT32, RAPT_SHAPE(heads, 2 * reach + 1)));
    return rapt_module_finish(&bias->module);
}

rapt_tensor *rapt_relative_bias_forward(rapt_relative_bias *bias)
{
    if (!bias) {
        rapt_fail(RAPT_ERROR_NULL, learned_kind.name, "the layer is NULL");
        return NULL;
    }
    RAPT_ENTER(&bias->module);
    return rapt_unsqueeze(bias->weight, 1);
}
