/* Template of additive.c, included once for each type T: softmax of tiles of scores as they come, and pooling of values. */

RAPT_ROW_FOLD(TYPED(largest), T, T, -(T)INFINITY, RAPT_GREATER(a, m), RAPT_GREATER(a, m))
RAPT_ROW_EXPONENTIALS(TYPED(exponentials), T, EXP, TYPED(exponential_lanes))

/* out = exp(s − m) · share with m = sums[0] and share = sums[1], which is 0 where nothing is seen */
static void TYPED(weigh)(int64_t count, const T *scores, const T *sums, T *out)
{
    const T m = sums[0], share = sums[1];
    if (share == 0)
        for (int64_t j = 0; j < count; j++) out[j] = 0;
    else
        RAPT_SIMD for (int64_t j = 0; j < count; j++) out[j] = EXP(scores[j] - m) * share;
}

/* Dropout of the weights of some keys, no more than a tile. */
static void TYPED(drop)(const rapt_kernel_mask *mask, rapt_kernel_row row, rapt_key_range keys, T *weights)
{
    uint8_t kept[rapt_additive_tile];
    const T scale = (T)(1 / mask->keep);
    rapt_row_dropout(mask, row, keys, kept);
    RAPT_SIMD for (int64_t j = 0; j < keys.last - keys.first; j++) weights[j] = kept[j] ? weights[j] * scale : 0;
}

/* Zeros for the keys of the piece that lie outside the range. */
static void TYPED(clear_outside)(const rapt_additive_piece *piece, rapt_key_range range, int64_t row, T *weights)
{
    for (int64_t r = 0; r < piece->last_query - piece->first_query; r++) {
        T *w = weights + r * row;
        memset(w + piece->first_key, 0, (size_t)(range.first - piece->first_key) * sizeof *w);
        memset(w + range.last, 0, (size_t)(piece->last_key - range.last) * sizeof *w);
    }
}

/* Of each row so far: the largest score m, and Σ exp(s − m). */
typedef struct TYPED(running) {
    T largest[rapt_additive_block];
    double sum[rapt_additive_block];
} TYPED(running);

/* Scores of one row of a tile become exp(s − m) after dropout; gives what sums made with the m before count now. */
static T TYPED(continue_row)(const rapt_additive *a, rapt_kernel_row row, rapt_key_range keys, T *scores,
                             TYPED(running) * running, int r)
{
    const int64_t count = keys.last - keys.first;
    const T before = running->largest[r], here = TYPED(largest)(count, scores, 0), now = RAPT_GREATER(here, before);
    if (now == -(T)INFINITY) {
        for (int64_t j = 0; j < count; j++) scores[j] = 0;
        return 0;
    }
    const T factor = EXP(before - now);
    running->largest[r] = now;
    running->sum[r] = running->sum[r] * (double)factor + TYPED(exponentials)(count, scores, now, scores);
    if (a->mask.keep < 1) TYPED(drop)(&a->mask, row, keys, scores);
    return factor;
}

static void TYPED(finish_row)(const rapt_additive *a, rapt_key_range range, const rapt_additive_output *output,
                              int64_t r, T largest, double sum)
{
    T *out = (T *)output->out + r * a->value_size, *sums = (T *)output->sums + 2 * r;
    sums[0] = largest;
    sums[1] = sum == 0 ? 0 : (T)(1 / sum);
    if (range.first == range.last)
        memset(out, 0, (size_t)a->value_size * sizeof *out);
    else
        RAPT_SIMD for (int64_t c = 0; c < a->value_size; c++) out[c] *= sums[1];
    if (!output->weights) return;
    T *weights = (T *)output->weights + r * a->mask.keys + range.first;
    TYPED(weigh)(range.last - range.first, weights, sums, weights);
}

static bool TYPED(are_finite)(int64_t count, const T *elements)
{
    TYPED(vector) rests = {0};
    int64_t i = 0;
    for (; i + TYPED(width) <= count; i += TYPED(width)) rests += 0 * TYPED(load)(elements + i);
    T rest = TYPED(total)(rests);
    for (; i < count; i++) rest += 0 * elements[i];
    return rest == 0;
}

