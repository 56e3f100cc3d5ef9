/* Modifications of scores: what they capture is checked and made ready for a call. */
#include "nn/score_modifications.h"

#include <string.h>

#include "tensor/core.h"

static const char *name_of(const rapt_score_modification *modification)
{
    return modification->module.kind->name;
}

static const rapt_score_functions *functions_of(const rapt_score_modification *modification, rapt_dtype dtype)
{
    return dtype == RAPT_FLOAT32 ? &modification->float32 : &modification->float64;
}

bool rapt_changes_have_functions(const rapt_resolved_changes *changes)
{
    bool all = true;
    for (int k = 0; changes && k < changes->changes.count; k++) all = all && changes->changes.each[k].functions.change;
    return all;
}

/* One of the tensors that a modification captured: for scores (batch, heads, …). */
static bool check_captured(const rapt_score_modification *modification, int number, const rapt_tensor *tensor,
                           rapt_dtype dtype, int64_t batch, int64_t heads)
{
    const char *op = name_of(modification);
    char text[128];
    if (!tensor) return rapt_fail(RAPT_ERROR_NULL, op, "captured tensor %d is NULL", number);
    const bool fits = tensor->rank >= 2 && (tensor->shape[0] == 1 || tensor->shape[0] == batch) &&
                      (tensor->shape[1] == 1 || tensor->shape[1] == heads);
    if (!fits)
        return rapt_fail(RAPT_ERROR_SHAPE, op,
                         "captured tensor %d of shape (%lld or 1, %lld or 1, ...) expected, not %s", number,
                         (long long)batch, (long long)heads, rapt_describe(tensor, text, sizeof text));
    if (rapt_is_floating(tensor) && tensor->dtype != dtype)
        return rapt_fail(RAPT_ERROR_DTYPE, op,
                         "captured tensor %d is %s, the scores are %s; one dtype expected (rapt_cast converts)", number,
                         rapt_dtype_name(tensor->dtype), rapt_dtype_name(dtype));
    const rapt_score_functions *functions = functions_of(modification, dtype);
    return !functions->change || functions->differentiate || !rapt_requires_gradient(tensor) ||
           rapt_fail(RAPT_ERROR_NULL, op, "captured tensor %d wants a gradient, but there is no differentiate for %s",
                     number, rapt_dtype_name(dtype));
}

static bool check_modification(const rapt_score_modification *modification)
{
    const char *op = name_of(modification);
    if (modification->options_size > RAPT_SCORE_OPTIONS_SIZE ||
        (modification->options_size > 0 && !modification->options))
        return rapt_fail(RAPT_ERROR_VALUE, op, "options of %zu bytes; 0 to %d expected, and a place where they are",
                         modification->options_size, RAPT_SCORE_OPTIONS_SIZE);
    return modification->captured_count == 0 || (modification->captured_count > 0 && modification->capture) ||
           rapt_fail(RAPT_ERROR_VALUE, op, "%d captured tensors without a function to capture them",
                     modification->captured_count);
}

/* Adds a modification to those resolved so far. */
static bool resolve(rapt_score_modification *modification, rapt_dtype dtype, int64_t batch, int64_t heads,
                    rapt_resolved_changes *resolved)
{
    if (!check_modification(modification)) return false;
    rapt_score_changes *all = &resolved->changes;
    const int count = modification->captured_count;
    rapt_tensor **captured = resolved->captured + all->captured;
    if (all->captured + count > RAPT_MAX_CAPTURED)
        return rapt_fail(RAPT_ERROR_VALUE, name_of(modification),
                         "%d captured tensors with those before; up to %d expected", all->captured + count,
                         RAPT_MAX_CAPTURED);
    if (count > 0 && !modification->capture(modification, dtype, captured))
        return rapt_fail(RAPT_ERROR_VALUE, name_of(modification), "its capture failed without a reason");
    for (int c = 0; c < count; c++)
        if (!check_captured(modification, c, captured[c], dtype, batch, heads) ||
            !(captured[c] = rapt_contiguous(captured[c])))
            return false;
    rapt_score_change *change = &all->each[all->count++];
    change->name = name_of(modification);
    change->by_ops = modification->by_ops;
    change->functions = *functions_of(modification, dtype);
    change->reads_old = modification->reads_old;
    change->reads_new = modification->reads_new;
    change->captured = count;
    if (modification->options_size > 0) memcpy(change->options, modification->options, modification->options_size);
    all->captured += count;
    return true;
}

bool rapt_resolve_changes(int count, rapt_score_modification *const *modifications, rapt_dtype dtype, int64_t batch,
                          int64_t heads, rapt_resolved_changes *resolved)
{
    memset(resolved, 0, sizeof *resolved);
    for (int k = 0; k < count; k++)
        if (!resolve(modifications[k], dtype, batch, heads, resolved)) return false;
    return true;
}

bool rapt_check_change_places(const char *op, int64_t offset, const rapt_tensor *places)
{
    const int64_t farthest = INT64_C(1) << 52, count = places ? places->count : 1;
    const int64_t *place = places ? (const int64_t *)(const void *)places->data : &offset;
    for (int64_t i = 0; i < count; i++)
        if (place[i] < -farthest || place[i] > farthest)
            return rapt_fail(RAPT_ERROR_VALUE, op,
                             "query %lld is at place %lld; -2^52 to 2^52 expected beside a score modification",
                             (long long)i, (long long)place[i]);
    return true;
}

void rapt_raw_changes_of(const rapt_score_changes *changes, rapt_dtype dtype, rapt_tensor *const *captured,
                         rapt_raw_changes *raw)
{
    *raw = (rapt_raw_changes){.changes = changes, .dtype = dtype};
    for (int c = 0; c < changes->captured; c++) {
        const rapt_tensor *tensor = captured[c];
        const int64_t slices = tensor->shape[0] * tensor->shape[1];
        raw->captured[c] = (rapt_raw_captured){.data = tensor->data,
                                               .items = tensor->shape[0],
                                               .heads = tensor->shape[1],
                                               .count = slices > 0 ? tensor->count / slices : 0,
                                               .bytes = (int64_t)rapt_dtype_size(tensor->dtype)};
    }
}
