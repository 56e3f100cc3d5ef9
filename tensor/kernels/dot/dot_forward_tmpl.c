/* Forward of fused dot-product attention: tiles of keys, a softmax that grows with them, nothing as large as the
 * scores. Part of dot_tmpl.c. */

/* One piece of work. Rows are in groups of RAPT_TILE_ROWS, one after the other; those past the last are zeros. */
typedef struct forward_work {
    const rapt_dot_attention *call;
    const rapt_attention_piece *piece;
    int64_t rows, groups, tile, value_row;     /* tile: keys at once; value_row: value_size in whole vectors */
    T *queries, *out, *largest, *sums;         /* sums has a vector for each row */
    T *keys, *values;                          /* of the tile; keys are transposed */
    T *scores, *factors, *shifts;              /* of the group at hand */
    bool chooses;                              /* a weight of 0 takes nothing, even of a value that is not finite */
    uint8_t *seen, *group_seen;                /* which keys of the tile any row sees; which groups see any of them */
    rapt_key_range *seen_by_any, *seen_by_all; /* of each group: the keys that a row may see, and that all may see */
} forward_work;

/* The layout of scratch memory; returns the bytes. */
static size_t layout_forward(forward_work *w, const rapt_dot_attention *call, int64_t rows, char *scratch)
{
    enum { tile_bytes = 65536 };
    size_t end = 0;
    w->call = call;
    w->rows = rows;
    w->groups = (rows + RAPT_TILE_ROWS - 1) / RAPT_TILE_ROWS;
    w->tile = tile_keys(call, tile_bytes);
    w->value_row = round_up(call->value_size, width);
    const int64_t all_rows = w->groups * RAPT_TILE_ROWS;
    w->queries = next_in_scratch(scratch, &end, all_rows * call->size * SIZE);
    w->out = next_in_scratch(scratch, &end, all_rows * w->value_row * SIZE);
    w->largest = next_in_scratch(scratch, &end, all_rows * SIZE);
    w->sums = next_in_scratch(scratch, &end, all_rows * RAPT_VECTOR_BYTES);
    w->keys = next_in_scratch(scratch, &end, call->size * w->tile * SIZE);
    w->values = next_in_scratch(scratch, &end, w->tile * w->value_row * SIZE);
    w->scores = next_in_scratch(scratch, &end, RAPT_TILE_ROWS * w->tile * SIZE);
    w->factors = next_in_scratch(scratch, &end, RAPT_TILE_ROWS * SIZE);
    w->shifts = next_in_scratch(scratch, &end, RAPT_TILE_ROWS * SIZE);
    w->seen = next_in_scratch(scratch, &end, w->tile);
    w->group_seen = next_in_scratch(scratch, &end, w->groups);
    w->seen_by_any = next_in_scratch(scratch, &end, w->groups * (int64_t)sizeof *w->seen_by_any);
    w->seen_by_all = next_in_scratch(scratch, &end, w->groups * (int64_t)sizeof *w->seen_by_all);
    return end;
}

static size_t forward_bytes(const rapt_dot_attention *call, int64_t rows)
{
    forward_work w;
    return layout_forward(&w, call, rows, NULL);
}

/* Copies the queries and finds out which keys the groups of rows see at all. Returns the keys that any row sees. */
static rapt_key_range begin_forward(forward_work *w)
{
    const rapt_dot_attention *call = w->call;
    const rapt_key_range keys = {w->piece->first_key, w->piece->last_key};
    rapt_key_range whole = {0, 0};
    for (int64_t g = 0; g < w->groups; g++) {
        prefetch_queries(call, w->piece, (g + groups_prefetched) * RAPT_TILE_ROWS);
        w->seen_by_any[g] = (rapt_key_range){0, 0};
        w->seen_by_all[g] = keys;
        for (int64_t i = g * RAPT_TILE_ROWS; i < (g + 1) * RAPT_TILE_ROWS; i++) {
            T *query = w->queries + i * call->size;
            if (i >= w->rows) {
                memset(query, 0, (size_t)call->size * sizeof(T));
                continue;
            }
            const rapt_score_row row = row_at(call, w->piece, i);
            const rapt_key_range range = rapt_intersect_ranges(keys, rapt_row_range(&call->mask, row));
            w->seen_by_any[g] = rapt_join_ranges(w->seen_by_any[g], range);
            w->seen_by_all[g] = rapt_intersect_ranges(w->seen_by_all[g], range);
            copy_rows(1, call->size, row_of(&call->queries, row.item, row.head, row.query), 0, NULL, (T)call->scale,
                      query, call->size);
        }
        whole = rapt_join_ranges(whole, w->seen_by_any[g]);
    }
    const int64_t all_rows = w->groups * RAPT_TILE_ROWS;
    memset(w->out, 0, (size_t)(all_rows * w->value_row) * sizeof(T));
    memset(w->sums, 0, (size_t)all_rows * RAPT_VECTOR_BYTES);
    for (int64_t i = 0; i < all_rows; i++)
        w->largest[i] = first_largest(&call->normalizer, row_at(call, w->piece, smaller_of(i, w->rows - 1)).head);
    return whole;
}

