/* Fused dot-product attention over raw numbers: its tasks and the memory they need. */
#include "tensor/dot_attention.h"

#include <string.h>

#include "tensor/flops.h"
#include "tensor/kernels.h"
#include "tensor/memory.h"
#include "tensor/parallel.h"
#include "tensor/scratch.h"

/* Fewer tasks than that are cut further, so that threads find enough of them: rows first, then keys. A chunk of rows is
 * as large as stays in a core's own cache: it pays for making the keys ready. */
enum { enough_tasks = 8, chunk_bytes = 1 << 18, most_rows = 512, least_rows = 32, least_keys = 256, key_step = 64 };

/* One run. A task takes a chunk of the rows of a group, or where there are few, of some of its keys. */
typedef struct run {
    const rapt_dot_attention *call;
    const rapt_dot_kernels *kernels;
    rapt_scratch scratch;
    rapt_attention_tasks tasks;
    int64_t parts;           /* of the tasks, and behind them what other keys gave, if these join it */
    char *outs, *statistics; /* (parts, batch·heads·queries, value_size) and (…, 2), where there are several parts */
    int64_t part_size;       /* elements of a row of outs */
    void *weights;           /* for rapt_dot_attention_weights */
    /* Backward: the gradients of what changes captured, and of the normaliser's head terms. */
    rapt_gathering gathering, head_terms;
} run;

static rapt_key_part part_of(const rapt_dot_attention *call)
{
    return call->part ? *call->part : (rapt_key_part){.last = call->mask.keys};
}

static run new_run(const rapt_dot_attention *call)
{
    const rapt_raw_mask *mask = &call->mask;
    const int64_t rows = call->groups > 0 ? mask->heads / call->groups * mask->queries : 0;
    const rapt_key_part part = part_of(call);
    run r = {.call = call,
             .kernels = &rapt_kernel.dot[call->dtype],
             .tasks = rapt_attention_tasks_of(mask->batch, call->groups, rows, part.last - part.first)};
    r.tasks.first_key = part.first;
    return r;
}

static int64_t all_rows(const run *r)
{
    return r->call->mask.heads * rapt_raw_place_of_all(&r->call->mask).queries;
}

/* The rows from place `first` on. */
static rapt_raw_rows rows_from(rapt_raw_rows rows, int64_t first, int64_t bytes)
{
    if (rows.data) rows.data = (char *)rows.data + first * rows.strides[2] * bytes;
    return rows;
}

/* One sequence of a packed batch as a call of its own. */
static rapt_dot_attention call_of_sequence(const rapt_dot_attention *call, int64_t sequence)
{
    const int64_t bytes = (int64_t)rapt_dtype_size(call->dtype), heads = call->mask.heads;
    const rapt_raw_place place = rapt_raw_place_of(&call->mask, sequence);
    const int64_t query = place.first_query, key = place.first_key, table = 2 * call->mask.reach + 1;
    rapt_dot_attention one = *call;
    one.first_item = sequence;
    one.mask = rapt_raw_mask_of_sequence(&call->mask, sequence, bytes);
    one.queries = rows_from(call->queries, query, bytes);
    one.keys = rows_from(call->keys, key, bytes);
    one.values = rows_from(call->values, key, bytes);
    one.out = rows_from(call->out, query, bytes);
    one.statistics = (char *)call->statistics + 2 * heads * query * bytes;
    one.gradient = rows_from(call->gradient, query, bytes);
    one.d_queries = rows_from(call->d_queries, query, bytes);
    one.d_keys = rows_from(call->d_keys, key, bytes);
    one.d_values = rows_from(call->d_values, key, bytes);
    if (call->d_relative_bias) one.d_relative_bias = (char *)call->d_relative_bias + query * table * bytes;
    return one;
}

rapt_dot_attention rapt_dot_attention_of_part(const rapt_dot_attention *call, int64_t first, int64_t count,
                                              const rapt_key_part *part)
{
    const int64_t bytes = (int64_t)rapt_dtype_size(call->dtype), before = call->mask.batch * call->mask.heads * first;
    rapt_dot_attention some = *call;
    some.part = part;
    some.mask = rapt_raw_mask_of_queries(&call->mask, first, count, bytes);
    some.queries = rows_from(call->queries, first, bytes);
    some.out = rows_from(call->out, first, bytes);
    some.statistics = (char *)call->statistics + 2 * before * bytes;
    some.gradient = rows_from(call->gradient, first, bytes);
    some.d_queries = rows_from(call->d_queries, first, bytes);
    if (call->d_relative_bias)
        some.d_relative_bias = (char *)call->d_relative_bias + first * (2 * call->mask.reach + 1) * bytes;
    /* Keys keep their numbers: what comes before them is not there, and not read. */
    some.keys = rows_from(call->keys, -part->first, bytes);
    some.values = rows_from(call->values, -part->first, bytes);
    some.d_keys = rows_from(call->d_keys, -part->first, bytes);
    some.d_values = rows_from(call->d_values, -part->first, bytes);
    return some;
}

