/* Tasks of fused attention, dot-product and additive alike. */
#include "tensor/attention_tasks.h"

#include <rapt/runtime.h>

#include "tensor/parallel.h"

static void count_tasks(rapt_attention_tasks *t)
{
    t->count = t->items * t->groups * t->chunks * t->parts;
}

rapt_attention_tasks rapt_attention_tasks_of(int64_t items, int64_t groups, int64_t rows, int64_t keys)
{
    rapt_attention_tasks t = {.items = items,
                              .groups = groups,
                              .rows = rows,
                              .chunk = rows,
                              .keys = keys,
                              .part_keys = keys,
                              .chunks = 1,
                              .parts = 1};
    count_tasks(&t);
    return t;
}

void rapt_attention_cut_rows(rapt_attention_tasks *t, int64_t chunk)
{
    t->chunk = chunk < t->rows ? chunk : t->rows;
    t->chunks = t->chunk > 0 ? rapt_divide_up(t->rows, t->chunk) : 0;
    count_tasks(t);
}

void rapt_attention_cut_keys(rapt_attention_tasks *t, int64_t enough, int64_t least_keys, int64_t step)
{
    const int64_t wanted = t->count > 0 ? rapt_divide_up(enough, t->count) : 1, most = t->keys / least_keys;
    const int64_t parts = wanted < most ? wanted : most;
    if (parts <= 1) return;
    t->part_keys = rapt_divide_up(rapt_divide_up(t->keys, parts), step) * step;
    t->parts = rapt_divide_up(t->keys, t->part_keys);
    count_tasks(t);
}

rapt_attention_piece rapt_attention_piece_of(const rapt_attention_tasks *t, int64_t task)
{
    const int64_t chunk = t->chunks - 1 - task % t->chunks, part = task / t->chunks % t->parts;
    const int64_t group = task / t->chunks / t->parts, last_row = (chunk + 1) * t->chunk;
    const int64_t last_key = (part + 1) * t->part_keys;
    return (rapt_attention_piece){.item = group / t->groups,
                                  .group = group % t->groups,
                                  .first_row = t->first_row + chunk * t->chunk,
                                  .last_row = t->first_row + (last_row < t->rows ? last_row : t->rows),
                                  .first_key = t->first_key + part * t->part_keys,
                                  .last_key = t->first_key + (last_key < t->keys ? last_key : t->keys)};
}

rapt_attention_piece rapt_attention_piece_before(const rapt_attention_tasks *t, int64_t task, int64_t first,
                                                 int64_t last, rapt_attention_piece *next)
{
    rapt_attention_piece piece = rapt_attention_piece_of(t, task);
    *next = rapt_attention_piece_of(t, task + 1 < last ? task + 1 : last + (rapt_get_threads() - 1) * (last - first));
    if (next->item < t->items) piece.next = next;
    return piece;
}

bool rapt_attention_enter_sequence(const rapt_raw_place *sequence, int64_t repeats, rapt_attention_piece *piece)
{
    const int64_t rows = repeats * sequence->queries;
    if (piece->first_row > 0 && piece->first_row >= rows) return false;
    if (piece->last_row > rows) piece->last_row = rows;
    if (piece->last_key > sequence->keys) piece->last_key = sequence->keys;
    if (piece->first_key > sequence->keys) piece->first_key = sequence->keys;
    piece->item = 0;
    piece->next = NULL;
    return true;
}

rapt_raw_mask rapt_raw_mask_of_sequence(const rapt_raw_mask *mask, int64_t sequence, int64_t bytes)
{
    const rapt_raw_place place = rapt_raw_place_of(mask, sequence), all = rapt_raw_place_of_all(mask);
    rapt_raw_mask one = *mask;
    if (mask->ranges) one.ranges += 2 * place.first_query;
    if (mask->relative_bias.data)
        one.relative_bias.data =
            (const char *)mask->relative_bias.data + place.first_query * mask->relative_bias.strides[2] * bytes;
    if (mask->places) one.places += place.first_query;
    if (mask->rule.answers) one.rule.answers += sequence * mask->rule.strides[0];
    one.rule.first_item = sequence;
    one.first_draw = sequence * mask->heads * mask->queries * mask->keys;
    one.more_queries = mask->queries - place.queries;
    one.more_keys = mask->keys - place.keys;
    one.other_queries = all.queries - place.queries;
    one.other_keys = all.keys - place.keys;
    one.queries = place.queries;
    one.keys = place.keys;
    one.batch = 1;
    one.starts = NULL;
    return one;
}

static void move_to_query(rapt_raw_grid *grid, int64_t query, int64_t bytes)
{
    if (grid->data) grid->data = (const char *)grid->data + query * grid->strides[2] * bytes;
}

rapt_raw_mask rapt_raw_mask_of_queries(const rapt_raw_mask *mask, int64_t first, int64_t count, int64_t bytes)
{
    rapt_raw_mask some = *mask;
    if (mask->ranges) some.ranges += 2 * first;
    if (mask->places) some.places += first;
    move_to_query(&some.seen, first, 1);
    move_to_query(&some.bias, first, bytes);
    move_to_query(&some.relative_bias, first, bytes);
    some.offset += first;
    some.queries = count;
    some.more_queries = some.other_queries = mask->queries - count;
    some.first_draw = first * mask->keys;
    return some;
}
