/* Backward of fused dot-product attention: weights made again from the statistics, tile by tile. Part of
 * dot_template.h.
 *
 * With P the weights, dP = dO Vᵀ and Dᵢ = Σ dOᵢ Oᵢ: dS = P (dP − D), dV = Pᵀ dO, dK = dSᵀ Q, dQ = dS K; for distances less
 * Σᵢ dSᵢⱼ kⱼ and Σⱼ dSᵢⱼ qᵢ. */

/* One piece of work: all rows of a group's heads, some keys. Rows are in groups as in forward. */
typedef struct backward_work {
    const rapt_dot_attention *call;
    const rapt_dot_piece *piece;
    int64_t rows, groups, block, tile, row, value_row; /* block: groups at once; row: size in whole vectors */
    T *queries, *gradient, *d_queries;                 /* of all rows; queries are scaled */
    T *largest, *scales, *deltas;                      /* statistics: exp(score − largest) · scale is the weight */
    T *keys, *keys_across, *values_across;             /* of the tile; across: transposed */
    T *d_keys, *d_values;
    T *row_sums, *key_sums; /* for distances: of d_scores, */
    T *center;              /* and what is taken off all queries and keys: gradients are sums that lose its digits */
    T *weights, *d_scores, *d_weights; /* of the block; d_weights of a group */
    T *out, *out_across;               /* of a group */
    uint8_t *seen, *group_seen;
    rapt_key_range *any, *all;
} backward_work;

static size_t lay_backward(backward_work *w, const rapt_dot_attention *call, int64_t rows, char *scratch)
{
    enum { block_rows = 128, tile_bytes = 32768 };
    size_t end = 0;
    w->call = call;
    w->rows = rows;
    w->groups = (rows + RAPT_TILE_ROWS - 1) / RAPT_TILE_ROWS;
    w->block = smaller_of(block_rows / RAPT_TILE_ROWS, w->groups);
    w->tile = tile_keys(call, tile_bytes);
    w->row = round_up(call->size, width);
    w->value_row = round_up(call->value_size, width);
    const int64_t all_rows = w->groups * RAPT_TILE_ROWS, block = w->block * RAPT_TILE_ROWS;
    w->queries = carve(scratch, &end, all_rows * w->row * SIZE);
    w->gradient = carve(scratch, &end, all_rows * w->value_row * SIZE);
    w->d_queries = carve(scratch, &end, all_rows * w->row * SIZE);
    w->largest = carve(scratch, &end, all_rows * SIZE);
    w->scales = carve(scratch, &end, all_rows * SIZE);
    w->deltas = carve(scratch, &end, all_rows * SIZE);
    w->center = carve(scratch, &end, w->row * SIZE);
    w->row_sums = carve(scratch, &end, all_rows * SIZE);
    w->keys = carve(scratch, &end, w->tile * w->row * SIZE);
    w->keys_across = carve(scratch, &end, call->size * w->tile * SIZE);
    w->values_across = carve(scratch, &end, call->value_size * w->tile * SIZE);
    w->d_keys = carve(scratch, &end, w->tile * w->row * SIZE);
    w->d_values = carve(scratch, &end, w->tile * w->value_row * SIZE);
    w->key_sums = carve(scratch, &end, w->tile * SIZE);
    w->weights = carve(scratch, &end, block * w->tile * SIZE);
    w->d_scores = carve(scratch, &end, block * w->tile * SIZE);
    w->d_weights = carve(scratch, &end, RAPT_TILE_ROWS * w->tile * SIZE);
    w->out = carve(scratch, &end, RAPT_TILE_ROWS * call->value_size * SIZE);
    w->out_across = carve(scratch, &end, round_up(RAPT_TILE_ROWS, width) * call->value_size * SIZE);
    w->seen = carve(scratch, &end, w->tile);
    w->group_seen = carve(scratch, &end, w->groups);
    w->any = carve(scratch, &end, w->groups * (int64_t)sizeof *w->any);
    w->all = carve(scratch, &end, w->groups * (int64_t)sizeof *w->all);
    return end;
}

static size_t backward_bytes(const rapt_dot_attention *call, int64_t rows)
{
    backward_work w;
    return lay_backward(&w, call, rows, NULL);
}

