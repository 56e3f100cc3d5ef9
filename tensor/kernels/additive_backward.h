/* Template of additive.c, included once for each type T: the gradients of scores, hidden units and values. */

/* The weights of a block of queries, before dropout, and in `scores` the gradient of the weights: out's times the values. */
static void TYPED(weights_backward)(const rapt_additive *a, const rapt_additive_gradient *g,
                                    const rapt_additive_piece *piece, rapt_key_range range, T *weights, T *scores)
{
    const TYPED(place) place = TYPED(find_place)(a, piece->item, piece->head);
    const int64_t queries = piece->last_query - piece->first_query, keys = a->mask.keys, *strides = g->gradient.strides;
    const int64_t first_row = (piece->item * a->mask.heads + piece->head) * a->mask.queries + piece->first_query;
    const T *gradient = (const T *)g->gradient.data + piece->item * strides[0] + piece->head * strides[1] +
                        piece->first_query * strides[2];
    T tile[rapt_additive_block * rapt_additive_tile];
    for (int64_t j = range.first; j < range.last; j += rapt_additive_tile) {
        const rapt_key_range part = rapt_meet((rapt_key_range){j, j + rapt_additive_tile}, range);
        TYPED(dots)
        (queries, part.last - j, a->value_size, gradient, strides[2], place.value + j * place.value_row,
         place.value_row, scores + j, keys);
        if (g->weights) continue;
        TYPED(score_tile)(&place, piece->first_query, queries, j, part.last - j, tile);
        for (int64_t r = 0; r < queries; r++) {
            T *s = tile + r * rapt_additive_tile;
            TYPED(rapt_row_mask)
            (&a->mask, (rapt_kernel_row){piece->item, piece->head, piece->first_query + r}, part, s);
            TYPED(weigh)(part.last - j, s, (const T *)g->sums + 2 * (first_row + r), weights + r * keys + j);
        }
    }
}

/* With p the weights and d the gradient of the weights: ds = p (d − Σ p d), 0 even of a d that is not finite where p is 0;
 * and p after dropout goes to `pooled`. */
static void TYPED(softmax_backward_row)(const rapt_additive *a, rapt_kernel_row row, rapt_key_range range,
                                        const T *weights, T *pooled, T *scores)
{
    double sum = 0;
    for (int64_t j = range.first; j < range.last && a->mask.keep < 1; j += rapt_additive_tile) {
        const rapt_key_range part = rapt_meet((rapt_key_range){j, j + rapt_additive_tile}, range);
        TYPED(drop)(&a->mask, row, part, scores + j);
    }
    _Pragma("omp simd reduction(+ : sum)") for (int64_t j = range.first; j < range.last; j++) sum +=
        (double)(weights[j] == 0 ? 0 : weights[j] * scores[j]);
    const T mean = (T)sum;
    RAPT_SIMD for (int64_t j = range.first; j < range.last; j++) scores[j] =
        weights[j] == 0 ? 0 : weights[j] * (scores[j] - mean);
    for (int64_t j = range.first; j < range.last && a->mask.keep < 1; j += rapt_additive_tile) {
        const rapt_key_range part = rapt_meet((rapt_key_range){j, j + rapt_additive_tile}, range);
        memmove(pooled + j, weights + j, (size_t)(part.last - j) * sizeof *pooled);
        TYPED(drop)(&a->mask, row, part, pooled + j);
    }
}

/* The gradients of the biases: that of the scores, and its sums by distance. */
static void TYPED(biases_backward)(const rapt_additive *a, const rapt_additive_gradient *g, rapt_kernel_row row,
                                   rapt_key_range range, const T *scores)
{
    const int64_t index = (row.item * a->mask.heads + row.head) * a->mask.queries + row.query, reach = a->mask.reach;
    if (g->bias) memcpy((T *)g->bias + index * a->mask.keys, scores, (size_t)a->mask.keys * sizeof *scores);
    if (!g->nearby) return;
    T *nearby = (T *)g->nearby + index * (2 * reach + 1) + reach;
    for (int64_t j = range.first; j < range.last; j++) {
        const int64_t distance = j - row.query - a->mask.offset;
        nearby[distance < -reach ? -reach : distance > reach ? reach : distance] += scores[j];
    }
}

