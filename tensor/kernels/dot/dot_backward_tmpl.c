/* Backward of fused dot-product attention: weights made again from the statistics, tile by tile. Part of
 * dot_tmpl.c.
 *
 * With P the weights, dP = dO Vᵀ + G, where G is their own gradient, if there is one, and Dᵢ = Σ dOᵢ Oᵢ + Σ Pᵢ Gᵢ:
 * dS = P (dP − D), of sigmoid P (1 − P) dP, dV = Pᵀ dO, dK = dSᵀ Q, dQ = dS K; of Gaussian scores dKⱼ less Σᵢ dSᵢⱼ kⱼ.
 * With dropout O, dV and dO Vᵀ are of what it leaves, P and G are before it. */

static bool take_backward_tile(backward_work *w, rapt_key_range tile)
{
    const rapt_dot_attention *call = w->call;
    const rapt_attention_piece *p = w->piece;
    const int64_t count = tile.last - tile.first;
    const int64_t all = round_up(count, RAPT_TILE_ROWS);
    memset(w->d_keys, 0, (size_t)(all * w->row) * sizeof(T));
    memset(w->d_values, 0, (size_t)(all * w->value_row) * sizeof(T));
    memset(w->key_sums, 0, (size_t)w->tile * sizeof(T));
    if (!find_seen_keys(call, p, w->rows, w->seen_by_any, tile, w->seen, w->group_seen)) return false;
    copy_rows(count, call->size, row_of(&call->keys, p->item, p->group, tile.first), call->keys.strides[2], w->seen, 1,
              w->keys, w->row);
    transpose(count, call->size, w->keys, w->row, NULL, w->keys_across, w->tile);
    for (int64_t j = 0; call->is_gaussian && j < count; j++)
        if (w->seen[j]) axpy(call->size, -1, w->center, w->keys + j * w->row);
    transpose(count, call->value_size, row_of(&call->values, p->item, p->group, tile.first), call->values.strides[2],
              w->seen, w->values_across, w->tile);
    return true;
}

/* Adds a row of d_scores, whole vectors, to the sum of the row and to those of the keys. In lanes of our own: those of
 * a compiler's reduction depend on how many columns there are, and zeros behind a row would change its sum. */
static void add_sums(int64_t columns, const T *restrict d_scores, T *of_row, T *restrict of_keys)
{
    vector sums = {0};
    for (int64_t j = 0; j < columns; j += width) {
        const vector some = *(const vector *)(const void *)(d_scores + j);
        sums += some;
        *(vector *)(void *)(of_keys + j) += some;
    }
    T sum = 0;
    for (int lane = 0; lane < width; lane++) sum += sums[lane];
    *of_row += sum;
}

/* Gives the gradient of a row's scores to the biases that want it. */
static void give_biases(const rapt_dot_attention *call, rapt_score_row row, rapt_key_range keys, const T *d_scores)
{
    const int64_t number = row_number(call, row), reach = call->mask.reach, count = keys.last - keys.first;
    gather_bias(&call->normalizer, head_of_task(call, row), count, d_scores);
    if (call->d_scores)
        memcpy((T *)call->d_scores + number * call->mask.keys + keys.first, d_scores, (size_t)count * sizeof(T));
    if (!call->d_relative_bias) return;
    const int64_t table_row = number + (row.item * call->mask.heads + row.head) * call->mask.other_queries;
    T *table = (T *)call->d_relative_bias + table_row * (2 * reach + 1) + reach, below = 0, above = 0;
    const int64_t position = rapt_relative_position(&call->mask, row, keys.first);
    const int64_t first = smaller_of(larger_of(-reach + 1 - position, 0), count);
    const int64_t last = larger_of(smaller_of(reach - position, count), first);
    _Pragma("omp simd reduction(+ : below)") for (int64_t j = 0; j < first; j++) below += d_scores[j];
    _Pragma("omp simd reduction(+ : above)") for (int64_t j = last; j < count; j++) above += d_scores[j];
    for (int64_t j = first; j < last; j++) table[position + j] += d_scores[j];
    table[-reach] += below;
    table[reach] += above;
}

/* Weights and d_scores of a group of rows, for the columns [first, last) of the block; 0 where it sees nothing. `at` is
 * the place of the group in the block. */