/* A task: its call, its piece, and which part of the keys it is; first_row: of its sequence among all rows. */
typedef struct task_at {
    rapt_dot_attention call;
    rapt_attention_piece piece, next;
    int64_t part, first_row;
} task_at;

/* False where a sequence has nothing to do. */
static bool find_task(const run *r, int64_t task, int64_t first, int64_t last, task_at *t)
{
    const rapt_raw_mask *mask = &r->call->mask;
    t->piece = rapt_attention_piece_before(&r->tasks, task, first, last, &t->next);
    t->part = rapt_attention_part_of(&r->tasks, &t->piece);
    t->first_row = 0;
    t->call = *r->call;
    if (!mask->starts) return true;
    const rapt_raw_place place = rapt_raw_place_of(mask, t->piece.item);
    t->call = call_of_sequence(r->call, t->piece.item);
    t->first_row = mask->heads * place.first_query;
    return rapt_attention_enter_sequence(&place, mask->heads / r->call->groups, &t->piece);
}

/* Where a part of some rows begins among the parts of all: those of a sequence lie behind one another. */
static int64_t row_of_part(const run *r, const task_at *t)
{
    const rapt_raw_place place = rapt_raw_place_of_all(&t->call.mask);
    return r->tasks.parts * t->first_row + t->part * t->call.mask.heads * place.queries;
}

typedef void finish_rows(void *context, int64_t first, int64_t last);

/* Calls for all rows, or for those of each sequence: `call` is then its own, and outs and statistics are at its
 * parts. */
static void finish_parts(const run *r, int64_t cost, finish_rows *finish)
{
    const rapt_raw_mask *mask = &r->call->mask;
    const int64_t bytes = (int64_t)rapt_dtype_size(r->call->dtype), parts = r->tasks.parts;
    run whole = *r;
    if (!mask->starts) rapt_parallel(all_rows(r), rapt_grain(cost), finish, &whole);
    for (int64_t i = 0; mask->starts && i < mask->batch; i++) {
        const rapt_dot_attention call = call_of_sequence(r->call, i);
        const int64_t skipped = parts * mask->heads * rapt_raw_place_of(mask, i).first_query;
        run one = *r;
        one.call = &call;
        one.outs = r->outs + skipped * r->part_size * bytes;
        if (r->statistics) one.statistics = r->statistics + 2 * skipped * bytes;
        rapt_parallel(all_rows(&one), rapt_grain(cost), finish, &one);
    }
}

static void cut_rows(run *r)
{
    const int64_t groups = r->tasks.count, rows = r->tasks.rows, step = r->kernels->tile_rows;
    const int64_t row_bytes = (r->call->size + r->call->value_size) * (int64_t)rapt_dtype_size(r->call->dtype);
    int64_t chunk = most_rows;
    while (chunk > least_rows && chunk * row_bytes > chunk_bytes) chunk /= 2;
    while (chunk > least_rows && groups * rapt_divide_up(rows, chunk) < enough_tasks) chunk /= 2;
    rapt_attention_cut_rows(&r->tasks, rapt_divide_up(chunk, step) * step);
}

static void forward_tasks(void *context, int64_t first, int64_t last)
{
    const run *r = context;
    const int64_t bytes = (int64_t)rapt_dtype_size(r->call->dtype), size = r->call->value_size;
    void *scratch = rapt_scratch_borrow(&r->scratch);
    for (int64_t task = first; task < last; task++) {
        task_at t;
        if (!find_task(r, task, first, last, &t)) continue;
        if (r->outs) {
            const rapt_raw_mask *mask = &t.call.mask;
            const int64_t row = row_of_part(r, &t);
            t.call.out = (rapt_raw_rows){r->outs + row * size * bytes,
                                         {mask->heads * mask->queries * size, mask->queries * size, size}};
            t.call.statistics = r->statistics + 2 * row * bytes;
            if (!t.call.normalizer.is_sigmoid)
                t.call.normalizer.head_terms = NULL; /* the sink comes when they are merged */
        }
        if (r->weights)
            r->kernels->weights(&t.call, &t.piece, scratch, r->weights);
        else
            r->kernels->forward(&t.call, &t.piece, scratch);
    }
    rapt_scratch_return(&r->scratch, scratch);
}

