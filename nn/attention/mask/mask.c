/* What a mask lets a query see: its fields, checked and made ready for one shape of scores. */
#include "nn/mask.h"

#include <math.h>

#include "relative_position.h"
#include "tensor/debug.h"

const char *rapt_scores_text(const rapt_resolved_mask *r, char text[RAPT_SHAPE_TEXT])
{
    const int64_t with_heads[] = {r->batch, r->heads, r->queries, r->keys}, without[] = {r->batch, r->queries, r->keys};
    return r->heads == 1 ? rapt_shape_text(3, without, text) : rapt_shape_text(4, with_heads, text);
}

bool rapt_mask_move(const char *op, const rapt_mask *mask, int64_t places, rapt_mask *moved)
{
    *moved = mask ? *mask : (rapt_mask){0};
    const int64_t offset = moved->offset;
    return !__builtin_add_overflow(offset, places, &moved->offset) ||
           rapt_fail(RAPT_ERROR_VALUE, op, "the mask's offset %lld is too large", (long long)offset);
}

bool rapt_check_starts(const char *op, const rapt_mask *mask)
{
    return !mask || mask->starts || !mask->key_starts ||
           rapt_fail(RAPT_ERROR_NULL, op, "the mask has key_starts, but no starts");
}

/* The tensor of a mask so that it broadcasts to (B, heads, Q, last) by numpy's rules; NULL after an error. */
static rapt_tensor *align(const char *op, const char *field, rapt_tensor *tensor, const rapt_resolved_mask *r,
                          int64_t last)
{
    const int64_t shape[] = {r->batch, r->heads, r->queries, last};
    rapt_tensor *aligned = tensor->rank == 3 && r->heads == 1 ? rapt_unsqueeze(tensor, 1) : tensor;
    bool fits = aligned && aligned->rank <= 4;
    for (int i = 1; fits && i <= aligned->rank; i++) {
        int64_t size = aligned->shape[aligned->rank - i];
        fits = size == 1 || size == shape[4 - i];
    }
    if (fits || !aligned) return aligned;
    char a[RAPT_SHAPE_TEXT], b[RAPT_SHAPE_TEXT];
    const bool is_of_keys = tensor->rank == 2 && tensor->shape[0] == r->batch && tensor->shape[1] == last;
    rapt_fail(RAPT_ERROR_SHAPE, op, "the %s %s does not broadcast to the scores %s%s", field,
              rapt_shape_text(tensor->rank, tensor->shape, a), rapt_scores_text(r, b),
              !is_of_keys     ? ""
              : r->heads == 1 ? "; one that is the same for all queries has the shape (B, 1, K)"
                              : "; one that is the same for all heads and queries has the shape (B, 1, 1, K)");
    return NULL;
}

static bool check_dtype(const char *op, const char *field, const rapt_tensor *tensor, rapt_dtype dtype)
{
    return tensor->dtype == dtype || rapt_fail(RAPT_ERROR_DTYPE, op, "the %s is %s; %s expected", field,
                                               rapt_dtype_name(tensor->dtype), rapt_dtype_name(dtype));
}

static rapt_tensor *expand(const rapt_resolved_mask *r, rapt_tensor *tensor, int64_t last)
{
    return rapt_expand(tensor, RAPT_SHAPE(r->batch, r->heads, r->queries, last));
}

/* Where the bias, or the score, is not −∞, which would hide a key; NULL, without an error, where it is −∞ nowhere. */
static bool find_seen(rapt_tensor *bias, rapt_tensor **seen)
{
    RAPT_NO_GRADIENT;
    rapt_tensor *lowest = rapt_scalar(bias->dtype, -(double)INFINITY);
    rapt_tensor *above = rapt_not_equal(bias, lowest), *count = rapt_sum(above, RAPT_ALL_AXES, false);
    if (!count) return false;
    *seen = rapt_item(count) < (double)bias->count ? above : NULL;
    return true;
}

/* *seen = *seen AND more; NULL says true to all. */
static bool join(rapt_tensor **seen, rapt_tensor *more)
{
    if (more) *seen = *seen ? rapt_logical_and(*seen, more) : more;
    return !more || *seen;
}

bool rapt_hide_lowest(rapt_tensor *scores, rapt_tensor **seen)
{
    rapt_tensor *above;
    return find_seen(scores, &above) && join(seen, above);
}

static bool resolve_bias(const char *op, rapt_tensor *bias, rapt_dtype dtype, rapt_resolved_mask *r, rapt_tensor **seen)
{
    if (!check_dtype(op, "mask's bias", bias, dtype)) return false;
    rapt_tensor *aligned = align(op, "mask's bias", bias, r, r->keys);
    return aligned && (r->bias = expand(r, aligned, r->keys)) && rapt_hide_lowest(aligned, seen);
}