static void differentiate_group(backward_work *w, int64_t g, int64_t at, rapt_key_range tile)
{
    const rapt_dot_attention *call = w->call;
    const rapt_key_range seen = rapt_intersect_ranges(tile, w->seen_by_any[g]);
    const int64_t first = (seen.first - tile.first) / width * width, from = g * RAPT_TILE_ROWS;
    const int64_t vectors = (seen.last - tile.first - first + width - 1) / width;
    const int64_t rows = smaller_of(w->rows - from, RAPT_TILE_ROWS), columns = vectors * width;
    const rapt_key_range keys = {tile.first + first, seen.last};
    T *weights = w->weights + at * RAPT_TILE_ROWS * w->tile, *d_scores = w->d_scores + at * RAPT_TILE_ROWS * w->tile;
    const int64_t all = round_up(tile.last - tile.first, RAPT_TILE_ROWS); /* that add_block reads */
    for (int64_t i = 0; i < RAPT_TILE_ROWS && (first > 0 || columns < all); i++) {
        memset(weights + i * w->tile, 0, (size_t)all * sizeof(T));
        memset(d_scores + i * w->tile, 0, (size_t)all * sizeof(T));
    }
    weights += first;
    d_scores += first;
    score(call, vectors, w->queries + from * w->row, w->row, w->keys_across + first, weights, w->tile);
    product(vectors, call->value_size, w->gradient + from * w->value_row, w->value_row, 1, w->values_across + first,
            w->tile, w->d_weights, w->tile, NULL);
    change_group(call, w->piece, from, rows, keys, weights, w->tile, w->kept, RAPT_TILE_ROWS * w->tile);
    mask_group(call, w->piece, from, rows, w->seen_by_all[g], keys, vectors, weights, w->tile);
    uint8_t kept[RAPT_TILE_ROWS * largest_tile];
    if (call->mask.keep < 1) find_kept(call, w->piece, from, rows, keys, columns, kept, columns);
    for (int64_t i = 0; i < rows; i++) {
        T *of_row = weights + i * w->tile, *d_weights = w->d_weights + i * w->tile, *d_of_row = d_scores + i * w->tile;
        const rapt_score_row row = row_at(call, w->piece, from + i);
        const T scale = (T)(1 / call->mask.keep);
        if (call->mask.keep < 1) drop_row(columns, kept + i * columns, scale, d_weights);
        add_weights_gradient(call, row, keys, d_weights);
        differentiate_row(call, columns, w->largest[from + i], w->scales[from + i], w->deltas[from + i], d_weights,
                          of_row, d_of_row);
        if (call->mask.keep < 1) drop_row(columns, kept + i * columns, scale, of_row);
        give_biases(call, row, keys, d_of_row);
    }
    for (int64_t i = rows; i < RAPT_TILE_ROWS; i++) {
        memset(weights + i * w->tile, 0, (size_t)columns * sizeof(T));
        memset(d_scores + i * w->tile, 0, (size_t)columns * sizeof(T));
    }
    differentiate_change(call, w->piece, from, rows, keys, d_scores, w->tile, w->kept, RAPT_TILE_ROWS * w->tile);
    for (int64_t i = 0; call->is_gaussian && i < rows; i++)
        add_sums(columns, d_scores + i * w->tile, w->row_sums + from + i, w->key_sums + first);
}

/* Is Σⱼ dSᵢⱼ = 0 for all rows? Of softmax alone. */
static bool sums_to_zero(const rapt_dot_attention *call)
{
    return !call->changes && !call->normalizer.head_terms;
}

/* d_queries of a group from its d_scores. */
static void add_queries(backward_work *w, int64_t g, int64_t at, rapt_key_range tile)
{
    const rapt_key_range seen = rapt_intersect_ranges(tile, w->seen_by_any[g]);
    const int64_t first = seen.first - tile.first, row = g * RAPT_TILE_ROWS;
    product_added(w->row / width, seen.last - seen.first, w->d_scores + at * RAPT_TILE_ROWS * w->tile + first, w->tile,
                  1, w->keys + first * w->row, w->row, w->d_queries + row * w->row, w->row, NULL);
    if (!w->call->is_gaussian || !sums_to_zero(w->call)) return;
    product_added(w->row / width, seen.last - seen.first, w->weights + at * RAPT_TILE_ROWS * w->tile + first, w->tile,
                  1, w->keys + first * w->row, w->row, w->means + row * w->row, w->row, NULL);
}