static void TYPED(scores_backward)(const rapt_additive *a, const rapt_additive_gradient *g,
                                   const rapt_additive_chunk *chunk, const rapt_additive_piece *piece)
{
    const rapt_key_range range = piece_range(a, piece);
    const int64_t keys = a->mask.keys, from_chunk = (piece->first_query - chunk->first) * keys;
    T *scores = TYPED(chunk_rows)(&g->scores, piece->item, piece->head) + from_chunk;
    T *pooled = TYPED(chunk_rows)(&g->pooled, piece->item, piece->head) + from_chunk;
    const int64_t first_row = (piece->item * a->mask.heads + piece->head) * a->mask.queries + piece->first_query;
    TYPED(weights_backward)(a, g, piece, range, pooled, scores);
    TYPED(clear_outside)(piece, range, keys, scores);
    if (g->stores_pooled) TYPED(clear_outside)(piece, range, keys, pooled);
    for (int64_t r = 0; r < piece->last_query - piece->first_query; r++) {
        const rapt_kernel_row row = {piece->item, piece->head, piece->first_query + r};
        const T *weights = g->weights ? (const T *)g->weights + (first_row + r) * keys : pooled + r * keys;
        TYPED(softmax_backward_row)(a, row, range, weights, pooled + r * keys, scores + r * keys);
        TYPED(biases_backward)(a, g, row, range, scores + r * keys);
    }
}

/* One vector of hidden units, of a tile of keys. */
typedef struct TYPED(unit) {
    const TYPED(place) * place;
    T powers[rapt_additive_tile][TYPED(width)] __attribute__((aligned(RAPT_VECTOR_BYTES)));
    T keys_gradient[rapt_additive_tile][TYPED(width)] __attribute__((aligned(RAPT_VECTOR_BYTES)));
    TYPED(vector) weight_gradient;
    int64_t hidden, lanes, first_key, keys; /* the first unit, how many there are */
} TYPED(unit);

/* With t = tanh(a + b) and ds the gradient of the score of i and j: da_i += ds (1 − t²), db_j likewise, dw += ds t */
#define UNIT_ROWS(name, R)                                                                                             \
    static __attribute__((noinline)) void TYPED(name)(TYPED(unit) * u, int64_t i, rapt_key_range keys,                 \
                                                      const T *scores, int64_t score_row, T *query_gradient)           \
    {                                                                                                                  \
        const TYPED(place) *p = u->place;                                                                              \
        const TYPED(vector) half = (TYPED(vector)){0} + (T)0.5, one = (TYPED(vector)){0} + (T)1;                       \
        TYPED(vector) a[R], da[R], dw[R];                                                                              \
        for (int r = 0; r < R; r++) {                                                                                  \
            a[r] = TYPED(load)(p->query_powers + (i + r) * p->padded + u->hidden);                                     \
            da[r] = dw[r] = (TYPED(vector)){0};                                                                        \
        }                                                                                                              \
        for (int64_t j = keys.first; j < keys.last; j++) {                                                             \
            const TYPED(vector) b = TYPED(load)(u->powers[j - u->first_key]);                                          \
            TYPED(vector) db = {0};                                                                                    \
            for (int r = 0; r < R; r++) {                                                                              \
                const T ds = scores[r * score_row + j];                                                                \
                const TYPED(vector) t = TYPED(minus_reciprocal)(one, half + a[r] * b), weighted = ds * t,              \
                                    slope = ds - weighted * t;                                                         \
                da[r] += slope;                                                                                        \
                db += slope;                                                                                           \
                dw[r] += weighted;                                                                                     \
            }                                                                                                          \
            T *sum = u->keys_gradient[j - u->first_key];                                                               \
            TYPED(store)(sum, TYPED(load)(sum) + db);                                                                  \
        }                                                                                                              \
        for (int r = 0; r < R; r++) {                                                                                  \
            T *to = query_gradient + (i + r) * p->hidden + u->hidden;                                                  \
            TYPED(store_some)(to, TYPED(load_some)(to, u->lanes) + da[r], u->lanes);                                   \
            u->weight_gradient += dw[r];                                                                               \
        }                                                                                                              \
    }

UNIT_ROWS(unit_rows, 4)
UNIT_ROWS(unit_row, 1)
#undef UNIT_ROWS

/* The same for one query by tanh itself. */
static void TYPED(exact_row)(TYPED(unit) * u, int64_t i, rapt_key_range keys, const T *scores, T *query_gradient)
{
    const TYPED(place) *p = u->place;
    const T *a = p->query + i * p->hidden + u->hidden;
    T *da = query_gradient + i * p->hidden + u->hidden, dw[TYPED(width)] = {0};
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
    u->weight_gradient += TYPED(load)(dw);
}

