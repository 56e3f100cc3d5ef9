/* A mask's rule of one's own: its answers for whole tiles, for rows of tiles, and what of ranges it leaves. */
#include "tensor/mask_rule.h"

#include <string.h>

#include "kernels/attention_mask.h"
#include "tensor/attention_tasks.h"
#include "tensor/parallel.h"

/* Some rows of a head, no more than a tile has, and the keys [keys.first, keys.last); places: room for theirs. */
static rapt_mask_tile tile_of(const rapt_raw_mask *mask, rapt_score_row row, int64_t rows, rapt_key_range keys,
                              int64_t *places)
{
    rapt_mask_tile tile = {.item = mask->rule.first_item + row.item,
                           .head = row.head,
                           .rows = rows,
                           .columns = keys.last - keys.first,
                           .queries = places,
                           .lowest_query = INT64_MAX,
                           .highest_query = INT64_MIN,
                           .first_key = keys.first,
                           .last_key = keys.last - 1,
                           .numbers = mask->rule.code.numbers,
                           .captured = mask->rule.captured};
    for (int64_t i = 0; i < rows; i++, row.query++) {
        places[i] = rapt_row_place(mask, row);
        if (places[i] < tile.lowest_query) tile.lowest_query = places[i];
        if (places[i] > tile.highest_query) tile.highest_query = places[i];
    }
    return tile;
}

/* Hides all columns of a row but those a multiple of the dilation away from its place. */
static void dilate(int64_t dilation, int64_t place, int64_t first_key, int64_t columns, uint8_t *seen)
{
    uint8_t before[rapt_rule_columns];
    int64_t beyond = place % dilation;
    if (beyond < 0) beyond += dilation;
    beyond = (beyond - first_key) % dilation; /* keys are counted from 0: the difference is none too many */
    memcpy(before, seen, (size_t)columns);
    memset(seen, 0, (size_t)columns);
    for (int64_t c = beyond < 0 ? beyond + dilation : beyond; c < columns;
         c = dilation < columns ? c + dilation : columns)
        seen[c] = before[c];
}

/* Asks about single places of a tile. */
static void see(const rapt_mask_code *code, const rapt_mask_tile *tile, uint8_t *seen)
{
    if (code->see)
        code->see(tile, seen);
    else
        memset(seen, 1, (size_t)(tile->rows * tile->columns));
    for (int64_t i = 0; code->dilation > 1 && i < tile->rows; i++)
        dilate(code->dilation, tile->queries[i], tile->first_key, tile->columns, seen + i * tile->columns);
}

rapt_tile_seen rapt_rule_row(const rapt_raw_mask *mask, rapt_score_row row, int64_t first, int64_t last, uint8_t *seen)
{
    int64_t place;
    const uint8_t answer = rapt_rule_answers(&mask->rule, row)[first / rapt_rule_columns];
    if (answer != RAPT_SOME_SEEN) {
        memset(seen, answer == RAPT_ALL_SEEN, (size_t)(last - first));
        return answer == RAPT_ALL_SEEN ? RAPT_ALL_SEEN : RAPT_NONE_SEEN;
    }
    const rapt_mask_tile tile = tile_of(mask, row, 1, (rapt_key_range){first, last}, &place);
    see(&mask->rule.code, &tile, seen);
    return RAPT_SOME_SEEN;
}

/* --- all tiles --- */

/* One of its rows: the keys that the mask leaves to it, the smallest range that holds those found to be seen, and how
 * many these are. */
typedef struct band_row {
    rapt_key_range range, seen;
    int64_t count;
} band_row;

/* Neighbouring queries of one head. */
typedef struct band {
    rapt_raw_mask mask; /* of the sequence, where packed */
    rapt_score_row first;
    int64_t rows;
    rapt_key_range keys; /* the smallest range that holds all of its rows' */
    uint8_t *answers;
    band_row row[rapt_rule_rows];
} band;

static rapt_key_range keys_of(const band *b, int64_t first, int64_t last)
{
    return rapt_intersect_ranges((rapt_key_range){first * rapt_rule_columns, last * rapt_rule_columns}, b->keys);
}

static rapt_tile_seen judge(const band *b, int64_t first, int64_t last)
{
    const rapt_mask_code *code = &b->mask.rule.code;
    int64_t places[rapt_rule_rows];
    if (!code->judge) return RAPT_SOME_SEEN;
    const rapt_mask_tile tile = tile_of(&b->mask, b->first, b->rows, keys_of(b, first, last), places);
    return code->judge(&tile);
}

/* The answers for the columns [first, last) of tiles: for all of them at once where they are one, by halves else. */
static void judge_columns(const band *b, int64_t first, int64_t last)
{
    const rapt_mask_code *code = &b->mask.rule.code;
    const rapt_tile_seen answer = judge(b, first, last);
    const bool is_one = answer == RAPT_NONE_SEEN || answer == RAPT_ALL_SEEN;
    if (is_one || !code->judge || last - first == 1) {
        const bool is_some = !is_one || (answer == RAPT_ALL_SEEN && code->dilation > 1);
        memset(b->answers + first, is_some ? RAPT_SOME_SEEN : (int)answer, (size_t)(last - first));
        return;
    }
    const int64_t middle = first + (last - first) / 2;
    judge_columns(b, first, middle);
    judge_columns(b, middle, last);
}

