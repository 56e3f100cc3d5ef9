/* Backward of fused dot-product attention: its scratch, and the rows made ready. Part of dot_tmpl.c. */

/* One piece of work: all rows of a group's heads, some keys. Rows are in groups as in forward. */
typedef struct backward_work {
    const rapt_dot_attention *call;
    const rapt_attention_piece *piece;
    int64_t last_key;                                  /* that any row sees */
    int64_t rows, groups, block, tile, row, value_row; /* block: groups at once; row: size in whole vectors */
    T *queries, *gradient, *d_queries;                 /* of all rows; queries are scaled */
    T *centered;                                       /* queries less the center; if not Gaussian, the queries */
    T *largest, *scales, *deltas;                      /* statistics: exp(score − largest) · scale is the weight */
    T *keys, *keys_across, *values_across;             /* of the tile; across: transposed */
    T *d_keys, *d_values;
    T *row_sums, *key_sums; /* for Gaussian scores: of d_scores, */
    T *means;               /* Σⱼ Pᵢⱼ kⱼ of all rows, */
    T *center;              /* and what is taken off queries and keys where gradients are summed: they would lose its
                * digits; scores are made as forward made them, so as to fit the statistics */
    T *weights, *d_scores, *d_weights; /* of the block; d_weights of a group */
    T *kept;                           /* of a group: what the derivatives of changes of its scores read */
    uint8_t *seen, *group_seen;
    rapt_key_range *seen_by_any, *seen_by_all;
} backward_work;

static size_t layout_backward(backward_work *w, const rapt_dot_attention *call, int64_t rows, char *scratch)
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
    w->queries = next_in_scratch(scratch, &end, all_rows * w->row * SIZE);
    w->gradient = next_in_scratch(scratch, &end, all_rows * w->value_row * SIZE);
    w->d_queries = next_in_scratch(scratch, &end, all_rows * w->row * SIZE);
    w->largest = next_in_scratch(scratch, &end, all_rows * SIZE);
    w->scales = next_in_scratch(scratch, &end, all_rows * SIZE);
    w->deltas = next_in_scratch(scratch, &end, round_up(all_rows, width) * SIZE);
    w->center = next_in_scratch(scratch, &end, w->row * SIZE);
    w->row_sums = next_in_scratch(scratch, &end, all_rows * SIZE);
    w->means = next_in_scratch(scratch, &end, call->is_gaussian ? all_rows * w->row * SIZE : 0);
    w->centered = call->is_gaussian ? next_in_scratch(scratch, &end, all_rows * w->row * SIZE) : w->queries;
    w->keys = next_in_scratch(scratch, &end, w->tile * w->row * SIZE);
    w->keys_across = next_in_scratch(scratch, &end, call->size * w->tile * SIZE);
    w->values_across = next_in_scratch(scratch, &end, call->value_size * w->tile * SIZE);
    w->d_keys = next_in_scratch(scratch, &end, w->tile * w->row * SIZE);
    w->d_values = next_in_scratch(scratch, &end, w->tile * w->value_row * SIZE);
    w->key_sums = next_in_scratch(scratch, &end, w->tile * SIZE);
    w->weights = next_in_scratch(scratch, &end, block * w->tile * SIZE);
    w->d_scores = next_in_scratch(scratch, &end, block * w->tile * SIZE);
    w->d_weights = next_in_scratch(scratch, &end, RAPT_TILE_ROWS * w->tile * SIZE);
    w->kept = next_in_scratch(scratch, &end, rapt_kept_scores(call->changes) * RAPT_TILE_ROWS * w->tile * SIZE);
    w->seen = next_in_scratch(scratch, &end, w->tile);
    w->group_seen = next_in_scratch(scratch, &end, w->groups);
    w->seen_by_any = next_in_scratch(scratch, &end, w->groups * (int64_t)sizeof *w->seen_by_any);
    w->seen_by_all = next_in_scratch(scratch, &end, w->groups * (int64_t)sizeof *w->seen_by_all);
    return end;
}

