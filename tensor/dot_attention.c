/* Fused dot-product attention, cut into tasks by its shape alone. */
#include "tensor/dot_attention.h"

#include <rapt/runtime.h>

#include "tensor/kernels.h"
#include "tensor/memory.h"
#include "tensor/parallel.h"
#include "tensor/scratch.h"

/* Fewer tasks than that are cut further, so that threads find enough of them: rows first, then keys. A chunk of rows is as
 * large as stays in a core's own cache: it pays for making the keys ready. */
enum { enough_tasks = 8, chunk_bytes = 1 << 18, most_rows = 512, least_rows = 32, least_keys = 256 };

/* One run. A task takes a chunk of the rows of a group, or where there are few, of some of its keys; the last chunk comes
 * first, because of causal ones it is the longest. */
typedef struct run {
    const rapt_dot_attention *call;
    const rapt_dot_kernels *kernels;
    rapt_scratch scratch;
    int64_t rows, chunk, chunks; /* of a group */
    int64_t parts, part_keys;    /* of the keys */
    char *outs, *statistics; /* (parts, batch·heads·queries, value_size) and (…, 2), where there are several parts */
    void *weights;           /* for rapt_dot_attention_weights */
} run;

static int64_t divide_up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

static run new_run(const rapt_dot_attention *call)
{
    run r = {.call = call, .kernels = &rapt_kernel.dot[call->dtype], .parts = 1, .part_keys = call->mask.keys};
    r.rows = call->groups > 0 ? call->mask.heads / call->groups * call->mask.queries : 0;
    return r;
}

static int64_t all_rows(const run *r)
{
    return r->call->mask.batch * r->call->mask.heads * r->call->mask.queries;
}

/* Cuts the keys into parts of whole tiles. */
static void cut_keys(run *r, int64_t parts)
{
    enum { step = 64 };
    if (parts <= 1) return;
    r->part_keys = divide_up(divide_up(r->call->mask.keys, parts), step) * step;
    r->parts = divide_up(r->call->mask.keys, r->part_keys);
}

static void cut_rows(run *r)
{
    const int64_t groups = r->call->mask.batch * r->call->groups, step = r->kernels->tile_rows;
    const int64_t row_bytes = (r->call->size + r->call->value_size) * (int64_t)rapt_dtype_size(r->call->dtype);
    int64_t chunk = most_rows;
    while (chunk > least_rows && chunk * row_bytes > chunk_bytes) chunk /= 2;
    while (chunk > least_rows && groups * divide_up(r->rows, chunk) < enough_tasks) chunk /= 2;
    r->chunk = divide_up(chunk, step) * step;
    if (r->chunk > r->rows) r->chunk = r->rows;
    r->chunks = divide_up(r->rows, r->chunk);
}

static rapt_dot_piece piece_of(const run *r, int64_t task)
{
    const int64_t chunk = r->chunks - 1 - task % r->chunks, part = task / r->chunks % r->parts;
    const int64_t group = task / r->chunks / r->parts, last_row = (chunk + 1) * r->chunk;
    const int64_t last_key = (part + 1) * r->part_keys;
    return (rapt_dot_piece){.item = group / r->call->groups,
                            .group = group % r->call->groups,
                            .first_row = chunk * r->chunk,
                            .last_row = last_row < r->rows ? last_row : r->rows,
                            .first_key = part * r->part_keys,
                            .last_key = last_key < r->call->mask.keys ? last_key : r->call->mask.keys};
}

/* The piece of a task of [first, last), and in *next a guess at what the thread does after it: other threads are as fast, and
 * took the tasks in between. */
static rapt_dot_piece piece_before(const run *r, int64_t task, int64_t first, int64_t last, rapt_dot_piece *next)
{
    rapt_dot_piece piece = piece_of(r, task);
    *next = piece_of(r, task + 1 < last ? task + 1 : last + (rapt_get_threads() - 1) * (last - first));
    if (next->item < r->call->mask.batch) piece.next = next;
    return piece;
}

static void forward_tasks(void *context, int64_t first, int64_t last)
{
    const run *r = context;
    const rapt_kernel_mask *mask = &r->call->mask;
    const int64_t bytes = (int64_t)rapt_dtype_size(r->call->dtype), row = r->call->value_size;
    void *scratch = rapt_scratch_borrow(&r->scratch);
    for (int64_t task = first; task < last; task++) {
        rapt_dot_piece next;
        const rapt_dot_piece piece = piece_before(r, task, first, last, &next);
        rapt_dot_attention call = *r->call;
        if (r->parts > 1) {
            const int64_t skipped = piece.first_key / r->part_keys * all_rows(r);
            call.out = (rapt_kernel_rows){r->outs + skipped * row * bytes,
                                          {mask->heads * mask->queries * row, mask->queries * row, row}};
            call.statistics = r->statistics + 2 * skipped * bytes;
        }
        if (r->weights)
            r->kernels->weights(&call, &piece, scratch, r->weights);
        else
            r->kernels->forward(&call, &piece, scratch);
    }
    rapt_scratch_return(&r->scratch, scratch);
}

