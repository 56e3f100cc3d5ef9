/* The gradients of scores, hidden units and values. Part of additive_tmpl.c. */

/* The weights of a block of queries, before dropout, and in `scores` the gradient of the weights: out's times the
 * values. old_scores get those before changes, if there are any. */
static void weights_backward(const rapt_additive_attention *call, const rapt_additive_gradient *g,
                             const rapt_attention_piece *piece, rapt_key_range range, T *weights, T *scores,
                             T *old_scores)
{
    const head_rows place = rows_of_head(call, piece->item, piece->group);
    const int64_t queries = piece->last_row - piece->first_row, keys = call->mask.keys, *strides = g->gradient.strides;
    const int64_t first_row = (piece->item * call->mask.heads + piece->group) * call->mask.queries + piece->first_row;
    const T *gradient = (const T *)g->gradient.data + piece->item * strides[0] + piece->group * strides[1] +
                        piece->first_row * strides[2];
    T tile[rapt_additive_block * rapt_additive_tile];
    for (int64_t j = range.first; j < range.last; j += rapt_additive_tile) {
        const rapt_key_range part = rapt_intersect_ranges((rapt_key_range){j, j + rapt_additive_tile}, range);
        if (are_hidden(call, piece, part)) {
            for (int64_t r = 0; r < queries; r++) {
                const size_t bytes = (size_t)(part.last - j) * sizeof(T);
                memset(scores + r * keys + j, 0, bytes);
                if (!g->weights) memset(weights + r * keys + j, 0, bytes);
                if (call->changes) memset(old_scores + r * keys + j, 0, bytes);
            }
            continue;
        }
        dots(queries, part.last - j, call->value_size, gradient, strides[2], place.value + j * place.value_row,
             place.value_row, scores + j, keys);
        if (g->weights) continue;
        score_tile(&place, piece->first_row, queries, j, part.last - j, tile);
        for (int64_t r = 0; call->changes && r < queries; r++)
            memcpy(old_scores + r * keys + j, tile + r * rapt_additive_tile, (size_t)(part.last - j) * sizeof(T));
        change(call, piece, part, tile, NULL);
        for (int64_t r = 0; r < queries; r++) {
            T *s = tile + r * rapt_additive_tile;
            OF_TYPE(rapt_row_mask)
            (&call->mask, (rapt_score_row){piece->item, piece->group, piece->first_row + r}, part, s);
            weigh(call, part.last - j, s, (const T *)g->statistics + 2 * (first_row + r), weights + r * keys + j);
        }
    }
}

/* Adds the gradient that the weights have of their own to that which they have of the output. */
static void add_weights_gradient(const rapt_raw_grid *gradient, rapt_score_row row, rapt_key_range range, T *scores)
{
    const int64_t *strides = gradient->strides;
    const T *from = (const T *)gradient->data + row.item * strides[0] + row.head * strides[1] + row.query * strides[2];
    RAPT_SIMD for (int64_t j = range.first; j < range.last; j++) scores[j] += from[j];
}

/* Σ out · its gradient of a row: Σ p d over all keys, also those that are not here. */
static T delta_of(const rapt_additive_attention *call, const rapt_additive_gradient *g, rapt_score_row row)
{
    const T *out = (const T *)g->out.data + rapt_row_start(&g->out, row);
    const T *gradient = (const T *)g->gradient.data + rapt_row_start(&g->gradient, row);
    double sum = 0;
    _Pragma("omp simd reduction(+ : sum)") for (int64_t c = 0; c < call->value_size; c++) sum +=
        (double)out[c] * (double)gradient[c];
    return (T)sum;
}

/* With p the weights and d the gradient of the weights: ds = p (d − Σ p d), of sigmoid p (1 − p) d, 0 even of a d that
 * is not finite where p is 0; and p after dropout goes to `pooled`. Returns Σ p d. */