/* to −= factor · from, which is not looked at where the factor is 0 */
static void take_off(int64_t count, T factor, const T *restrict from, T *restrict to)
{
    if (factor == 0) return;
    RAPT_SIMD for (int64_t j = 0; j < count; j++) to[j] -= factor * from[j];
}

/* Copies what belongs to row i. One that sees nothing becomes zeros, whatever is in it. */
static void take_row(backward_work *w, int64_t i)
{
    const rapt_dot_attention *call = w->call;
    T *query = w->queries + i * w->row, *gradient = w->gradient + i * w->value_row;
    const rapt_kernel_row row = row_at(call, w->piece, i < w->rows ? i : 0);
    const rapt_kernel_row later = row_at(call, w->piece, smaller_of(i + rows_ahead, w->rows - 1));
    const T *statistics = (const T *)call->statistics + 2 * row_number(call, row);
    expect_row(row_of(&call->queries, later.item, later.head, later.query), call->size);
    expect_row(row_of(&call->gradient, later.item, later.head, later.query), call->value_size);
    expect_row(row_of(&call->out, later.item, later.head, later.query), call->value_size);
    const uint8_t used = i < w->rows && statistics[0] != (T)INFINITY;
    copy_rows(1, call->size, row_of(&call->queries, row.item, row.head, row.query), 0, &used, (T)call->scale, query,
              w->row);
    copy_rows(1, call->value_size, row_of(&call->gradient, row.item, row.head, row.query), 0, &used, 1, gradient,
              w->value_row);
    if (call->distances && used) take_off(call->size, 1, w->center, query);
    w->largest[i] = used ? statistics[0] : (T)INFINITY;
    w->scales[i] = used ? 1 / statistics[1] : 0;
}

/* D of a group of rows, the diagonal of a product: the same sums as dP has, so that both are the same number, and d_scores
 * 0, where a row sees but one key. */
static void find_deltas(backward_work *w, int64_t g)
{
    enum { columns = (RAPT_TILE_ROWS + width - 1) / width * width };
    const rapt_dot_attention *call = w->call;
    T products[RAPT_TILE_ROWS * columns];
    for (int64_t i = 0; i < RAPT_TILE_ROWS; i++) {
        const rapt_kernel_row row = row_at(call, w->piece, smaller_of(g * RAPT_TILE_ROWS + i, w->rows - 1));
        memcpy(w->out + i * call->value_size, row_of(&call->out, row.item, row.head, row.query),
               (size_t)call->value_size * sizeof(T));
    }
    transpose(RAPT_TILE_ROWS, call->value_size, w->out, call->value_size, NULL, w->out_across, columns);
    product(columns / width, call->value_size, w->gradient + g * RAPT_TILE_ROWS * w->value_row, w->value_row, 1,
            w->out_across, columns, products, columns, NULL);
    for (int64_t i = 0; i < RAPT_TILE_ROWS; i++) w->deltas[g * RAPT_TILE_ROWS + i] = products[i * columns + i];
}

/* The first query that sees a key: nothing that is hidden may change a gradient. */
static void find_center(backward_work *w)
{
    const rapt_dot_attention *call = w->call;
    memset(w->center, 0, (size_t)w->row * sizeof(T));
    for (int64_t i = 0; i < w->rows; i++) {
        const rapt_kernel_row row = row_at(call, w->piece, i);
        if (((const T *)call->statistics)[2 * row_number(call, row)] == (T)INFINITY) continue;
        copy_rows(1, call->size, row_of(&call->queries, row.item, row.head, row.query), 0, NULL, (T)call->scale,
                  w->center, w->row);
        return;
    }
}

static void begin_backward(backward_work *w)
{
    const rapt_dot_attention *call = w->call;
    const rapt_key_range keys = {w->piece->first_key, w->piece->last_key};
    if (call->distances) find_center(w);
    for (int64_t g = 0; g < w->groups; g++) {
        w->any[g] = (rapt_key_range){0, 0};
        w->all[g] = keys;
        for (int64_t i = g * RAPT_TILE_ROWS; i < (g + 1) * RAPT_TILE_ROWS; i++) {
            take_row(w, i);
            if (i >= w->rows) continue;
            const rapt_key_range range = rapt_meet(keys, rapt_row_range(&call->mask, row_at(call, w->piece, i)));
            expect_keys(call, w->piece, range.first + i, range.first + i + 1, range);
            w->any[g] = rapt_join_ranges(w->any[g], range);
            w->all[g] = rapt_meet(w->all[g], range);
        }
        find_deltas(w, g);
    }
    memset(w->row_sums, 0, (size_t)(w->groups * RAPT_TILE_ROWS) * sizeof(T));
    memset(w->d_queries, 0, (size_t)(w->groups * RAPT_TILE_ROWS * w->row) * sizeof(T));
}