static void merge_rows(void *context, int64_t first, int64_t last)
{
    const run *r = context;
    r->kernels->merge(r->call, r->parts, r->outs, r->statistics, first, last);
}

/* Copies what other keys gave behind the parts. */
static void take_joined(void *context, int64_t first, int64_t last)
{
    const run *r = context;
    const rapt_raw_mask *mask = &r->call->mask;
    const rapt_raw_rows *out = &r->call->out;
    const int64_t bytes = (int64_t)rapt_dtype_size(r->call->dtype), size = r->call->value_size;
    for (int64_t number = first; number < last; number++) {
        const int64_t query = number % mask->queries, head = number / mask->queries, to = r->tasks.parts * all_rows(r);
        const int64_t from = head / mask->heads * out->strides[0] + head % mask->heads * out->strides[1];
        memcpy(r->outs + (to + number) * size * bytes,
               (const char *)out->data + (from + query * out->strides[2]) * bytes, (size_t)(size * bytes));
        memcpy(r->statistics + 2 * (to + number) * bytes, (const char *)r->call->statistics + 2 * number * bytes,
               (size_t)(2 * bytes));
    }
}

static int64_t within(const rapt_key_part *part, int64_t key)
{
    return key < part->first ? part->first : key > part->last ? part->last : key;
}

/* The pairs of a query and a key in its range, of all heads. */
static double count_pairs(const rapt_dot_attention *call)
{
    const rapt_raw_mask *mask = &call->mask;
    const rapt_key_part part = part_of(call);
    if (!mask->ranges && call->part)
        return (double)mask->heads * (double)(mask->batch * mask->queries * (part.last - part.first));
    if (!mask->ranges) return (double)mask->heads * (double)rapt_raw_place_of_all(mask).pairs;
    int64_t pairs = 0;
    for (int64_t item = 0; item < mask->batch; item++) {
        const rapt_raw_place place = rapt_raw_place_of(mask, item);
        const int64_t *ranges = mask->ranges + (mask->starts ? 2 * place.first_query : item * mask->range_item);
        const int64_t queries = mask->starts ? place.queries : mask->queries;
        for (int64_t i = 0; i < queries; i++)
            if (ranges[2 * i + 1] > ranges[2 * i])
                pairs += within(&part, ranges[2 * i + 1]) - within(&part, ranges[2 * i]);
    }
    return (double)mask->heads * (double)pairs;
}

/* products: the multiply-adds of a pair. */
static void count_flops(const rapt_dot_attention *call, int64_t products)
{
    if (rapt_flops) rapt_count_flops(2 * (double)products * count_pairs(call));
}

/* What a task costs, in additions. */
static int64_t cost_of(const run *r, int64_t rows, int64_t products)
{
    const int64_t step = r->kernels->tile_rows;
    return rapt_divide_up(rows, step) * step * r->tasks.part_keys / 32 * products + 256;
}

static bool run_forward(const char *op, run *r)
{
    const rapt_dot_attention *call = r->call;
    if (all_rows(r) == 0) return true;
    const int64_t tasks = r->tasks.count, rows = r->tasks.chunk;
    if (!rapt_scratch_take(op, &r->scratch, tasks, r->kernels->forward_bytes(call, rows))) return false;
    rapt_parallel(tasks, rapt_grain(cost_of(r, rows, call->size + call->value_size)), forward_tasks, r);
    rapt_scratch_give(&r->scratch);
    return true;
}

bool rapt_dot_attention_forward(const char *op, const rapt_dot_attention *call)
{
    run r = new_run(call);
    if (all_rows(&r) == 0) return true;
    count_flops(call, call->size + call->value_size);
    cut_rows(&r);
    rapt_attention_cut_keys(&r.tasks, enough_tasks, least_keys, key_step);
    const int64_t parts = r.parts = r.tasks.parts + (call->part && call->part->joins);
    if (parts == 1) return run_forward(op, &r);
    const size_t bytes = rapt_dtype_size(call->dtype), rows = (size_t)(parts * all_rows(&r));
    size_t capacity;
    r.outs = rapt_block_take(op, rows * (size_t)(call->value_size + 2) * bytes, &capacity);
    if (!r.outs) return false;
    r.part_size = call->value_size;
    r.statistics = r.outs + rows * (size_t)call->value_size * bytes;
    const bool done = run_forward(op, &r);
    if (done && parts > r.tasks.parts) rapt_parallel(all_rows(&r), rapt_grain(call->value_size), take_joined, &r);
    if (done) finish_parts(&r, parts * call->value_size, merge_rows);
    rapt_block_give(r.outs, capacity);
    return done;
}