static T weights_backward_row(const rapt_additive_attention *call, const rapt_additive_gradient *g, rapt_score_row row,
                              rapt_key_range range, const T *weights, T *pooled, T *scores)
{
    double sum = 0;
    for (int64_t j = range.first; j < range.last && call->mask.keep < 1; j += rapt_additive_tile) {
        const rapt_key_range part = rapt_intersect_ranges((rapt_key_range){j, j + rapt_additive_tile}, range);
        drop(&call->mask, row, part, scores + j);
    }
    if (g->d_weights.data) add_weights_gradient(&g->d_weights, row, range, scores);
    _Pragma("omp simd reduction(+ : sum)") for (int64_t j = range.first; j < range.last; j++) sum +=
        (double)(weights[j] == 0 ? 0 : weights[j] * scores[j]);
    const T mean = g->out.data ? delta_of(call, g, row) : (T)sum;
    if (call->normalizer.is_sigmoid)
        RAPT_SIMD for (int64_t j = range.first; j < range.last; j++) scores[j] =
            weights[j] == 0 ? 0 : weights[j] * (1 - weights[j]) * scores[j];
    else
        RAPT_SIMD for (int64_t j = range.first; j < range.last; j++) scores[j] =
            weights[j] == 0 ? 0 : weights[j] * (scores[j] - mean);
    for (int64_t j = range.first; j < range.last && call->mask.keep < 1; j += rapt_additive_tile) {
        const rapt_key_range part = rapt_intersect_ranges((rapt_key_range){j, j + rapt_additive_tile}, range);
        memmove(pooled + j, weights + j, (size_t)(part.last - j) * sizeof *pooled);
        drop(&call->mask, row, part, pooled + j);
    }
    return mean;
}

/* The gradients of the biases: that of the scores, and its sums by relative position. */
static void biases_backward(const rapt_additive_attention *call, const rapt_additive_gradient *g, rapt_score_row row,
                            rapt_key_range range, const T *scores)
{
    const int64_t index = (row.item * call->mask.heads + row.head) * call->mask.queries + row.query,
                  reach = call->mask.reach;
    if (g->bias) memcpy((T *)g->bias + index * call->mask.keys, scores, (size_t)call->mask.keys * sizeof *scores);
    if (!g->relative_bias) return;
    T *table = (T *)g->relative_bias + (first_query_of(call, row.item, row.head) + row.query) * (2 * reach + 1) + reach;
    for (int64_t j = range.first; j < range.last; j++) {
        const int64_t position = rapt_relative_position(&call->mask, row, j);
        table[position < -reach ? -reach : position > reach ? reach : position] += scores[j];
    }
}

/* The gradient of the changed scores of a block of queries becomes that of the old ones, tile by tile. */
static __attribute__((noinline)) void changes_backward(const rapt_additive_attention *call,
                                                       const rapt_additive_gradient *g,
                                                       const rapt_attention_piece *piece, rapt_key_range range,
                                                       const T *old_scores, T *scores)
{
    enum { elements = rapt_additive_block * rapt_additive_tile };
    const int64_t keys = call->mask.keys;
    T tile[elements], kept[(rapt_most_changes + 1) * elements];
    int64_t places[rapt_additive_block];
    for (int64_t j = range.first; j < range.last; j += rapt_additive_tile) {
        const rapt_key_range part = rapt_intersect_ranges((rapt_key_range){j, j + rapt_additive_tile}, range);
        rapt_score_tile of_part = tile_of(call, piece, part, places);
        const size_t bytes = (size_t)of_part.columns * sizeof(T);
        for (int64_t r = 0; r < of_part.rows; r++)
            memcpy(tile + r * rapt_additive_tile, old_scores + r * keys + j, bytes);
        change(call, piece, part, tile, kept);
        for (int64_t r = 0; r < of_part.rows; r++) memcpy(tile + r * rapt_additive_tile, scores + r * keys + j, bytes);
        of_part.gradient = tile;
        rapt_differentiate_scores(call->changes, &of_part, kept, elements, g->gathered);
        for (int64_t r = 0; r < of_part.rows; r++) memcpy(scores + r * keys + j, tile + r * rapt_additive_tile, bytes);
    }
}

