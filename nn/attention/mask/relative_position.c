/* What a table has for the relative position j − i of key and query, laid out for each pair of them, and the way
 * back. */
#include "relative_position.h"

#include <string.h>

#include "tensor/core.h"

static const char *const name = "by_relative_position";

/* reach + clamp(j − place, −reach, reach) for all j */
static void fill_row(int64_t place, int64_t keys, int64_t reach, int64_t *index)
{
    for (int64_t j = 0; j < keys; j++) {
        int64_t position;
        if (__builtin_sub_overflow(j, place, &position)) position = place < 0 ? reach : -reach;
        index[j] = position < -reach ? 0 : position > reach ? 2 * reach : reach + position;
    }
}

/* int64 (Q, K), for queries at i + offset */
static rapt_tensor *positions(int64_t queries, int64_t keys, int64_t reach, int64_t offset)
{
    rapt_tensor *indices = rapt_new(name, RAPT_INT64, RAPT_SHAPE(queries, keys));
    if (!indices) return NULL;
    int64_t *index = (int64_t *)(void *)indices->data;
    for (int64_t i = 0, place; i < queries; i++) {
        if (__builtin_add_overflow(i, offset, &place)) place = INT64_MAX;
        fill_row(place, keys, reach, index + i * keys);
    }
    return indices;
}

/* int64 (Q, K) or, where the mask's places differ by item, (B, 1, Q, K), without the 1 for rank 3 */
static rapt_tensor *positions_under(const rapt_resolved_mask *mask, int64_t reach, int rank)
{
    const rapt_tensor *places = mask->places;
    const int64_t queries = mask->queries, keys = mask->keys;
    if (!places) return positions(queries, keys, reach, mask->offset);
    const int64_t items = rapt_integers_by_item(places) ? mask->batch : 1;
    rapt_tensor *indices = rapt_new(name, RAPT_INT64, RAPT_SHAPE(items, 1, queries, keys));
    if (!indices) return NULL;
    const int64_t *place = rapt_integers_of(places);
    for (int64_t n = 0; n < items * queries; n++)
        fill_row(place[n], keys, reach, (int64_t *)(void *)indices->data + n * keys);
    return rank == 3 ? rapt_squeeze(indices, 1) : indices;
}

/* The indices as often as x (…, Q, last) has matrices. */
static rapt_tensor *for_each_matrix(const rapt_tensor *x, rapt_tensor *indices)
{
    int64_t shape[RAPT_MAX_RANK];
    if (!x || !indices) return NULL;
    memcpy(shape, x->shape, x->rank * sizeof *shape);
    shape[x->rank - 1] = indices->shape[indices->rank - 1];
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

rapt_tensor *rapt_by_place(rapt_tensor *table, const rapt_resolved_mask *mask)
{
    if (!table) return NULL;
    RAPT_SCOPE;
    rapt_tensor *indices = positions_under(mask, table->shape[table->rank - 1] / 2, table->rank);
    return rapt_keep(rapt_gather(table, -1, for_each_matrix(table, indices)));
}

rapt_tensor *rapt_sum_by_place(rapt_tensor *x, int64_t reach, const rapt_resolved_mask *mask)
{
    if (!x) return NULL;
    RAPT_SCOPE;
    int64_t shape[RAPT_MAX_RANK];
    memcpy(shape, x->shape, x->rank * sizeof *shape);
    shape[x->rank - 1] = 2 * reach + 1;
    rapt_tensor *zeros = rapt_zeros(x->dtype, x->rank, shape), *indices = positions_under(mask, reach, x->rank);
    return rapt_keep(rapt_scatter_add(zeros, -1, for_each_matrix(x, indices), x));
}