/* Copies keys and values of a tile. False when no row sees any of them. */
static bool take_tile(forward_work *w, rapt_key_range tile)
{
    const rapt_dot_attention *call = w->call;
    const rapt_attention_piece *p = w->piece;
    const int64_t count = tile.last - tile.first;
    if (!find_seen_keys(call, p, w->rows, w->seen_by_any, tile, w->seen, w->group_seen)) return false;
    transpose(count, call->size, row_of(&call->keys, p->item, p->group, tile.first), call->keys.strides[2], w->seen,
              w->keys, w->tile);
    copy_rows(count, call->value_size, row_of(&call->values, p->item, p->group, tile.first), call->values.strides[2],
              w->seen, 1, w->values, w->value_row);
    return true;
}

static inline vector larger(vector a, vector b)
{
    vector result;
    RAPT_SIMD for (int lane = 0; lane < width; lane++) result[lane] = a[lane] > b[lane] ? a[lane] : b[lane];
    return result;
}

/* The largest element of each row of vectors, all rows at once: rows i and i + half are interleaved and halved, until
 * the elements of one vector are the rows (or, where a vector has fewer elements than there are rows, of several). */
static inline void largest_of_rows(vector *rows, T *largest)
{
    enum { count = RAPT_TILE_ROWS > 4 ? 8 : 4, left = count > width ? count / width : 1 };
#pragma GCC unroll 4
    for (int half = count / 2; half >= left; half /= 2)
#pragma GCC unroll 8
        for (int i = 0; i < half; i++)
            rows[i] = larger(ZIP_LOW(rows[i], rows[i + half]), ZIP_HIGH(rows[i], rows[i + half]));
    for (int i = 0; i < count; i++) {
        T most = rows[i % left][i / left];
        for (int again = i / left + count; again < width; again += count)
            most = rows[0][again] > most ? rows[0][again] : most;
        if (i < RAPT_TILE_ROWS) largest[i] = most;
    }
}

/* Brings the largest score of each row of a group up to date; factors: what the sums so far are to be multiplied by. */
static void raise_largest(forward_work *w, int64_t g, int64_t vectors)
{
    enum { count = RAPT_TILE_ROWS > 4 ? 8 : 4 };
    vector most[count];
    for (int64_t i = 0; i < count; i++) {
        const vector *scores = (const vector *)(const void *)(w->scores + smaller_of(i, RAPT_TILE_ROWS - 1) * w->tile);
        most[i] = scores[0];
        for (int64_t v = 1; v < vectors; v++) most[i] = larger(scores[v], most[i]);
    }
    T here[RAPT_TILE_ROWS], *largest = w->largest + g * RAPT_TILE_ROWS;
    largest_of_rows(most, here);
    RAPT_SIMD for (int64_t i = 0; i < RAPT_TILE_ROWS; i++)
    {
        const T before = largest[i], now = here[i] > before ? here[i] : before;
        w->shifts[i] = now == -(T)INFINITY ? 0 : now;
        w->factors[i] = EXP(before - w->shifts[i]);
        largest[i] = now;
    }
}

