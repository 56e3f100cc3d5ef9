/* Template of additive.c, included once for each type T: exponentials of rows, and scores of a tile of queries and keys. */

/* Largest |a| + |b| for which products of exponentials, offsets included, stay far from overflow. */
static const T TYPED(reach_limit) = sizeof(T) == sizeof(float) ? 28 : 300;

static double TYPED(constants)(int64_t hidden, const void *raw_weight, const rapt_additive_constants *out)
{
    const T least = (T)(sizeof(T) == sizeof(float) ? 0x1p-40 : 0x1p-80); /* a weight of 0 adds as little */
    const T *raw = raw_weight;
    T *weight = out->weight, *offset = out->offset, largest = 0;
    for (int64_t h = 0; h < hidden; h++) largest = FABS(raw[h]) > largest ? FABS(raw[h]) : largest;
    int exponent = 0;
    if (largest > 0) frexp((double)largest, &exponent);
    for (int64_t h = 0; h < RAPT_ADDITIVE_PADDED(hidden); h++) {
        const T w = h < hidden ? (T)ldexp((double)raw[h], -exponent) : 0;
        weight[h] = h < hidden && FABS(w) < least ? COPYSIGN(least, w) : w;
        offset[h] = h < hidden ? (T)0.5 / weight[h] : (T)0x1p100;
    }
    return ldexp(1, exponent);
}

static void TYPED(powers)(int64_t rows, int64_t hidden, const void *x, double factor, const void *factors, void *powers,
                          void *reach)
{
    const int64_t padded = RAPT_ADDITIVE_PADDED(hidden);
    const T *each = factors, all = (T)factor;
    for (int64_t i = 0; i < rows; i++) {
        const T *restrict from = (const T *)x + i * hidden;
        T *restrict to = (T *)powers + i * padded, largest = 0;
        if (each)
            RAPT_SIMD for (int64_t h = 0; h < hidden; h++) to[h] = each[h] * EXP(2 * from[h]);
        else
            RAPT_SIMD for (int64_t h = 0; h < hidden; h++) to[h] = all * EXP(2 * from[h]);
        for (int64_t h = hidden; h < padded; h++) to[h] = 0;
        if (!reach) continue;
        _Pragma("omp simd reduction(max : largest)") for (int64_t h = 0; h < hidden; h++) largest =
            FABS(from[h]) > largest ? FABS(from[h]) : largest;
        bool is_defined = true;
        RAPT_SIMD for (int64_t h = 0; h < hidden; h++) is_defined &= from[h] == from[h];
        ((T *)reach)[i] = is_defined ? largest : (T)NAN;
    }
}

/* Where the queries and the keys of one head are, and what scores are made of. */
typedef struct TYPED(place) {
    int64_t hidden, padded, value_row; /* value_row: from one value to the next */
    const T *query, *query_powers, *folded, *query_reach;
    const T *key, *key_powers, *key_reach, *value;
    const T *weight, *offset;
    T scale;
} TYPED(place);

static TYPED(place) TYPED(find_place)(const rapt_additive *a, int64_t item, int64_t head)
{
    const int64_t group = head * a->groups / a->mask.heads, keys = (item * a->groups + group) * a->mask.keys,
                  queries = (item * a->mask.heads + head) * a->mask.queries, *v = a->values.strides;
    return (TYPED(place)){
        .hidden = a->hidden,
        .padded = a->padded,
        .value_row = v[2],
        .query = (const T *)a->queries.rows + queries * a->hidden,
        .query_powers = a->queries.powers ? (const T *)a->queries.powers + queries * a->padded : NULL,
        .folded = a->folded ? (const T *)a->folded + queries * a->padded : NULL,
        .query_reach = (const T *)a->queries.reach + queries,
        .key = (const T *)a->keys.rows + keys * a->hidden,
        .key_powers = (const T *)a->keys.powers + keys * a->padded,
        .key_reach = (const T *)a->keys.reach + keys,
        .value = (const T *)a->values.data + item * v[0] + group * v[1],
        .weight = a->constants.weight,
        .offset = a->constants.offset,
        .scale = (T)a->constants.scale,
    };
}

