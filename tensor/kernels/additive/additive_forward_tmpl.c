/* Softmax of tiles of scores as they come, and pooling of values. Part of additive_tmpl.c. */

RAPT_ROW_EXTREME(largest_of, T, -(T)INFINITY, a > m)
RAPT_ROW_EXPONENTIALS(exponentials, T, EXP)

/* out = exp(s − m) · share with m = statistics[0] and share = statistics[1], which is 0 where nothing is seen; of
 * sigmoid 1 / (1 + exp(m − s)) */
static void weigh(const rapt_additive_attention *call, int64_t count, const T *scores, const T *statistics, T *out)
{
    const T m = statistics[0], share = statistics[1];
    if (share == 0)
        for (int64_t j = 0; j < count; j++) out[j] = 0;
    else if (call->normalizer.is_sigmoid)
        RAPT_SIMD for (int64_t j = 0; j < count; j++) out[j] = sigmoid(scores[j] - m);
    else
        RAPT_SIMD for (int64_t j = 0; j < count; j++) out[j] = EXP(scores[j] - m) * share;
}

/* Dropout of the weights of some keys, no more than a tile. */
static void drop(const rapt_raw_mask *mask, rapt_score_row row, rapt_key_range keys, T *weights)
{
    uint8_t kept[rapt_additive_tile];
    const T scale = (T)(1 / mask->keep);
    RAPT_AT_LEVEL(rapt_rows_dropout)(mask, row, 1, keys, kept, 0);
    RAPT_SIMD for (int64_t j = 0; j < keys.last - keys.first; j++) weights[j] = kept[j] ? weights[j] * scale : 0;
}

/* Zeros for the keys of the piece that lie outside the range. */
static void clear_outside(const rapt_attention_piece *piece, rapt_key_range range, int64_t row, T *weights)
{
    for (int64_t r = 0; r < piece->last_row - piece->first_row; r++) {
        T *w = weights + r * row;
        memset(w + piece->first_key, 0, (size_t)(range.first - piece->first_key) * sizeof *w);
        memset(w + range.last, 0, (size_t)(piece->last_key - range.last) * sizeof *w);
    }
}

/* The tile of scores of a piece's rows and the keys [keys.first, keys.last). Fills in their places. */
static rapt_score_tile tile_of(const rapt_additive_attention *call, const rapt_attention_piece *piece,
                               rapt_key_range keys, int64_t *places)
{
    const int64_t rows = piece->last_row - piece->first_row;
    for (int64_t r = 0; r < rows; r++)
        places[r] = rapt_row_place(&call->mask, (rapt_score_row){piece->item, piece->group, piece->first_row + r});
    return (rapt_score_tile){.item = call->first_item + piece->item,
                             .head = piece->group,
                             .rows = rows,
                             .columns = keys.last - keys.first,
                             .queries = places,
                             .first_key = call->mask.first_key + keys.first,
                             .stride = rapt_additive_tile};
}

/* The scores of such a tile, before the mask, where there are changes. kept: room for what differentiation reads, or
 * NULL. */
static void change(const rapt_additive_attention *call, const rapt_attention_piece *piece, rapt_key_range keys,
                   T *scores, T *kept)
{
    int64_t places[rapt_additive_block];
    if (!call->changes) return;
    rapt_score_tile tile = tile_of(call, piece, keys, places);
    tile.scores = scores;
    rapt_change_scores(call->changes, &tile, kept, rapt_additive_block * rapt_additive_tile);
}

/* Of each row so far: the largest score m, and Σ exp(s − m); of sigmoid −term, and the sum of the weights. */
typedef struct running_softmax {
    T largest[rapt_additive_block];
    double sum[rapt_additive_block];
} running_softmax;