static size_t backward_bytes(const rapt_dot_attention *call, int64_t rows)
{
    backward_work w;
    return layout_backward(&w, call, rows, NULL);
}

/* to += factor · from, which is not looked at where the factor is 0 */
static void axpy(int64_t count, T factor, const T *restrict from, T *restrict to)
{
    if (factor == 0) return;
    RAPT_SIMD for (int64_t j = 0; j < count; j++) to[j] += factor * from[j];
}

/* Copies what belongs to row i. One that sees nothing becomes zeros, whatever is in it. */
static void take_row(backward_work *w, int64_t i)
{
    const rapt_dot_attention *call = w->call;
    T *query = w->queries + i * w->row, *gradient = w->gradient + i * w->value_row;
    const rapt_score_row row = row_at(call, w->piece, i < w->rows ? i : 0);
    const T *statistics = (const T *)call->statistics + 2 * row_number(call, row);
    const uint8_t used = i < w->rows && statistics[0] != (T)INFINITY;
    copy_rows(1, call->size, row_of(&call->queries, row.item, row.head, row.query), 0, &used, (T)call->scale, query,
              w->row);
    copy_rows(1, call->value_size, row_of(&call->gradient, row.item, row.head, row.query), 0, &used, 1, gradient,
              w->value_row);
    w->largest[i] = used ? statistics[0] : (T)INFINITY;
    w->scales[i] = used ? 1 / statistics[1] : 0;
}

/* D of a vector of rows, from row i on: the same sums as dP has, so that both are the same number, and d_scores 0,
 * where a row sees but one key. */
static void find_deltas(backward_work *w, int64_t i)
{
    const rapt_dot_attention *call = w->call;
    const T *outs[width], *gradients[width];
    for (int lane = 0; lane < width; lane++) {
        const int64_t at = smaller_of(i + lane, w->rows - 1);
        const rapt_score_row row = row_at(call, w->piece, at);
        outs[lane] = row_of(&call->out, row.item, row.head, row.query);
        gradients[lane] = w->gradient + at * w->value_row;
    }
    vector sums = {0};
    for (int64_t t = 0; t < call->value_size; t += width) {
        vector gradient[width], out[width]; /* only indexed by constants, or they would not stay in registers */
        T edge[width] = {0};
#pragma GCC unroll 16
        for (int lane = 0; lane < width; lane++) {
            const T *from = outs[lane] + t;
            if (t + width > call->value_size) from = memcpy(edge, from, (size_t)(call->value_size - t) * sizeof(T));
            out[lane] = *(const vector *)(const void *)from;
            gradient[lane] = *(const vector *)(const void *)(gradients[lane] + t);
        }
        transpose_block(gradient);
        transpose_block(out);
#pragma GCC unroll 16
        for (int lane = 0; lane < width; lane++) sums += gradient[lane] * out[lane];
    }
    *(vector *)(void *)(w->deltas + i) = sums;
}

/* What the gradient of the weights adds to D of a row. */
static void add_to_delta(const rapt_dot_attention *call, rapt_score_row row, T *delta)
{
    if (!call->d_weights.data) return;
    const T *weights = row_of(&call->weights, row.item, row.head, row.query);
    const T *gradient = row_of(&call->d_weights, row.item, row.head, row.query);
    double sum = 0;
    _Pragma("omp simd reduction(+ : sum)") for (int64_t j = 0; j < call->mask.keys; j++) sum +=
        weights[j] == 0 ? 0 : (double)weights[j] * (double)gradient[j];
    *delta += (T)sum;
}

/* Adds that gradient itself to a row of d_weights. */
static void add_weights_gradient(const rapt_dot_attention *call, rapt_score_row row, rapt_key_range keys,
                                 T *restrict d_weights)
{
    if (!call->d_weights.data) return;
    const T *gradient = row_of(&call->d_weights, row.item, row.head, row.query) + keys.first;
    RAPT_SIMD for (int64_t j = 0; j < keys.last - keys.first; j++) d_weights[j] += gradient[j];
}