/* d_values and d_keys of the tile from a block of groups [first, last). */
static void add_block(backward_work *w, int64_t first, int64_t last, rapt_key_range tile)
{
    for (int64_t column = 0; column < tile.last - tile.first; column += RAPT_TILE_ROWS) {
        const rapt_key_range keys = {tile.first + column, tile.first + column + RAPT_TILE_ROWS};
        int64_t begin = first, end = last; /* the groups that may see these keys */
        while (begin < end && !rapt_ranges_overlap(keys, w->seen_by_any[begin])) begin++;
        while (end > begin && !rapt_ranges_overlap(keys, w->seen_by_any[end - 1])) end--;
        if (begin == end) continue;
        const int64_t at = (begin - first) * RAPT_TILE_ROWS * w->tile + column, row = begin * RAPT_TILE_ROWS;
        const int64_t rows = smaller_of(end * RAPT_TILE_ROWS, w->rows) - row;
        product_added(w->value_row / width, rows, w->weights + at, 1, w->tile, w->gradient + row * w->value_row,
                      w->value_row, w->d_values + column * w->value_row, w->value_row, NULL);
        product_added(w->row / width, rows, w->d_scores + at, 1, w->tile, w->centered + row * w->row, w->row,
                      w->d_keys + column * w->row, w->row, NULL);
    }
}

/* Beside a group's work on a tile: prefetches a share of the next tile's keys, of where this one's gradients go, and
 * when it is the last one, of the next piece. */
PREFETCH prefetch_after(const backward_work *w, int64_t g, rapt_key_range tile)
{
    const rapt_dot_attention *call = w->call;
    const rapt_attention_piece *p = w->piece;
    const int64_t each = w->tile / w->groups + 1, first = tile.first + g * each;
    const int64_t last = smaller_of(first + each, tile.last), next = tile.last + g * each, row = g * RAPT_TILE_ROWS;
    prefetch_keys(call, p, next, next + each,
                  (rapt_key_range){tile.last, smaller_of(tile.last + w->tile, p->last_key)});
    prefetch_rows(&call->d_keys, p->item, p->group, first, last, call->size, true);
    prefetch_rows(&call->d_values, p->item, p->group, first, last, call->value_size, true);
    if (tile.last >= w->last_key && prefetches_row(p, row)) prefetch_queries(call, p->next, row);
}

/* Beside a group's second part on the last tile, so that not all is prefetched at once. */
PREFETCH prefetch_after_queries(const backward_work *w, int64_t row)
{
    prefetch_group(w->call, w->piece, row, &w->call->d_queries, w->call->size, true);
    if (prefetches_row(w->piece, row)) prefetch_output(w->call, w->piece->next, row);
}

/* Rows made ready that are too many for the cache: prefetches d_queries of group g, and for what the next block
 * reads. */
PREFETCH prefetch_prepared(const backward_work *w, int64_t g)
{
    const int64_t next = (g + w->block) * RAPT_TILE_ROWS, now = g * RAPT_TILE_ROWS;
    for (int64_t j = 0; j < RAPT_TILE_ROWS * w->row; j += line / SIZE) {
        __builtin_prefetch(w->d_queries + now * w->row + j, 1);
        __builtin_prefetch(w->queries + next * w->row + j, 0);
    }
    for (int64_t j = 0; j < RAPT_TILE_ROWS * w->value_row; j += line / SIZE)
        __builtin_prefetch(w->gradient + next * w->value_row + j, 0);
}

static void backward_tile(backward_work *w, rapt_key_range tile)
{
    enum { cached_bytes = 1 << 22 };
    const bool is_long = w->groups * RAPT_TILE_ROWS * (2 * w->row + w->value_row) * SIZE > cached_bytes;
    for (int64_t first = 0; first < w->groups; first += w->block) {
        const int64_t last = smaller_of(first + w->block, w->groups);
        int64_t begin = first, end = last;
        while (begin < end && !w->group_seen[begin]) begin++;
        while (end > begin && !w->group_seen[end - 1]) end--;
        for (int64_t g = begin; g < end; g++) {
            prefetch_after(w, g, tile);
            if (is_long) prefetch_prepared(w, g);
            if (w->group_seen[g]) {
                differentiate_group(w, g, g - begin, tile);
                continue;
            }
            const size_t bytes = (size_t)(RAPT_TILE_ROWS * w->tile) * sizeof(T);
            memset(w->weights + (g - begin) * RAPT_TILE_ROWS * w->tile, 0, bytes);
            memset(w->d_scores + (g - begin) * RAPT_TILE_ROWS * w->tile, 0, bytes);
        }
        for (int64_t g = begin; g < end; g++) {
            if (tile.last >= w->last_key) prefetch_after_queries(w, g * RAPT_TILE_ROWS);
            if (w->group_seen[g]) add_queries(w, g, g - begin, tile);
        }
        add_block(w, begin, end, tile);
    }
}