/* seen may be NULL: then nobody wants to know which keys are not seen for it. */
static bool resolve_relative_bias(const char *op, const char *field, rapt_tensor *bias, rapt_dtype dtype,
                                  rapt_resolved_mask *r, rapt_tensor **seen)
{
    char text[RAPT_SHAPE_TEXT];
    rapt_tensor *above;
    if (!check_dtype(op, field, bias, dtype)) return false;
    int64_t positions = bias->rank > 0 ? bias->shape[bias->rank - 1] : 0;
    if (positions % 2 == 0)
        return rapt_fail(RAPT_ERROR_SHAPE, op, "the %s is %s; an odd number of relative positions expected", field,
                         rapt_shape_text(bias->rank, bias->shape, text));
    rapt_tensor *aligned = align(op, field, bias, r, positions);
    if (!aligned || !(r->relative_bias = expand(r, aligned, positions))) return false;
    if (!seen) return true;
    if (!find_seen(aligned, &above)) return false;
    if (!above) return true;
    if (r->packed) return rapt_fail(RAPT_ERROR_UNSUPPORTED, op, "the %s is −∞ somewhere, beside starts", field);
    if (r->places) {
        above = rapt_by_place(expand(r, above, positions), r);
        return above && join(seen, above);
    }
    bool by_query = aligned->rank >= 2 && aligned->shape[aligned->rank - 2] == r->queries;
    if (aligned->rank >= 2 && !by_query) above = rapt_squeeze(above, -2);
    above = rapt_by_relative_position(above, r->queries, r->keys, r->offset, by_query);
    return above && join(seen, above);
}

bool rapt_resolve_mask(const char *op, const rapt_mask *mask, rapt_dtype dtype, int64_t batch, int64_t heads,
                       int64_t queries, int64_t keys, rapt_resolved_mask *r)
{
    *r = (rapt_resolved_mask){.batch = batch, .heads = heads, .queries = queries, .keys = keys};
    if (!mask) return true;
    if (!rapt_mask_check_alive(op, mask)) return false;
    r->offset = mask->offset;
    r->fills_million = mask->fills_million;
    rapt_tensor *seen = NULL;
    if (!rapt_resolve_ranges(op, mask, r) || !rapt_resolve_rule(op, mask, r)) return false;
    if (mask->seen && (!check_dtype(op, "mask's seen", mask->seen, RAPT_BOOL) ||
                       !(seen = align(op, "mask's seen", mask->seen, r, keys))))
        return false;
    if (mask->bias && !resolve_bias(op, mask->bias, dtype, r, &seen)) return false;
    if (mask->relative_bias && !resolve_relative_bias(op, "mask's relative_bias", mask->relative_bias, dtype, r, &seen))
        return false;
    r->gaps = seen || mask->rule.see || mask->dilation > 1 || rapt_ranges_may_leave_gaps(mask);
    return !seen || (r->seen = expand(r, seen, keys)) != NULL;
}

bool rapt_resolve_relative_bias(const char *op, rapt_tensor *bias, rapt_dtype dtype, bool finds_unseen,
                                rapt_resolved_mask *r)
{
    rapt_tensor *seen = r->seen;
    if (!resolve_relative_bias(op, "scoring function's relative_bias", bias, dtype, r, finds_unseen ? &seen : NULL))
        return false;
    if (seen == r->seen) return true;
    r->gaps = true;
    return (r->seen = expand(r, seen, r->keys)) != NULL;
}

bool rapt_check_scores(const char *op, const rapt_tensor *scores)
{
    char text[RAPT_SHAPE_TEXT];
    if (!scores) return rapt_fail_null(op, "scores");
    if (!rapt_check_alive(op, "the tensor of scores", scores)) return false;
    if (scores->rank != 3 && scores->rank != 4)
        return rapt_fail(RAPT_ERROR_SHAPE, op, "scores (B, Q, K) or (B, heads, Q, K) expected, not %s",
                         rapt_shape_text(scores->rank, scores->shape, text));
    return rapt_is_floating(scores) ||
           rapt_fail(RAPT_ERROR_DTYPE, op, "scores are %s; floating expected", rapt_dtype_name(scores->dtype));
}

bool rapt_resolve_mask_for(const char *op, const rapt_mask *mask, const rapt_tensor *scores, rapt_resolved_mask *r)
{
    if (!rapt_check_scores(op, scores)) return false;
    if (mask && mask->starts)
        return rapt_fail(RAPT_ERROR_UNSUPPORTED, op, "a mask with starts is for attention, not for scores");
    const int64_t *shape = scores->shape;
    const bool heads = scores->rank == 4;
    return rapt_resolve_mask(op, mask, scores->dtype, shape[0], heads ? shape[1] : 1, shape[heads + 1],
                             shape[heads + 2], r) &&
           rapt_settle_rule(r);
}