/* Scores of a row become sigmoid's weights; returns their sum, 0 where nothing is seen. */
static double weigh_by_sigmoid(int64_t count, T m, T *scores)
{
    T sum = 0;
    _Pragma("omp simd reduction(+ : sum)") for (int64_t j = 0; j < count; j++)
    {
        scores[j] = sigmoid(scores[j] - m);
        sum += scores[j];
    }
    return (double)sum;
}

/* Scores of one row of a tile become exp(s − m), or sigmoid's weights, after dropout; gives what sums made with
 * the m before count now. */
static T continue_row(const rapt_additive_attention *call, rapt_score_row row, rapt_key_range keys, T *scores,
                      running_softmax *running, int r)
{
    const int64_t count = keys.last - keys.first;
    if (call->normalizer.is_sigmoid) {
        running->sum[r] += weigh_by_sigmoid(count, running->largest[r], scores);
        if (call->mask.keep < 1) drop(&call->mask, row, keys, scores);
        return 1;
    }
    const T before = running->largest[r], here = largest_of(count, scores, 0), now = RAPT_GREATER(here, before);
    if (now == -(T)INFINITY) {
        for (int64_t j = 0; j < count; j++) scores[j] = 0;
        return 0;
    }
    const T factor = EXP(before - now);
    running->largest[r] = now;
    running->sum[r] = running->sum[r] * (double)factor + exponentials(count, scores, now, scores);
    if (call->mask.keep < 1) drop(&call->mask, row, keys, scores);
    return factor;
}

static void finish_row(const rapt_additive_attention *call, int64_t head, rapt_key_range range,
                       const rapt_additive_output *output, int64_t r, T largest, double sum)
{
    T *out = (T *)output->out + r * call->value_size, *statistics = (T *)output->statistics + 2 * r;
    const T factor = sum == 0 ? 0 : end_row(&call->normalizer, head, &largest, &sum);
    statistics[0] = largest;
    statistics[1] = sum == 0 ? 0 : (T)(1 / sum);
    RAPT_SIMD for (int64_t c = 0; c < call->value_size; c++) out[c] *= factor * statistics[1];
    if (!output->weights) return;
    T *weights = (T *)output->weights + r * call->mask.keys + range.first;
    weigh(call, range.last - range.first, weights, statistics, weights);
}

static bool are_finite(int64_t count, const T *elements)
{
    vector rests = {0};
    int64_t i = 0;
    for (; i + width <= count; i += width) rests += 0 * load(elements + i);
    T rest = sum_of_lanes(rests);
    for (; i < count; i++) rest += 0 * elements[i];
    return rest == 0;
}

/* Does the mask's rule hide all these keys from a piece's rows? */
static bool are_hidden(const rapt_additive_attention *call, const rapt_attention_piece *piece, rapt_key_range keys)
{
    for (int64_t i = piece->first_row; i < piece->last_row; i++)
        if (!rapt_rule_hides(&call->mask, (rapt_score_row){piece->item, piece->group, i}, keys)) return false;
    return keys.first < keys.last;
}