static void add_seen(band_row *row, rapt_key_range keys)
{
    if (keys.first >= keys.last) return;
    row->seen = rapt_join_ranges(row->seen, keys);
    row->count += keys.last - keys.first;
}

/* Adds what the rows see of a column of tiles. False where a row has a hole between the keys that it was found to
 * see. */
static bool ask_column(band *b, int64_t column)
{
    const rapt_tile_seen answer = b->answers[column];
    const rapt_key_range keys = keys_of(b, column, column + 1);
    uint8_t seen[rapt_rule_rows * rapt_rule_columns];
    int64_t places[rapt_rule_rows];
    bool whole = true;
    if (answer == RAPT_NONE_SEEN) return true;
    const rapt_mask_tile tile = tile_of(&b->mask, b->first, b->rows, keys, places);
    if (answer == RAPT_SOME_SEEN) see(&b->mask.rule.code, &tile, seen);
    for (int64_t i = 0; i < b->rows; i++) {
        band_row *row = &b->row[i];
        const rapt_key_range piece = rapt_intersect_ranges(keys, row->range);
        const uint8_t *of_row = seen + i * tile.columns;
        if (answer == RAPT_ALL_SEEN) add_seen(row, piece);
        for (int64_t j = piece.first; answer == RAPT_SOME_SEEN && j < piece.last; j++)
            if (of_row[j - keys.first]) add_seen(row, (rapt_key_range){j, j + 1});
        whole = whole && row->count == row->seen.last - row->seen.first;
    }
    return whole;
}

/* Has a row keys from `first` on, and none from `least` on that it was found to see? */
static bool lacks(const band *b, int64_t first, int64_t least)
{
    for (int64_t i = 0; i < b->rows; i++) {
        const rapt_key_range range = b->row[i].range;
        if (range.first < range.last && range.last > first && b->row[i].seen.last <= least) return true;
    }
    return false;
}

/* Finds the first and the last key that each row sees, and gives whether it sees all between. No tile is asked about
 * twice: from the front on until each row has begun and one has a hole, and then from the back as far as need be. */
static bool find_seen(band *b)
{
    int64_t column = b->keys.first / rapt_rule_columns, last = rapt_divide_up(b->keys.last, rapt_rule_columns);
    bool whole = true;
    for (; column < last && (whole || lacks(b, column * rapt_rule_columns, 0)); column++)
        whole = ask_column(b, column) && whole;
    const int64_t rest = column * rapt_rule_columns;
    for (; column < last && lacks(b, rest, rest); last--) ask_column(b, last - 1);
    return whole;
}

typedef struct ask_run {
    const rapt_raw_mask *mask;
    const rapt_rule_findings *f;
    int64_t bands, columns;
} ask_run;

/* False where a sequence has no rows in the band. */
static bool enter(const ask_run *r, int64_t task, band *b)
{
    const int64_t head = task / r->bands % r->f->heads, item = task / r->bands / r->f->heads;
    b->mask = r->mask->starts ? rapt_raw_mask_of_sequence(r->mask, item, 0) : *r->mask;
    b->first = (rapt_score_row){r->mask->starts ? 0 : item, head, task % r->bands * rapt_rule_rows};
    b->rows = rapt_smaller_of(rapt_rule_rows, b->mask.queries - b->first.query);
    b->keys = (rapt_key_range){0, 0};
    b->answers = r->f->answers + task * r->columns;
    for (int64_t i = 0; i < b->rows; i++) {
        rapt_score_row row = b->first;
        row.query += i;
        b->row[i] = (band_row){.range = rapt_row_range(&b->mask, row)};
        b->keys = rapt_join_ranges(b->keys, b->row[i].range);
    }
    return b->rows > 0;
}

static void ask_bands(void *context, int64_t first, int64_t last)
{
    const ask_run *r = context;
    for (int64_t task = first; task < last; task++) {
        band b;
        const bool has_rows = enter(r, task, &b);
        memset(b.answers, RAPT_NONE_SEEN, (size_t)r->columns);
        if (b.keys.first < b.keys.last)
            judge_columns(&b, b.keys.first / rapt_rule_columns, (b.keys.last - 1) / rapt_rule_columns + 1);
        int64_t *range = r->f->ranges + 2 * (task / r->bands * r->mask->queries + b.first.query);
        r->f->whole[task] = find_seen(&b);
        for (int64_t i = 0; has_rows && i < b.rows; i++, range += 2) {
            range[0] = b.row[i].seen.first;
            range[1] = b.row[i].seen.last;
        }
    }
}

void rapt_rule_ask(const rapt_raw_mask *mask, const rapt_rule_findings *findings)
{
    ask_run r = {.mask = mask,
                 .f = findings,
                 .bands = rapt_divide_up(mask->queries, rapt_rule_rows),
                 .columns = rapt_divide_up(mask->keys, rapt_rule_columns)};
    rapt_parallel(findings->items * findings->heads * r.bands, rapt_grain(rapt_rule_rows * mask->keys), ask_bands, &r);
}