static bool take_backward_tile(backward_work *w, rapt_key_range tile)
{
    const rapt_dot_attention *call = w->call;
    const rapt_dot_piece *p = w->piece;
    const int64_t count = tile.last - tile.first;
    memset(w->d_keys, 0, (size_t)(w->tile * w->row) * sizeof(T));
    memset(w->d_values, 0, (size_t)(w->tile * w->value_row) * sizeof(T));
    memset(w->key_sums, 0, (size_t)w->tile * sizeof(T));
    if (!find_seen(call, p, w->rows, w->any, tile, w->seen, w->group_seen)) return false;
    copy_rows(count, call->size, row_of(&call->keys, p->item, p->group, tile.first), call->keys.strides[2], w->seen, 1,
              w->keys, w->row);
    for (int64_t j = 0; call->distances && j < count; j++)
        if (w->seen[j]) take_off(call->size, 1, w->center, w->keys + j * w->row);
    transpose(count, call->size, w->keys, w->row, NULL, w->keys_across, w->tile);
    transpose(count, call->value_size, row_of(&call->values, p->item, p->group, tile.first), call->values.strides[2],
              w->seen, w->values_across, w->tile);
    return true;
}

/* Weights and d_scores of a row from its scores and d_weights, for whole vectors of columns. */
static inline void differentiate_row(int64_t columns, T largest, T scale, T delta, const T *restrict d_weights,
                                     T *restrict weights, T *restrict d_scores)
{
    RAPT_SIMD for (int64_t j = 0; j < columns; j++)
    {
        const T weight = EXP(weights[j] - largest) * scale;
        weights[j] = weight;
        d_scores[j] = weight == 0 ? 0 : weight * (d_weights[j] - delta); /* 0 even where the value is NaN */
    }
}

/* Adds a row of d_scores to the sum of the row and to those of the keys. */
static void add_sums(int64_t columns, const T *restrict d_scores, T *of_row, T *restrict of_keys)
{
    T sum = 0;
    _Pragma("omp simd reduction(+ : sum)") for (int64_t j = 0; j < columns; j++)
    {
        sum += d_scores[j];
        of_keys[j] += d_scores[j];
    }
    *of_row += sum;
}

/* Gives the gradient of a row's scores to the biases that want it. */
static void give_biases(const rapt_dot_attention *call, rapt_kernel_row row, rapt_key_range keys, const T *d_scores)
{
    const int64_t number = row_number(call, row), reach = call->mask.reach, count = keys.last - keys.first;
    if (call->d_scores)
        memcpy((T *)call->d_scores + number * call->mask.keys + keys.first, d_scores, (size_t)count * sizeof(T));
    if (!call->d_nearby) return;
    T *table = (T *)call->d_nearby + number * (2 * reach + 1) + reach, below = 0, above = 0;
    const int64_t distance = keys.first - row.query - call->mask.offset; /* of the first key */
    const int64_t first = smaller_of(larger_of(-reach + 1 - distance, 0), count);
    const int64_t last = larger_of(smaller_of(reach - distance, count), first);
    _Pragma("omp simd reduction(+ : below)") for (int64_t j = 0; j < first; j++) below += d_scores[j];
    _Pragma("omp simd reduction(+ : above)") for (int64_t j = last; j < count; j++) above += d_scores[j];
    for (int64_t j = first; j < last; j++) table[distance + j] += d_scores[j];
    table[-reach] += below;
    table[reach] += above;
}

/* Weights and d_scores of a group of rows, for the columns [first, last) of the block; 0 where it sees nothing. `at` is
 * the place of the group in the block. */
