/* Fused dot-product attention of few rows a group, as in decoding: keys and values are read where they lie, since
 * packing them would cost more than it saves. Part of dot_tmpl.c. */

typedef struct decoding_work {
    const rapt_dot_attention *call;
    const rapt_attention_piece *piece;
    int64_t rows, block; /* block: keys at once */
    cover of_key, of_value;
    T *queries, *out;         /* of all rows, as vectors */
    T *largest, *sums;        /* of all rows; sums has a vector for each */
    T *scores;                /* of a row and the block */
    T *keys, *values;         /* copies of short rows */
    T *edge;                  /* copies of the last keys, fewer than a vector has elements */
    int64_t *places, *chosen; /* 0, 1, 2, …; of these the keys that a row sees */
    uint8_t *seen;
    rows_in_place block_keys, block_values; /* of the block */
    rapt_key_range seen_by_any;             /* of the rows */
} decoding_work;

static size_t layout_decoding(decoding_work *w, const rapt_dot_attention *call, int64_t rows, char *scratch)
{
    enum { block_bytes = 32768 };
    size_t end = 0;
    w->call = call;
    w->rows = rows;
    w->of_key = cover_of(call->size);
    w->of_value = cover_of(call->value_size);
    const int64_t row_bytes = (w->of_key.row + w->of_value.row + 1) * SIZE;
    w->block = round_up(smaller_of(larger_of(block_bytes / row_bytes, 32), largest_tile), width);
    w->queries = next_in_scratch(scratch, &end, rows * w->of_key.row * SIZE);
    w->out = next_in_scratch(scratch, &end, rows * w->of_value.row * SIZE);
    w->largest = next_in_scratch(scratch, &end, rows * SIZE);
    w->sums = next_in_scratch(scratch, &end, rows * RAPT_VECTOR_BYTES);
    w->scores = next_in_scratch(scratch, &end, w->block * SIZE);
    w->keys = next_in_scratch(scratch, &end, call->size < width ? w->block * width * SIZE : 0);
    w->values = next_in_scratch(scratch, &end, call->value_size < width ? w->block * width * SIZE : 0);
    w->edge = next_in_scratch(scratch, &end, width * larger_of(w->of_key.row, w->of_value.row) * SIZE);
    w->places = next_in_scratch(scratch, &end, w->block * (int64_t)sizeof *w->places);
    w->chosen = next_in_scratch(scratch, &end, w->block * (int64_t)sizeof *w->chosen);
    w->seen = next_in_scratch(scratch, &end, w->block);
    return end;
}

static void begin_decoding(decoding_work *w)
{
    const rapt_key_range keys = {w->piece->first_key, w->piece->last_key};
    for (int64_t i = 0; i < w->rows; i++) {
        const rapt_score_row row = row_at(w->call, w->piece, i);
        w->seen_by_any =
            rapt_join_ranges(w->seen_by_any, rapt_intersect_ranges(keys, rapt_row_range(&w->call->mask, row)));
        spread_row(&w->of_key, row_of(&w->call->queries, row.item, row.head, row.query), (T)w->call->scale,
                   w->queries + i * w->of_key.row);
        w->largest[i] = first_largest(&w->call->normalizer, row.head);
    }
    prefetch_keys(w->call, w->piece, w->seen_by_any.first, w->seen_by_any.first + w->block, w->seen_by_any);
    memset(w->out, 0, (size_t)(w->rows * w->of_value.row) * sizeof(T));
    memset(w->sums, 0, (size_t)w->rows * RAPT_VECTOR_BYTES);
    memset(w->edge, 0, (size_t)(width * larger_of(w->of_key.row, w->of_value.row)) * sizeof(T));
    for (int64_t j = 0; j < w->block; j++) w->places[j] = j;
}

