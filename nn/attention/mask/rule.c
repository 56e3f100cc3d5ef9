/* A mask's rule of one's own made ready: asked about all tiles, it leaves smaller ranges, and answers for what lies
 * between. */
#include "tensor/mask_rule.h"

#include <string.h>

#include "attention/fused/mask_inputs.h"
#include "nn/mask.h"
#include "tensor/parallel.h"

static bool has_rule(const rapt_mask *mask)
{
    return mask->rule.see || mask->dilation > 1;
}

static bool check_rule(const char *op, const rapt_mask_rule *rule)
{
    if (rule->judge && !rule->see)
        return rapt_fail(RAPT_ERROR_NULL, op, "the mask's rule has a function for tiles, but see for places is NULL");
    for (int i = 0; i < RAPT_MASK_CAPTURED; i++)
        if (!rule->see && rule->captured[i])
            return rapt_fail(RAPT_ERROR_NULL, op, "the mask's rule captures a tensor, but has no function");
    return true;
}

static bool capture(const rapt_mask_rule *rule, rapt_resolved_mask *r)
{
    RAPT_NO_GRADIENT;
    for (int i = 0; i < RAPT_MASK_CAPTURED; i++)
        if (rule->captured[i] && !(r->captured[i] = rapt_contiguous(rapt_detach(rule->captured[i])))) return false;
    return true;
}

/* How many items' scores differ in what the rule is told. */
static int64_t items_of(const rapt_mask *mask, const rapt_resolved_mask *r)
{
    if (r->packed) return r->sequences;
    const bool by_item = (r->ranges && r->ranges->shape[0] > 1) || rapt_integers_by_item(r->places);
    return by_item || (mask->rule.see && !mask->rule.same_for_items) ? r->batch : 1;
}

/* The ranges of an item's heads become one: the smallest that holds all. False where a head's is another. */
static bool join_heads(const int64_t *of_heads, int64_t heads, int64_t queries, int64_t count, int64_t *range)
{
    bool same = true;
    for (int64_t i = 0; i < 2 * count; i += 2) {
        range[i] = of_heads[i];
        range[i + 1] = of_heads[i + 1];
        for (int64_t head = 1; head < heads; head++) {
            const int64_t *other = of_heads + 2 * head * queries + i;
            same = same && other[0] == of_heads[i] && other[1] == of_heads[i + 1];
            if (other[0] >= other[1]) continue;
            const bool empty = range[i] >= range[i + 1];
            range[i] = empty || other[0] < range[i] ? other[0] : range[i];
            range[i + 1] = empty || other[1] > range[i + 1] ? other[1] : range[i + 1];
        }
    }
    return same;
}

/* New ranges of the items, from those found. *told: do they say all that the rule says? */
static rapt_tensor *new_ranges(const char *op, const rapt_resolved_mask *r, const rapt_raw_mask *raw,
                               const rapt_rule_findings *f, bool *told)
{
    rapt_tensor *ranges =
        raw->starts ? rapt_clone(r->ranges) : rapt_new(op, RAPT_INT64, RAPT_SHAPE(f->items, r->queries, 2));
    const int64_t bands = rapt_divide_up(raw->queries, rapt_rule_rows);
    if (!ranges) return NULL;
    *told = true;
    for (int64_t n = 0; n < f->items * f->heads * bands; n++) *told = *told && f->whole[n];
    int64_t *range = (int64_t *)(void *)ranges->data;
    for (int64_t item = 0; item < f->items; item++) {
        const int64_t count = raw->starts ? rapt_raw_place_of(raw, item).queries : raw->queries;
        const int64_t *found = f->ranges + 2 * item * f->heads * raw->queries;
        if (!join_heads(found, f->heads, raw->queries, count, range)) *told = false;
        range += 2 * count;
    }
    return ranges;
}

bool rapt_resolve_rule(const char *op, const rapt_mask *mask, rapt_resolved_mask *r)
{
    if (!check_rule(op, &mask->rule)) return false;
    if (!has_rule(mask) || r->heads == 0) return true;
    r->code = (rapt_mask_code){.judge = mask->rule.judge, .see = mask->rule.see, .dilation = mask->dilation};
    memcpy(r->code.numbers, mask->rule.numbers, sizeof r->code.numbers);
    if (!capture(&mask->rule, r)) return false;
    const rapt_raw_mask raw = rapt_raw_mask_of_resolved(r);
    const int64_t items = items_of(mask, r);
    const int64_t heads = mask->rule.see && !mask->rule.same_for_heads ? r->heads : 1;
    const int64_t bands = rapt_divide_up(raw.queries, rapt_rule_rows),
                  columns = rapt_divide_up(raw.keys, rapt_rule_columns);
    rapt_tensor *answers = rapt_new(op, RAPT_UINT8, RAPT_SHAPE(items, heads, bands, columns)),
                *whole = rapt_new(op, RAPT_UINT8, RAPT_SHAPE(items * heads * bands)),
                *found = rapt_new(op, RAPT_INT64, RAPT_SHAPE(items * heads * raw.queries, 2));
    if (!answers || !whole || !found) return false;
    const rapt_rule_findings findings = {.items = items,
                                         .heads = heads,
                                         .answers = (uint8_t *)answers->data,
                                         .ranges = (int64_t *)(void *)found->data,
                                         .whole = (uint8_t *)whole->data};
    rapt_rule_ask(&raw, &findings);
    bool told;
    rapt_tensor *ranges = new_ranges(op, r, &raw, &findings, &told);
    if (!ranges) return false;
    r->ranges = ranges;
    r->answers = told ? NULL : answers;
    return true;
}

bool rapt_settle_rule(rapt_resolved_mask *r)
{
    if (!r->answers) return true;
    RAPT_NO_GRADIENT;
    const rapt_tensor *seen = r->seen;
    int64_t items = r->answers->shape[0], heads = r->answers->shape[1];
    if (r->ranges->shape[0] > 1 || (seen && seen->strides[0] != 0)) items = r->batch;
    if (seen && seen->strides[1] != 0) heads = r->heads;
    const rapt_raw_mask raw = rapt_raw_mask_of_resolved(r);
    rapt_tensor *all = rapt_new("mask", RAPT_BOOL, RAPT_SHAPE(items, heads, r->queries, r->keys));
    if (!all) return false;
    rapt_mask_write_seen(&raw, items, heads, (uint8_t *)all->data);
    r->seen = rapt_expand(all, RAPT_SHAPE(r->batch, r->heads, r->queries, r->keys));
    r->answers = NULL;
    return r->seen != NULL;
}