/* A row's scores become their exponentials, which are added to its sums, a vector of them. */
static inline __attribute__((always_inline)) void exponentiate(int64_t vectors, T shift, T factor, T *restrict scores,
                                                               T *restrict sums)
{
    T lanes[width];
    RAPT_SIMD for (int lane = 0; lane < width; lane++) lanes[lane] = sums[lane] * factor;
    for (int64_t v = 0; v < vectors; v++) RAPT_SIMD for (int lane = 0; lane < width; lane++)
        {
            const T e = EXP(scores[v * width + lane] - shift);
            scores[v * width + lane] = e;
            lanes[lane] += e;
        }
    RAPT_SIMD for (int lane = 0; lane < width; lane++) sums[lane] = lanes[lane];
}

/* The same for the rows of a group. */
static void softmax_step(forward_work *w, int64_t g, int64_t vectors)
{
    enum { usual = 8 }; /* a number that the compiler knows lets it do a row at a time */
    T *sums = w->sums + g * RAPT_TILE_ROWS * width;
    raise_largest(w, g, vectors);
    if (vectors == usual)
        for (int64_t i = 0; i < RAPT_TILE_ROWS; i++)
            exponentiate(usual, w->shifts[i], w->factors[i], w->scores + i * w->tile, sums + i * width);
    else
        for (int64_t i = 0; i < RAPT_TILE_ROWS; i++)
            exponentiate(vectors, w->shifts[i], w->factors[i], w->scores + i * w->tile, sums + i * width);
}

/* Sigmoid's step: the rows of a group have no sums to follow. */
static __attribute__((noinline)) void sigmoid_step(forward_work *w, int64_t g, int64_t vectors)
{
    const int64_t from = g * RAPT_TILE_ROWS;
    for (int64_t i = 0; i < RAPT_TILE_ROWS; i++) {
        w->factors[i] = 1;
        weigh_by_sigmoid(vectors, w->largest[from + i], w->scores + i * w->tile, w->sums + (from + i) * width);
    }
}

/* The scores of a group for a tile from column `first` on; returns how many vectors of columns they are. */
static int64_t score_group(forward_work *w, int64_t g, rapt_key_range tile, rapt_key_range seen, int64_t first)
{
    const rapt_dot_attention *call = w->call;
    const int64_t vectors = (seen.last - tile.first - first + width - 1) / width;
    score(call, vectors, w->queries + g * RAPT_TILE_ROWS * call->size, call->size, w->keys + first, w->scores, w->tile);
    const int64_t from = g * RAPT_TILE_ROWS;
    const int64_t rows = w->rows - from < RAPT_TILE_ROWS ? w->rows - from : RAPT_TILE_ROWS;
    const rapt_key_range keys = {tile.first + first, seen.last};
    change_group(call, w->piece, from, rows, keys, w->scores, w->tile, NULL, 0);
    mask_group(call, w->piece, from, rows, w->seen_by_all[g], keys, vectors, w->scores, w->tile);
    return vectors;
}

/* Dropout of the weights of a group, before they are multiplied by what it divides all of them by. */
static __attribute__((noinline)) void drop_group(forward_work *w, int64_t first_row, rapt_key_range keys,
                                                 int64_t columns)
{
    uint8_t kept[RAPT_TILE_ROWS * largest_tile];
    const int64_t rows = smaller_of(w->rows - first_row, RAPT_TILE_ROWS);
    find_kept(w->call, w->piece, first_row, rows, keys, columns, kept, columns);
    for (int64_t i = 0; i < rows; i++) drop_row(columns, kept + i * columns, 1, w->scores + i * w->tile);
}

static void forward_group(forward_work *w, int64_t g, rapt_key_range tile)
{
    const rapt_dot_attention *call = w->call;
    const rapt_key_range seen = rapt_intersect_ranges(tile, w->seen_by_any[g]);
    if (seen.first >= seen.last || !w->group_seen[g]) return;
    const int64_t first = (seen.first - tile.first) / width * width;
    const int64_t count = seen.last - tile.first - first, from = g * RAPT_TILE_ROWS;
    const int64_t vectors = score_group(w, g, tile, seen, first);
    if (call->normalizer.is_sigmoid)
        sigmoid_step(w, g, vectors);
    else
        softmax_step(w, g, vectors);
    if (call->mask.keep < 1) drop_group(w, from, (rapt_key_range){tile.first + first, seen.last}, vectors * width);
    (w->chooses ? product_chosen : product_scaled)(w->value_row / width, count, w->scores, w->tile, 1,
                                                   w->values + first * w->value_row, w->value_row,
                                                   w->out + from * w->value_row, w->value_row, w->factors);
}

