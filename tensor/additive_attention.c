/* Fused additive attention over raw numbers: its tasks and the memory they need. */
#include "tensor/additive_attention.h"

#include <string.h>

#include "additive_sequences.h"
#include "tensor/kernels.h"
#include "tensor/memory.h"
#include "tensor/parallel.h"

/* Few queries of many keys are cut along the keys. */
enum { enough_tasks = 16, least_keys = 512 };

static int64_t all_rows(const rapt_additive_attention *call)
{
    return call->mask.heads * rapt_raw_place_of_all(&call->mask).queries;
}

/* --- forward --- */

typedef struct forward_run {
    const rapt_additive_attention *call;
    const rapt_additive_kernels *kernels;
    int64_t bytes; /* of an element */
    rapt_attention_tasks tasks;
    const rapt_additive_output *output;
    int64_t parts;           /* of the tasks, and behind them what other keys gave, if these join it */
    char *outs, *statistics; /* of the parts, (parts, heads, queries, value_size) and (…, 2) of each sequence; NULL if
                              * there is but one part, which goes to the output */
} forward_run;

/* Row `query` of a head in the output: the statistics and weights of a sequence lie behind one another. */
static rapt_additive_output output_at(const forward_run *r, const rapt_additive_attention *call,
                                      const rapt_raw_place *place, int64_t item, int64_t head, int64_t query)
{
    const rapt_raw_mask *mask = &call->mask;
    const int64_t number = item * mask->heads + head, row = number * mask->queries + query;
    const int64_t out_row = place->first_query + number * (mask->queries + mask->other_queries) + query;
    return (rapt_additive_output){.out = rapt_moved(r->output->out, out_row, call->value_size, r->bytes),
                                  .statistics = rapt_moved(r->output->statistics,
                                                           mask->heads * place->first_query + row, 2, r->bytes),
                                  .weights =
                                      rapt_moved(r->output->weights, mask->heads * place->first_pair + row * mask->keys,
                                                 1, r->bytes)};
}

/* The same of one of several parts; weights are not cut. */
static rapt_additive_output part_at(const forward_run *r, const rapt_additive_attention *call,
                                    const rapt_raw_place *place, int64_t part, int64_t item, int64_t head,
                                    int64_t query)
{
    const rapt_raw_mask *mask = &call->mask;
    const int64_t row = mask->heads * (r->tasks.parts * place->first_query + part * place->queries) +
                        (item * mask->heads + head) * mask->queries + query;
    rapt_additive_output output = output_at(r, call, place, item, head, query);
    output.out = rapt_moved(r->outs, row, call->value_size, r->bytes);
    output.statistics = rapt_moved(r->statistics, row, 2, r->bytes);
    return output;
}

static void forward_tasks(void *context, int64_t first, int64_t last)
{
    const forward_run *r = context;
    for (int64_t task = first; task < last; task++) {
        rapt_attention_piece piece = rapt_attention_piece_of(&r->tasks, task);
        const int64_t part = rapt_attention_part_of(&r->tasks, &piece);
        const rapt_raw_place place = rapt_raw_place_of(&r->call->mask, piece.item);
        rapt_additive_attention call = rapt_additive_call_of_sequence(r->call, piece.item);
        if (!rapt_additive_enter_sequence(r->call, &place, &piece)) continue;
        if (r->outs && !call.normalizer.is_sigmoid)
            call.normalizer.head_terms = NULL; /* the sink comes at the merging */
        const rapt_additive_output output =
            r->outs ? part_at(r, &call, &place, part, piece.item, piece.group, piece.first_row)
                    : output_at(r, &call, &place, piece.item, piece.group, piece.first_row);
        r->kernels->forward(&call, &piece, &output);
    }
}

/* Copies what other keys gave behind the parts. */
static void take_joined(const forward_run *r)
{
    const rapt_additive_attention *call = r->call;
    const int64_t rows = all_rows(call), first = r->tasks.parts * rows;
    memcpy(rapt_moved(r->outs, first, call->value_size, r->bytes), r->output->out,
           (size_t)(rows * call->value_size * r->bytes));
    memcpy(rapt_moved(r->statistics, first, 2, r->bytes), r->output->statistics, (size_t)(2 * rows * r->bytes));
}

/* The rows of one head after another, of all items. */
static void merge_heads(void *context, int64_t first, int64_t last)
{
    const forward_run *r = context;
    const int64_t heads = r->call->mask.heads, size = r->call->value_size;
    for (int64_t number = first; number < last; number++) {
        const rapt_raw_place place = rapt_raw_place_of(&r->call->mask, number / heads);
        const rapt_additive_attention call = rapt_additive_call_of_sequence(r->call, number / heads);
        const int64_t item = r->call->mask.starts ? 0 : number / heads, rows = heads * place.queries;
        const rapt_additive_output output = output_at(r, &call, &place, item, number % heads, 0);
        const rapt_additive_output from = part_at(r, &call, &place, 0, item, number % heads, 0);
        const rapt_additive_parts parts = {.count = r->parts,
                                           .keys = r->tasks.part_keys,
                                           .out = from.out,
                                           .statistics = from.statistics,
                                           .out_step = rows * size,
                                           .statistics_step = rows * 2};
        r->kernels->merge(&call, number % heads, call.mask.queries, &parts, &output);
    }
}

bool rapt_additive_attention_forward(const char *op, const rapt_additive_attention *call,
                                     const rapt_additive_output *output)
{
    const rapt_raw_mask *mask = &call->mask;
    forward_run r = {.call = call,
                     .kernels = &rapt_kernel.additive[call->dtype],
                     .bytes = (int64_t)rapt_dtype_size(call->dtype),
                     .tasks = rapt_additive_cut_queries(call, 0, mask->queries),
                     .output = output};
    rapt_attention_cut_keys(&r.tasks, enough_tasks, least_keys, rapt_additive_tile);
    const int64_t parts = r.parts = r.tasks.parts + output->joins, elements = parts * all_rows(call);
    size_t capacity = 0;
    if (parts > 1) {
        r.outs = rapt_block_take(op, (size_t)(elements * (call->value_size + 2) * r.bytes), &capacity);
        if (!r.outs) return false;
        r.statistics = r.outs + elements * call->value_size * r.bytes;
    }
    const int64_t cost = r.tasks.chunk * r.tasks.part_keys * (call->hidden + call->value_size);
    rapt_parallel(r.tasks.count, rapt_grain(cost), forward_tasks, &r);
    if (output->joins) take_joined(&r);
    if (parts > 1)
        rapt_parallel(mask->batch * mask->heads, rapt_grain(mask->queries * (parts * call->value_size + mask->keys)),
                      merge_heads, &r);
    rapt_block_give(r.outs, capacity);
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
