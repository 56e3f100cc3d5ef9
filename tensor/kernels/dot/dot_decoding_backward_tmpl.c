/* Backward of the same: a key's gradient is a sum of so few products that it is written
 * where it belongs at once, or added there. Part of dot_tmpl.c. */

typedef struct decoding_backward_work {
    decoding_work w;
    T *gradients, *d_queries; /* of all rows, as vectors */
    T *scales, *deltas;       /* of all rows, as in backward_work */
    T *weights, *d_scores;    /* of all rows and the block */
    T *d_weights;             /* of a row and the block */
    T *kept;                  /* likewise, what the derivatives of changes of its scores read */
} decoding_backward_work;

static size_t layout_decoding_backward(decoding_backward_work *b, const rapt_dot_attention *call, int64_t rows,
                                       char *scratch)
{
    decoding_work *w = &b->w;
    size_t end = layout_decoding(w, call, rows, scratch);
    b->gradients = next_in_scratch(scratch, &end, rows * w->of_value.row * SIZE);
    b->d_queries = next_in_scratch(scratch, &end, rows * w->of_key.row * SIZE);
    b->scales = next_in_scratch(scratch, &end, rows * SIZE);
    b->deltas = next_in_scratch(scratch, &end, rows * SIZE);
    b->weights = next_in_scratch(scratch, &end, rows * w->block * SIZE);
    b->d_scores = next_in_scratch(scratch, &end, rows * w->block * SIZE);
    b->d_weights = next_in_scratch(scratch, &end, w->block * SIZE);
    b->kept = next_in_scratch(scratch, &end, rapt_kept_scores(call->changes) * w->block * SIZE);
    return end;
}

/* A row that sees nothing becomes zeros, whatever is in it. D is summed as d_weights are: so it is the same number, and
 * d_scores 0, where a row sees but one key. */
static void begin_decoding_backward(decoding_backward_work *b)
{
    decoding_work *w = &b->w;
    const rapt_dot_attention *call = w->call;
    begin_decoding(w);
    memset(b->d_queries, 0, (size_t)(w->rows * w->of_key.row) * sizeof(T));
    for (int64_t i = 0; i < w->rows; i++) {
        const rapt_score_row row = row_at(call, w->piece, i);
        const T *statistics = (const T *)call->statistics + 2 * row_number(call, row);
        T *gradient = b->gradients + i * w->of_value.row;
        w->largest[i] = statistics[0];
        b->scales[i] = 1 / statistics[1];
        b->deltas[i] = 0;
        if (statistics[0] == (T)INFINITY) {
            memset(w->queries + i * w->of_key.row, 0, (size_t)w->of_key.row * sizeof(T));
            memset(gradient, 0, (size_t)w->of_value.row * sizeof(T));
            continue;
        }
        T products[width];
        const rows_in_place out = {row_of(&call->out, row.item, row.head, row.query), 0, 0};
        spread_row(&w->of_value, row_of(&call->gradient, row.item, row.head, row.query), 1, gradient);
        dot_all(&w->of_value, gradient, out, 1, w->edge, false, products);
        b->deltas[i] = products[0];
        add_to_delta(call, row, &b->deltas[i]);
    }
}

/* Weights and d_scores of row i for some keys of the block, and what these give to the gradient of its query. */
static void differentiate_decoding(decoding_backward_work *b, int64_t i, rapt_key_range block, rapt_key_range keys)
{
    decoding_work *w = &b->w;
    const rapt_dot_attention *call = w->call;
    const rapt_score_row row = row_at(call, w->piece, i);
    const int64_t count = keys.last - keys.first, at = i * w->block + keys.first - block.first;
    const T scale = (T)(1 / call->mask.keep), *gradient = b->gradients + i * w->of_value.row;
    const bool has_holes = rapt_mask_has_tensors(&call->mask);
    score_decoding(w, i, block, keys, b->kept);
    if (i == 0) /* constants: each is compiled for itself */
        dot_all(&w->of_value, gradient, part_of(w->block_values, keys.first - block.first), count, w->edge, true,
                b->d_weights);
    else
        dot_all(&w->of_value, gradient, part_of(w->block_values, keys.first - block.first), count, w->edge, false,
                b->d_weights);
    uint8_t kept[largest_tile];
    if (call->mask.keep < 1) {
        find_kept(call, w->piece, i, 1, keys, count, kept, 0);
        drop_row(count, kept, scale, b->d_weights);
    }
    add_weights_gradient(call, row, keys, b->d_weights);
    differentiate_row(call, count, w->largest[i], b->scales[i], b->deltas[i], b->d_weights, w->scores,
                      b->d_scores + at);
    if (call->mask.keep < 1) drop_row(count, kept, scale, w->scores);
    give_biases(call, row, keys, b->d_scores + at);
    differentiate_change(call, w->piece, i, 1, keys, b->d_scores + at, w->block, b->kept, w->block);
    memcpy(b->weights + at, w->scores, (size_t)count * sizeof(T));
    memcpy(w->scores, b->d_scores + at, (size_t)count * sizeof(T));
    rows_in_place rows = part_of(w->block_keys, keys.first - block.first);
    rows.ahead = 0;
    add_rows(&w->of_key, has_holes ? choose(w, count) : count, w->scores, has_holes ? w->chosen : w->places, rows, 1,
             b->d_queries + i * w->of_key.row);
}