bool rapt_dot_attention_weights(const char *op, const rapt_dot_attention *call, void *weights)
{
    run r = new_run(call);
    r.weights = weights;
    if (all_rows(&r) == 0) return true;
    cut_rows(&r);
    return run_forward(op, &r);
}

static void backward_tasks(void *context, int64_t first, int64_t last)
{
    const run *r = context;
    const int64_t bytes = (int64_t)rapt_dtype_size(r->call->dtype);
    void *scratch = rapt_scratch_borrow(&r->scratch);
    for (int64_t task = first; task < last; task++) {
        task_at t;
        if (!find_task(r, task, first, last, &t)) continue;
        const rapt_raw_mask *mask = &t.call.mask;
        const int64_t of_group = mask->heads / r->tasks.groups * mask->queries;
        t.call.gathered = rapt_gathering_of_task(&r->gathering, task);
        t.call.normalizer.gathered = rapt_gathering_of_task(&r->head_terms, task);
        const int64_t row = row_of_part(r, &t) + (t.piece.item * r->tasks.groups + t.piece.group) * of_group;
        r->kernels->backward(&t.call, &t.piece, scratch, r->outs ? r->outs + row * r->part_size * bytes : NULL);
    }
    rapt_scratch_return(&r->scratch, scratch);
}

static void sum_rows(void *context, int64_t first, int64_t last)
{
    const run *r = context;
    r->kernels->sum_parts(r->call, r->tasks.parts, r->outs, first, last);
}

static bool gathers(const char *op, run *r)
{
    const rapt_dot_attention *call = r->call;
    const int64_t heads = call->mask.heads / call->groups;
    return rapt_gathering_begin(op, call->changes, r->tasks.count, heads, &r->gathering) &&
           rapt_gathering_begin(op, call->normalizer.gathers, r->tasks.count, heads, &r->head_terms);
}

/* In a packed batch the item of a task is its sequence. */
static void add_gathered(const run *r, const rapt_gathering *gathering)
{
    for (int64_t task = 0; gathering->of_tasks && task < r->tasks.count; task++) {
        const rapt_attention_piece piece = rapt_attention_piece_of(&r->tasks, task);
        rapt_gathering_add(gathering, task, piece.item, piece.group * gathering->heads);
    }
}

/* A task takes all rows of a group; where there are few groups, some of its keys: then each part has a gradient of the
 * queries of its own, and they are summed in the end, as where they are added. Relative biases gather from all keys of
 * a row. */
bool rapt_dot_attention_backward(const char *op, const rapt_dot_attention *call)
{
    run r = new_run(call);
    if (r.tasks.count == 0) return true;
    if (!call->d_relative_bias) rapt_attention_cut_keys(&r.tasks, enough_tasks, least_keys, key_step);
    const int64_t tasks = r.tasks.count, parts = r.tasks.parts, rows = r.tasks.rows;
    const bool sums = parts > 1 || call->adds_queries;
    size_t capacity = 0;
    if (sums) {
        r.part_size = rapt_dot_part_size(call);
        const size_t elements = (size_t)(parts * all_rows(&r) * r.part_size);
        r.outs = rapt_block_take(op, elements * rapt_dtype_size(call->dtype), &capacity);
        if (!r.outs) return false;
    }
    const bool done =
        gathers(op, &r) && rapt_scratch_take(op, &r.scratch, tasks, r.kernels->backward_bytes(call, rows));
    if (done) {
        const int64_t products = 3 * call->size + 2 * call->value_size;
        count_flops(call, products);
        rapt_parallel(tasks, rapt_grain(cost_of(&r, rows, products)), backward_tasks, &r);
        rapt_scratch_give(&r.scratch);
        if (sums) finish_parts(&r, parts * call->size, sum_rows);
        add_gathered(&r, &r.gathering);
        add_gathered(&r, &r.head_terms);
    }
    rapt_gathering_end(&r.gathering, done);
    rapt_gathering_end(&r.head_terms, done);
    rapt_block_give(r.outs, capacity);
    return done;
}
