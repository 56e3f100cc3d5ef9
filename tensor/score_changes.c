/* Changes of scores, tile by tile and of whole matrices, and the gradients of what they captured. */
#include "tensor/score_changes.h"

#include <string.h>

#include "tensor/core.h"
#include "tensor/memory.h"
#include "tensor/parallel.h"

void rapt_lay_out_gradients(rapt_raw_changes *changes)
{
    changes->gathered = 0;
    for (int c = 0; c < changes->changes->captured; c++) {
        changes->captured[c].place = changes->gathered;
        if (changes->captured[c].gradient) changes->gathered += changes->captured[c].count;
    }
}

/* Where the elements of an item and head begin, in units of them. */
static int64_t slice_of(const rapt_raw_captured *captured, int64_t item, int64_t head)
{
    return (captured->items > 1 ? item : 0) * captured->heads + (captured->heads > 1 ? head : 0);
}

/* Calls a function of a change on the tile, of which scores or gradient are set. first: its first captured tensor. */
static void call(rapt_score_function *function, const rapt_raw_changes *changes, const rapt_score_change *change,
                 int first, rapt_score_tile *tile, double *gathered)
{
    const void *captured[rapt_most_captured];
    double *gradients[rapt_most_captured];
    for (int c = 0; c < change->captured; c++) {
        const rapt_raw_captured *one = &changes->captured[first + c];
        captured[c] = one->data + slice_of(one, tile->item, tile->head) * one->count * one->bytes;
        gradients[c] = gathered && one->gradient ? gathered + one->place : NULL;
    }
    tile->options = change->options;
    tile->captured = captured;
    tile->captured_gradients = tile->gradient ? gradients : NULL;
    function(tile);
}

static void copy_rows(const rapt_score_tile *tile, int64_t bytes, const void *from, void *to)
{
    for (int64_t i = 0; i < tile->rows; i++)
        memcpy((char *)to + i * tile->stride * bytes, (const char *)from + i * tile->stride * bytes,
               (size_t)(tile->columns * bytes));
}

/* Of the scores that change number k begins with; those of `count` are what the last one gives. */
static bool keeps(const rapt_score_changes *changes, int k)
{
    return (k < changes->count && changes->each[k].reads_old) || (k > 0 && changes->each[k - 1].reads_new);
}

void rapt_change_scores(const rapt_raw_changes *changes, const rapt_score_tile *place, void *kept, int64_t elements)
{
    const rapt_score_changes *all = changes->changes;
    const int64_t bytes = (int64_t)rapt_dtype_size(changes->dtype);
    rapt_score_tile tile = *place;
    for (int k = 0, first = 0; k <= all->count; k++) {
        if (kept && keeps(all, k)) copy_rows(&tile, bytes, tile.scores, (char *)kept + k * elements * bytes);
        if (k == all->count) break;
        call(all->each[k].functions.change, changes, &all->each[k], first, &tile, NULL);
        first += all->each[k].captured;
    }
}

void rapt_differentiate_scores(const rapt_raw_changes *changes, const rapt_score_tile *place, const void *kept,
                               int64_t elements, double *gathered)
{
    const rapt_score_changes *all = changes->changes;
    const int64_t bytes = (int64_t)rapt_dtype_size(changes->dtype);
    rapt_score_tile tile = *place;
    tile.scores = NULL;
    for (int k = all->count - 1, first = all->captured; k >= 0; k--) {
        const rapt_score_change *change = &all->each[k];
        const char *old_scores = (const char *)kept + k * elements * bytes;
        first -= change->captured;
        if (!change->functions.differentiate) continue;
        tile.old_scores = change->reads_old ? old_scores : NULL;
        tile.new_scores = change->reads_new ? old_scores + elements * bytes : NULL;
        call(change->functions.differentiate, changes, change, first, &tile, gathered);
    }
}

/* --- gradients of what was captured --- */

static size_t sums_of(const rapt_raw_changes *changes)
{
    size_t sums = 0;
    for (int c = 0; c < changes->changes->captured; c++) {
        const rapt_raw_captured *one = &changes->captured[c];
        if (one->gradient) sums += (size_t)(one->items * one->heads * one->count);
    }
    return sums;
}

static double *take_zeros(const char *op, size_t count, size_t *capacity)
{
    double *zeros = rapt_block_take(op, (count + 1) * sizeof *zeros, capacity);
    return zeros ? memset(zeros, 0, count * sizeof *zeros) : NULL;
}

bool rapt_gathering_begin(const char *op, const rapt_raw_changes *changes, int64_t tasks, int64_t heads,
                          rapt_gathering *g)
{
    *g = (rapt_gathering){.changes = changes, .tasks = tasks, .heads = heads};
    if (!changes || changes->gathered == 0) return true;
    size_t count;
    if (__builtin_mul_overflow((size_t)(tasks * heads), (size_t)changes->gathered, &count) || count > SIZE_MAX / 16)
        return rapt_fail(RAPT_ERROR_MEMORY, op, "gradients of captured tensors: %lld elements for each of %lld tasks",
                         (long long)changes->gathered, (long long)tasks);
    g->sums = take_zeros(op, sums_of(changes), &g->sums_capacity);
    if (!g->sums) return false;
    g->of_tasks = take_zeros(op, count, &g->of_tasks_capacity);
    if (g->of_tasks) return true;
    rapt_block_give(g->sums, g->sums_capacity);
    g->sums = NULL;
    return false;
}