static void take_block(decoding_work *w, rapt_key_range block)
{
    const rapt_dot_attention *call = w->call;
    const int64_t count = block.last - block.first, item = w->piece->item, group = w->piece->group;
    const int64_t ahead = block.last < w->seen_by_any.last ? w->block : 0;
    const rows_in_place keys = {row_of(&call->keys, item, group, block.first), call->keys.strides[2],
                                ahead * call->keys.strides[2]};
    const rows_in_place values = {row_of(&call->values, item, group, block.first), call->values.strides[2],
                                  ahead * call->values.strides[2]};
    w->block_keys = in_place_or_copied(&w->of_key, count, keys, w->keys);
    w->block_values = in_place_or_copied(&w->of_value, count, values, w->values);
}

/* Scores of row i for some keys of the block, which decoding_range gave last, and −∞ up to whole vectors of them.
 * kept: room for what the derivatives of their changes read, or NULL. To a change, and to its derivative, a key that
 * is not seen is a 0, whatever was read in its place. */
static void score_decoding(decoding_work *w, int64_t i, rapt_key_range block, rapt_key_range keys, T *kept)
{
    const rapt_dot_attention *call = w->call;
    const int64_t count = keys.last - keys.first;
    const T *query = w->queries + i * w->of_key.row;
    const rows_in_place rows = part_of(w->block_keys, keys.first - block.first);
    if (i == 0 && rows.ahead > 0) /* constants: each is compiled for itself */
        dot_all(&w->of_key, query, rows, count, w->edge, true, w->scores);
    else
        dot_all(&w->of_key, query, rows, count, w->edge, false, w->scores);
    if (call->changes && rapt_mask_has_holes(&call->mask))
        for (int64_t j = 0; j < count; j++) w->scores[j] = w->seen[j] ? w->scores[j] : 0;
    change_group(call, w->piece, i, 1, keys, w->scores, w->block, kept, w->block);
    if (rapt_mask_has_tensors(&call->mask))
        OF_TYPE(rapt_row_mask)(&call->mask, row_at(call, w->piece, i), keys, w->scores);
    for (int64_t j = count; j < round_up(count, width); j++) w->scores[j] = -(T)INFINITY;
}

/* The keys of the block that row i may see; none where a mask hides them all. */
static rapt_key_range decoding_range(decoding_work *w, int64_t i, rapt_key_range block)
{
    const rapt_raw_mask *mask = &w->call->mask;
    const rapt_score_row row = row_at(w->call, w->piece, i);
    const rapt_key_range keys = rapt_intersect_ranges(block, rapt_row_range(mask, row));
    if (!rapt_mask_has_holes(mask)) return keys;
    uint8_t any = 0;
    memset(w->seen, 0, (size_t)(keys.last - keys.first));
    OF_TYPE(rapt_row_seen)(mask, row, keys, w->seen);
    for (int64_t j = 0; j < keys.last - keys.first; j++) any |= w->seen[j];
    return any ? keys : (rapt_key_range){0, 0};
}

/* Scores of row i become weights; returns what its sums so far are to be multiplied by. */
static T softmax_step_decoding(decoding_work *w, int64_t i, int64_t vectors)
{
    T *sums = w->sums + i * width, before = w->largest[i], most = before;
    vector largest = (vector){0} - (T)INFINITY;
    for (int64_t v = 0; v < vectors; v++) largest = larger(load(w->scores + v * width), largest);
    for (int lane = 0; lane < width; lane++) most = largest[lane] > most ? largest[lane] : most;
    const T shift = most == -(T)INFINITY ? 0 : most, factor = EXP(before - shift);
    w->largest[i] = most;
    exponentiate(vectors, shift, factor, w->scores, sums);
    return factor;
}

/* Sigmoid's step. */
static T sigmoid_step_decoding(decoding_work *w, int64_t i, int64_t vectors)
{
    weigh_by_sigmoid(vectors, w->largest[i], w->scores, w->sums + i * width);
    return 1;
}