static void scores_backward(const rapt_additive_attention *call, const rapt_additive_gradient *g,
                            const rapt_additive_chunk *chunk, const rapt_attention_piece *piece)
{
    const rapt_key_range range = piece_range(call, piece);
    const int64_t keys = call->mask.keys, from_chunk = (piece->first_row - chunk->first) * keys;
    T *scores = chunk_rows(&g->scores, piece->item, piece->group) + from_chunk;
    T *pooled = chunk_rows(&g->pooled, piece->item, piece->group) + from_chunk;
    const int64_t first_row = (piece->item * call->mask.heads + piece->group) * call->mask.queries + piece->first_row;
    T *old_scores = call->changes ? chunk_rows(&g->old_scores, piece->item, piece->group) + from_chunk : NULL;
    weights_backward(call, g, piece, range, pooled, scores, old_scores);
    clear_outside(piece, range, keys, scores);
    if (g->stores_pooled) clear_outside(piece, range, keys, pooled);
    for (int64_t r = 0; r < piece->last_row - piece->first_row; r++) {
        const rapt_score_row row = {piece->item, piece->group, piece->first_row + r};
        const T *weights = g->weights ? (const T *)g->weights + (first_row + r) * keys : pooled + r * keys;
        const T *statistics = (const T *)g->statistics + 2 * (first_row + r);
        const T mean = weights_backward_row(call, g, row, range, weights, pooled + r * keys, scores + r * keys);
        if (call->mask.first_key == 0) /* the first of the row's keys speak for all */
            gather_sink(&call->normalizer, row.head, 0, statistics[0], statistics[1], mean);
        gather_bias(&call->normalizer, 0, range.last - range.first, scores + r * keys + range.first);
        biases_backward(call, g, row, range, scores + r * keys);
    }
    if (call->changes) changes_backward(call, g, piece, range, old_scores, scores);
}

/* One vector of hidden units, of a tile of keys. */
typedef struct unit {
    const head_rows *place;
    T powers[rapt_additive_tile][width] __attribute__((aligned(RAPT_VECTOR_BYTES)));
    T keys_gradient[rapt_additive_tile][width] __attribute__((aligned(RAPT_VECTOR_BYTES)));
    vector weight_gradient;
    int64_t hidden, lanes, first_key, keys; /* the first unit, how many there are */
} unit;

/* With t = tanh(a + b) and ds the gradient of the score of i and j: da_i += ds (1 − t²), db_j likewise, dw += ds t */
#define UNIT_ROWS(name, R)                                                                                             \
    static __attribute__((noinline)) void name(unit *u, int64_t i, rapt_key_range keys, const T *scores,               \
                                               int64_t score_row, T *query_gradient)                                   \
    {                                                                                                                  \
        const head_rows *p = u->place;                                                                                 \
        const vector half = (vector){0} + (T)0.5, one = (vector){0} + (T)1;                                            \
        vector a[R], da[R], dw[R];                                                                                     \
        for (int r = 0; r < R; r++) {                                                                                  \
            a[r] = load(p->query_powers + (i + r) * p->padded + u->hidden);                                            \
            da[r] = dw[r] = (vector){0};                                                                               \
        }                                                                                                              \
        for (int64_t j = keys.first; j < keys.last; j++) {                                                             \
            const vector b = load(u->powers[j - u->first_key]);                                                        \
            vector db = {0};                                                                                           \
            for (int r = 0; r < R; r++) {                                                                              \
                const T ds = scores[r * score_row + j];                                                                \
                const vector t = minus_reciprocal(one, half + a[r] * b), weighted = ds * t, slope = ds - weighted * t; \
                da[r] += slope;                                                                                        \
                db += slope;                                                                                           \
                dw[r] += weighted;                                                                                     \
            }                                                                                                          \
            T *sum = u->keys_gradient[j - u->first_key];                                                               \
            store(sum, load(sum) + db);                                                                                \
        }                                                                                                              \
        for (int r = 0; r < R; r++) {                                                                                  \
            T *to = query_gradient + (i + r) * p->hidden + u->hidden;                                                  \
            store_some(to, load_some(to, u->lanes) + da[r], u->lanes);                                                 \
            u->weight_gradient += dw[r];                                                                               \
        }                                                                                                              \
    }

UNIT_ROWS(unit_rows_4, 4)
UNIT_ROWS(unit_rows_3, 3)
UNIT_ROWS(unit_rows_2, 2)
UNIT_ROWS(unit_rows_1, 1)
#undef UNIT_ROWS

/* So many rows, at most 4, are summed as if zeros filled them up to 4. */
static void unit_rows(unit *u, int64_t i, int64_t rows, rapt_key_range keys, const T *scores, int64_t score_row,
                      T *query_gradient)
{
    (rows == 4   ? unit_rows_4
     : rows == 3 ? unit_rows_3
     : rows == 2 ? unit_rows_2
                 : unit_rows_1)(u, i, keys, scores, score_row, query_gradient);
}

