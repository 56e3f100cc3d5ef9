/* What forward and backward of fused dot-product attention do to a tile of keys and a group of rows. Part of
 * dot_tmpl.c. */

/* As many keys at once as make their keys and values so many bytes. */
static int64_t tile_keys(const rapt_dot_attention *call, int64_t bytes)
{
    enum { step = tile_step, largest = largest_tile / step * step };
    const int64_t fitting =
        bytes / SIZE / (call->size + call->value_size > 0 ? call->size + call->value_size : 1) / step * step;
    const int64_t tile = fitting < 2 * step ? 2 * step : fitting > largest ? largest : fitting;
    const int64_t wanted = round_up(call->mask.keys, step);
    return wanted == 0 ? step : wanted < tile ? wanted : tile;
}

/* seen[j] = 1 where any of the rows sees key tile.first + j, group_seen[g] = 1 where one of group g sees any of them;
 * seen_by_any are the ranges of the groups. False where all are 0. */
static bool find_seen_keys(const rapt_dot_attention *call, const rapt_attention_piece *piece, int64_t rows,
                           const rapt_key_range *seen_by_any, rapt_key_range tile, uint8_t *seen, uint8_t *group_seen)
{
    const rapt_raw_mask *mask = &call->mask;
    const int64_t count = tile.last - tile.first, groups = (rows + RAPT_TILE_ROWS - 1) / RAPT_TILE_ROWS;
    const bool has_tensors = mask->seen.data || mask->bias.data, has_holes = rapt_mask_has_holes(mask);
    bool found = false, complete = false;
    memset(seen, 0, (size_t)count);
    for (int64_t g = groups - 1; g >= 0; g--) { /* from the last row: of causal ones it sees the most */
        const rapt_key_range range = rapt_intersect_ranges(tile, seen_by_any[g]);
        group_seen[g] = range.first < range.last;
        if (!group_seen[g] || (complete && !has_holes)) continue;
        uint8_t here[largest_tile] = {0}, shown = 0;
        uint8_t *into = has_tensors ? here : seen;
        const int64_t first = g * RAPT_TILE_ROWS, last = smaller_of(first + RAPT_TILE_ROWS, rows);
        for (int64_t i = last - 1; i >= first && !complete; i--) {
            const rapt_score_row row = row_at(call, piece, i);
            const rapt_key_range keys = rapt_intersect_ranges(tile, rapt_row_range(mask, row));
            if (mask->rule.answers && rapt_rule_hides(mask, row, keys)) continue;
            shown = 1;
            OF_TYPE(rapt_row_seen)(mask, row, tile, into);
            complete = !has_holes && keys.last - keys.first == count;
        }
        uint8_t of_group = !has_tensors && (!has_holes || shown);
        for (int64_t j = 0; has_tensors && j < count; j++) of_group |= here[j], seen[j] |= here[j];
        group_seen[g] = of_group;
        found |= of_group;
    }
    return found;
}

/* Scores of a group of rows and `vectors` whole vectors of transposed keys, before the mask. */
static void score(const rapt_dot_attention *call, int64_t vectors, const T *queries, int64_t query_row, const T *keys,
                  T *scores, int64_t stride)
{
    if (call->is_gaussian)
        log_gaussian(vectors, call->size, queries, query_row, 1, keys, stride, scores, stride, NULL);
    else
        product(vectors, call->size, queries, query_row, 1, keys, stride, scores, stride, NULL);
}

/* The rows of a group that are of the head of row `first`, up to row `last`: their tile of scores, `stride` apart, of
 * the keys [keys.first, keys.last). Fills in their places. */
static rapt_score_tile tile_of_head(const rapt_dot_attention *call, const rapt_attention_piece *piece, int64_t first,
                                    int64_t last, rapt_key_range keys, int64_t stride, int64_t *places)
{
    const rapt_score_row row = row_at(call, piece, first);
    const int64_t rows = smaller_of(last - first, call->mask.queries - row.query);
    for (int64_t i = 0; i < rows; i++)
        places[i] = rapt_row_place(&call->mask, (rapt_score_row){row.item, row.head, row.query + i});
    return (rapt_score_tile){.item = call->first_item + row.item,
                             .head = row.head,
                             .rows = rows,
                             .columns = keys.last - keys.first,
                             .queries = places,
                             .first_key = keys.first,
                             .stride = stride};
}