/* Divides by the sums, and writes out and statistics. False if something in out is not finite. */
static bool end_forward(forward_work *w)
{
    const rapt_dot_attention *call = w->call;
    vector rests = {0};
    for (int64_t i = 0; i < w->rows; i++) {
        const rapt_score_row row = row_at(call, w->piece, i);
        const T *from = w->out + i * w->value_row,
                scale = give_statistics(call, row, w->largest[i], w->sums + i * width);
        T *out = row_of(&call->out, row.item, row.head, row.query);
        rests = add_rests(rests, w->value_row, from);
        RAPT_SIMD for (int64_t j = 0; j < call->value_size; j++) out[j] = from[j] * scale;
    }
    return are_zero(rests);
}

/* Beside a group's work on the last tile: prefetches where its output goes, and the next piece. */
PREFETCH prefetch_after_forward(const forward_work *w, int64_t row)
{
    prefetch_group(w->call, w->piece, row, &w->call->out, w->call->value_size, true);
    if (prefetches_row(w->piece, row)) prefetch_queries(w->call, w->piece->next, row);
}

static bool try_forward(const rapt_dot_attention *call, const rapt_attention_piece *piece, void *scratch, bool careful)
{
    forward_work w = {.piece = piece, .chooses = careful};
    layout_forward(&w, call, piece->last_row - piece->first_row, scratch);
    const rapt_key_range keys = begin_forward(&w);
    for (int64_t first = keys.first; first < keys.last; first += w.tile) {
        const rapt_key_range tile = {first, smaller_of(first + w.tile, keys.last)};
        const int64_t each = w.tile / w.groups + 1; /* of the next tile's keys, beside each group */
        const rapt_key_range next = {tile.last, smaller_of(tile.last + w.tile, keys.last)};
        if (!take_tile(&w, tile)) continue;
        for (int64_t g = 0; g < w.groups; g++) {
            prefetch_keys(call, piece, next.first + g * each, next.first + (g + 1) * each, next);
            if (tile.last == keys.last) prefetch_after_forward(&w, g * RAPT_TILE_ROWS);
            forward_group(&w, g, tile);
        }
    }
    return end_forward(&w);
}

/* Values that are not finite reach queries that do not see them as 0 · ∞; as that is rare, it is looked for in the
 * end. */
static void forward(const rapt_dot_attention *call, const rapt_attention_piece *piece, void *scratch)
{
    if (!try_forward(call, piece, scratch, false)) try_forward(call, piece, scratch, true);
}

/* For all keys. */
static void weigh(const rapt_dot_attention *call, const rapt_attention_piece *piece, void *scratch, void *weights)
{
    forward_work w = {.piece = piece};
    layout_forward(&w, call, piece->last_row - piece->first_row, scratch);
    const rapt_key_range keys = begin_forward(&w);
    for (int64_t i = 0; i < w.rows; i++)
        memset((T *)weights + row_number(call, row_at(call, piece, i)) * call->mask.keys, 0,
               (size_t)call->mask.keys * sizeof(T));
    for (int64_t at = keys.first; at < keys.last; at += w.tile) {
        const rapt_key_range tile = {at, smaller_of(at + w.tile, keys.last)};
        if (!take_tile(&w, tile)) continue;
        for (int64_t g = 0; g < w.groups; g++) {
            const rapt_key_range seen = rapt_intersect_ranges(tile, w.seen_by_any[g]);
            if (!w.group_seen[g]) continue;
            const int64_t first = (seen.first - at) / width * width;
            score_group(&w, g, tile, seen, first);
            for (int64_t i = 0; i < RAPT_TILE_ROWS && g * RAPT_TILE_ROWS + i < w.rows; i++) {
                const int64_t number = row_number(call, row_at(call, piece, g * RAPT_TILE_ROWS + i));
                weigh_row(call, seen.last - at - first, (const T *)call->statistics + 2 * number, w.scores + i * w.tile,
                          (T *)weights + number * call->mask.keys + at + first);
            }
        }
    }
}