/* False if something in out is not finite. */
static bool try_forward(const rapt_additive_attention *call, const rapt_attention_piece *piece,
                        const rapt_additive_output *output, bool chooses)
{
    const head_rows place = rows_of_head(call, piece->item, piece->group);
    const int64_t queries = piece->last_row - piece->first_row;
    const rapt_key_range range = piece_range(call, piece);
    T scores[rapt_additive_block * rapt_additive_tile], factors[rapt_additive_block], *weights = output->weights;
    running_softmax running;
    bool begun = false;
    for (int r = 0; r < queries; r++) {
        running.largest[r] = first_largest(&call->normalizer, piece->group);
        running.sum[r] = 0;
    }
    for (int64_t j = range.first; j < range.last; j += rapt_additive_tile) {
        const rapt_key_range keys = rapt_intersect_ranges((rapt_key_range){j, j + rapt_additive_tile}, range);
        const int64_t count = keys.last - j;
        if (are_hidden(call, piece, keys)) {
            for (int r = 0; weights && r < queries; r++)
                for (int64_t k = j; k < keys.last; k++) weights[r * call->mask.keys + k] = -(T)INFINITY;
            continue;
        }
        score_tile(&place, piece->first_row, queries, j, count, scores);
        change(call, piece, keys, scores, NULL);
        for (int r = 0; r < queries; r++) {
            const rapt_score_row row = {piece->item, piece->group, piece->first_row + r};
            T *s = scores + r * rapt_additive_tile;
            OF_TYPE(rapt_row_mask)(&call->mask, row, keys, s);
            if (weights) memcpy(weights + r * call->mask.keys + j, s, (size_t)count * sizeof *s);
            factors[r] = continue_row(call, row, keys, s, &running, r);
            if (!begun) factors[r] = 0;
        }
        (chooses ? product_chosen : product)(queries, call->value_size, count, scores, rapt_additive_tile, 1,
                                             place.value + j * place.value_row, place.value_row, output->out,
                                             call->value_size, factors);
        begun = true;
    }
    if (!begun) memset(output->out, 0, (size_t)(queries * call->value_size) * sizeof(T));
    for (int r = 0; r < queries; r++)
        finish_row(call, piece->group, range, output, r, running.largest[r], running.sum[r]);
    if (weights) clear_outside(piece, range, call->mask.keys, weights);
    return are_finite(queries * call->value_size, output->out);
}

/* Values that are not finite reach queries that do not see them as 0 · ∞; as that is rare, it is looked for in the
 * end. */
static void forward(const rapt_additive_attention *call, const rapt_attention_piece *piece,
                    const rapt_additive_output *output)
{
    if (!try_forward(call, piece, output, false)) try_forward(call, piece, output, true);
}

/* out = Σ_p out_p · e_p / Σ e with e_p = exp(m_p − m) / share_p, over the parts p of a row; of sigmoid Σ_p out_p */
static void merge_row(const rapt_additive_attention *call, int64_t head, const rapt_additive_parts *parts,
                      const rapt_additive_output *output, int64_t r)
{
    const T *part_statistics = (const T *)parts->statistics + 2 * r,
            *part_out = (const T *)parts->out + r * call->value_size;
    T *out = (T *)output->out + r * call->value_size, *statistics = (T *)output->statistics + 2 * r,
      largest = -(T)INFINITY;
    double sum = 0;
    for (int64_t p = 0; p < parts->count; p++)
        largest = RAPT_GREATER(part_statistics[p * parts->statistics_step], largest);
    for (int64_t p = 0; p < parts->count; p++) {
        const T *s = part_statistics + p * parts->statistics_step;
        if (s[1] != 0) sum += exp((double)(s[0] - largest)) / (double)s[1];
    }
    if (sum != 0) end_row(&call->normalizer, head, &largest, &sum);
    statistics[0] = largest;
    statistics[1] = sum == 0 ? 0 : (T)(1 / sum);
    memset(out, 0, (size_t)call->value_size * sizeof *out);
    for (int64_t p = 0; p < parts->count; p++) {
        const T *s = part_statistics + p * parts->statistics_step, *from = part_out + p * parts->out_step;
        const T share = s[1] != 0 ? EXP(s[0] - largest) * statistics[1] / s[1] : 0;
        if (share != 0) RAPT_SIMD for (int64_t c = 0; c < call->value_size; c++) out[c] += share * from[c];
        if (!output->weights) continue;
        const int64_t first = p * parts->keys, last = first + parts->keys;
        T *weights = (T *)output->weights + r * call->mask.keys;
        for (int64_t j = first; j < (last < call->mask.keys ? last : call->mask.keys); j++) weights[j] *= share;
    }
}

static void merge(const rapt_additive_attention *call, int64_t head, int64_t rows, const rapt_additive_parts *parts,
                  const rapt_additive_output *output)
{
    for (int64_t r = 0; r < rows; r++) merge_row(call, head, parts, output, r);
}