static T *TYPED(chunk_rows)(const rapt_additive_rows_of_chunk *rows, int64_t item, int64_t head)
{
    return (T *)rows->data + item * rows->item + head * rows->head;
}

static T TYPED(largest_reach)(const T *reach, int64_t count)
{
    T largest = 0;
    _Pragma("omp simd reduction(max : largest)") for (int64_t i = 0; i < count; i++) largest =
        reach[i] > largest ? reach[i] : largest;
    return largest;
}

static T TYPED(exact_score)(const TYPED(place) * p, int64_t i, int64_t j)
{
    const T *q = p->query + i * p->hidden, *k = p->key + j * p->hidden, *w = p->weight;
    T sum = 0;
    _Pragma("omp simd reduction(+ : sum)") for (int64_t h = 0; h < p->hidden; h++) sum += w[h] * TANH(q[h] + k[h]);
    return p->scale * sum;
}

/* out[r][c] = Σ w tanh(a + b) of query i + r and key j + c, with the sums in registers */
#define SCORE_BLOCK(name, R, C)                                                                                        \
    static void TYPED(name)(const TYPED(place) * p, int64_t i, int64_t j, T * out)                                     \
    {                                                                                                                  \
        if (TYPED(largest_reach)(p->query_reach + i, R) + TYPED(largest_reach)(p->key_reach + j, C) >                  \
            TYPED(reach_limit)) {                                                                                      \
            for (int r = 0; r < R; r++)                                                                                \
                for (int c = 0; c < C; c++) out[r * rapt_additive_tile + c] = TYPED(exact_score)(p, i + r, j + c);     \
            return;                                                                                                    \
        }                                                                                                              \
        const T *query = p->folded + i * p->padded, *key = p->key_powers + j * p->padded;                              \
        TYPED(vector) sum[R][C] = {0};                                                                                 \
        for (int64_t h = 0; h < p->padded; h += TYPED(width)) {                                                        \
            const TYPED(vector) w = TYPED(load)(p->weight + h), offset = TYPED(load)(p->offset + h);                   \
            TYPED(vector) b[C];                                                                                        \
            for (int c = 0; c < C; c++) b[c] = TYPED(load)(key + c * p->padded + h);                                   \
            for (int r = 0; r < R; r++) {                                                                              \
                const TYPED(vector) a = TYPED(load)(query + r * p->padded + h);                                        \
                for (int c = 0; c < C; c++) sum[r][c] += TYPED(minus_reciprocal)(w, offset + a * b[c]);                \
            }                                                                                                          \
        }                                                                                                              \
        for (int r = 0; r < R; r++)                                                                                    \
            for (int c = 0; c < C; c++) out[r * rapt_additive_tile + c] = p->scale * TYPED(total)(sum[r][c]);          \
    }

SCORE_BLOCK(score_block, score_rows, score_columns)
SCORE_BLOCK(score_column, score_rows, 1)
SCORE_BLOCK(score_row, 1, score_columns)
SCORE_BLOCK(score_pair, 1, 1)
#undef SCORE_BLOCK

/* Scores of `queries` queries from number i on and `keys` keys from j on: out has rows of rapt_additive_tile elements. */
static void TYPED(score_tile)(const TYPED(place) * p, int64_t i, int64_t queries, int64_t j, int64_t keys, T *out)
{
    int64_t r = 0;
    for (; r + score_rows <= queries; r += score_rows) {
        T *to = out + r * rapt_additive_tile;
        int64_t c = 0;
        for (; c + score_columns <= keys; c += score_columns) TYPED(score_block)(p, i + r, j + c, to + c);
        for (; c < keys; c++) TYPED(score_column)(p, i + r, j + c, to + c);
    }
    for (; r < queries; r++) {
        T *to = out + r * rapt_additive_tile;
        int64_t c = 0;
        for (; c + score_columns <= keys; c += score_columns) TYPED(score_row)(p, i + r, j + c, to + c);
        for (; c < keys; c++) TYPED(score_pair)(p, i + r, j + c, to + c);
    }
}
