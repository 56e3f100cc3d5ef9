/* The room of padding: which keys no query sees, who keeps them out, and how. */
#include "nn/padding.h"

#include <string.h>

#include "attention/fused/mask_inputs.h"
#include "tensor/attention_tasks.h"
#include "tensor/core.h"
#include "tensor/mask_rule.h"
#include "tensor/parallel.h"

rapt_padding rapt_padding_of(const rapt_pooling *p, bool prepares)
{
    if (p->mask.fills_million) return RAPT_PADDING_IS_READ;
    if (p->resolved.padding_is_zero) return RAPT_PADDING_IS_ZERO;
    prepares = prepares && p->attention->scoring->prepare;
    return rapt_pooling_is_fused(p) && !prepares ? RAPT_PADDING_NOT_READ : RAPT_PADDING_TO_HIDE;
}

/* Counts where the ranges of some queries begin and end. */
static void count_changes(const int64_t *range, int64_t queries, int64_t *change)
{
    for (int64_t query = 0; query < queries; query++, range += 2) {
        change[range[0]]++;
        change[range[1]]--;
    }
}

/* bool (items, 1, K): the union of the ranges of an item's queries, by how many of them begin and end before a key. */
static rapt_tensor *seen_by_ranges(const rapt_resolved_mask *r)
{
    const int64_t items = r->packed ? 1 : r->ranges->shape[0];
    const int64_t *range = (const int64_t *)(const void *)r->ranges->data;
    rapt_tensor *seen_keys = rapt_empty(RAPT_BOOL, RAPT_SHAPE(items, 1, r->keys)),
                *changes = rapt_empty(RAPT_INT64, RAPT_SHAPE(r->keys + 1));
    if (!seen_keys || !changes) return NULL;
    int64_t *change = (int64_t *)(void *)changes->data;
    for (int64_t item = 0; item < items; item++) {
        memset(change, 0, (size_t)(r->keys + 1) * sizeof *change);
        if (!r->packed) count_changes(range + 2 * item * r->queries, r->queries, change);
        for (int64_t b = 0; b < r->sequences; b++) {
            const int64_t *start = rapt_resolved_starts(r) + 3 * b;
            count_changes(range + 2 * start[0], start[3] - start[0], change + start[1]);
        }
        int64_t open = 0;
        for (int64_t key = 0; key < r->keys; key++) seen_keys->data[item * r->keys + key] = (open += change[key]) > 0;
    }
    return seen_keys;
}

typedef struct find_run {
    rapt_raw_mask mask;
    int64_t groups;
    uint8_t *seen;
} find_run;

static void find_tasks(void *context, int64_t first, int64_t last)
{
    const find_run *f = context;
    for (int64_t task = first; task < last; task++) {
        const int64_t item = task / f->groups, group = task % f->groups, heads = f->mask.heads / f->groups;
        const bool packed = f->mask.starts != NULL;
        const rapt_raw_place place = rapt_raw_place_of(&f->mask, item), all = rapt_raw_place_of_all(&f->mask);
        const int64_t at = packed ? group * all.keys + place.first_key : task * f->mask.keys;
        memset(f->seen + at, 0, (size_t)(packed ? place.keys : f->mask.keys));
        rapt_mask_find_seen(&f->mask, item, group * heads, (group + 1) * heads, f->seen + at);
    }
}

/* bool (B, groups, K): under a mask with a rule, query by query. */
static rapt_tensor *seen_by_rule(const rapt_resolved_mask *r, int64_t groups)
{
    rapt_tensor *seen_keys = rapt_empty(RAPT_BOOL, RAPT_SHAPE(r->batch, groups, r->keys));
    if (!seen_keys) return NULL;
    find_run f = {rapt_raw_mask_of_resolved(r), groups, (uint8_t *)seen_keys->data};
    rapt_parallel(f.mask.batch * groups, 1, find_tasks, &f);
    return seen_keys;
}

/* bool (B or 1, groups or 1, K or 1) */
static rapt_tensor *seen_by_queries(const rapt_resolved_mask *r, int64_t groups)
{
    rapt_tensor *seen;
    if (r->answers) return seen_by_rule(r, groups);
    if (!r->seen) return seen_by_ranges(r);
    if (!rapt_join_seen(r->ranges, r->seen, r->keys, &seen)) return NULL;
    int64_t of_group = seen->shape[1] == 1 ? 1 : r->heads / groups, lines = of_group * seen->shape[2];
    seen = rapt_reshape(seen, RAPT_SHAPE(seen->shape[0], seen->shape[1] / of_group, lines, seen->shape[3]));
    return rapt_greater(rapt_sum(seen, RAPT_AXES(2), false), rapt_scalar(RAPT_INT64, 0));
}

