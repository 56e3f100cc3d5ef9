/* Softmax over the keys that a mask leaves to each query. */
#include <rapt/mask.h>

#include "normalizers.h"
#include "tensor/map.h"

/* A header of the ranges (B or 1, Q, 2) for the rows of x: one range for each. */
static rapt_tensor range_rows(const rapt_tensor *x, const rapt_tensor *ranges)
{
    rapt_tensor rows = rapt_header_of(ranges);
    rows.rank = (uint8_t)(x->rank - 1);
    rows.count = 1;
    rows.contiguous = false;
    for (int axis = 0; axis < rows.rank; axis++) {
        rows.shape[axis] = x->shape[axis];
        rows.strides[axis] = 0;
        rows.count *= x->shape[axis];
    }
    rows.strides[0] = ranges->shape[0] == 1 ? 0 : ranges->strides[0];
    rows.strides[rows.rank - 1] = ranges->strides[1];
    return rows;
}

/* A header of bytes (B, heads, Q, K) for x, which may be without heads; the row of a query is dense or one byte. */
static rapt_tensor seen_rows(const rapt_tensor *x, const rapt_tensor *seen)
{
    rapt_tensor rows = rapt_header_of(seen);
    if (x->rank == 4) return rows;
    rows.rank = 3;
    rows.contiguous = false;
    for (int axis = 1; axis < 3; axis++) {
        rows.shape[axis] = seen->shape[axis + 1];
        rows.strides[axis] = seen->strides[axis + 1];
    }
    return rows;
}

/* Runs the loop over the rows of out and the other operands, which are like it. */
static bool run(const rapt_loops loops, int64_t cost, int count, const rapt_tensor *const *tensors,
                const rapt_tensor *ranges, const rapt_tensor *seen)
{
    const rapt_tensor *out = tensors[0], *operands[RAPT_MAX_OPERANDS];
    const int last = out->rank - 1;
    rapt_masked_row row = {.n = out->shape[last], .has_ranges = ranges, .has_seen = seen};
    rapt_tensor headers[2];
    for (int i = 0; i < count; i++)
        if (!(operands[i] = rapt_as_contiguous(tensors[i]))) return false;
    if (ranges) headers[0] = range_rows(out, ranges);
    if (seen) {
        row.seen_repeats = seen->strides[3] == 0;
        if (seen->strides[3] > 1 && row.n > 1 && !(seen = rapt_as_contiguous(seen))) return false;
        headers[1] = seen_rows(out, seen);
    }
    operands[count] = ranges ? &headers[0] : out;
    operands[count + 1] = seen ? &headers[1] : out;
    rapt_map_along(last, loops[out->dtype], &row, cost * row.n, count + 2, operands);
    return true;
}

/* dx = y (g − Σ g y), over the keys that the row sees */
static rapt_tensor *backward_forward(rapt_call *call)
{
    rapt_tensor *g = rapt_call_input(call, 0), *y = rapt_call_input(call, 1), *ranges = rapt_call_input(call, 2),
                *seen = rapt_call_input(call, 3);
    RAPT_SCOPE;
    rapt_tensor *dx = rapt_keep(rapt_new("masked_softmax_backward", y->dtype, y->rank, y->shape));
    if (!dx || !run(rapt_kernel.softmax.masked_softmax_backward, 2, 3, (const rapt_tensor *[]){dx, g, y}, ranges, seen))
        return NULL;
    for (int i = 0; i < 4; i++) rapt_call_save(call, rapt_call_input(call, i));
    return dx;
}

static const rapt_op backward_op;

static rapt_tensor *row_sums(rapt_tensor *x)
{
    return rapt_sum(x, RAPT_AXES(-1), true);
}

/* x, and 0 at the keys that are not seen. */
static rapt_tensor *keep_seen(rapt_tensor *x, rapt_tensor *seen)
{
    return x && seen ? rapt_where(seen, x, rapt_zeros(x->dtype, 0, NULL)) : x;
}