static void merge_rows(void *context, int64_t first, int64_t last)
{
    const run *r = context;
    r->kernels->merge(r->call, r->parts, r->outs, r->statistics, first, last);
}

/* What a task costs, in additions. */
static int64_t cost_of(const run *r, int64_t rows, int64_t products)
{
    const int64_t step = r->kernels->tile_rows;
    return divide_up(rows, step) * step * r->part_keys / 32 * products + 256;
}

static bool run_forward(const char *op, run *r)
{
    const rapt_dot_attention *call = r->call;
    if (all_rows(r) == 0) return true;
    const int64_t tasks = call->mask.batch * call->groups * r->chunks * r->parts;
    if (!rapt_scratch_take(op, &r->scratch, tasks, r->kernels->forward_bytes(call, r->chunk))) return false;
    rapt_parallel(tasks, rapt_grain(cost_of(r, r->chunk, call->size + call->value_size)), forward_tasks, r);
    rapt_scratch_give(&r->scratch);
    return true;
}

bool rapt_dot_attention_forward(const char *op, const rapt_dot_attention *call)
{
    run r = new_run(call);
    if (all_rows(&r) == 0) return true;
    cut_rows(&r);
    const int64_t tasks = call->mask.batch * call->groups * r.chunks, longest = call->mask.keys / least_keys;
    const int64_t wanted = divide_up(enough_tasks, tasks);
    cut_keys(&r, wanted < longest ? wanted : longest);
    if (r.parts == 1) return run_forward(op, &r);
    const size_t bytes = rapt_dtype_size(call->dtype), rows = (size_t)(r.parts * all_rows(&r));
    size_t capacity;
    r.outs = rapt_block_take(op, rows * (size_t)(call->value_size + 2) * bytes, &capacity);
    if (!r.outs) return false;
    r.statistics = r.outs + rows * (size_t)call->value_size * bytes;
    const bool done = run_forward(op, &r);
    if (done) rapt_parallel(all_rows(&r), rapt_grain(r.parts * call->value_size), merge_rows, &r);
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
    const rapt_dot_attention *call = r->call;
    const int64_t bytes = (int64_t)rapt_dtype_size(call->dtype);
    void *scratch = rapt_scratch_borrow(&r->scratch);
    for (int64_t task = first; task < last; task++) {
        rapt_dot_piece next;
        const rapt_dot_piece piece = piece_before(r, task, first, last, &next);
        const int64_t part = task % r->parts, group = task / r->parts;
        char *d_queries =
            r->parts > 1 ? r->outs + (part * all_rows(r) + group * r->rows) * rapt_dot_part_size(call) * bytes : NULL;
        r->kernels->backward(call, &piece, scratch, d_queries);
    }
    rapt_scratch_return(&r->scratch, scratch);
}

static void sum_rows(void *context, int64_t first, int64_t last)
{
    const run *r = context;
    r->kernels->sum_parts(r->call, r->parts, r->outs, first, last);
}

/* A task takes all rows of a group; where there are few groups, some of its keys: then each part has a gradient of the
 * queries of its own, and they are summed in the end. Distance biases gather from all keys of a row. */
static void cut_backward(run *r)
{
    const rapt_dot_attention *call = r->call;
    const int64_t groups = call->mask.batch * call->groups;
    const int64_t wanted = divide_up(enough_tasks, groups), longest = call->mask.keys / least_keys;
    r->chunk = r->rows;
    r->chunks = 1;
    if (!call->d_nearby) cut_keys(r, wanted < longest ? wanted : longest);
}

bool rapt_dot_attention_backward(const char *op, const rapt_dot_attention *call)
{
    run r = new_run(call);
    if (call->mask.batch * call->groups == 0) return true;
    cut_backward(&r);
    const int64_t tasks = call->mask.batch * call->groups * r.parts;
    size_t capacity = 0;
    if (r.parts > 1) {
        r.outs =
            rapt_block_take(op,
                            (size_t)(r.parts * all_rows(&r) * rapt_dot_part_size(call)) * rapt_dtype_size(call->dtype),
                            &capacity);
        if (!r.outs) return false;
    }
    const bool done = rapt_scratch_take(op, &r.scratch, tasks, r.kernels->backward_bytes(call, r.rows));
    if (done) {
        const int64_t products = 3 * call->size + 2 * call->value_size;
        rapt_parallel(tasks, rapt_grain(cost_of(&r, r.rows, products)), backward_tasks, &r);
        rapt_scratch_give(&r.scratch);
        if (r.parts > 1) rapt_parallel(all_rows(&r), rapt_grain(r.parts * call->size), sum_rows, &r);
    }
    rapt_block_give(r.outs, capacity);
    return done;
}