/* out = Σ factors[i] · row i of some rows of vectors; the factors are a block apart. */
static inline void give_sum(const cover *c, int64_t rows, int64_t block, const T *factors, const T *vectors, T *out)
{
    for (int64_t t = c->row - width; t >= 0; t -= width) { /* the last one first: it repeats elements */
        vector sum = {0};
        for (int64_t i = 0; i < rows; i++) sum += factors[i * block] * load(vectors + i * c->row + t);
        if (c->size < width)
            memcpy(out, &sum, (size_t)c->size * sizeof(T));
        else
            *(vector *)(void *)(out + (t < c->whole ? t : c->rest_at)) = sum;
    }
}

/* The same, added to out. */
static void add_sum(const cover *c, int64_t rows, int64_t block, const T *factors, const T *vectors, T *out)
{
    for (int64_t t = 0; t < c->row; t += width) {
        vector sum = {0};
        for (int64_t i = 0; i < rows; i++) sum += factors[i * block] * load(vectors + i * c->row + t);
        if (c->size < width)
            for (int lane = 0; lane < c->size; lane++) out[lane] += sum[lane];
        else if (t < c->whole)
            *(vector *)(void *)(out + t) += sum;
        else
            *(vector *)(void *)(out + c->rest_at) += (vector)((lane_mask)sum & c->mask);
    }
}

static void give_block(const decoding_backward_work *b, rapt_key_range block)
{
    enum { keys_prefetched = 16 };
    const decoding_work *w = &b->w;
    const rapt_dot_attention *call = w->call;
    const int64_t item = w->piece->item, group = w->piece->group;
    for (int64_t j = block.first; j < block.last; j++) {
        const int64_t at = j - block.first, later = smaller_of(j + keys_prefetched, w->seen_by_any.last - 1);
        prefetch_rows(&call->d_keys, item, group, later, later + 1, call->size, true);
        prefetch_rows(&call->d_values, item, group, later, later + 1, call->value_size, true);
        T *d_key = row_of(&call->d_keys, item, group, j), *d_value = row_of(&call->d_values, item, group, j);
        if (call->adds_keys)
            add_sum(&w->of_key, w->rows, w->block, b->d_scores + at, w->queries, d_key);
        else
            give_sum(&w->of_key, w->rows, w->block, b->d_scores + at, w->queries, d_key);
        if (call->adds_values)
            add_sum(&w->of_value, w->rows, w->block, b->weights + at, b->gradients, d_value);
        else
            give_sum(&w->of_value, w->rows, w->block, b->weights + at, b->gradients, d_value);
    }
}

static void backward_decoding(const rapt_dot_attention *call, const rapt_attention_piece *piece, void *scratch,
                              void *part)
{
    decoding_backward_work b = {.w.piece = piece};
    decoding_work *w = &b.w;
    layout_decoding_backward(&b, call, piece->last_row - piece->first_row, scratch);
    begin_decoding_backward(&b);
    for (int64_t j = piece->first_key; j < piece->last_key; j++) {
        if (j >= w->seen_by_any.first && j < w->seen_by_any.last) continue;
        T *d_key = row_of(&call->d_keys, piece->item, piece->group, j);
        T *d_value = row_of(&call->d_values, piece->item, piece->group, j);
        if (!call->adds_keys) memset(d_key, 0, (size_t)call->size * sizeof(T));
        if (!call->adds_values) memset(d_value, 0, (size_t)call->value_size * sizeof(T));
    }
    for (int64_t first = w->seen_by_any.first; first < w->seen_by_any.last; first += w->block) {
        const rapt_key_range block = {first, smaller_of(first + w->block, w->seen_by_any.last)};
        take_block(w, block);
        memset(b.weights, 0, (size_t)(w->rows * w->block) * sizeof(T));
        memset(b.d_scores, 0, (size_t)(w->rows * w->block) * sizeof(T));
        for (int64_t i = 0; i < w->rows; i++) {
            const rapt_key_range keys = decoding_range(w, i, block);
            if (keys.first < keys.last) differentiate_decoding(&b, i, block, keys);
        }
        give_block(&b, block);
    }
    for (int64_t i = 0; i < w->rows; i++) {
        const rapt_score_row row = row_at(call, piece, i);
        if (piece->first_key == 0)
            gather_sink(&call->normalizer, row.head, head_of_task(call, row), w->largest[i], b.scales[i], b.deltas[i]);
        T *out =
            part ? (T *)part + i * rapt_dot_part_size(call) : row_of(&call->d_queries, row.item, row.head, row.query);
        gather_row(&w->of_key, b.d_queries + i * w->of_key.row, part ? 1 : (T)call->scale, out);
    }
}