/* One block of queries of one head, from number `first` to `last`; scores are those of the first. */
static void TYPED(unit_block)(const rapt_additive *a, TYPED(unit) * u, const rapt_additive_piece *piece,
                              const T *scores, T *query_gradient)
{
    const rapt_key_range range =
        rapt_meet(piece_range(a, piece), (rapt_key_range){u->first_key, u->first_key + u->keys});
    const int64_t row = a->mask.keys;
    if (range.first == range.last) return;
    const T key_reach = TYPED(largest_reach)(u->place->key_reach + range.first, range.last - range.first);
    for (int64_t i = piece->first_query; i < piece->last_query;) {
        const int64_t rows = i + 4 <= piece->last_query ? 4 : 1;
        const T *from = scores + (i - piece->first_query) * row;
        if (TYPED(largest_reach)(u->place->query_reach + i, rows) + key_reach > TYPED(reach_limit))
            for (int64_t r = 0; r < rows; r++) TYPED(exact_row)(u, i + r, range, from + r * row, query_gradient);
        else if (rows == 4)
            TYPED(unit_rows)(u, i, range, from, row, query_gradient);
        else
            TYPED(unit_row)(u, i, range, from, row, query_gradient);
        i += rows;
    }
}

/* Calls for each block of queries of a chunk, of each head of a group. */
#define FOR_BLOCKS(piece)                                                                                              \
    for (piece.head = group * heads; piece.head < (group + 1) * heads; piece.head++)                                   \
        for (piece.first_query = chunk->first;                                                                         \
             piece.last_query = lesser(piece.first_query + rapt_additive_block, chunk->last),                          \
            piece.first_query < chunk->last;                                                                           \
             piece.first_query += rapt_additive_block)

/* One vector of hidden units of one group: all keys, tile by tile. */
static void TYPED(unit_backward)(const rapt_additive *a, const rapt_additive_gradient *g,
                                 const rapt_additive_chunk *chunk, int64_t item, int64_t group, TYPED(unit) * u)
{
    const int64_t heads = a->mask.heads / a->groups, size = a->hidden;
    const bool adds = g->adds_keys || chunk->first > 0;
    T *key_rows = (T *)g->keys + (item * a->groups + group) * a->mask.keys * size + u->hidden;
    const TYPED(vector) w = TYPED(load_some)((const T *)a->raw_weight + u->hidden, u->lanes);
    for (u->first_key = 0; u->first_key < a->mask.keys; u->first_key += rapt_additive_tile) {
        const TYPED(place) first = TYPED(find_place)(a, item, group * heads);
        u->keys = lesser(rapt_additive_tile, a->mask.keys - u->first_key);
        for (int64_t j = 0; j < u->keys; j++) {
            TYPED(store)(u->powers[j], TYPED(load)(first.key_powers + (u->first_key + j) * a->padded + u->hidden));
            TYPED(store)(u->keys_gradient[j], (TYPED(vector)){0});
        }
        rapt_additive_piece piece = {.item = item, .first_key = 0, .last_key = a->mask.keys};
        FOR_BLOCKS(piece)
        {
            const TYPED(place) place = TYPED(find_place)(a, item, piece.head);
            const int64_t rows = (item * a->mask.heads + piece.head) * a->mask.queries;
            u->place = &place;
            TYPED(unit_block)
            (a, u, &piece,
             TYPED(chunk_rows)(&g->scores, item, piece.head) + (piece.first_query - chunk->first) * a->mask.keys,
             (T *)g->queries + rows * size);
        }
        for (int64_t j = 0; j < u->keys; j++) {
            T *to = key_rows + (u->first_key + j) * size;
            TYPED(vector) sum = w * TYPED(load)(u->keys_gradient[j]);
            if (adds) sum += TYPED(load_some)(to, u->lanes);
            TYPED(store_some)(to, sum, u->lanes);
        }
    }
}