double *rapt_gathering_of_task(const rapt_gathering *g, int64_t task)
{
    return g->of_tasks ? g->of_tasks + task * g->heads * g->changes->gathered : NULL;
}

void rapt_gathering_add(const rapt_gathering *g, int64_t task, int64_t item, int64_t first)
{
    double *from = rapt_gathering_of_task(g, task);
    for (int64_t h = 0; from && h < g->heads; h++, from += g->changes->gathered) {
        double *sums = g->sums;
        for (int c = 0; c < g->changes->changes->captured; c++) {
            const rapt_raw_captured *one = &g->changes->captured[c];
            if (!one->gradient) continue;
            double *to = sums + slice_of(one, item, first + h) * one->count;
            for (int64_t i = 0; i < one->count; i++) to[i] += from[one->place + i];
            sums += one->items * one->heads * one->count;
        }
        memset(from, 0, (size_t)g->changes->gathered * sizeof *from);
    }
}

static void add_gradients(const rapt_gathering *g)
{
    const double *from = g->sums;
    for (int c = 0; c < g->changes->changes->captured; c++) {
        const rapt_raw_captured *one = &g->changes->captured[c];
        const int64_t count = one->gradient ? one->items * one->heads * one->count : 0;
        for (int64_t i = 0; i < count; i++)
            if (g->changes->dtype == RAPT_FLOAT32)
                ((float *)one->gradient)[i] += (float)from[i];
            else
                ((double *)one->gradient)[i] += from[i];
        from += count;
    }
}

void rapt_gathering_end(rapt_gathering *g, bool adds)
{
    if (adds && g->sums) add_gradients(g);
    rapt_block_give(g->of_tasks, g->of_tasks_capacity);
    rapt_block_give(g->sums, g->sums_capacity);
}

/* --- whole matrices --- */

enum { rows_at_once = 16 };

typedef struct whole_run {
    const rapt_raw_changes *changes;
    const rapt_whole_scores *whole;
    int64_t blocks; /* of a head */
    rapt_gathering gathering;
} whole_run;

/* A task: some rows of a head of an item, in this order. */
static void run_whole(void *context, int64_t first_task, int64_t last_task)
{
    const whole_run *r = context;
    const rapt_whole_scores *whole = r->whole;
    for (int64_t task = first_task; task < last_task; task++) {
        const int64_t head = task / r->blocks, first = task % r->blocks * rows_at_once;
        const int64_t left = whole->queries - first, rows = left < rows_at_once ? left : rows_at_once;
        const int64_t at = (head * whole->queries + first) * whole->keys * (int64_t)rapt_dtype_size(r->changes->dtype);
        int64_t queries[rows_at_once];
        const int64_t *places = whole->places ? whole->places + head / whole->heads * whole->place_item : NULL;
        for (int64_t i = 0; i < rows; i++) queries[i] = places ? places[first + i] : first + i + whole->offset;
        rapt_score_tile tile = {.item = head / whole->heads,
                                .head = head % whole->heads,
                                .rows = rows,
                                .columns = whole->keys,
                                .queries = queries,
                                .stride = whole->keys};
        if (whole->scores) {
            tile.scores = (char *)whole->scores + at;
            rapt_change_scores(r->changes, &tile, NULL, 0);
            continue;
        }
        const rapt_score_change *change = &r->changes->changes->each[0];
        if (!change->functions.differentiate) continue;
        tile.gradient = (char *)whole->gradient + at;
        if (whole->old_scores) tile.old_scores = (const char *)whole->old_scores + at;
        if (whole->new_scores) tile.new_scores = (const char *)whole->new_scores + at;
        call(change->functions.differentiate, r->changes, change, 0, &tile,
             rapt_gathering_of_task(&r->gathering, task));
    }
}

static bool change_or_differentiate(const char *op, const rapt_raw_changes *changes, const rapt_whole_scores *whole,
                                    const rapt_raw_changes *gathering)
{
    whole_run r = {.changes = changes, .whole = whole, .blocks = rapt_divide_up(whole->queries, rows_at_once)};
    const int64_t tasks = whole->keys > 0 ? whole->batch * whole->heads * r.blocks : 0;
    if (!rapt_gathering_begin(op, gathering, tasks, 1, &r.gathering)) return false;
    rapt_parallel(tasks, rapt_grain(rows_at_once * whole->keys * 8), run_whole, &r);
    for (int64_t task = 0; task < tasks; task++) {
        const int64_t head = task / r.blocks;
        rapt_gathering_add(&r.gathering, task, head / whole->heads, head % whole->heads);
    }
    rapt_gathering_end(&r.gathering, true);
    return true;
}

bool rapt_change_whole_scores(const char *op, const rapt_raw_changes *changes, const rapt_whole_scores *whole)
{
    return change_or_differentiate(op, changes, whole, NULL);
}

bool rapt_differentiate_whole_scores(const char *op, const rapt_raw_changes *changes, const rapt_whole_scores *whole)
{
    return change_or_differentiate(op, changes, whole, changes);
}