/* False if something in out is not finite. */
static bool TYPED(try_forward)(const rapt_additive *a, const rapt_additive_piece *piece,
                               const rapt_additive_output *output, bool chooses)
{
    const TYPED(place) place = TYPED(find_place)(a, piece->item, piece->head);
    const int64_t queries = piece->last_query - piece->first_query;
    const rapt_key_range range = piece_range(a, piece);
    T scores[rapt_additive_block * rapt_additive_tile], factors[rapt_additive_block], *weights = output->weights;
    TYPED(running) running;
    for (int r = 0; r < queries; r++) {
        running.largest[r] = -(T)INFINITY;
        running.sum[r] = 0;
    }
    for (int64_t j = range.first; j < range.last; j += rapt_additive_tile) {
        const rapt_key_range keys = rapt_meet((rapt_key_range){j, j + rapt_additive_tile}, range);
        const int64_t count = keys.last - j;
        TYPED(score_tile)(&place, piece->first_query, queries, j, count, scores);
        for (int r = 0; r < queries; r++) {
            const rapt_kernel_row row = {piece->item, piece->head, piece->first_query + r};
            T *s = scores + r * rapt_additive_tile;
            TYPED(rapt_row_mask)(&a->mask, row, keys, s);
            if (weights) memcpy(weights + r * a->mask.keys + j, s, (size_t)count * sizeof *s);
            factors[r] = TYPED(continue_row)(a, row, keys, s, &running, r);
            if (j == range.first) factors[r] = 0;
        }
        (chooses ? TYPED(product_chosen) : TYPED(product))(queries, a->value_size, count, scores, rapt_additive_tile, 1,
                                                           place.value + j * place.value_row, place.value_row,
                                                           output->out, a->value_size, factors);
    }
    for (int r = 0; r < queries; r++) TYPED(finish_row)(a, range, output, r, running.largest[r], running.sum[r]);
    if (weights) TYPED(clear_outside)(piece, range, a->mask.keys, weights);
    return TYPED(are_finite)(queries * a->value_size, output->out);
}

/* Values that are not finite reach queries that do not see them as 0 · ∞; as that is rare, it is looked for in the end. */
static void TYPED(forward)(const rapt_additive *a, const rapt_additive_piece *piece, const rapt_additive_output *output)
{
    if (!TYPED(try_forward)(a, piece, output, false)) TYPED(try_forward)(a, piece, output, true);
}

/* out = Σ_p out_p · e_p / Σ e with e_p = exp(m_p − m) / share_p, over the parts p of a row */
static void TYPED(combine_row)(const rapt_additive *a, const rapt_additive_parts *parts,
                               const rapt_additive_output *output, int64_t r)
{
    const T *part_sums = (const T *)parts->sums + 2 * r, *part_out = (const T *)parts->out + r * a->value_size;
    T *out = (T *)output->out + r * a->value_size, *sums = (T *)output->sums + 2 * r, largest = -(T)INFINITY;
    double sum = 0;
    for (int64_t p = 0; p < parts->count; p++) largest = RAPT_GREATER(part_sums[p * parts->sums_step], largest);
    for (int64_t p = 0; p < parts->count; p++) {
        const T *s = part_sums + p * parts->sums_step;
        if (s[1] != 0) sum += exp((double)(s[0] - largest)) / (double)s[1];
    }
    sums[0] = largest;
    sums[1] = sum == 0 ? 0 : (T)(1 / sum);
    memset(out, 0, (size_t)a->value_size * sizeof *out);
    for (int64_t p = 0; p < parts->count; p++) {
        const T *s = part_sums + p * parts->sums_step, *from = part_out + p * parts->out_step;
        const T share = s[1] != 0 ? EXP(s[0] - largest) * sums[1] / s[1] : 0;
        if (share != 0) RAPT_SIMD for (int64_t c = 0; c < a->value_size; c++) out[c] += share * from[c];
        if (!output->weights) continue;
        const int64_t first = p * parts->keys, last = first + parts->keys;
        T *weights = (T *)output->weights + r * a->mask.keys;
        for (int64_t j = first; j < (last < a->mask.keys ? last : a->mask.keys); j++) weights[j] *= share;
    }
}

static void TYPED(combine)(const rapt_additive *a, int64_t rows, const rapt_additive_parts *parts,
                           const rapt_additive_output *output)
{
    for (int64_t r = 0; r < rows; r++) TYPED(combine_row)(a, parts, output, r);
}
