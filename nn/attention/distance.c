/* Biases of scores, given by place or by the distance of key and query. */
#include "nn/mask.h"

#include <string.h>

#include "tensor/core.h"

/* int64 (Q, K): reach + clamp(j − i − offset, −reach, reach) */
static rapt_tensor *distances(int64_t queries, int64_t keys, int64_t reach, int64_t offset)
{
    rapt_tensor *indices = rapt_new("by_distance", RAPT_INT64, RAPT_SHAPE(queries, keys));
    if (!indices) return NULL;
    int64_t *index = (int64_t *)(void *)indices->data;
    for (int64_t i = 0; i < queries; i++)
        for (int64_t j = 0; j < keys; j++) {
            int64_t distance;
            if (__builtin_sub_overflow(j - i, offset, &distance)) distance = offset < 0 ? reach : -reach;
            *index++ = distance < -reach ? 0 : distance > reach ? 2 * reach : reach + distance;
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
    const char *op = "by_distance";
    char text[RAPT_SHAPE_TEXT];
    if (!table) return rapt_fail_null(op, "table");
    if (queries < 0 || keys < 0)
        return rapt_fail(RAPT_ERROR_VALUE, op, "%lld queries and %lld keys; 0 or more expected", (long long)queries,
                         (long long)keys);
    bool fits = table->rank >= 1 + by_query && table->rank <= RAPT_MAX_RANK - !by_query &&
                table->shape[table->rank - 1] % 2 == 1 && (!by_query || table->shape[table->rank - 2] == queries);
    if (fits) return true;
    rapt_shape_text(table->rank, table->shape, text);
    if (!by_query) return rapt_fail(RAPT_ERROR_SHAPE, op, "table (..., 2R + 1) expected, not %s", text);
    return rapt_fail(RAPT_ERROR_SHAPE, op, "table (..., %lld, 2R + 1) expected, not %s", (long long)queries, text);
}

rapt_tensor *rapt_by_distance(rapt_tensor *table, int64_t queries, int64_t keys, int64_t offset, bool by_query)
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
    return rapt_keep(rapt_gather(table, -1, for_each_matrix(table, distances(queries, keys, reach, offset))));
}

rapt_tensor *rapt_sum_by_distance(rapt_tensor *x, int64_t reach, int64_t offset)
{
    if (!x) return NULL;
    RAPT_SCOPE;
    int64_t shape[RAPT_MAX_RANK], queries = x->shape[x->rank - 2], keys = x->shape[x->rank - 1];
    memcpy(shape, x->shape, x->rank * sizeof *shape);
    shape[x->rank - 1] = 2 * reach + 1;
    rapt_tensor *zeros = rapt_zeros((rapt_dtype)x->dtype, x->rank, shape);
    return rapt_keep(rapt_scatter_add(zeros, -1, for_each_matrix(x, distances(queries, keys, reach, offset)), x));
}

/* (B, heads, Q, last) as it meets the scores: without the axis of heads where they have none. */
static rapt_tensor *like(const rapt_tensor *scores, rapt_tensor *tensor)
{
    return scores && scores->rank == 3 ? rapt_squeeze(tensor, 1) : tensor;
}

rapt_tensor *rapt_add_resolved_biases(const rapt_resolved_mask *r, rapt_tensor *scores)
{
    if (r->bias) scores = rapt_add(scores, like(scores, r->bias));
    if (r->distance_bias)
        scores =
            rapt_add(scores, rapt_by_distance(like(scores, r->distance_bias), r->queries, r->keys, r->offset, true));
    return scores;
}

rapt_tensor *rapt_mask_add_biases(const rapt_mask *mask, rapt_tensor *scores)
{
    rapt_resolved_mask r;
    if (!mask || !scores || (!mask->bias && !mask->distance_bias)) return scores;
    RAPT_SCOPE;
    if (!rapt_resolve_mask_for("mask_add_biases", mask, scores, &r)) return NULL;
    return rapt_keep(rapt_add_resolved_biases(&r, scores));
}
