/* Fused additive attention over raw numbers: its tasks and the memory they need. */
#include "tensor/additive_attention.h"

#include "tensor/kernels.h"
#include "tensor/memory.h"
#include "tensor/parallel.h"

/* Few queries of many keys are cut along the keys. */
enum { enough_tasks = 16, least_keys = 512 };

static int64_t all_rows(const rapt_additive_attention *call)
{
    return call->mask.batch * call->mask.heads * call->mask.queries;
}

/* Blocks of the queries [first, last) of each head. */
static rapt_attention_tasks cut_queries(const rapt_additive_attention *call, int64_t first, int64_t last)
{
    const rapt_raw_mask *mask = &call->mask;
    rapt_attention_tasks tasks = rapt_attention_tasks_of(mask->batch, mask->heads, last - first, mask->keys);
    tasks.first_row = first;
    rapt_attention_cut_rows(&tasks, rapt_additive_block);
    return tasks;
}

/* --- forward --- */

typedef struct forward_run {
    const rapt_additive_attention *call;
    const rapt_additive_kernels *kernels;
    int64_t bytes; /* of an element */
    rapt_attention_tasks tasks;
    const rapt_additive_output *output;
    char *outs,
        *statistics; /* (parts, batch·heads·queries, value_size) and (…, 2); the output's if there is but one part */
} forward_run;

static rapt_additive_output output_at(const forward_run *r, char *out, char *statistics, int64_t row)
{
    char *weights = r->output->weights;
    return (rapt_additive_output){.out = out + row * r->call->value_size * r->bytes,
                                  .statistics = statistics + 2 * row * r->bytes,
                                  .weights = weights ? weights + row * r->call->mask.keys * r->bytes : NULL};
}

static void forward_tasks(void *context, int64_t first, int64_t last)
{
    const forward_run *r = context;
    for (int64_t task = first; task < last; task++) {
        const rapt_attention_piece piece = rapt_attention_piece_of(&r->tasks, task);
        const int64_t skipped = rapt_attention_part_of(&r->tasks, &piece) * all_rows(r->call) * r->bytes;
        const int64_t row = (piece.item * r->tasks.groups + piece.group) * r->tasks.rows + piece.first_row;
        const rapt_additive_output output =
            output_at(r, r->outs + skipped * r->call->value_size, r->statistics + 2 * skipped, row);
        r->kernels->forward(r->call, &piece, &output);
    }
}

static void merge_rows(void *context, int64_t first, int64_t last)
{
    const forward_run *r = context;
    const int64_t rows = all_rows(r->call), size = r->call->value_size;
    const rapt_additive_output output = output_at(r, r->output->out, r->output->statistics, first);
    const rapt_additive_parts parts = {.count = r->tasks.parts,
                                       .keys = r->tasks.part_keys,
                                       .out = r->outs + first * size * r->bytes,
                                       .statistics = r->statistics + 2 * first * r->bytes,
                                       .out_step = rows * size,
                                       .statistics_step = rows * 2};
    r->kernels->merge(r->call, last - first, &parts, &output);
}

bool rapt_additive_attention_forward(const char *op, const rapt_additive_attention *call,
                                     const rapt_additive_output *output)
{
    forward_run r = {.call = call,
                     .kernels = &rapt_kernel.additive[call->dtype],
                     .bytes = (int64_t)rapt_dtype_size(call->dtype),
                     .tasks = cut_queries(call, 0, call->mask.queries),
                     .output = output,
                     .outs = output->out,
                     .statistics = output->statistics};
    rapt_attention_cut_keys(&r.tasks, enough_tasks, least_keys, rapt_additive_tile);
    const int64_t parts = r.tasks.parts, elements = parts * all_rows(call);
    size_t capacity = 0;
    char *block = NULL;
    if (parts > 1) {
        block = rapt_block_take(op, (size_t)(elements * (call->value_size + 2) * r.bytes), &capacity);
        if (!block) return false;
        r.outs = block;
        r.statistics = block + elements * call->value_size * r.bytes;
    }
    const int64_t cost = r.tasks.chunk * r.tasks.part_keys * (call->hidden + call->value_size);
    rapt_parallel(r.tasks.count, rapt_grain(cost), forward_tasks, &r);
    if (parts > 1)
        rapt_parallel(all_rows(call), rapt_grain(parts * call->value_size + call->mask.keys), merge_rows, &r);
    rapt_block_give(block, capacity);
    return true;
}

/* --- backward: chunks of queries, whose scores' gradients are kept only until the next chunk --- */

typedef struct backward_run {
    const rapt_additive_attention *call;
    const rapt_additive_kernels *kernels;
    const rapt_additive_gradient *g;
    rapt_additive_chunk chunk;
    rapt_attention_tasks tasks; /* blocks of the chunk's queries */
    int64_t slices, tiles;      /* of the hidden units, of a group's keys */
} backward_run;