/* Leaves out the keys that weigh nothing: what is not seen is not to be looked at. Returns how many are left. */
static int64_t choose(decoding_work *w, int64_t count)
{
    int64_t left = 0;
    for (int64_t j = 0; j < count; j++)
        if (w->scores[j] != 0) {
            w->scores[left] = w->scores[j];
            w->chosen[left++] = j;
        }
    return left;
}

/* Divides by the sums, and writes out and statistics. False if something in out is not finite. */
static bool end_decoding(decoding_work *w)
{
    const rapt_dot_attention *call = w->call;
    vector rests = {0};
    for (int64_t i = 0; i < w->rows; i++) {
        const rapt_score_row row = row_at(call, w->piece, i);
        const T *out = w->out + i * w->of_value.row,
                scale = give_statistics(call, row, w->largest[i], w->sums + i * width);
        rests = add_rests(rests, w->of_value.row, out);
        gather_row(&w->of_value, out, scale, row_of(&call->out, row.item, row.head, row.query));
    }
    return are_zero(rests);
}

/* careful: a weight of 0 takes nothing, even of a value that is not finite. */
static bool try_forward_decoding(const rapt_dot_attention *call, const rapt_attention_piece *piece, void *scratch,
                                 bool careful)
{
    decoding_work w = {.piece = piece};
    layout_decoding(&w, call, piece->last_row - piece->first_row, scratch);
    begin_decoding(&w);
    const bool skips = careful || rapt_mask_has_tensors(&call->mask);
    for (int64_t first = w.seen_by_any.first; first < w.seen_by_any.last; first += w.block) {
        const rapt_key_range block = {first, smaller_of(first + w.block, w.seen_by_any.last)};
        take_block(&w, block);
        for (int64_t i = 0; i < w.rows; i++) {
            const rapt_key_range keys = decoding_range(&w, i, block);
            int64_t count = keys.last - keys.first;
            if (count == 0) continue;
            score_decoding(&w, i, block, keys, NULL);
            const int64_t vectors = (count + width - 1) / width;
            const T factor = call->normalizer.is_sigmoid ? sigmoid_step_decoding(&w, i, vectors)
                                                         : softmax_step_decoding(&w, i, vectors);
            if (call->mask.keep < 1) {
                uint8_t kept[largest_tile];
                find_kept(call, piece, i, 1, keys, count, kept, 0);
                drop_row(count, kept, 1, w.scores);
            }
            if (skips) count = choose(&w, count);
            add_rows(&w.of_value, count, w.scores, skips ? w.chosen : w.places,
                     part_of(w.block_values, keys.first - first), factor, w.out + i * w.of_value.row);
        }
    }
    return end_decoding(&w);
}

static void forward_decoding(const rapt_dot_attention *call, const rapt_attention_piece *piece, void *scratch)
{
    if (!try_forward_decoding(call, piece, scratch, false)) try_forward_decoding(call, piece, scratch, true);
}

/* For all keys. */
static void weigh_decoding(const rapt_dot_attention *call, const rapt_attention_piece *piece, void *scratch,
                           void *weights)
{
    decoding_work w = {.piece = piece};
    layout_decoding(&w, call, piece->last_row - piece->first_row, scratch);
    begin_decoding(&w);
    for (int64_t i = 0; i < w.rows; i++) {
        const int64_t number = row_number(call, row_at(call, piece, i));
        T *of_row = (T *)weights + number * call->mask.keys;
        memset(of_row, 0, (size_t)call->mask.keys * sizeof(T));
        for (int64_t first = w.seen_by_any.first; first < w.seen_by_any.last; first += w.block) {
            const rapt_key_range block = {first, smaller_of(first + w.block, w.seen_by_any.last)};
            const rapt_key_range keys = decoding_range(&w, i, block);
            if (keys.first == keys.last) continue;
            take_block(&w, block);
            score_decoding(&w, i, block, keys, NULL);
            weigh_row(call, keys.last - keys.first, (const T *)call->statistics + 2 * number, w.scores,
                      of_row + keys.first);
        }
    }
}
