/* What the library's own scoring functions share. */
#include "scoring.h"

#include <stdio.h>

#include "nn/options.h"
#include "tensor/core.h"

bool rapt_check_vectors(const rapt_scoring *scoring, const char *what, const rapt_tensor *vectors, int64_t size)
{
    const char *op = scoring->module.kind->name;
    char text[RAPT_SHAPE_TEXT], expected[32] = "size";
    if (!vectors) return rapt_fail(RAPT_ERROR_NULL, op, "the %s are NULL", what);
    if (vectors->rank >= 2 && rapt_is_floating(vectors) &&
        (size == RAPT_ANY_SIZE || size == vectors->shape[vectors->rank - 1]))
        return true;
    if (size != RAPT_ANY_SIZE) snprintf(expected, sizeof expected, "%lld", (long long)size);
    return rapt_fail(rapt_is_floating(vectors) ? RAPT_ERROR_SHAPE : RAPT_ERROR_DTYPE, op,
                     "floating %s (..., length, %s) expected, not %s %s", what, expected,
                     rapt_dtype_name(vectors->dtype), rapt_shape_text(vectors->rank, vectors->shape, text));
}

bool rapt_check_sizes(const rapt_scoring *scoring, const rapt_tensor *queries, int64_t query_size,
                      const rapt_tensor *keys, int64_t key_size)
{
    if (!rapt_check_vectors(scoring, "queries", queries, query_size)) return false;
    if (key_size == RAPT_SIZE_OF_QUERIES) key_size = queries->shape[queries->rank - 1];
    if (!rapt_check_vectors(scoring, "keys", keys, key_size)) return false;
    return queries->dtype == keys->dtype ||
           rapt_fail(RAPT_ERROR_DTYPE, scoring->module.kind->name,
                     "the queries are %s, the keys %s; one dtype expected " RAPT_CAST_CURE,
                     rapt_dtype_name(queries->dtype), rapt_dtype_name(keys->dtype));
}

bool rapt_check_pair(const rapt_scoring *scoring, const rapt_tensor *queries, int64_t query_size,
                     const rapt_tensor *keys, int64_t key_size)
{
    int64_t shape[RAPT_MAX_RANK];
    return rapt_check_sizes(scoring, queries, query_size, keys, key_size) &&
           rapt_score_shape(scoring->module.kind->name, queries, keys, shape) >= 0;
}

int rapt_score_shape(const char *op, const rapt_tensor *queries, const rapt_tensor *keys, int64_t *shape)
{
    rapt_tensor query_items = rapt_header_of(queries),
                key_items = rapt_header_of(keys); /* headers without the last two axes, for this one call */
    query_items.rank = (uint8_t)(query_items.rank - 2);
    key_items.rank = (uint8_t)(key_items.rank - 2);
    int rank = rapt_broadcast(op, &query_items, &key_items, shape);
    if (rank < 0) return -1;
    shape[rank] = queries->shape[queries->rank - 2];
    shape[rank + 1] = keys->shape[keys->rank - 2];
    return rank + 2;
}

rapt_divisor rapt_add_divisor(rapt_module *module, const char *name, double value, bool learns)
{
    RAPT_SCOPE;
    rapt_divisor divisor = {.value = value};
    if (!rapt_check_above_0(module->kind->name, name, value)) {
        module->failed = true;
    } else if (learns) {
        divisor.parameter = rapt_module_add_parameter(module, name, rapt_full(RAPT_FLOAT32, RAPT_SHAPE(1), value));
    }
    return divisor;
}

rapt_tensor *rapt_divisor_tensor(const rapt_divisor *divisor, rapt_dtype dtype)
{
    return divisor->parameter ? divisor->parameter : rapt_scalar(dtype, divisor->value);
}

void rapt_describe_divisor(const rapt_divisor *divisor, const char *name, char *text, size_t size)
{
    snprintf(text, size, "%s %g%s", name, divisor->value, divisor->parameter ? " at first, learned" : "");
}
