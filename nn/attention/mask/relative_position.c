/* What a table has for the relative position j − i of key and query, laid out for each pair of them, and the way
 * back. */
#include "relative_position.h"

#include <string.h>

#include "tensor/core.h"

static const char *const name = "by_relative_position";

/* int64 (Q, K): reach + clamp(j − i − offset, −reach, reach) */
static rapt_tensor *positions(int64_t queries, int64_t keys, int64_t reach, int64_t offset)
{
    rapt_tensor *indices = rapt_new(name, RAPT_INT64, RAPT_SHAPE(queries, keys));
    if (!indices) return NULL;
    int64_t *index = (int64_t *)(void *)indices->data;
    for (int64_t i = 0; i < queries; i++)
        for (int64_t j = 0; j < keys; j++) {
            int64_t position;
            if (__builtin_sub_overflow(j - i, offset, &position)) position = offset < 0 ? reach : -reach;
            *index++ = position < -reach ? 0 : position > reach ? 2 * reach : reach + position;
        }
    return indices;
}

/* The indices as often as x (…, Q, last) has matrices. */
static rapt_tensor *for_each_matrix(const rapt_tensor *x, rapt_tensor *indices)
{
    int64_t shape[RAPT_MAX_RANK];
    if (!x || !indices) return NULL;
    memcpy(shape, x->shape, x->rank * sizeof *shape);
    shape[x->rank - 1] = indices->shape[1];
    return rapt_expand(indices, x->rank, shape);
}

static bool check_table(const rapt_tensor *table, int64_t queries, int64_t keys, bool by_query)
{
    char text[RAPT_SHAPE_TEXT];
    if (!table) return rapt_fail_null(name, "table");
    if (queries < 0 || keys < 0)
        return rapt_fail(RAPT_ERROR_VALUE, name, "%lld queries and %lld keys; 0 or more expected", (long long)queries,
                         (long long)keys);
    bool fits = table->rank >= 1 + by_query && table->rank <= RAPT_MAX_RANK - !by_query &&
                table->shape[table->rank - 1] % 2 == 1 && (!by_query || table->shape[table->rank - 2] == queries);
    if (fits) return true;
    rapt_shape_text(table->rank, table->shape, text);
    if (!by_query) return rapt_fail(RAPT_ERROR_SHAPE, name, "table (..., 2R + 1) expected, not %s", text);
    return rapt_fail(RAPT_ERROR_SHAPE, name, "table (..., %lld, 2R + 1) expected, not %s", (long long)queries, text);
}

rapt_tensor *rapt_by_relative_position(rapt_tensor *table, int64_t queries, int64_t keys, int64_t offset, bool by_query)
{
    if (!check_table(table, queries, keys, by_query)) return NULL;
    RAPT_SCOPE;
    if (!by_query) {
        int64_t shape[RAPT_MAX_RANK];
        memcpy(shape, table->shape, table->rank * sizeof *shape);
        shape[table->rank] = shape[table->rank - 1];
        shape[table->rank - 1] = queries;
        table = rapt_expand(rapt_unsqueeze(table, -2), table->rank + 1, shape);
    }
    if (!table) return NULL;
    int64_t reach = table->shape[table->rank - 1] / 2;
    return rapt_keep(rapt_gather(table, -1, for_each_matrix(table, positions(queries, keys, reach, offset))));
}

rapt_tensor *rapt_sum_by_relative_position(rapt_tensor *x, int64_t reach, int64_t offset)
{
    if (!x) return NULL;
    RAPT_SCOPE;
    int64_t shape[RAPT_MAX_RANK], queries = x->shape[x->rank - 2], keys = x->shape[x->rank - 1];
    memcpy(shape, x->shape, x->rank * sizeof *shape);
    shape[x->rank - 1] = 2 * reach + 1;
    rapt_tensor *zeros = rapt_zeros(x->dtype, x->rank, shape);
    return rapt_keep(rapt_scatter_add(zeros, -1, for_each_matrix(x, positions(queries, keys, reach, offset)), x));
}
