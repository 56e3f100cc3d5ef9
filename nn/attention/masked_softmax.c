/* Masked softmax: each row of scores sees only its first keys. */
#include <rapt/attention.h>

#include <math.h>

#include "tensor/core.h"
#include "tensor/kernels.h"
#include "tensor/parallel.h"

/* Where the rows of one run are, for rapt_parallel. */
typedef struct rows {
    rapt_dtype dtype;
    int64_t columns;
    const int64_t *lengths;
    const void *a, *b; /* forward: scores; backward: y and g */
    void *out;
} rows;

static void forward_rows(void *context, int64_t first, int64_t last)
{
    const rows *r = context;
    rapt_kernel.masked_softmax.forward[r->dtype](first, last, r->columns, r->lengths, r->a, r->out);
}

static void backward_rows(void *context, int64_t first, int64_t last)
{
    const rows *r = context;
    rapt_kernel.masked_softmax.backward[r->dtype](first, last, r->columns, r->lengths, r->a, r->b, r->out);
}

static const rapt_op backward_op;

static bool check(const rapt_tensor *scores, const rapt_tensor *lengths)
{
    const char *op = "masked_softmax";
    char a[RAPT_SHAPE_TEXT], b[RAPT_SHAPE_TEXT];
    if (scores->rank != 3)
        return rapt_fail(RAPT_ERROR_SHAPE, op, "scores (B, Q, K) expected, not %s",
                         rapt_shape_text(scores->rank, scores->shape, a));
    if (!rapt_is_floating(scores))
        return rapt_fail(RAPT_ERROR_DTYPE, op, "scores are %s; floating expected",
                         rapt_dtype_name((rapt_dtype)scores->dtype));
    bool fits = !lengths || ((lengths->rank == 1 || lengths->rank == 2) && lengths->shape[0] == scores->shape[0] &&
                             (lengths->rank == 1 || lengths->shape[1] == scores->shape[1]));
    return fits || rapt_fail(RAPT_ERROR_SHAPE, op, "valid lengths (B) or (B, Q) expected for scores %s, not %s",
                             rapt_shape_text(scores->rank, scores->shape, a),
                             rapt_shape_text(lengths->rank, lengths->shape, b));
}

/* Keys j with j < length, out of `keys`. */
static int64_t keys_below(double length, int64_t keys)
{
    if (!(length > 0)) return 0;
    return length >= (double)keys ? keys : (int64_t)ceil(length);
}

/* int64 (B·Q): how many keys each row sees. */
static rapt_tensor *count_keys(const rapt_tensor *scores, const rapt_tensor *lengths)
{
    int64_t batch = scores->shape[0], queries = scores->shape[1], keys = scores->shape[2];
    rapt_tensor *counts = rapt_empty(RAPT_INT64, RAPT_SHAPE(batch * queries));
    int64_t *count = counts ? (int64_t *)(void *)counts->data : NULL;
    for (int64_t row = 0; counts && row < batch * queries; row++) {
        const int64_t at[] = {row / queries, row % queries};
        count[row] = lengths ? keys_below(rapt_at(lengths, at), keys) : keys;
    }
    return counts;
}

static rapt_tensor *forward(rapt_call *call)
{
    rapt_tensor *scores = rapt_call_input(call, 0), *lengths = rapt_call_input(call, 1);
    if (!check(scores, lengths)) return NULL;
    RAPT_SCOPE;
    const rapt_tensor *dense = rapt_as_contiguous(scores);
    rapt_tensor *counts = count_keys(scores, lengths), *weights = rapt_keep(rapt_empty_like(scores));
    if (!dense || !counts || !weights) return NULL;
    rows r = {(rapt_dtype)scores->dtype,
              scores->shape[2],
              (const int64_t *)(void *)counts->data,
              dense->data,
              NULL,
              weights->data};
    rapt_parallel(scores->shape[0] * scores->shape[1], rapt_grain(r.columns * 8), forward_rows, &r);
    rapt_call_save(call, weights);
    rapt_call_save(call, counts);
    return weights;
}

static bool vjp(rapt_call *call)
{
    return rapt_call_give(call, 0,
                          RAPT_APPLY(&backward_op, NULL, rapt_call_saved(call, 0), rapt_call_gradient(call, 0),
                                     rapt_call_saved(call, 1)));
}

static const rapt_op op = {.name = "masked_softmax", .forward = forward, .vjp = vjp, .optional = 1u << 1};

/* dx = y · (g − Σ g y), over the keys that the row sees */
static rapt_tensor *backward_forward(rapt_call *call)
{
    rapt_tensor *y = rapt_call_input(call, 0), *g = rapt_call_input(call, 1), *counts = rapt_call_input(call, 2);
    RAPT_SCOPE;
    const rapt_tensor *dense_y = rapt_as_contiguous(y), *dense_g = rapt_as_contiguous(g);
    rapt_tensor *dx = rapt_keep(rapt_empty_like(y));
    if (!dense_y || !dense_g || !dx) return NULL;
    rows r = {(rapt_dtype)y->dtype, y->shape[2],   (const int64_t *)(void *)counts->data,
              dense_y->data,        dense_g->data, dx->data};
    rapt_parallel(y->shape[0] * y->shape[1], rapt_grain(r.columns * 2), backward_rows, &r);
    for (int i = 0; i < 3; i++) rapt_call_save(call, rapt_call_input(call, i));
    return dx;
}

/* backward of dx = y·(g − Σ g y): dg = y·(u − Σ u y), dy = u·(g − Σ g y) − g·Σ u y */
static bool backward_vjp(rapt_call *call)
{
    rapt_tensor *y = rapt_call_saved(call, 0), *g = rapt_call_saved(call, 1), *counts = rapt_call_saved(call, 2);
    rapt_tensor *u = rapt_call_gradient(call, 0);
    if (rapt_call_wants(call, 1) && !rapt_call_give(call, 1, RAPT_APPLY(&backward_op, NULL, y, u, counts)))
        return false;
    if (!rapt_call_wants(call, 0)) return true;
    rapt_tensor *g_y = rapt_sum(rapt_mul(g, y), RAPT_AXES(-1), true),
                *u_y = rapt_sum(rapt_mul(u, y), RAPT_AXES(-1), true);
    return rapt_call_give(call, 0, rapt_sub(rapt_mul(u, rapt_sub(g, g_y)), rapt_mul(g, u_y)));
}

static const rapt_op backward_op = {.name = "masked_softmax_backward",
                                    .forward = backward_forward,
                                    .vjp = backward_vjp};

rapt_tensor *rapt_masked_softmax(rapt_tensor *scores, rapt_tensor *valid_lengths)
{
    return RAPT_APPLY(&op, NULL, scores, valid_lengths);
}