static void score_tasks(void *context, int64_t first, int64_t last)
{
    const backward_run *r = context;
    for (int64_t task = first; task < last; task++) {
        const rapt_attention_piece piece = rapt_attention_piece_of(&r->tasks, task);
        r->kernels->scores_backward(r->call, r->g, &r->chunk, &piece);
    }
}

/* The slices and tiles of one group, then groups. */
static void sum_tasks(void *context, int64_t first, int64_t last)
{
    const backward_run *r = context;
    for (int64_t task = first; task < last; task++) {
        const int64_t part = task % (r->slices + r->tiles), group = task / (r->slices + r->tiles);
        const int64_t item = group / r->call->groups, in_item = group % r->call->groups;
        if (part < r->slices)
            r->kernels->hidden_backward(r->call, r->g, &r->chunk, item, in_item, part * rapt_additive_slice);
        else
            r->kernels->values_backward(r->call, r->g, &r->chunk, item, in_item,
                                        (part - r->slices) * rapt_additive_tile);
    }
}

static void run_chunk(backward_run *r)
{
    const rapt_raw_mask *mask = &r->call->mask;
    const int64_t queries = r->chunk.last - r->chunk.first, parts = r->slices + r->tiles;
    r->tasks = cut_queries(r->call, r->chunk.first, r->chunk.last);
    rapt_parallel(r->tasks.count, rapt_grain(r->tasks.chunk * mask->keys * (r->call->value_size / 8 + 16)), score_tasks,
                  r);
    const int64_t cost = mask->heads / r->call->groups * queries * mask->keys * rapt_additive_slice;
    if (parts > 0) rapt_parallel(mask->batch * r->call->groups * parts, rapt_grain(cost), sum_tasks, r);
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

/* In (batch, heads, rows, keys), dense; first: where the chunk's first row is. */
static rapt_additive_rows_of_chunk rows_of_chunk(const rapt_additive_attention *call, char *first, int64_t rows)
{
    return (rapt_additive_rows_of_chunk){first, call->mask.heads * rows * call->mask.keys, rows * call->mask.keys};
}

bool rapt_additive_attention_backward(const char *op, const rapt_additive_attention *call, rapt_additive_gradient *g,
                                      rapt_additive_wants wants)
{
    const rapt_raw_mask *mask = &call->mask;
    backward_run r = {.call = call, .kernels = &rapt_kernel.additive[call->dtype], .g = g};
    if (wants.hidden) r.slices = rapt_divide_up(call->hidden, rapt_additive_slice);
    if (wants.values) r.tiles = rapt_divide_up(mask->keys, rapt_additive_tile);
    g->stores_pooled = !g->weights || mask->keep < 1;
    const int64_t rows = choose_chunk(call, g->stores_pooled ? 2 : 1), bytes = (int64_t)rapt_dtype_size(call->dtype);
    const int64_t matrix = rapt_divide_up(mask->batch * mask->heads * rows * mask->keys * bytes, 64) * 64;
    size_t capacity;
    char *scores = rapt_block_take(op, (size_t)(g->stores_pooled ? 2 * matrix : matrix), &capacity);
    if (!scores) return false;
    g->scores = rows_of_chunk(call, scores, rows);
    int64_t first = 0;
    do { /* once even for no queries: there are zeros to write */
        const int64_t last = first + rows < mask->queries ? first + rows : mask->queries;
        r.chunk = (rapt_additive_chunk){first, last};
        g->pooled = g->stores_pooled
                        ? rows_of_chunk(call, scores + matrix, rows)
                        : rows_of_chunk(call, (char *)g->weights + first * mask->keys * bytes, mask->queries);
        run_chunk(&r);
        first += rows;
    } while (first < mask->queries);
    rapt_block_give(scores, capacity);
    return true;
}

/* --- exponentials --- */

typedef struct powers_run {
    rapt_dtype dtype;
    int64_t hidden, bytes; /* bytes: of an element */
    const char *x;
    double factor;
    const void *factors;
    char *powers, *largest;
} powers_run;

static void power_rows(void *context, int64_t first, int64_t last)
{
    const powers_run *r = context;
    rapt_kernel.additive[r->dtype].powers(last - first, r->hidden, r->x + first * r->hidden * r->bytes, r->factor,
                                          r->factors, r->powers + first * RAPT_ADDITIVE_PADDED(r->hidden) * r->bytes,
                                          r->largest ? r->largest + first * r->bytes : NULL);
}

void rapt_additive_powers(rapt_dtype dtype, int64_t rows, int64_t hidden, const void *x, double factor,
                          const void *factors, void *powers, void *largest)
{
    enum { cost = 16 }; /* of an exponential, in additions */
    powers_run r = {dtype, hidden, (int64_t)rapt_dtype_size(dtype), x, factor, factors, powers, largest};
    rapt_parallel(rows, rapt_grain(hidden * cost), power_rows, &r);
}