static void differentiate_group(backward_work *w, int64_t g, int64_t at, rapt_key_range tile)
{
    const rapt_dot_attention *call = w->call;
    const rapt_key_range seen = rapt_meet(tile, w->any[g]);
    const int64_t first = (seen.first - tile.first) / width * width, from = g * RAPT_TILE_ROWS;
    const int64_t vectors = (seen.last - tile.first - first + width - 1) / width;
    const int64_t rows = smaller_of(w->rows - from, RAPT_TILE_ROWS), columns = vectors * width;
    const rapt_key_range keys = {tile.first + first, seen.last};
    T *weights = w->weights + at * RAPT_TILE_ROWS * w->tile, *d_scores = w->d_scores + at * RAPT_TILE_ROWS * w->tile;
    for (int64_t i = 0; i < RAPT_TILE_ROWS && columns < w->tile; i++) {
        memset(weights + i * w->tile, 0, (size_t)w->tile * sizeof(T));
        memset(d_scores + i * w->tile, 0, (size_t)w->tile * sizeof(T));
    }
    weights += first;
    d_scores += first;
    score(call, vectors, w->queries + from * w->row, w->row, w->keys_across + first, weights, w->tile);
    product(vectors, call->value_size, w->gradient + from * w->value_row, w->value_row, 1, w->values_across + first,
            w->tile, w->d_weights, w->tile, NULL);
    mask_group(call, w->piece, from, rows, w->all[g], keys, vectors, weights, w->tile);
    for (int64_t i = 0; i < RAPT_TILE_ROWS; i++) {
        T *of_row = weights + i * w->tile, *d_weights = w->d_weights + i * w->tile, *d_of_row = d_scores + i * w->tile;
        const rapt_kernel_row row = row_at(call, w->piece, from + (i < rows ? i : 0));
        const T scale = (T)(1 / call->mask.keep);
        if (call->mask.keep < 1 && i < rows) drop_row(call, row, keys, scale, d_weights);
        differentiate_row(columns, w->largest[from + i], w->scales[from + i], w->deltas[from + i], d_weights, of_row,
                          d_of_row);
        if (i >= rows) continue;
        if (call->mask.keep < 1) drop_row(call, row, keys, scale, of_row);
        give_biases(call, row, keys, d_of_row);
        if (call->distances) add_sums(columns, d_of_row, w->row_sums + from + i, w->key_sums + first);
    }
}

/* d_queries of a group from its d_scores. */
static void add_queries(backward_work *w, int64_t g, int64_t at, rapt_key_range tile)
{
    const rapt_key_range seen = rapt_meet(tile, w->any[g]);
    const int64_t first = seen.first - tile.first, row = g * RAPT_TILE_ROWS;
    product_added(w->row / width, seen.last - seen.first, w->d_scores + at * RAPT_TILE_ROWS * w->tile + first, w->tile,
                  1, w->keys + first * w->row, w->row, w->d_queries + row * w->row, w->row, NULL);
}

/* d_values and d_keys of the tile from a block of groups [first, last). */
static void add_block(backward_work *w, int64_t first, int64_t last, rapt_key_range tile)
{
    for (int64_t column = 0; column < tile.last - tile.first; column += RAPT_TILE_ROWS) {
        const rapt_key_range keys = {tile.first + column, tile.first + column + RAPT_TILE_ROWS};
        int64_t begin = first, end = last; /* the groups that may see these keys */
        while (begin < end && !rapt_overlap(keys, w->any[begin])) begin++;
        while (end > begin && !rapt_overlap(keys, w->any[end - 1])) end--;
        if (begin == end) continue;
        const int64_t at = (begin - first) * RAPT_TILE_ROWS * w->tile + column, rows = (end - begin) * RAPT_TILE_ROWS;
        const int64_t row = begin * RAPT_TILE_ROWS;
        product_added(w->value_row / width, rows, w->weights + at, 1, w->tile, w->gradient + row * w->value_row,
                      w->value_row, w->d_values + column * w->value_row, w->value_row, NULL);
        product_added(w->row / width, rows, w->d_scores + at, 1, w->tile, w->queries + row * w->row, w->row,
                      w->d_keys + column * w->row, w->row, NULL);
    }
}

