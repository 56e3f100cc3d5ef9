/* The op ‖q − k‖² for every query and key. */
#include "squared_distance.h"

#include <rapt/ops.h>

#include "attention/zero_gradient.h"
#include "tensor/core.h"
#include "tensor/kernels.h"
#include "tensor/parallel.h"

/* One run, for rapt_parallel: an item is a row of the output. */
typedef struct distances {
    rapt_dtype dtype;
    int64_t queries, keys, size; /* of one item of the batch */
    int rank;                    /* of the output */
    int64_t shape[RAPT_MAX_RANK], query_strides[RAPT_MAX_RANK], key_strides[RAPT_MAX_RANK];
    const char *query_data, *key_data;
    char *out;
} distances;

/* Where the matrix of that item of the batch begins, in elements. */
static int64_t offset_of(const distances *d, const int64_t *strides, int64_t item)
{
    int64_t offset = 0;
    for (int axis = d->rank - 3; axis >= 0; axis--) {
        offset += item % d->shape[axis] * strides[axis];
        item /= d->shape[axis];
    }
    return offset;
}

static void run_rows(void *context, int64_t first, int64_t last)
{
    const distances *d = context;
    const int64_t bytes = (int64_t)rapt_dtype_size(d->dtype);
    while (first < last) {
        const int64_t item = first / d->queries, row = first % d->queries;
        const int64_t rows = last - first < d->queries - row ? last - first : d->queries - row;
        const char *query = d->query_data + (offset_of(d, d->query_strides, item) + row * d->size) * bytes;
        const char *key = d->key_data + offset_of(d, d->key_strides, item) * bytes;
        rapt_kernel.distance.squared[d->dtype](rows, d->keys, d->size, query, key, d->out + first * d->keys * bytes);
        first += rows;
    }
}

/* s_ij = Σ (q_i − k_j)² */
static rapt_tensor *forward(rapt_call *call)
{
    const char *op = "squared_distance";
    rapt_tensor *queries = rapt_call_input(call, 0), *keys = rapt_call_input(call, 1);
    RAPT_SCOPE;
    const int64_t count = keys->shape[keys->rank - 2];
    const int64_t padding = (RAPT_DISTANCE_TILE - count % RAPT_DISTANCE_TILE) % RAPT_DISTANCE_TILE;
    rapt_tensor *transposed = rapt_transpose(keys, -1, -2);
    if (padding > 0) transposed = rapt_pad(transposed, -1, 0, padding, 0);
    const rapt_tensor *q = rapt_as_contiguous(queries), *k = transposed ? rapt_as_contiguous(transposed) : NULL;
    if (!q || !k) return NULL;
    distances d = {.dtype = q->dtype,
                   .queries = q->shape[q->rank - 2],
                   .keys = count,
                   .size = q->shape[q->rank - 1],
                   .query_data = q->data,
                   .key_data = k->data};
    if ((d.rank = rapt_score_shape(op, queries, keys, d.shape)) < 0) return NULL;
    rapt_broadcast_strides(q, d.rank, d.shape, d.query_strides);
    rapt_broadcast_strides(k, d.rank, d.shape, d.key_strides);
    rapt_tensor *squares = rapt_new(op, d.dtype, d.rank, d.shape);
    if (!squares) return NULL;
    int64_t rows = d.queries;
    for (int axis = 0; axis < d.rank - 2; axis++) rows *= d.shape[axis];
    d.out = squares->data;
    rapt_parallel(rows, rapt_grain(d.keys * d.size), run_rows, &d);
    rapt_call_save(call, queries);
    rapt_call_save(call, keys);
    return rapt_keep(squares);
}

rapt_tensor *rapt_common_vector(rapt_tensor *x)
{
    enum { most = 15 };
    RAPT_NO_GRADIENT;
    rapt_tensor *some = rapt_slice(x, -2, 0, INT64_MAX, rapt_size(x, -2) / most + 1);
    const int64_t count = rapt_size(some, -2);
    if (count % 2 == 0) some = rapt_pad(some, -2, 0, 1, 0);
    some = rapt_where(rapt_isfinite(some), some, rapt_scalar(rapt_get_dtype(some), 0));
    rapt_tensor *sorted = rapt_sort(some, -2, false, NULL);
    return rapt_slice(sorted, -2, count / 2, count / 2 + 1, 1);
}

/* dq_i = 2 Σ_j g_ij (q_i − k_j), dk_j = 2 Σ_i g_ij (k_j − q_i). What all vectors have in common is taken off before it
 * is multiplied; no difference depends on it. */
static bool vjp(rapt_call *call)
{
    rapt_tensor *g = rapt_mul_scalar(rapt_call_gradient(call, 0), 2);
    rapt_tensor *q = rapt_call_saved(call, 0), *k = rapt_call_saved(call, 1);
    if (!g || !q || !k) return false;
    if (g->count == 0) return rapt_give_zeros(call);
    rapt_tensor *common = rapt_common_vector(q);
    q = rapt_sub(q, common);
    k = rapt_sub(k, common);
    bool good = true;
    if (rapt_call_wants(call, 0)) {
        rapt_tensor *sums = rapt_sum(g, RAPT_AXES(-1), true); /* (…, Q, 1) */
        good = rapt_call_give(call, 0, rapt_sub(rapt_mul(sums, q), rapt_matmul(g, k)));
    }
    if (good && rapt_call_wants(call, 1)) {
        rapt_tensor *transposed = rapt_transpose(g, -1, -2), *sums = rapt_sum(transposed, RAPT_AXES(-1), true);
        good = rapt_call_give(call, 1, rapt_sub(rapt_mul(sums, k), rapt_matmul(transposed, q)));
    }
    return good;
}

static const rapt_op op = {.name = "squared_distance", .forward = forward, .vjp = vjp};

rapt_tensor *rapt_squared_distance(rapt_tensor *queries, rapt_tensor *keys)
{
    return RAPT_APPLY(&op, NULL, queries, keys);
}
