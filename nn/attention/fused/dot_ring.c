/* Fused dot-product attention across ranks: the keys of each in turn, whose results are merged by the statistics of
 * the rows. */
#include "dot_ring.h"

#include <math.h>

#include "attention/ring/ring.h"
#include "fused.h"
#include "nn/pooling.h"
#include "tensor/parallel.h"

/* Queries at once: what some keys give to them is kept until it is merged. */
enum { rows_at_once = 1024 };

/* What a visit needs. */
typedef struct dot_visitor {
    rapt_ring *ring;
    const char *op;
    rapt_dot_attention call; /* for all queries of this rank */
    bool is_backward;
} dot_visitor;

/* Does any of `count` queries from number `first` on see a key of the part? */
static bool see_any(const rapt_raw_mask *mask, int64_t first, int64_t count, const rapt_key_part *part)
{
    if (!mask->ranges) return true;
    const int64_t items = mask->range_item > 0 ? mask->batch : 1;
    for (int64_t item = 0; item < items; item++) {
        const int64_t *range = mask->ranges + item * mask->range_item + 2 * first;
        for (int64_t i = 0; i < count; i++, range += 2)
            if (range[0] < range[1] && range[0] < part->last && part->first < range[1]) return true;
    }
    return false;
}

/* The part of the keys for some of the queries. The sinks are counted once: in forward in the end, in backward beside
 * key 0, seen or not. */
static bool visit_rows(const dot_visitor *d, const rapt_dot_attention *call, int64_t first, int64_t count,
                       const rapt_key_part *part)
{
    const bool counts_sinks = d->is_backward && rapt_has_sinks(&call->normalizer) && part->first == 0;
    if (!counts_sinks && !see_any(&call->mask, first, count, part)) return true;
    rapt_dot_attention some = rapt_dot_attention_of_part(call, first, count, part);
    if (d->is_backward) return rapt_dot_attention_backward(d->op, &some);
    if (rapt_has_sinks(&call->normalizer)) some.normalizer.head_terms = NULL;
    return rapt_dot_attention_forward(d->op, &some);
}

static bool visit(void *context, const rapt_ring_visit *v)
{
    const dot_visitor *d = context;
    const rapt_key_part part = {.first = v->first, .last = v->last, .joins = true};
    rapt_dot_attention call = d->call;
    call.keys = rapt_raw_rows_of(v->keys);
    call.values = rapt_raw_rows_of(v->values);
    if (d->is_backward) {
        call.d_keys = rapt_raw_rows_of(v->d_keys);
        call.d_values = rapt_raw_rows_of(v->d_values);
    }
    const int64_t queries = call.mask.queries;
    for (int64_t first = 0; first < queries; first += rows_at_once) {
        if (!visit_rows(d, &call, first, rapt_smaller_of(queries - first, rows_at_once), &part)) return false;
        if (d->ring->advance) d->ring->advance(d->ring);
    }
    return true;
}

static bool go(dot_visitor *d, rapt_ring_walk *walk, bool good)
{
    walk->ring = d->ring;
    walk->op = d->op;
    walk->visit = visit;
    walk->context = d;
    return rapt_ring_go(walk, good && rapt_ring_prepare(walk));
}

/* Sinks join the rows that are otherwise whole. */
static bool add_sinks(void *context)
{
    const dot_visitor *d = context;
    static const rapt_key_part none = {.joins = true};
    const int64_t queries = d->call.mask.queries;
    for (int64_t first = 0; rapt_has_sinks(&d->call.normalizer) && first < queries; first += rows_at_once) {
        const rapt_dot_attention some =
            rapt_dot_attention_of_part(&d->call, first, rapt_smaller_of(queries - first, rows_at_once), &none);
        if (!rapt_dot_attention_forward(d->op, &some)) return false;
    }
    return true;
}

/* Rows that have seen nothing yet. */
static bool begin_rows(rapt_tensor *out, rapt_tensor *statistics)
{
    RAPT_SCOPE;
    rapt_tensor *largest = rapt_slice(statistics, -1, 0, 1, 1), *sums = rapt_slice(statistics, -1, 1, 2, 1);
    return largest && sums && rapt_fill(out, 0) && rapt_fill(largest, (double)INFINITY) && rapt_fill(sums, 1);
}

bool rapt_dot_ring_forward(const char *op, rapt_ring *ring, const rapt_dot_attention *call,
                           const rapt_dot_ring_rows *rows)
{
    RAPT_SCOPE;
    dot_visitor d = {.ring = ring, .op = op, .call = *call};
    rapt_ring_walk walk = {.keys = rows->keys, .values = rows->values, .finish = add_sinks};
    return go(&d, &walk, begin_rows(rows->out, rows->statistics));
}

bool rapt_dot_ring_backward(const char *op, rapt_ring *ring, const rapt_dot_attention *call,
                            const rapt_dot_ring_rows *rows)
{
    RAPT_SCOPE;
    dot_visitor d = {.ring = ring, .op = op, .call = *call, .is_backward = true};
    d.call.adds_queries = d.call.adds_keys = d.call.adds_values = true;
    rapt_ring_walk walk = {.keys = rows->keys,
                           .values = rows->values,
                           .d_keys = rows->d_keys,
                           .d_values = rows->d_values,
                           .adds_keys = call->adds_keys,
                           .adds_values = call->adds_values};
    return go(&d, &walk, rapt_fill(rows->d_queries, 0));
}
