/* Fused dot-product attention of few rows, as in decoding: keys and values are read where they lie, since packing them
 * would cost more than it saves. Part of dot_template.h. */

typedef struct few_work {
    const rapt_dot_attention *call;
    const rapt_dot_piece *piece;
    int64_t rows, block; /* block: keys at once */
    cover of_key, of_value;
    T *queries, *out;      /* of all rows, as vectors */
    T *largest, *sums;     /* of all rows; sums has a vector for each */
    T *scores;             /* of a row and the block */
    T *keys, *values;      /* copies of short rows */
    T *edge;               /* copies of the last keys, fewer than a vector has elements */
    int64_t *all, *chosen; /* 0, 1, 2, …; places of keys that a row sees */
    uint8_t *seen;
    near_rows near_keys, near_values; /* of the block */
    rapt_key_range any;               /* the keys that any row sees */
} few_work;

static size_t lay_few(few_work *w, const rapt_dot_attention *call, int64_t rows, char *scratch)
{
    enum { block_bytes = 32768 };
    size_t end = 0;
    w->call = call;
    w->rows = rows;
    w->of_key = cover_of(call->size);
    w->of_value = cover_of(call->value_size);
    const int64_t row_bytes = (w->of_key.row + w->of_value.row + 1) * SIZE;
    w->block = round_up(smaller_of(larger_of(block_bytes / row_bytes, 32), largest_tile), width);
    w->queries = carve(scratch, &end, rows * w->of_key.row * SIZE);
    w->out = carve(scratch, &end, rows * w->of_value.row * SIZE);
    w->largest = carve(scratch, &end, rows * SIZE);
    w->sums = carve(scratch, &end, rows * RAPT_VECTOR_BYTES);
    w->scores = carve(scratch, &end, w->block * SIZE);
    w->keys = carve(scratch, &end, call->size < width ? w->block * width * SIZE : 0);
    w->values = carve(scratch, &end, call->value_size < width ? w->block * width * SIZE : 0);
    w->edge = carve(scratch, &end, width * larger_of(w->of_key.row, w->of_value.row) * SIZE);
    w->all = carve(scratch, &end, w->block * (int64_t)sizeof *w->all);
    w->chosen = carve(scratch, &end, w->block * (int64_t)sizeof *w->chosen);
    w->seen = carve(scratch, &end, w->block);
    return end;
}

static void begin_few(few_work *w)
{
    const rapt_key_range keys = {w->piece->first_key, w->piece->last_key};
    for (int64_t i = 0; i < w->rows; i++) {
        const rapt_kernel_row row = row_at(w->call, w->piece, i);
        w->any = rapt_join_ranges(w->any, rapt_meet(keys, rapt_row_range(&w->call->mask, row)));
        spread_row(&w->of_key, row_of(&w->call->queries, row.item, row.head, row.query), (T)w->call->scale,
                   w->queries + i * w->of_key.row);
        w->largest[i] = -(T)INFINITY;
    }
    expect_keys(w->call, w->piece, w->any.first, w->any.first + w->block, w->any);
    memset(w->out, 0, (size_t)(w->rows * w->of_value.row) * sizeof(T));
    memset(w->sums, 0, (size_t)w->rows * RAPT_VECTOR_BYTES);
    memset(w->edge, 0, (size_t)(width * larger_of(w->of_key.row, w->of_value.row)) * sizeof(T));
    for (int64_t j = 0; j < w->block; j++) w->all[j] = j;
}

static void take_block(few_work *w, rapt_key_range block)
{
    const rapt_dot_attention *call = w->call;
    const int64_t count = block.last - block.first, item = w->piece->item, group = w->piece->group;
    const int64_t ahead = block.last < w->any.last ? w->block : 0;
    const near_rows keys = {row_of(&call->keys, item, group, block.first), call->keys.strides[2],
                            ahead * call->keys.strides[2]};
    const near_rows values = {row_of(&call->values, item, group, block.first), call->values.strides[2],
                              ahead * call->values.strides[2]};
    w->near_keys = near_of(&w->of_key, count, keys, w->keys);
    w->near_values = near_of(&w->of_value, count, values, w->values);
}

/* Scores of row i for some keys of the block, and −∞ up to whole vectors of them. */
static void score_few(few_work *w, int64_t i, rapt_key_range block, rapt_key_range keys)
{
    const rapt_dot_attention *call = w->call;
    const int64_t count = keys.last - keys.first;
    const T *query = w->queries + i * w->of_key.row;
    const near_rows rows = part_of(w->near_keys, keys.first - block.first);
    if (i == 0 && rows.ahead > 0) /* constants: each is compiled for itself */
        meet_all(&w->of_key, query, rows, count, w->edge, true, w->scores);
    else
        meet_all(&w->of_key, query, rows, count, w->edge, false, w->scores);
    if (rapt_mask_has_tensors(&call->mask))
        OF_TYPE(rapt_row_mask)(&call->mask, row_at(call, w->piece, i), keys, w->scores);
    for (int64_t j = count; j < round_up(count, width); j++) w->scores[j] = -(T)INFINITY;
}