/* The same for one query by tanh itself. */
static void exact_row(unit *u, int64_t i, rapt_key_range keys, const T *scores, T *query_gradient)
{
    const head_rows *p = u->place;
    const T *a = p->query + i * p->hidden + u->hidden;
    T *da = query_gradient + i * p->hidden + u->hidden, dw[width] = {0};
    for (int64_t j = keys.first; j < keys.last; j++) {
        const T *b = p->key + j * p->hidden + u->hidden, ds = scores[j];
        T *db = u->keys_gradient[j - u->first_key];
        RAPT_SIMD for (int64_t h = 0; h < u->lanes; h++)
        {
            const T t = TANH(a[h] + b[h]), weighted = ds * t, slope = ds - weighted * t;
            da[h] += slope;
            db[h] += slope;
            dw[h] += weighted;
        }
    }
    u->weight_gradient += load(dw);
}

/* One block of queries of one head, from number `first` to `last`; scores are those of the first. */
static void unit_block(const rapt_additive_attention *call, unit *u, const rapt_attention_piece *piece, const T *scores,
                       T *query_gradient)
{
    const rapt_key_range range =
        rapt_intersect_ranges(piece_range(call, piece), (rapt_key_range){u->first_key, u->first_key + u->keys});
    const int64_t row = call->mask.keys;
    if (range.first == range.last || are_hidden(call, piece, range)) return;
    const T key_largest = largest_among(u->place->key_largest + range.first, range.last - range.first);
    for (int64_t i = piece->first_row; i < piece->last_row;) {
        const int64_t rows = smaller_of(piece->last_row - i, 4);
        const T *from = scores + (i - piece->first_row) * row;
        if (largest_among(u->place->query_largest + i, rows) + key_largest > safe_sum)
            for (int64_t r = 0; r < rows; r++) exact_row(u, i + r, range, from + r * row, query_gradient);
        else
            unit_rows(u, i, rows, range, from, row, query_gradient);
        i += rows;
    }
}

/* Calls for each block of queries of a chunk, of each head of a group. */
#define FOR_BLOCKS(piece)                                                                                              \
    for (piece.group = group * heads; piece.group < (group + 1) * heads; piece.group++)                                \
        for (piece.first_row = chunk->first;                                                                           \
             piece.last_row = smaller_of(piece.first_row + rapt_additive_block, chunk->last),                          \
            piece.first_row < chunk->last;                                                                             \
             piece.first_row += rapt_additive_block)

/* One vector of hidden units of one group: all keys, tile by tile. */
static void unit_backward(const rapt_additive_attention *call, const rapt_additive_gradient *g,
                          const rapt_additive_chunk *chunk, int64_t item, int64_t group, unit *u)
{
    const int64_t heads = call->mask.heads / call->groups, size = call->hidden;
    const bool adds = g->adds_keys || chunk->first > 0;
    T *key_rows = (T *)g->keys + first_key_of(call, item, group) * size + u->hidden;
    const vector w = load_some((const T *)call->raw_weight + u->hidden, u->lanes);
    for (u->first_key = 0; u->first_key < call->mask.keys; u->first_key += rapt_additive_tile) {
        const head_rows first = rows_of_head(call, item, group * heads);
        u->keys = smaller_of(rapt_additive_tile, call->mask.keys - u->first_key);
        for (int64_t j = 0; j < u->keys; j++) {
            store(u->powers[j], load(first.key_powers + (u->first_key + j) * call->padded + u->hidden));
            store(u->keys_gradient[j], (vector){0});
        }
        rapt_attention_piece piece = {.item = item, .first_key = 0, .last_key = call->mask.keys};
        FOR_BLOCKS(piece)
        {
            const head_rows place = rows_of_head(call, item, piece.group);
            const int64_t rows = first_query_of(call, item, piece.group);
            u->place = &place;
            unit_block(call, u, &piece,
                       chunk_rows(&g->scores, item, piece.group) + (piece.first_row - chunk->first) * call->mask.keys,
                       (T *)g->queries + rows * size);
        }
        for (int64_t j = 0; j < u->keys; j++) {
            T *to = key_rows + (u->first_key + j) * size;
            vector sum = w * load(u->keys_gradient[j]);
            if (adds) sum += load_some(to, u->lanes);
            store_some(to, sum, u->lanes);
        }
    }
}