/* Does a gradient come from row i? D is NaN where a value is that nobody asked for. */
static bool is_asked(const backward_work *w, int64_t i)
{
    return isfinite(w->deltas[i]) && w->deltas[i] != 0;
}

/* The median of each coordinate of up to 15 queries from which a gradient comes: others, padding say, may not change a
 * gradient, and one that is far from the others, or NaN, must not cost theirs their digits. What is not finite counts
 * as 0, as does one more number where their count is even. */
static void find_center(backward_work *w)
{
    enum { most = 15 };
    const T *some[most];
    int64_t asked = 0, found = 0, count = 0;
    for (int64_t i = 0; i < w->rows; i++) asked += is_asked(w, i);
    const int64_t step = (asked + most - 1) / most;
    for (int64_t i = 0; i < w->rows; i++)
        if (is_asked(w, i) && found++ % step == 0) some[count++] = w->queries + i * w->row;
    const int64_t last = count | 1, median = last / 2;
    for (int64_t t = 0; t < w->row; t += width) {
        T sorted[most][width] = {{0}};
        for (int64_t n = 0; n < count; n++)
            RAPT_SIMD for (int lane = 0; lane < width; lane++) sorted[n][lane] =
                isfinite(some[n][t + lane]) ? some[n][t + lane] : 0;
        for (int64_t end = last - 1; end >= median; end--) /* the largest go to the end */
            for (int64_t n = 0; n < end; n++) RAPT_SIMD for (int lane = 0; lane < width; lane++)
                {
                    const T a = sorted[n][lane], b = sorted[n + 1][lane];
                    sorted[n][lane] = a < b ? a : b;
                    sorted[n + 1][lane] = a < b ? b : a;
                }
        memcpy(w->center + t, sorted[median], sizeof sorted[median]);
    }
}

static void center_queries(backward_work *w)
{
    find_center(w);
    memcpy(w->centered, w->queries, (size_t)(w->groups * RAPT_TILE_ROWS * w->row) * sizeof(T));
    for (int64_t i = 0; i < w->rows; i++) axpy(w->call->size, -1, w->center, w->centered + i * w->row);
}

static void begin_backward(backward_work *w)
{
    const rapt_dot_attention *call = w->call;
    const rapt_key_range keys = {w->piece->first_key, w->piece->last_key};
    for (int64_t g = 0; g < w->groups; g++) {
        prefetch_queries(call, w->piece, (g + groups_prefetched) * RAPT_TILE_ROWS);
        prefetch_output(call, w->piece, (g + groups_prefetched) * RAPT_TILE_ROWS);
        w->seen_by_any[g] = (rapt_key_range){0, 0};
        w->seen_by_all[g] = keys;
        for (int64_t i = g * RAPT_TILE_ROWS; i < (g + 1) * RAPT_TILE_ROWS; i++) {
            take_row(w, i);
            if (i >= w->rows) continue;
            const rapt_key_range range =
                rapt_intersect_ranges(keys, rapt_row_range(&call->mask, row_at(call, w->piece, i)));
            w->seen_by_any[g] = rapt_join_ranges(w->seen_by_any[g], range);
            w->seen_by_all[g] = rapt_intersect_ranges(w->seen_by_all[g], range);
        }
        w->last_key = larger_of(w->last_key, w->seen_by_any[g].last);
    }
    for (int64_t i = 0; i < w->rows; i += width) find_deltas(w, i);
    for (int64_t i = 0; i < w->rows; i++) add_to_delta(call, row_at(call, w->piece, i), &w->deltas[i]);
    if (call->is_gaussian) center_queries(w);
    memset(w->row_sums, 0, (size_t)(w->groups * RAPT_TILE_ROWS) * sizeof(T));
    if (call->is_gaussian) memset(w->means, 0, (size_t)(w->groups * RAPT_TILE_ROWS * w->row) * sizeof(T));
    memset(w->d_queries, 0, (size_t)(w->groups * RAPT_TILE_ROWS * w->row) * sizeof(T));
}