/* The keys of the block that row i may see; none where a mask hides them all. */
static rapt_key_range few_range(few_work *w, int64_t i, rapt_key_range block)
{
    const rapt_kernel_mask *mask = &w->call->mask;
    const rapt_kernel_row row = row_at(w->call, w->piece, i);
    const rapt_key_range keys = rapt_meet(block, rapt_row_range(mask, row));
    if (!mask->seen.data && !mask->bias.data) return keys;
    uint8_t any = 0;
    memset(w->seen, 0, (size_t)(keys.last - keys.first));
    OF_TYPE(rapt_row_seen)(mask, row, keys, w->seen);
    for (int64_t j = 0; j < keys.last - keys.first; j++) any |= w->seen[j];
    return any ? keys : (rapt_key_range){0, 0};
}

/* Scores of row i become weights; returns what its sums so far are to be multiplied by. */
static T soften_few(few_work *w, int64_t i, int64_t vectors)
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

/* Leaves out the keys that weigh nothing: what is hidden is not to be looked at. Returns how many are left. */
static int64_t choose(few_work *w, int64_t count)
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
static bool end_few(few_work *w)
{
    const rapt_dot_attention *call = w->call;
    vector rests = {0};
    for (int64_t i = 0; i < w->rows; i++) {
        const rapt_kernel_row row = row_at(call, w->piece, i);
        const T *out = w->out + i * w->of_value.row,
                scale = give_statistics(call, row, w->largest[i], w->sums + i * width);
        rests = add_rests(rests, w->of_value.row, out);
        gather_row(&w->of_value, out, scale, row_of(&call->out, row.item, row.head, row.query));
    }
    return are_zero(rests);
}

/* careful: a weight of 0 takes nothing, even of a value that is not finite. */
static bool try_forward_few(const rapt_dot_attention *call, const rapt_dot_piece *piece, void *scratch, bool careful)
{
    few_work w = {.piece = piece};
    lay_few(&w, call, piece->last_row - piece->first_row, scratch);
    begin_few(&w);
    const bool skips = careful || rapt_mask_has_tensors(&call->mask);
    for (int64_t first = w.any.first; first < w.any.last; first += w.block) {
        const rapt_key_range block = {first, smaller_of(first + w.block, w.any.last)};
        take_block(&w, block);
        for (int64_t i = 0; i < w.rows; i++) {
            const rapt_key_range keys = few_range(&w, i, block);
            int64_t count = keys.last - keys.first;
            if (count == 0) continue;
            score_few(&w, i, block, keys);
            const T factor = soften_few(&w, i, (count + width - 1) / width);
            if (call->mask.keep < 1) drop_row(call, row_at(call, piece, i), keys, 1, w.scores);
            if (skips) count = choose(&w, count);
            add_rows(&w.of_value, count, w.scores, skips ? w.chosen : w.all, part_of(w.near_values, keys.first - first),
                     factor, w.out + i * w.of_value.row);
        }
    }
    return end_few(&w);
}

static void forward_few(const rapt_dot_attention *call, const rapt_dot_piece *piece, void *scratch)
{
    if (!try_forward_few(call, piece, scratch, false)) try_forward_few(call, piece, scratch, true);
}

/* weights = exp(score − largest) / sum, from the statistics that forward left; for all keys. */
static void weigh_few(const rapt_dot_attention *call, const rapt_dot_piece *piece, void *scratch, void *weights)
{
    few_work w = {.piece = piece};
    lay_few(&w, call, piece->last_row - piece->first_row, scratch);
    begin_few(&w);
    for (int64_t i = 0; i < w.rows; i++) {
        const int64_t number = row_number(call, row_at(call, piece, i));
        const T *statistics = (const T *)call->statistics + 2 * number, largest = statistics[0],
                scale = 1 / statistics[1];
        T *of_row = (T *)weights + number * call->mask.keys;
        memset(of_row, 0, (size_t)call->mask.keys * sizeof(T));
        for (int64_t first = w.any.first; first < w.any.last; first += w.block) {
            const rapt_key_range block = {first, smaller_of(first + w.block, w.any.last)};
            const rapt_key_range keys = few_range(&w, i, block);
            if (keys.first == keys.last) continue;
            take_block(&w, block);
            score_few(&w, i, block, keys);
            RAPT_SIMD for (int64_t j = 0; j < keys.last - keys.first; j++) of_row[keys.first + j] =
                EXP(w.scores[j] - largest) * scale;
        }
    }
}
