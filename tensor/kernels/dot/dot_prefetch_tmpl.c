/* Prefetches rows before they are read or written: rows of a head may lie apart, and the processor does not guess
 * where. Part of dot_tmpl.c. */

/* GCC drops calls of functions that do nothing else, so none of them may be a call. */
#define PREFETCH static inline __attribute__((always_inline)) void

enum { groups_prefetched = 2 };

/* Rows [first, last), `count` elements each. */
PREFETCH prefetch_rows(const rapt_raw_rows *rows, int64_t item, int64_t head, int64_t first, int64_t last,
                       int64_t count, bool written)
{
    const T *row = row_of(rows, item, head, first);
    for (int64_t i = first; i < last; i++, row += rows->strides[2])
        for (int64_t j = 0; j < count; j += line / SIZE)
            if (written)
                __builtin_prefetch(row + j, 1);
            else
                __builtin_prefetch(row + j, 0);
}

/* Keys and values [first, last) as far as they lie in the range. */
PREFETCH prefetch_keys(const rapt_dot_attention *call, const rapt_attention_piece *piece, int64_t first, int64_t last,
                       rapt_key_range range)
{
    first = larger_of(first, range.first);
    last = smaller_of(last, range.last);
    prefetch_rows(&call->keys, piece->item, piece->group, first, last, call->size, false);
    prefetch_rows(&call->values, piece->item, piece->group, first, last, call->value_size, false);
}

/* What `rows` has for a group of the piece's rows, as far as it belongs to the head of the first of them, row i. */
PREFETCH prefetch_group(const rapt_dot_attention *call, const rapt_attention_piece *piece, int64_t i,
                        const rapt_raw_rows *rows, int64_t count, bool written)
{
    const int64_t here = smaller_of(piece->last_row - piece->first_row - i, RAPT_TILE_ROWS);
    if (here <= 0) return;
    const rapt_score_row row = row_at(call, piece, i);
    prefetch_rows(rows, row.item, row.head, row.query, smaller_of(row.query + here, call->mask.queries), count,
                  written);
}

/* The queries of a group of rows from row i on, and as many of the first keys that it sees. */
PREFETCH prefetch_queries(const rapt_dot_attention *call, const rapt_attention_piece *piece, int64_t i)
{
    if (i >= piece->last_row - piece->first_row) return;
    const rapt_key_range keys = {piece->first_key, piece->last_key};
    const rapt_key_range range = rapt_intersect_ranges(keys, rapt_row_range(&call->mask, row_at(call, piece, i)));
    prefetch_group(call, piece, i, &call->queries, call->size, false);
    prefetch_keys(call, piece, range.first + i, range.first + i + RAPT_TILE_ROWS, range);
}

/* What backward reads of the output of a group of rows. */
PREFETCH prefetch_output(const rapt_dot_attention *call, const rapt_attention_piece *piece, int64_t i)
{
    prefetch_group(call, piece, i, &call->gradient, call->value_size, false);
    prefetch_group(call, piece, i, &call->out, call->value_size, false);
}

/* Is row i of the next piece to be prefetched? Not too many of them: they would push out what this piece still
 * needs. */
static inline bool prefetches_row(const rapt_attention_piece *piece, int64_t i)
{
    enum { most_rows = 128 };
    return piece->next && i < most_rows;
}