bool rapt_find_seen_keys(const rapt_resolved_mask *r, int64_t groups, rapt_tensor **seen_keys)
{
    RAPT_NO_GRADIENT;
    *seen_keys = NULL;
    if (r->ring) {
        if (r->own_seen) *seen_keys = rapt_expand(r->own_seen, RAPT_SHAPE(r->batch, groups, r->own_seen->shape[2], 1));
        return !r->own_seen || *seen_keys;
    }
    if (r->queries == 0) return (*seen_keys = rapt_zeros(RAPT_BOOL, RAPT_SHAPE(r->batch, groups, r->keys, 1))) != NULL;
    if ((!r->ranges && !r->seen) || r->batch * groups * r->keys == 0) return true;
    rapt_tensor *seen = seen_by_queries(r, groups), *count = rapt_sum(seen, RAPT_ALL_AXES, false);
    if (!count) return false;
    if ((int64_t)rapt_item(count) == seen->count) return true;
    *seen_keys = rapt_unsqueeze(rapt_expand(seen, RAPT_SHAPE(r->batch, groups, r->keys)), -1);
    return *seen_keys != NULL;
}

/* --- queries that see nothing --- */

static bool differs_by_head(const rapt_resolved_mask *r)
{
    return (r->seen && r->seen->strides[1] != 0) || (r->answers && r->answers->shape[1] > 1);
}

typedef struct look_run {
    rapt_raw_mask mask;
    int64_t heads, of_each; /* of the result, and how many of the mask's each of these stands for */
    int64_t bands;          /* of neighbouring queries */
    uint8_t *seeing;
} look_run;

static void look_tasks(void *context, int64_t first, int64_t last)
{
    const look_run *l = context;
    const bool packed = l->mask.starts != NULL;
    for (int64_t task = first; task < last; task++) {
        const int64_t line = task / l->bands, item = line / l->heads, head = line % l->heads;
        const rapt_raw_mask one = packed ? rapt_raw_mask_of_sequence(&l->mask, item, 0) : l->mask;
        const int64_t before =
            packed ? head * rapt_raw_place_of_all(&l->mask).queries + rapt_raw_place_of(&l->mask, item).first_query
                   : line * one.queries;
        rapt_score_row row = {packed ? 0 : item, head * l->of_each, task % l->bands * rapt_seeing_rows};
        const int64_t rows = rapt_smaller_of(rapt_seeing_rows, one.queries - row.query);
        uint8_t *seeing = l->seeing + before + row.query;
        if (rows <= 0) continue;
        memset(seeing, 0, (size_t)rows);
        for (int64_t end = row.head + l->of_each; row.head < end && memchr(seeing, 0, (size_t)rows); row.head++)
            rapt_mask_find_seeing(&one, row, rows, seeing);
    }
}

bool rapt_find_seeing_queries(const rapt_resolved_mask *r, bool by_head, rapt_tensor **seeing)
{
    RAPT_NO_GRADIENT;
    *seeing = NULL;
    if ((!r->ranges && !r->seen && r->keys > 0) || r->batch * r->heads * r->queries == 0) return true;
    const bool differs = differs_by_head(r);
    const int64_t heads = by_head && differs ? r->heads : 1;
    rapt_tensor *found = rapt_empty(RAPT_BOOL, RAPT_SHAPE(r->batch, heads, r->queries, 1));
    if (!found) return false;
    look_run l = {rapt_raw_mask_of_resolved(r), heads, differs ? r->heads / heads : 1, 0, (uint8_t *)found->data};
    l.bands = rapt_divide_up(l.mask.queries, rapt_seeing_rows);
    rapt_parallel(l.mask.batch * heads * l.bands, rapt_grain(rapt_seeing_rows * rapt_rule_columns), look_tasks, &l);
    if (memchr(found->data, 0, (size_t)found->count)) *seeing = found;
    return true;
}

/* --- what is to be hidden, and who does it --- */

/* The size of an axis (from the last) that the mask's tensors give to all of them, if one does. */
static int64_t size_by_mask(const rapt_mask *mask, int axis, int64_t otherwise)
{
    const rapt_tensor *const tensors[] = {mask->seen, mask->bias};
    for (int i = 0; i < 2; i++)
        if (tensors[i] && tensors[i]->rank >= axis && tensors[i]->shape[tensors[i]->rank - axis] != 1)
            return tensors[i]->shape[tensors[i]->rank - axis];
    return otherwise;
}

