/* Relative positions (Shaw et al. 2018) as a scoring function: a(q, k) = (qᵀk + qᵀr) / √d, where r depends on j − i. */
#include <math.h>
#include <stdio.h>

#include <rapt/initialize.h>

#include "nn/fused_dot.h"
#include "scoring.h"

typedef struct relative {
    rapt_scoring scoring;
    rapt_tensor *key_table; /* (2·reach + 1, size) */
    int64_t reach, size;
} relative;

/* q / √d */
static rapt_tensor *scaled(const relative *r, rapt_tensor *queries)
{
    return rapt_mul_scalar(queries, 1 / sqrt((double)r->size));
}

static rapt_tensor *score(rapt_scoring *scoring, rapt_tensor *queries, rapt_tensor *keys)
{
    const relative *r = (const relative *)scoring;
    if (!rapt_check_pair(scoring, queries, r->size, keys, r->size)) return NULL;
    RAPT_SCOPE;
    return rapt_keep(rapt_matmul(scaled(r, queries), rapt_transpose(keys, -2, -1)));
}

static rapt_tensor *attend(rapt_scoring *scoring, const rapt_attention_call *call)
{
    const relative *r = (const relative *)scoring;
    if (!rapt_check_sizes(scoring, call->queries, r->size, call->keys, r->size)) return NULL;
    return rapt_fused_dot(call->queries, call->keys, 1 / sqrt((double)r->size), call);
}

/* qᵀr / √d for each row r of the table: (…, Q, 2·reach + 1) */
static rapt_tensor *relative_bias(rapt_scoring *scoring, rapt_tensor *queries)
{
    const relative *r = (const relative *)scoring;
    if (!rapt_check_vectors(scoring, "queries", queries, r->size)) return NULL;
    RAPT_SCOPE;
    return rapt_keep(rapt_affine(scaled(r, queries), r->key_table, NULL));
}

static void describe(const rapt_module *module, char *text, size_t size)
{
    const relative *r = (const relative *)module;
    snprintf(text, size, "%lld, reach %lld%s", (long long)r->size, (long long)r->reach,
             r->scoring.relative_values ? ", values" : "");
}

static const rapt_module_class kind = {.name = "Relative", .describe = describe};

/* A parameter (2·reach + 1, size), one row for each relative position. */
static rapt_tensor *add_table(relative *r, const char *name, int64_t size)
{
    rapt_tensor *table = rapt_empty(RAPT_FLOAT32, RAPT_SHAPE(2 * r->reach + 1, size));
    if (table && !rapt_init_xavier_uniform(table, 1)) table = NULL;
    return rapt_module_add_parameter(&r->scoring.module, name, table);
}

rapt_scoring *rapt_relative_scoring_new(int64_t size, int64_t value_size, int64_t reach)
{
    if (size < 1 || value_size < 0 || reach < 0 || reach > INT32_MAX) {
        rapt_fail(RAPT_ERROR_VALUE, kind.name,
                  "size %lld, value size %lld, reach %lld; a size of 1 or more and others of 0 or more, a reach up to "
                  "2147483647, expected",
                  (long long)size, (long long)value_size, (long long)reach);
        return NULL;
    }
    RAPT_SCOPE;
    relative *r = rapt_module_new(sizeof *r, &kind);
    if (!r) return NULL;
    r->size = size;
    r->reach = reach;
    r->scoring.score = score;
    r->scoring.attend = attend;
    r->scoring.relative_bias = relative_bias;
    r->key_table = add_table(r, "key_table", size);
    if (value_size > 0) r->scoring.relative_values = add_table(r, "value_table", value_size);
    return rapt_module_finish(&r->scoring.module);
}