static void backward_tile(backward_work *w, rapt_key_range tile)
{
    const rapt_dot_attention *call = w->call;
    for (int64_t first = 0; first < w->groups; first += w->block) {
        const int64_t last = smaller_of(first + w->block, w->groups), each = w->tile * w->block / w->groups + 1;
        const int64_t next = tile.last + first / w->block * each;
        int64_t begin = first, end = last;
        expect_keys(call, w->piece, next, next + each, (rapt_key_range){tile.last, w->piece->last_key});
        while (begin < end && !w->group_seen[begin]) begin++;
        while (end > begin && !w->group_seen[end - 1]) end--;
        for (int64_t g = begin; g < end; g++) {
            if (w->group_seen[g]) {
                differentiate_group(w, g, g - begin, tile);
                continue;
            }
            const size_t bytes = (size_t)(RAPT_TILE_ROWS * w->tile) * sizeof(T);
            memset(w->weights + (g - begin) * RAPT_TILE_ROWS * w->tile, 0, bytes);
            memset(w->d_scores + (g - begin) * RAPT_TILE_ROWS * w->tile, 0, bytes);
        }
        for (int64_t g = begin; g < end; g++)
            if (w->group_seen[g]) add_queries(w, g, g - begin, tile);
        add_block(w, begin, end, tile);
    }
}

static void give_tile(const backward_work *w, rapt_key_range tile)
{
    const rapt_dot_attention *call = w->call;
    const rapt_dot_piece *p = w->piece;
    for (int64_t j = tile.first; j < tile.last; j++) {
        const int64_t at = j - tile.first, later = smaller_of(j + rows_ahead, tile.last - 1);
        expect_written(row_of(&call->d_keys, p->item, p->group, later), call->size);
        expect_written(row_of(&call->d_values, p->item, p->group, later), call->value_size);
        if (call->distances) take_off(call->size, w->key_sums[at], w->keys + at * w->row, w->d_keys + at * w->row);
        memcpy(row_of(&call->d_keys, p->item, p->group, j), w->d_keys + at * w->row, (size_t)call->size * sizeof(T));
        memcpy(row_of(&call->d_values, p->item, p->group, j), w->d_values + at * w->value_row,
               (size_t)call->value_size * sizeof(T));
    }
}

static void backward(const rapt_dot_attention *call, const rapt_dot_piece *piece, void *scratch, void *part)
{
    backward_work w = {.piece = piece};
    lay_backward(&w, call, piece->last_row - piece->first_row, scratch);
    begin_backward(&w);
    for (int64_t first = piece->first_key; first < piece->last_key; first += w.tile) {
        const rapt_key_range tile = {first, smaller_of(first + w.tile, piece->last_key)};
        if (take_backward_tile(&w, tile)) backward_tile(&w, tile);
        give_tile(&w, tile);
    }
    for (int64_t i = 0; i < w.rows; i++) {
        const rapt_kernel_row row = row_at(call, piece, i);
        const rapt_kernel_row later = row_at(call, piece, smaller_of(i + rows_ahead, w.rows - 1));
        if (!part) expect_written(row_of(&call->d_queries, later.item, later.head, later.query), call->size);
        T *from = w.d_queries + i * w.row;
        if (call->distances) take_off(call->size, w.row_sums[i], w.queries + i * w.row, from);
        T *out = part ? (T *)part + i * call->size : row_of(&call->d_queries, row.item, row.head, row.query);
        RAPT_SIMD for (int64_t j = 0; j < call->size; j++) out[j] = from[j] * (T)call->scale;
    }
}

static void sum_parts(const rapt_dot_attention *call, int64_t parts, const void *part, int64_t first_row,
                      int64_t last_row)
{
    const rapt_kernel_mask *mask = &call->mask;
    const int64_t all_rows = mask->batch * mask->heads * mask->queries;
    for (int64_t number = first_row; number < last_row; number++) {
        T *out = row_of(&call->d_queries, number / mask->queries / mask->heads, number / mask->queries % mask->heads,
                        number % mask->queries);
        const T *from = (const T *)part + number * call->size;
        memcpy(out, from, (size_t)call->size * sizeof(T));
        for (int64_t p = 1; p < parts; p++)
            RAPT_SIMD for (int64_t j = 0; j < call->size; j++) out[j] += from[p * all_rows * call->size + j];
    }
}