/* Σ u dx: dg = y (u − Σ u y), dy = u (g − Σ g y) − g Σ u y, where g and u count as 0 at keys that are not seen */
static bool backward_vjp(rapt_call *call)
{
    rapt_tensor *g = rapt_call_saved(call, 0), *y = rapt_call_saved(call, 1), *ranges = rapt_call_saved(call, 2),
                *bytes = rapt_call_saved(call, 3), *u = rapt_call_gradient(call, 0), *seen;
    if (rapt_call_wants(call, 0) && !rapt_call_give(call, 0, RAPT_APPLY(&backward_op, NULL, u, y, ranges, bytes)))
        return false;
    if (!rapt_call_wants(call, 1)) return true;
    if (!y || !rapt_join_seen(ranges, bytes, y->shape[y->rank - 1], &seen)) return false;
    if (seen && y->rank == 3) seen = rapt_squeeze(seen, 1);
    g = keep_seen(g, seen);
    u = keep_seen(u, seen);
    rapt_tensor *first = rapt_mul(u, rapt_sub(g, row_sums(rapt_mul(g, y))));
    return rapt_call_give(call, 1, rapt_sub(first, rapt_mul(g, row_sums(rapt_mul(u, y)))));
}

static const rapt_op backward_op = {.name = "masked_softmax_backward",
                                    .forward = backward_forward,
                                    .vjp = backward_vjp,
                                    .optional = 1U << 2 | 1U << 3};

/* y = exp x / Σ exp x: dx = y (dy − Σ dy y), over the keys that the row sees */
static rapt_tensor *forward(rapt_call *call)
{
    rapt_tensor *scores = rapt_call_input(call, 0), *ranges = rapt_call_input(call, 1),
                *seen = rapt_call_input(call, 2);
    RAPT_SCOPE;
    rapt_tensor *y = rapt_keep(rapt_new("masked_softmax", scores->dtype, scores->rank, scores->shape));
    if (!y || !run(rapt_kernel.softmax.masked_softmax, 8, 2, (const rapt_tensor *[]){y, scores}, ranges, seen))
        return NULL;
    rapt_call_save(call, y);
    rapt_call_save(call, ranges);
    rapt_call_save(call, seen);
    return y;
}

static bool vjp(rapt_call *call)
{
    return rapt_call_give(call, 0,
                          RAPT_APPLY(&backward_op, NULL, rapt_call_gradient(call, 0), rapt_call_saved(call, 0),
                                     rapt_call_saved(call, 1), rapt_call_saved(call, 2)));
}

static const rapt_op op = {.name = "masked_softmax", .forward = forward, .vjp = vjp, .optional = 1U << 1 | 1U << 2};

/* The scores of unseen keys become −10⁶. */
static rapt_tensor *fill_million(const rapt_resolved_mask *r, rapt_tensor *scores)
{
    rapt_tensor *seen;
    if (!scores || !rapt_join_seen(r->ranges, r->seen, r->keys, &seen)) return NULL;
    if (!seen) return scores;
    return rapt_where(scores->rank == 3 ? rapt_squeeze(seen, 1) : seen, scores, rapt_scalar(scores->dtype, -1e6));
}

rapt_tensor *rapt_masked_softmax_resolved(rapt_tensor *scores, const rapt_resolved_mask *mask)
{
    RAPT_SCOPE;
    scores = rapt_add_resolved_biases(mask, scores);
    if (mask->fills_million) return rapt_keep(rapt_softmax(fill_million(mask, scores), -1));
    return rapt_keep(RAPT_APPLY(&op, NULL, scores, mask->ranges, mask->seen));
}

rapt_tensor *rapt_masked_softmax(rapt_tensor *scores, const rapt_mask *mask)
{
    rapt_resolved_mask resolved;
    RAPT_SCOPE;
    if (!rapt_resolve_mask_for("masked_softmax", mask, scores, &resolved)) return NULL;
    return rapt_keep(rapt_masked_softmax_resolved(scores, &resolved));
}
