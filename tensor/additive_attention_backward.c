/* Backward of fused additive attention over raw numbers: chunks of queries, whose scores' gradients are kept only until
 * the next chunk. */
#include "additive_sequences.h"
#include "tensor/additive_attention.h"
#include "tensor/kernels.h"
#include "tensor/memory.h"
#include "tensor/parallel.h"

typedef struct backward_run {
    const rapt_additive_attention *call;
    const rapt_additive_kernels *kernels;
    const rapt_additive_gradient *g;
    rapt_additive_chunk chunk;
    rapt_attention_tasks tasks; /* blocks of the chunk's queries */
    int64_t slices, tiles;      /* of the hidden units, of a group's keys */
    int64_t rows, matrix;       /* of a chunk; matrix: bytes of the gradients of its scores */
    char *scores;
    /* Of a chunk: the gradients of what changes of the scores captured, and of the normaliser's head terms. */
    rapt_gathering gathering, head_terms;
    const int64_t *pairs; /* where those of a sequence begin in a chunk, in pairs of a query and a key; NULL: at 0 */
} backward_run;

/* A sequence and what is computed of it, or the whole batch. */
typedef struct backward_part {
    rapt_raw_place place;
    rapt_additive_attention call;
    rapt_additive_gradient g;
    rapt_additive_chunk chunk;
} backward_part;

/* In (batch, heads, rows, keys), dense; first: where the chunk's first row is. */
static rapt_additive_rows_of_chunk rows_of_chunk(const rapt_additive_attention *call, char *first, int64_t rows)
{
    return (rapt_additive_rows_of_chunk){first, call->mask.heads * rows * call->mask.keys, rows * call->mask.keys};
}

static void set_rows_of_chunk(const backward_run *r, int64_t sequence, backward_part *p)
{
    const rapt_raw_mask *mask = &p->call.mask;
    const int64_t bytes = (int64_t)rapt_dtype_size(r->call->dtype), first = r->chunk.first;
    const int64_t rows = r->rows < mask->queries ? r->rows : mask->queries;
    char *scores = rapt_moved(r->scores, r->pairs ? r->pairs[sequence] : 0, mask->heads, bytes);
    p->g.scores = rows_of_chunk(&p->call, scores, rows);
    if (p->call.changes) p->g.old_scores = rows_of_chunk(&p->call, scores + 2 * r->matrix, rows);
    p->g.pooled = p->g.stores_pooled
                      ? rows_of_chunk(&p->call, scores + r->matrix, rows)
                      : rows_of_chunk(&p->call, rapt_moved(p->g.weights, first, mask->keys, bytes), mask->queries);
}

/* False where a sequence has no queries in the chunk; one without any counts in the first, where zeros are written. */
static bool find_part(const backward_run *r, int64_t sequence, backward_part *p)
{
    const rapt_additive_attention *call = r->call;
    const int64_t bytes = (int64_t)rapt_dtype_size(call->dtype), heads = call->mask.heads;
    p->place = rapt_raw_place_of(&call->mask, sequence);
    p->chunk = r->chunk;
    p->g = *r->g;
    if (call->mask.starts) {
        const int64_t query = p->place.first_query, key = p->place.first_key;
        if (p->chunk.first > 0 && p->chunk.first >= p->place.queries) return false;
        if (p->chunk.last > p->place.queries) p->chunk.last = p->place.queries;
        p->g.gradient.data = rapt_moved(r->g->gradient.data, query, r->g->gradient.strides[2], bytes);
        p->g.statistics = rapt_moved(r->g->statistics, heads * query, 2, bytes);
        p->g.weights = rapt_moved(r->g->weights, heads * p->place.first_pair, 1, bytes);
        p->g.queries = rapt_moved(r->g->queries, query, call->hidden, bytes);
        p->g.keys = rapt_moved(r->g->keys, key, call->hidden, bytes);
        p->g.values = rapt_moved(r->g->values, key, call->value_size, bytes);
        p->g.raw_weight = rapt_moved(r->g->raw_weight, sequence * call->groups, call->hidden, bytes);
        p->g.relative_bias = rapt_moved(r->g->relative_bias, query, 2 * call->mask.reach + 1, bytes);
    }
    p->call = rapt_additive_call_of_sequence(call, sequence);
    set_rows_of_chunk(r, sequence, p);
    return true;
}

static void score_tasks(void *context, int64_t first, int64_t last)
{
    const backward_run *r = context;
    for (int64_t task = first; task < last; task++) {
        rapt_attention_piece piece = rapt_attention_piece_of(&r->tasks, task);
        backward_part p;
        if (!find_part(r, piece.item, &p) || !rapt_additive_enter_sequence(r->call, &p.place, &piece)) continue;
        p.g.gathered = rapt_gathering_of_task(&r->gathering, task);
        p.call.normalizer.gathered = rapt_gathering_of_task(&r->head_terms, task);
        r->kernels->scores_backward(&p.call, &p.g, &p.chunk, &piece);
    }
}

static void add_gathered(const backward_run *r, const rapt_gathering *gathering)
{
    for (int64_t task = 0; gathering->of_tasks && task < r->tasks.count; task++) {
        const rapt_attention_piece piece = rapt_attention_piece_of(&r->tasks, task);
        rapt_gathering_add(gathering, task, piece.item, piece.group);
    }
}