/* Changes the scores of `rows` rows. kept, if not NULL: room for what differentiation reads, copies `elements`
 * apart. */
static void change_group(const rapt_dot_attention *call, const rapt_attention_piece *piece, int64_t first, int64_t rows,
                         rapt_key_range keys, T *scores, int64_t stride, T *kept, int64_t elements)
{
    int64_t places[RAPT_TILE_ROWS];
    for (int64_t i = 0; call->changes && i < rows;) {
        rapt_score_tile tile = tile_of_head(call, piece, first + i, first + rows, keys, stride, places);
        tile.scores = scores + i * stride;
        rapt_change_scores(call->changes, &tile, kept ? kept + i * stride : NULL, elements);
        i += tile.rows;
    }
}

/* The gradient of the new scores of the rows becomes that of the old ones. */
static void differentiate_change(const rapt_dot_attention *call, const rapt_attention_piece *piece, int64_t first,
                                 int64_t rows, rapt_key_range keys, T *d_scores, int64_t stride, const T *kept,
                                 int64_t elements)
{
    int64_t places[RAPT_TILE_ROWS];
    for (int64_t i = 0; call->changes && i < rows;) {
        rapt_score_tile tile = tile_of_head(call, piece, first + i, first + rows, keys, stride, places);
        const int64_t head = tile.head - piece->group * (call->mask.heads / call->groups);
        tile.gradient = d_scores + i * stride;
        rapt_differentiate_scores(call->changes, &tile, kept + i * stride, elements,
                                  call->gathered ? call->gathered + head * call->changes->gathered : NULL);
        i += tile.rows;
    }
}

/* Adds the biases to the scores of `rows` rows, `stride` apart, of the keys [keys.first, keys.last) and up to `vectors`
 * whole vectors of columns; −∞ where a key is not seen. seen_by_all: the keys that ranges leave to all of the rows. */
static void mask_group(const rapt_dot_attention *call, const rapt_attention_piece *piece, int64_t first_row,
                       int64_t rows, rapt_key_range seen_by_all, rapt_key_range keys, int64_t vectors, T *scores,
                       int64_t stride)
{
    const int64_t columns = vectors * width;
    if (seen_by_all.first <= keys.first && seen_by_all.last >= keys.first + columns &&
        !rapt_mask_has_tensors(&call->mask))
        return;
    for (int64_t i = 0; i < rows; i++) {
        T *row = scores + i * stride;
        OF_TYPE(rapt_row_mask)(&call->mask, row_at(call, piece, first_row + i), keys, row);
        for (int64_t j = keys.last - keys.first; j < columns; j++) row[j] = -(T)INFINITY;
    }
}

/* Adds 0 · element of whole vectors: what stays 0 was finite. */
static inline vector add_rests(vector rests, int64_t count, const T *elements)
{
    for (int64_t j = 0; j < count; j += width) rests += 0 * *(const vector *)(const void *)(elements + j);
    return rests;
}

static bool are_zero(vector rests)
{
    bool result = true;
    for (int lane = 0; lane < width; lane++) result = result && rests[lane] == 0;
    return result;
}

/* For rows [first_row, first_row + rows) of the piece, `stride` apart: kept[j] = 1 where dropout leaves what they have
 * for key keys.first + j, else 0, which the columns from keys.last on have too. */
static void find_kept(const rapt_dot_attention *call, const rapt_attention_piece *piece, int64_t first_row,
                      int64_t rows, rapt_key_range keys, int64_t columns, uint8_t *kept, int64_t stride)
{
    const int64_t count = keys.last - keys.first;
    for (int64_t i = 0; i < rows;) {
        const rapt_score_row row = row_at(call, piece, first_row + i);
        const int64_t of_head = smaller_of(rows - i, call->mask.queries - row.query);
        RAPT_AT_LEVEL(rapt_rows_dropout)(&call->mask, row, of_head, keys, kept + i * stride, stride);
        i += of_head;
    }
    for (int64_t i = 0; i < rows && count < columns; i++)
        memset(kept + i * stride + count, 0, (size_t)(columns - count));
}

/* Multiplies the elements that are kept by the scale; the others become 0. */
static void drop_row(int64_t columns, const uint8_t *restrict kept, T scale, T *restrict elements)
{
    RAPT_SIMD for (int64_t j = 0; j < columns; j++) elements[j] = kept[j] ? elements[j] * scale : 0;
}
