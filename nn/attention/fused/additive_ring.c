/* Fused additive attention across ranks: the keys of each in turn, whose results are merged by the statistics of the
 * rows. */
#include "additive_ring.h"

#include <math.h>

#include "additive_powers.h"
#include "attention/ring/ring.h"
#include "fused.h"

/* What a visit needs. */
typedef struct additive_visitor {
    const char *op;
    rapt_additive_attention call; /* but keys and values */
    const rapt_additive_output *output;
    const rapt_additive_gradient *gradient; /* NULL: forward */
    const rapt_additive_ring_rows *rows;
    rapt_tensor *d_queries; /* backward: what the keys of a visit give */
} additive_visitor;

static int64_t within(int64_t key, const rapt_ring_visit *v)
{
    return (key < v->first ? v->first : key > v->last ? v->last : key) - v->first;
}

/* The ranges of all queries among the keys of a visit, numbered from 0. *seen: does any query see one? NULL, without an
 * error, where all see all. */
static bool find_ranges(const char *op, const rapt_raw_mask *mask, const rapt_ring_visit *v, rapt_tensor **ranges,
                        bool *seen)
{
    *ranges = NULL;
    *seen = true;
    if (!mask->ranges) return true;
    const int64_t items = mask->range_item > 0 ? mask->batch : 1;
    *ranges = rapt_new(op, RAPT_INT64, RAPT_SHAPE(items, mask->queries, 2));
    if (!*ranges) return false;
    int64_t *to = (int64_t *)(void *)(*ranges)->data;
    *seen = false;
    for (int64_t i = 0; i < items * mask->queries; i++) {
        to[2 * i] = within(mask->ranges[2 * i], v);
        to[2 * i + 1] = within(mask->ranges[2 * i + 1], v);
        *seen = *seen || to[2 * i] < to[2 * i + 1];
    }
    return true;
}

/* The call for the keys of a visit. */
static bool describe(const additive_visitor *a, const rapt_ring_visit *v, rapt_tensor *ranges,
                     rapt_additive_attention *some)
{
    rapt_raw_mask mask = a->call.mask;
    mask.keys = v->last - v->first;
    mask.first_key = v->first;
    mask.ranges = ranges ? (const int64_t *)(const void *)ranges->data : NULL;
    const rapt_resolved_mask resolved = {.batch = mask.batch,
                                         .heads = mask.heads,
                                         .queries = mask.queries,
                                         .keys = mask.keys,
                                         .ranges = ranges};
    const rapt_additive_inputs in = {.keys = v->keys,
                                     .weight = a->rows->weight,
                                     .values = v->values,
                                     .mask = &resolved};
    rapt_additive_attention of_keys;
    if (!rapt_additive_describe(&of_keys, &mask, &in)) return false;
    *some = a->call;
    some->mask = mask;
    some->keys = of_keys.keys;
    some->values = of_keys.values;
    return true;
}

static bool add_to_gradients(const additive_visitor *a, const rapt_additive_attention *call, const rapt_ring_visit *v)
{
    static const rapt_additive_wants all = {.hidden = true, .values = true};
    rapt_additive_gradient g = *a->gradient;
    g.queries = a->d_queries->data;
    g.keys = v->d_keys->data;
    g.values = v->d_values->data;
    g.raw_weight = a->rows->d_weights->data;
    g.adds_keys = g.adds_values = g.adds_raw_weight = true;
    return rapt_additive_attention_backward(a->op, call, &g, all) &&
           rapt_add_in_place(a->rows->d_queries, a->d_queries, 1);
}

/* The sinks are counted once: in forward in the end, in backward beside key 0, seen or not. */
static bool visit(void *context, const rapt_ring_visit *v)
{
    const additive_visitor *a = context;
    rapt_additive_attention some;
    rapt_tensor *ranges;
    bool seen;
    RAPT_SCOPE;
    if (!find_ranges(a->op, &a->call.mask, v, &ranges, &seen)) return false;
    if (a->gradient && rapt_has_sinks(&a->call.normalizer) && v->first == 0) seen = true;
    if (!seen || a->call.mask.queries == 0) return true;
    if (!describe(a, v, ranges, &some)) return false;
    if (a->gradient) return add_to_gradients(a, &some, v);
    if (rapt_has_sinks(&some.normalizer)) some.normalizer.head_terms = NULL;
    return rapt_additive_attention_forward(a->op, &some, a->output);
}

static bool add_sinks(void *context)
{
    const additive_visitor *a = context;
    rapt_additive_attention none = a->call;
    none.mask.keys = 0;
    return !rapt_has_sinks(&none.normalizer) || rapt_additive_attention_forward(a->op, &none, a->output);
}

/* Rows that have seen nothing yet. */
static bool begin_rows(rapt_tensor *out, rapt_tensor *statistics)
{
    rapt_tensor *largest = rapt_slice(statistics, -1, 0, 1, 1);
    return largest && rapt_fill(out, 0) && rapt_fill(statistics, 0) && rapt_fill(largest, -(double)INFINITY);
}

bool rapt_additive_ring_forward(const char *op, rapt_ring *ring, const rapt_additive_attention *call,
                                const rapt_additive_output *output, const rapt_additive_ring_rows *rows)
{
    RAPT_SCOPE;
    additive_visitor a = {.op = op, .call = *call, .output = output, .rows = rows};
    rapt_ring_walk walk = {.ring = ring,
                           .op = op,
                           .keys = rows->keys,
                           .values = rows->values,
                           .visit = visit,
                           .finish = add_sinks,
                           .context = &a};
    return rapt_ring_go(&walk, rapt_ring_prepare(&walk) && begin_rows(rows->out, rows->statistics));
}

bool rapt_additive_ring_backward(const char *op, rapt_ring *ring, const rapt_additive_attention *call,
                                 const rapt_additive_gradient *gradient, const rapt_additive_ring_rows *rows)
{
    RAPT_SCOPE;
    additive_visitor a = {.op = op,
                          .call = *call,
                          .gradient = gradient,
                          .rows = rows,
                          .d_queries = rapt_zeros_like(rows->d_queries)};
    rapt_ring_walk walk = {.ring = ring,
                           .op = op,
                           .keys = rows->keys,
                           .values = rows->values,
                           .d_keys = rows->d_keys,
                           .d_values = rows->d_values,
                           .adds_keys = gradient->adds_keys,
                           .adds_values = gradient->adds_values,
                           .visit = visit,
                           .context = &a};
    return rapt_ring_go(&walk, a.d_queries && rapt_ring_prepare(&walk) && rapt_fill(rows->d_queries, 0) &&
                                   rapt_fill(rows->d_weights, 0));
}