/* The slices and tiles of one group, then groups. */
static void sum_tasks(void *context, int64_t first, int64_t last)
{
    const backward_run *r = context;
    for (int64_t task = first; task < last; task++) {
        const int64_t part = task % (r->slices + r->tiles), group = task / (r->slices + r->tiles);
        const int64_t in_item = group % r->call->groups, first_key = (part - r->slices) * rapt_additive_tile;
        backward_part p;
        if (!find_part(r, group / r->call->groups, &p)) continue;
        const int64_t item = r->call->mask.starts ? 0 : group / r->call->groups;
        if (part < r->slices)
            r->kernels->hidden_backward(&p.call, &p.g, &p.chunk, item, in_item, part * rapt_additive_slice);
        else if (first_key < p.call.mask.keys)
            r->kernels->values_backward(&p.call, &p.g, &p.chunk, item, in_item, first_key);
    }
}

static void run_chunk(backward_run *r)
{
    const rapt_raw_mask *mask = &r->call->mask;
    const int64_t queries = r->chunk.last - r->chunk.first, parts = r->slices + r->tiles;
    r->tasks = rapt_additive_cut_queries(r->call, r->chunk.first, r->chunk.last);
    rapt_parallel(r->tasks.count, rapt_grain(r->tasks.chunk * mask->keys * (r->call->value_size / 8 + 16)), score_tasks,
                  r);
    add_gathered(r, &r->gathering);
    add_gathered(r, &r->head_terms);
    if (parts == 0 || r->call->groups == 0) return; /* no heads: no keys of theirs */
    const int64_t cost = mask->heads / r->call->groups * queries * mask->keys * rapt_additive_slice;
    rapt_parallel(mask->batch * r->call->groups * parts, rapt_grain(cost), sum_tasks, r);
}

static void run_chunks(backward_run *r)
{
    const int64_t queries = r->call->mask.queries;
    int64_t first = 0;
    do { /* once even for no queries: there are zeros to write */
        r->chunk = (rapt_additive_chunk){first, first + r->rows < queries ? first + r->rows : queries};
        run_chunk(r);
        first += r->rows;
    } while (first < queries);
}

/* As many queries at once as keep the one or two matrices of a chunk smaller than half the projected queries and
 * keys. */
static int64_t choose_chunk(const rapt_additive_attention *call, int64_t matrices)
{
    const rapt_raw_mask *mask = &call->mask;
    const int64_t budget = (mask->heads * mask->queries + call->groups * mask->keys) * call->hidden / 2,
                  row = matrices * mask->heads * mask->keys;
    const int64_t rows = row > 0 ? budget / row / rapt_additive_block * rapt_additive_block : mask->queries;
    const int64_t least = rows > rapt_additive_block ? rows : rapt_additive_block;
    return least < mask->queries ? least : mask->queries;
}

/* Fills in where the rows of a chunk begin for each sequence; returns the pairs of all. */
static int64_t count_pairs(const rapt_raw_mask *mask, int64_t rows, int64_t *pairs)
{
    int64_t sum = 0;
    if (!mask->starts) return mask->batch * rows * mask->keys;
    for (int64_t b = 0; b < mask->batch; b++) {
        const rapt_raw_place place = rapt_raw_place_of(mask, b);
        pairs[b] = sum;
        sum += (rows < place.queries ? rows : place.queries) * place.keys;
    }
    return sum;
}

bool rapt_additive_attention_backward(const char *op, const rapt_additive_attention *call, rapt_additive_gradient *g,
                                      rapt_additive_wants wants)
{
    const rapt_raw_mask *mask = &call->mask;
    backward_run r = {.call = call, .kernels = &rapt_kernel.additive[call->dtype], .g = g};
    if (wants.hidden) r.slices = rapt_divide_up(call->hidden, rapt_additive_slice);
    if (wants.values) r.tiles = rapt_divide_up(mask->keys, rapt_additive_tile);
    g->stores_pooled = !g->weights || mask->keep < 1;
    const int matrices = call->changes ? 3 : g->stores_pooled ? 2 : 1; /* weights are not kept where scores change */
    r.rows = choose_chunk(call, matrices);
    size_t pairs_capacity = 0, capacity = 0;
    int64_t *pairs = NULL;
    if (mask->starts && !(pairs = rapt_block_take(op, (size_t)mask->batch * sizeof *pairs, &pairs_capacity)))
        return false;
    const int64_t elements = mask->heads * count_pairs(mask, r.rows, pairs);
    r.matrix = rapt_divide_up(elements * (int64_t)rapt_dtype_size(call->dtype), 64) * 64;
    r.pairs = pairs;
    const rapt_attention_tasks tasks = rapt_additive_cut_queries(call, 0, r.rows);
    const bool done = (r.scores = rapt_block_take(op, (size_t)(matrices * r.matrix), &capacity)) &&
                      rapt_gathering_begin(op, call->changes, tasks.count, 1, &r.gathering) &&
                      rapt_gathering_begin(op, call->normalizer.gathers, tasks.count, 1, &r.head_terms);
    if (done) run_chunks(&r);
    rapt_gathering_end(&r.gathering, done);
    rapt_gathering_end(&r.head_terms, done);
    rapt_block_give(r.scores, capacity);
    rapt_block_give(pairs, pairs_capacity);
    return done;
}