/* The gradient of a key or value, written or added. */
static void give_row(int64_t count, const T *restrict from, bool added, bool seen, T *restrict to)
{
    if (!added)
        memcpy(to, from, (size_t)count * sizeof(T));
    else if (seen)
        RAPT_SIMD for (int64_t j = 0; j < count; j++) to[j] += from[j];
}

static void give_tile(const backward_work *w, rapt_key_range tile)
{
    const rapt_dot_attention *call = w->call;
    const rapt_attention_piece *p = w->piece;
    for (int64_t j = tile.first; j < tile.last; j++) {
        const int64_t at = j - tile.first;
        if (call->is_gaussian) axpy(call->size, -w->key_sums[at], w->keys + at * w->row, w->d_keys + at * w->row);
        give_row(call->size, w->d_keys + at * w->row, call->adds_keys, w->seen[at],
                 row_of(&call->d_keys, p->item, p->group, j));
        give_row(call->value_size, w->d_values + at * w->value_row, call->adds_values, w->seen[at],
                 row_of(&call->d_values, p->item, p->group, j));
    }
}

/* Writes dQ of a row, or adds it. Where Σⱼ dSᵢⱼ is 0 but for the rounding of D, what that does to a sum over keys is
 * taken off of Gaussian scores. Where it is another number, the query stands in the place of the mean. */
static void finish_query(const rapt_dot_attention *call, rapt_score_row row, T *gradient, const T *mean, T row_sum)
{
    T *out = row_of(&call->d_queries, row.item, row.head, row.query);
    if (call->is_gaussian) axpy(call->size, -row_sum, mean, gradient);
    if (call->adds_queries)
        RAPT_SIMD for (int64_t j = 0; j < call->size; j++) out[j] += gradient[j] * (T)call->scale;
    else
        RAPT_SIMD for (int64_t j = 0; j < call->size; j++) out[j] = gradient[j] * (T)call->scale;
}

/* What some keys give to it. */
static void give_part(const rapt_dot_attention *call, const T *gradient, const T *mean, T row_sum, T *part)
{
    memcpy(part, gradient, (size_t)call->size * sizeof(T));
    if (!call->is_gaussian) return;
    memcpy(part + call->size, mean, (size_t)call->size * sizeof(T));
    part[2 * call->size] = row_sum;
}

static void backward(const rapt_dot_attention *call, const rapt_attention_piece *piece, void *scratch, void *part)
{
    backward_work w = {.piece = piece};
    layout_backward(&w, call, piece->last_row - piece->first_row, scratch);
    begin_backward(&w);
    for (int64_t first = piece->first_key; first < piece->last_key; first += w.tile) {
        const rapt_key_range tile = {first, smaller_of(first + w.tile, piece->last_key)};
        if (take_backward_tile(&w, tile)) backward_tile(&w, tile);
        give_tile(&w, tile);
    }
    for (int64_t i = 0; i < w.rows; i++) {
        const rapt_score_row row = row_at(call, piece, i);
        T *gradient = w.d_queries + i * w.row, *mean = w.means + i * w.row;
        if (piece->first_key == 0) /* the first part of the row's keys speaks for all */
            gather_sink(&call->normalizer, row.head, head_of_task(call, row), w.largest[i], w.scales[i], w.deltas[i]);
        if (call->is_gaussian && !sums_to_zero(call) && piece->first_key == 0)
            memcpy(mean, w.centered + i * w.row, (size_t)w.row * sizeof(T));
        if (!part)
            finish_query(call, row, gradient, mean, w.row_sums[i]);
        else
            give_part(call, gradient, mean, w.row_sums[i], (T *)part + i * rapt_dot_part_size(call));
    }
}

static void sum_parts(const rapt_dot_attention *call, int64_t parts, void *part, int64_t first_row, int64_t last_row)
{
    const rapt_raw_mask *mask = &call->mask;
    const int64_t all_rows = mask->batch * mask->heads * mask->queries, size = rapt_dot_part_size(call);
    for (int64_t number = first_row; number < last_row; number++) {
        const rapt_score_row row = {number / mask->queries / mask->heads, number / mask->queries % mask->heads,
                                    number % mask->queries};
        T *sum = (T *)part + number * size;
        for (int64_t p = 1; p < parts; p++)
            RAPT_SIMD for (int64_t j = 0; j < size; j++) sum[j] += sum[p * all_rows * size + j];
        finish_query(call, row, sum, sum + call->size, call->is_gaussian ? sum[size - 1] : 0);
    }
}