/* A chunk of one query, whose keys no other head reads, and no exponential of which could overflow. */
static bool TYPED(is_single)(const rapt_additive *a, const rapt_additive_gradient *g, const rapt_additive_chunk *chunk,
                             int64_t item, int64_t group, TYPED(single) * s)
{
    if (chunk->last - chunk->first != 1 || a->mask.heads != a->groups) return false;
    const int64_t query = chunk->first, head = item * a->groups + group;
    const rapt_additive_piece piece = {.item = item,
                                       .head = group,
                                       .first_query = query,
                                       .last_query = query + 1,
                                       .last_key = a->mask.keys};
    *s = (TYPED(single)){.place = TYPED(find_place)(a, item, group),
                         .keys = piece_range(a, &piece),
                         .query = query,
                         .raw_weight = a->raw_weight,
                         .scores = TYPED(chunk_rows)(&g->scores, item, group),
                         .query_row = (T *)g->queries + (head * a->mask.queries + query) * a->hidden,
                         .key_rows = (T *)g->keys + head * a->mask.keys * a->hidden,
                         .units = (T *)g->raw_weight + head * a->hidden,
                         .adds_keys = g->adds_keys || query > 0,
                         .adds_units = query > 0};
    const T *reach = s->place.key_reach + s->keys.first;
    return s->place.query_reach[query] + TYPED(largest_reach)(reach, s->keys.last - s->keys.first) <=
           TYPED(reach_limit);
}

static void TYPED(hidden_backward)(const rapt_additive *a, const rapt_additive_gradient *g,
                                   const rapt_additive_chunk *chunk, int64_t item, int64_t group, int64_t first_hidden)
{
    const int64_t heads = a->mask.heads / a->groups, size = a->hidden;
    const int64_t last_hidden = lesser(first_hidden + rapt_additive_slice, size);
    TYPED(single) single;
    if (TYPED(is_single)(a, g, chunk, item, group, &single)) {
        TYPED(single_backward)(&single, a->mask.keys, first_hidden, last_hidden);
        return;
    }
    T *weight_gradient = (T *)g->raw_weight + (item * a->groups + group) * size;
    const T *w = a->raw_weight;
    for (int64_t head = group * heads; head < (group + 1) * heads; head++)
        for (int64_t i = chunk->first; i < chunk->last; i++)
            memset((T *)g->queries + ((item * a->mask.heads + head) * a->mask.queries + i) * size + first_hidden, 0,
                   (size_t)(last_hidden - first_hidden) * sizeof *w);
    TYPED(unit) u;
    for (int64_t h = first_hidden; h < last_hidden; h += TYPED(width)) {
        u.hidden = h;
        u.lanes = lesser(TYPED(width), last_hidden - h);
        u.weight_gradient = (TYPED(vector)){0};
        TYPED(unit_backward)(a, g, chunk, item, group, &u);
        if (chunk->first > 0) u.weight_gradient += TYPED(load_some)(weight_gradient + h, u.lanes);
        TYPED(store_some)(weight_gradient + h, u.weight_gradient, u.lanes);
    }
    for (int64_t head = group * heads; head < (group + 1) * heads; head++)
        for (int64_t i = chunk->first; i < chunk->last; i++) {
            T *row = (T *)g->queries + ((item * a->mask.heads + head) * a->mask.queries + i) * size;
            RAPT_SIMD for (int64_t h = first_hidden; h < last_hidden; h++) row[h] *= w[h];
        }
}

/* dv_j += Σ_i p_ij dout_i over the queries of the chunk, for one tile of keys */
static void TYPED(values_backward)(const rapt_additive *a, const rapt_additive_gradient *g,
                                   const rapt_additive_chunk *chunk, int64_t item, int64_t group, int64_t first_key)
{
    const int64_t heads = a->mask.heads / a->groups, size = a->value_size, *strides = g->gradient.strides;
    const int64_t keys = lesser(rapt_additive_tile, a->mask.keys - first_key);
    T *values = (T *)g->values + ((item * a->groups + group) * a->mask.keys + first_key) * size;
    if (chunk->first == 0 && !g->adds_values) memset(values, 0, (size_t)(keys * size) * sizeof *values);
    rapt_additive_piece piece = {.item = item, .first_key = first_key, .last_key = first_key + keys};
    FOR_BLOCKS(piece)
    {
        const rapt_key_range range = piece_range(a, &piece);
        const T *gradient =
            (const T *)g->gradient.data + item * strides[0] + piece.head * strides[1] + piece.first_query * strides[2];
        const T *pooled = TYPED(chunk_rows)(&g->pooled, item, piece.head) +
                          (piece.first_query - chunk->first) * a->mask.keys + range.first;
        TYPED(product)
        (range.last - range.first, size, piece.last_query - piece.first_query, pooled, 1, a->mask.keys, gradient,
         strides[2], values + (range.first - first_key) * size, size, NULL);
    }
}
#undef FOR_BLOCKS
