/* All that a mask says, by ranges, bytes and rule together: which queries see a key, and which keys are seen. */
#include <stdlib.h>
#include <string.h>

#include "kernels/attention_mask.h"
#include "tensor/attention_tasks.h"
#include "tensor/mask_rule.h"
#include "tensor/parallel.h"

/* Do the mask's bytes show the row any of these keys? None does where the first is 0 and each equals the
 * one before it. */
static bool bytes_show(const rapt_raw_grid *bytes, rapt_score_row row, rapt_key_range keys)
{
    const int64_t step = bytes->strides[3], count = step == 0 ? 1 : keys.last - keys.first;
    const uint8_t *seen = (const uint8_t *)bytes->data + rapt_row_start(bytes, row) + keys.first * step;
    if (keys.first >= keys.last) return false;
    if (step == 1) return *seen != 0 || memcmp(seen, seen + 1, (size_t)count - 1) != 0;
    for (int64_t j = 0; j < count; j++)
        if (seen[j * step]) return true;
    return false;
}

/* Do bytes and rule together? */
static bool rule_shows(const rapt_raw_mask *mask, rapt_score_row row, rapt_key_range keys)
{
    rapt_raw_mask without_bias = *mask;
    uint8_t seen[rapt_rule_columns] = {0};
    without_bias.bias.data = NULL;
    rapt_row_seen_float32(&without_bias, row, keys, seen);
    return memchr(seen, 1, (size_t)(keys.last - keys.first)) != NULL;
}

/* Ranges begin and end with keys that are seen, unless bytes hide them, or heads differ that have them together. */
static bool row_sees(const rapt_raw_mask *mask, rapt_score_row row)
{
    const rapt_key_range range = rapt_row_range(mask, row);
    const bool by_rule = mask->rule.answers, by_head = by_rule && mask->rule.strides[1] != 0;
    if (!mask->seen.data && !by_head) return range.first < range.last;
    if (!by_rule) return bytes_show(&mask->seen, row, range);
    for (rapt_key_range piece = rapt_rule_piece(range.first, range.last); piece.first < piece.last;
         piece = rapt_rule_piece(piece.last, range.last))
        if (rule_shows(mask, row, piece)) return true;
    return false;
}

/* Of rows whose bytes lie closer together than those of one of them: key by key, so that lines of memory are read
 * once. */
static void find_seeing_by_keys(const rapt_raw_mask *mask, rapt_score_row row, int64_t rows, uint8_t *seeing)
{
    const int64_t step = mask->seen.strides[2];
    const uint8_t *bytes = (const uint8_t *)mask->seen.data + rapt_row_start(&mask->seen, row);
    rapt_key_range all = {0, 0}, ranges[rapt_seeing_rows], piece;
    for (int64_t i = 0; i < rows; i++, row.query++) all = rapt_join_ranges(all, ranges[i] = rapt_row_range(mask, row));
    for (; all.first < all.last && memchr(seeing, 0, (size_t)rows); all.first = piece.last) {
        uint8_t first[rapt_seeing_rows], count[rapt_seeing_rows];
        piece = rapt_rule_piece(all.first, all.last);
        for (int64_t i = 0; i < rows; i++) {
            const rapt_key_range part = rapt_intersect_ranges(piece, ranges[i]);
            first[i] = (uint8_t)(part.first - piece.first);
            count[i] = (uint8_t)(part.last - part.first);
        }
        for (int64_t j = piece.first; j < piece.last; j++) {
            const uint8_t *seen = bytes + j * mask->seen.strides[3], key = (uint8_t)(j - piece.first);
            if (step == 1)
                RAPT_SIMD for (int64_t i = 0; i < rows; i++) seeing[i] |=
                    (seen[i] != 0) & ((uint8_t)(key - first[i]) < count[i]);
            else
                for (int64_t i = 0; i < rows; i++)
                    seeing[i] |= seen[i * step] != 0 && (uint8_t)(key - first[i]) < count[i];
        }
    }
}

void rapt_mask_find_seeing(const rapt_raw_mask *mask, rapt_score_row row, int64_t rows, uint8_t *seeing)
{
    const int64_t *strides = mask->seen.strides;
    if (mask->seen.data && !mask->rule.answers && strides[3] != 1 && llabs(strides[2]) < llabs(strides[3])) {
        find_seeing_by_keys(mask, row, rows, seeing);
        return;
    }
    for (int64_t i = 0; i < rows; i++, row.query++)
        if (!seeing[i]) seeing[i] = row_sees(mask, row);
}

void rapt_mask_find_seen(const rapt_raw_mask *mask, int64_t item, int64_t first_head, int64_t last_head, uint8_t *seen)
{
    rapt_raw_mask one = mask->starts ? rapt_raw_mask_of_sequence(mask, item, 0) : *mask;
    one.bias.data = NULL;
    for (int64_t head = first_head; head < last_head; head++)
        for (int64_t query = 0; query < one.queries; query++) {
            const rapt_score_row row = {mask->starts ? 0 : item, head, query};
            rapt_row_seen_float32(&one, row, (rapt_key_range){0, one.keys}, seen);
            if (query % rapt_rule_rows == 0 && !memchr(seen, 0, (size_t)one.keys)) return;
        }
}

typedef struct write_run {
    const rapt_raw_mask *mask;
    int64_t heads;
    uint8_t *seen;
} write_run;

static void write_rows(void *context, int64_t first, int64_t last)
{
    const write_run *r = context;
    const int64_t queries = r->mask->queries, keys = r->mask->keys;
    for (int64_t n = first; n < last; n++) {
        const rapt_score_row row = {n / queries / r->heads, n / queries % r->heads, n % queries};
        memset(r->seen + n * keys, 0, (size_t)keys);
        rapt_row_seen_float32(r->mask, row, (rapt_key_range){0, keys}, r->seen + n * keys);
    }
}

void rapt_mask_write_seen(const rapt_raw_mask *mask, int64_t items, int64_t heads, uint8_t *seen)
{
    rapt_raw_mask without_bias = *mask;
    without_bias.bias.data = NULL;
    write_run r = {&without_bias, heads, seen};
    rapt_parallel(items * heads * mask->queries, rapt_grain(mask->keys), write_rows, &r);
}