bool rapt_find_keys_that_may_be_seen(const char *op, const rapt_tensor *keys, const rapt_mask *mask,
                                     rapt_tensor **seen_keys)
{
    *seen_keys = NULL;
    if (!mask || mask->fills_million) return true;
    const rapt_tensor *lengths = mask->valid_lengths;
    int64_t groups = rapt_heads_of(keys), heads = keys->rank == 4 ? size_by_mask(mask, 3, groups) : 1;
    int64_t queries = size_by_mask(mask, 2, lengths && lengths->rank == 2 ? lengths->shape[1] : 1);
    rapt_mask padding = {.valid_lengths = mask->valid_lengths,
                         .first_keys = mask->first_keys,
                         .seen = mask->seen,
                         .bias = mask->bias};
    if (mask->starts) { /* one query for each sequence */
        padding.key_starts = mask->key_starts ? mask->key_starts : mask->starts;
        const int64_t sequences = padding.key_starts->count - 1;
        if (!(padding.starts = rapt_arange(RAPT_INT64, 0, (double)(sequences + 1), 1))) return false;
        queries = sequences;
    }
    rapt_resolved_mask resolved;
    if (heads == 0 || heads % (groups ? groups : 1) != 0) heads = groups;
    return rapt_resolve_mask(op, &padding, keys->dtype, keys->shape[0], heads, queries, rapt_length_of(keys),
                             &resolved) &&
           rapt_find_seen_keys(&resolved, groups, seen_keys);
}

rapt_tensor *rapt_hide_rows(rapt_tensor *x, rapt_tensor *seen)
{
    if (!x || !seen) return x;
    if (x->rank == 3) seen = rapt_squeeze(seen, 1);
    return rapt_where(seen, x, rapt_zeros(x->dtype, 0, NULL));
}

rapt_tensor *rapt_hide_padding(rapt_tensor *x, const rapt_resolved_mask *mask)
{
    rapt_tensor *seen_keys = NULL;
    if (!x || !rapt_find_seen_keys(mask, rapt_heads_of(x), &seen_keys)) return NULL;
    return rapt_hide_rows(x, seen_keys);
}

bool rapt_hide_blind_queries(rapt_pooling *p)
{
    rapt_tensor *seeing;
    if (p->mask.fills_million || p->resolved.blind_is_zero) return true;
    if (!rapt_find_seeing_queries(&p->resolved, true, &seeing)) return false;
    p->queries = rapt_hide_rows(p->queries, seeing);
    p->resolved.blind_is_zero = true;
    return p->queries != NULL;
}

/* bool (B, 1, Q, 1): which queries that are keys too are read, as the one or the other; NULL: all. *as_queries: are
 * these no more than those that see a key? False after an error. */
static bool find_read(rapt_tensor *seeing, rapt_tensor *seen_keys, rapt_tensor **read, bool *as_queries)
{
    RAPT_NO_GRADIENT;
    *read = NULL;
    *as_queries = !seeing;
    if (!seeing || !seen_keys) return true;
    rapt_tensor *more, *only_seen = rapt_logical_and(seen_keys, rapt_logical_not(seeing));
    if (!(more = rapt_any(only_seen, RAPT_ALL_AXES, false))) return false;
    *as_queries = rapt_item(more) == 0;
    *read = *as_queries ? seeing : rapt_logical_or(seeing, seen_keys);
    return *read != NULL;
}

bool rapt_hide_padding_of_inputs(rapt_resolved_mask *mask, rapt_tensor **queries, rapt_tensor **keys,
                                 rapt_tensor **values)
{
    const bool is_one = *values == *keys, asks_keys = *keys == *queries, asks_values = *values == *queries;
    bool hides_blind = true;
    rapt_tensor *seeing, *seen_keys = NULL;
    if (mask->fills_million) return true;
    if (!rapt_find_seeing_queries(mask, false, &seeing)) return false;
    if ((seeing || !asks_keys || !asks_values) && !rapt_find_seen_keys(mask, 1, &seen_keys)) return false;
    if ((asks_keys || asks_values) && !find_read(seeing, seen_keys, &seeing, &hides_blind)) return false;
    *queries = rapt_hide_rows(*queries, seeing);
    *keys = asks_keys ? *queries : rapt_hide_rows(*keys, seen_keys);
    *values = asks_values ? *queries : is_one ? *keys : rapt_hide_rows(*values, seen_keys);
    mask->padding_is_zero = !asks_keys && !asks_values;
    mask->blind_is_zero = hides_blind && !differs_by_head(mask);
    return *queries && *keys && *values;
}
