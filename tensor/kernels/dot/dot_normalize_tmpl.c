/* What makes weights of scores in fused dot-product attention, and what a row keeps of it: its statistics. Part of
 * dot_tmpl.c. */

/* Writes the statistics of a row. Returns what its sums of values are to be multiplied by, before they are divided by
 * the sum. */
static T put_statistics(const rapt_dot_attention *call, rapt_score_row row, T largest, double sum, T *statistics)
{
    const bool empty = sum == 0;
    const T factor = empty ? 0 : end_row(&call->normalizer, row.head, &largest, &sum);
    statistics[0] = empty ? (T)INFINITY : largest;
    statistics[1] = empty ? 1 : (T)sum;
    return factor;
}

/* Writes the statistics of a row from its sums, a vector of them; returns what its output is to be multiplied by. A row
 * with an infinite score is undefined, not one that sees nothing. */
static T give_statistics(const rapt_dot_attention *call, rapt_score_row row, T largest, const T *sums)
{
    T *statistics = (T *)call->statistics + 2 * row_number(call, row), sum = 0;
    for (int lane = 0; lane < width; lane++) sum += sums[lane];
    const T factor = put_statistics(call, row, largest + 0 * sum, (double)sum, statistics);
    return call->mask.keep == 0 ? 0 : factor / (statistics[1] * (T)call->mask.keep);
}

/* The weights of a row from its scores and the statistics that forward left. */
static void weigh_row(const rapt_dot_attention *call, int64_t count, const T *statistics, const T *restrict scores,
                      T *restrict weights)
{
    const T largest = statistics[0], scale = 1 / statistics[1];
    if (call->normalizer.is_sigmoid)
        RAPT_SIMD for (int64_t j = 0; j < count; j++) weights[j] = sigmoid(scores[j] - largest);
    else
        RAPT_SIMD for (int64_t j = 0; j < count; j++) weights[j] = EXP(scores[j] - largest) * scale;
}

/* A row's scores become sigmoid's weights, which are added to its sums, a vector of them: 0 where nothing is seen. */
static inline void weigh_by_sigmoid(int64_t vectors, T largest, T *restrict scores, T *restrict sums)
{
    for (int64_t v = 0; v < vectors; v++) RAPT_SIMD for (int lane = 0; lane < width; lane++)
        {
            const T weight = sigmoid(scores[v * width + lane] - largest);
            scores[v * width + lane] = weight;
            sums[lane] += weight;
        }
}

/* A query's output from the outputs for parts of its keys: each weighs exp(largest of the part − largest of all) ·
 * sum; of sigmoid 1. */
static void merge(const rapt_dot_attention *call, int64_t parts, const void *outs, const void *statistics,
                  int64_t first_row, int64_t last_row)
{
    const rapt_raw_mask *mask = &call->mask;
    const int64_t all_rows = mask->batch * mask->heads * mask->queries;
    for (int64_t number = first_row; number < last_row; number++) {
        const rapt_score_row row = {number / mask->queries / mask->heads, number / mask->queries % mask->heads,
                                    number % mask->queries};
        T *out = row_of(&call->out, row.item, row.head, row.query), largest = -(T)INFINITY, sum = 0;
        const T *pairs = (const T *)statistics + 2 * number;
        for (int64_t p = 0; p < parts; p++) {
            const T one = pairs[2 * p * all_rows];
            if (one < (T)INFINITY && one > largest) largest = one;
        }
        memset(out, 0, (size_t)call->value_size * sizeof(T));
        for (int64_t p = 0; p < parts; p++) {
            const T *pair = pairs + 2 * p * all_rows,
                    *from = (const T *)outs + (p * all_rows + number) * call->value_size;
            if (pair[0] == (T)INFINITY) continue;
            const T weight = EXP(pair[0] - largest) * pair[1];
            sum += weight;
            RAPT_SIMD for (int64_t j = 0; j < call->value_size; j++) out[j] += weight * from[j];
        }
        T *of_all = (T *)call->statistics + 2 * number;
        const T factor = put_statistics(call, row, largest, (double)sum, of_all), scale = factor / of_all[1];
        RAPT_SIMD for (int64_t j = 0; j < call->value_size; j++) out[j] *= scale;
    }
}

static __attribute__((noinline)) void differentiate_sigmoid(int64_t columns, T largest, const T *restrict d_weights,
                                                            T *restrict weights, T *restrict d_scores)
{
    RAPT_SIMD for (int64_t j = 0; j < columns; j++)
    {
        const T weight = sigmoid(weights[j] - largest);
        weights[j] = weight;
        d_scores[j] = weight == 0 ? 0 : weight * (1 - weight) * d_weights[j]; /* 0 even where the value is NaN */
    }
}

/* Weights and d_scores of a row from its scores and d_weights, for whole vectors of columns. */
static inline void differentiate_row(const rapt_dot_attention *call, int64_t columns, T largest, T scale, T delta,
                                     const T *restrict d_weights, T *restrict weights, T *restrict d_scores)
{
    if (call->normalizer.is_sigmoid) {
        differentiate_sigmoid(columns, largest, d_weights, weights, d_scores);
        return;
    }
    RAPT_SIMD for (int64_t j = 0; j < columns; j++)
    {
        const T weight = EXP(weights[j] - largest) * scale;
        weights[j] = weight;
        d_scores[j] = weight == 0 ? 0 : weight * (d_weights[j] - delta);
    }
}