/* A chunk of one query, whose keys no other head reads, and no exponential of which could overflow. */
static bool is_single(const rapt_additive_attention *call, const rapt_additive_gradient *g,
                      const rapt_additive_chunk *chunk, int64_t item, int64_t group, single_query *s)
{
    if (chunk->last - chunk->first != 1 || call->mask.heads != call->groups) return false;
    const int64_t query = chunk->first, head = item * call->groups + group;
    const rapt_attention_piece piece = {.item = item,
                                        .group = group,
                                        .first_row = query,
                                        .last_row = query + 1,
                                        .last_key = call->mask.keys};
    *s = (single_query){.place = rows_of_head(call, item, group),
                        .keys = piece_range(call, &piece),
                        .query = query,
                        .raw_weight = call->raw_weight,
                        .scores = chunk_rows(&g->scores, item, group),
                        .query_row = (T *)g->queries + (first_query_of(call, item, group) + query) * call->hidden,
                        .key_rows = (T *)g->keys + first_key_of(call, item, group) * call->hidden,
                        .units = (T *)g->raw_weight + head * call->hidden,
                        .adds_keys = g->adds_keys || query > 0,
                        .adds_units = g->adds_raw_weight || query > 0};
    const T *largest = s->place.key_largest + s->keys.first;
    return s->place.query_largest[query] + largest_among(largest, s->keys.last - s->keys.first) <= safe_sum;
}

static void hidden_backward(const rapt_additive_attention *call, const rapt_additive_gradient *g,
                            const rapt_additive_chunk *chunk, int64_t item, int64_t group, int64_t first_hidden)
{
    const int64_t heads = call->mask.heads / call->groups, size = call->hidden;
    const int64_t last_hidden = smaller_of(first_hidden + rapt_additive_slice, size);
    single_query single;
    if (is_single(call, g, chunk, item, group, &single)) {
        single_backward(&single, call->mask.keys, first_hidden, last_hidden);
        return;
    }
    T *weight_gradient = (T *)g->raw_weight + (item * call->groups + group) * size;
    const T *w = call->raw_weight;
    for (int64_t head = group * heads; head < (group + 1) * heads; head++)
        for (int64_t i = chunk->first; i < chunk->last; i++)
            memset((T *)g->queries + (first_query_of(call, item, head) + i) * size + first_hidden, 0,
                   (size_t)(last_hidden - first_hidden) * sizeof *w);
    unit u;
    for (int64_t h = first_hidden; h < last_hidden; h += width) {
        u.hidden = h;
        u.lanes = smaller_of(width, last_hidden - h);
        u.weight_gradient = (vector){0};
        unit_backward(call, g, chunk, item, group, &u);
        if (g->adds_raw_weight || chunk->first > 0) u.weight_gradient += load_some(weight_gradient + h, u.lanes);
        store_some(weight_gradient + h, u.weight_gradient, u.lanes);
    }
    for (int64_t head = group * heads; head < (group + 1) * heads; head++)
        for (int64_t i = chunk->first; i < chunk->last; i++) {
            T *row = (T *)g->queries + (first_query_of(call, item, head) + i) * size;
            RAPT_SIMD for (int64_t h = first_hidden; h < last_hidden; h++) row[h] *= w[h];
        }
}

/* dv_j += Σ_i p_ij dout_i over the queries of the chunk, for one tile of keys */
static void values_backward(const rapt_additive_attention *call, const rapt_additive_gradient *g,
                            const rapt_additive_chunk *chunk, int64_t item, int64_t group, int64_t first_key)
{
    const int64_t heads = call->mask.heads / call->groups, size = call->value_size, *strides = g->gradient.strides;
    const int64_t keys = smaller_of(rapt_additive_tile, call->mask.keys - first_key);
    T *values = (T *)g->values + (first_key_of(call, item, group) + first_key) * size;
    if (chunk->first == 0 && !g->adds_values) memset(values, 0, (size_t)(keys * size) * sizeof *values);
    rapt_attention_piece piece = {.item = item, .first_key = first_key, .last_key = first_key + keys};
    FOR_BLOCKS(piece)
    {
        const rapt_key_range range = piece_range(call, &piece);
        if (are_hidden(call, &piece, range)) continue;
        const T *gradient =
            (const T *)g->gradient.data + item * strides[0] + piece.group * strides[1] + piece.first_row * strides[2];
        const T *pooled = chunk_rows(&g->pooled, item, piece.group) +
                          (piece.first_row - chunk->first) * call->mask.keys + range.first;
        product(range.last - range.first, size, piece.last_row - piece.first_row, pooled, 1, call->mask.keys, gradient,
                strides[2], values + (range.first - first_key) * size, size, NULL);
    }
}
#undef FOR_BLOCKS
