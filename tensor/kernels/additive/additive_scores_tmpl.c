/* Exponentials of rows, and scores of a tile of queries and keys. Part of additive_tmpl.c. */

/* Largest |a| + |b| for which products of exponentials, offsets included, stay far from overflow. */
static const T safe_sum = sizeof(T) == sizeof(float) ? 28 : 300;

static double constants(int64_t hidden, const void *raw_weight, const rapt_additive_constants *out)
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

static void powers(int64_t rows, int64_t hidden, const void *x, double factor, const void *factors, void *out,
                   void *largest_of_rows)
{
    const int64_t padded = RAPT_ADDITIVE_PADDED(hidden);
    const T *each = factors, all = (T)factor;
    for (int64_t i = 0; i < rows; i++) {
        const T *restrict from = (const T *)x + i * hidden;
        T *restrict to = (T *)out + i * padded, largest = 0;
        if (each)
            RAPT_SIMD for (int64_t h = 0; h < hidden; h++) to[h] = each[h] * EXP(2 * from[h]);
        else
            RAPT_SIMD for (int64_t h = 0; h < hidden; h++) to[h] = all * EXP(2 * from[h]);
        for (int64_t h = hidden; h < padded; h++) to[h] = 0;
        if (!largest_of_rows) continue;
        _Pragma("omp simd reduction(max : largest)") for (int64_t h = 0; h < hidden; h++) largest =
            FABS(from[h]) > largest ? FABS(from[h]) : largest;
        bool is_defined = true;
        RAPT_SIMD for (int64_t h = 0; h < hidden; h++) is_defined &= from[h] == from[h];
        ((T *)largest_of_rows)[i] = is_defined ? largest : (T)NAN;
    }
}

/* Where the queries and the keys of one head are, and what scores are made of. */
typedef struct head_rows {
    int64_t hidden, padded, value_row; /* value_row: from one value to the next */
    const T *query, *query_powers, *folded, *query_largest;
    const T *key, *key_powers, *key_largest, *value;
    const T *weight, *offset;
    T scale;
} head_rows;

static head_rows rows_of_head(const rapt_additive_attention *call, int64_t item, int64_t head)
{
    const int64_t group = head * call->groups / call->mask.heads, keys = first_key_of(call, item, group),
                  queries = first_query_of(call, item, head), *v = call->values.strides;
    return (head_rows){
        .hidden = call->hidden,
        .padded = call->padded,
        .value_row = v[2],
        .query = (const T *)call->queries.rows + queries * call->hidden,
        .query_powers = call->queries.powers ? (const T *)call->queries.powers + queries * call->padded : NULL,
        .folded = call->folded ? (const T *)call->folded + queries * call->padded : NULL,
        .query_largest = (const T *)call->queries.largest + queries,
        .key = (const T *)call->keys.rows + keys * call->hidden,
        .key_powers = (const T *)call->keys.powers + keys * call->padded,
        .key_largest = (const T *)call->keys.largest + keys,
        .value = (const T *)call->values.data + item * v[0] + group * v[1],
        .weight = call->constants.weight,
        .offset = call->constants.offset,
        .scale = (T)call->constants.scale,
    };
}

static T *chunk_rows(const rapt_additive_rows_of_chunk *rows, int64_t item, int64_t head)
{
    return (T *)rows->data + item * rows->item + head * rows->head;
}

static T largest_among(const T *elements, int64_t count)
{
    T largest = 0;
    _Pragma("omp simd reduction(max : largest)") for (int64_t i = 0; i < count; i++) largest =
        elements[i] > largest ? elements[i] : largest;
    return largest;
}

static T exact_score(const head_rows *p, int64_t i, int64_t j)
{
    const T *q = p->query + i * p->hidden, *k = p->key + j * p->hidden, *w = p->weight;
    T sum = 0;
    _Pragma("omp simd reduction(+ : sum)") for (int64_t h = 0; h < p->hidden; h++) sum += w[h] * TANH(q[h] + k[h]);
    return p->scale * sum;
}

/* out[r][c] = Σ w tanh(a + b) of query i + r and key j + c, with the sums in registers */
#define SCORE_BLOCK(name, R, C)                                                                                        \
    static void name(const head_rows *p, int64_t i, int64_t j, T *out)                                                 \
    {                                                                                                                  \
        if (largest_among(p->query_largest + i, R) + largest_among(p->key_largest + j, C) > safe_sum) {                \
            for (int r = 0; r < R; r++)                                                                                \
                for (int c = 0; c < C; c++) out[r * rapt_additive_tile + c] = exact_score(p, i + r, j + c);            \
            return;                                                                                                    \
        }                                                                                                              \
        const T *query = p->folded + i * p->padded, *key = p->key_powers + j * p->padded;                              \
        vector sum[R][C] = {0};                                                                                        \
        for (int64_t h = 0; h < p->padded; h += width) {                                                               \
            const vector w = load(p->weight + h), offset = load(p->offset + h);                                        \
            vector b[C];                                                                                               \
            for (int c = 0; c < C; c++) b[c] = load(key + c * p->padded + h);                                          \
            for (int r = 0; r < R; r++) {                                                                              \
                const vector a = load(query + r * p->padded + h);                                                      \
                for (int c = 0; c < C; c++) sum[r][c] += minus_reciprocal(w, offset + a * b[c]);                       \
            }                                                                                                          \
        }                                                                                                              \
        for (int r = 0; r < R; r++)                                                                                    \
            for (int c = 0; c < C; c++) out[r * rapt_additive_tile + c] = p->scale * sum_of_lanes(sum[r][c]);          \
    }

SCORE_BLOCK(score_block, score_rows, score_columns)
SCORE_BLOCK(score_column, score_rows, 1)
SCORE_BLOCK(score_row, 1, score_columns)
SCORE_BLOCK(score_pair, 1, 1)
#undef SCORE_BLOCK

/* Scores of `queries` queries from number i on and `keys` keys from j on: out has rows of rapt_additive_tile
 * elements. */
static void score_tile(const head_rows *p, int64_t i, int64_t queries, int64_t j, int64_t keys, T *out)
{
    int64_t r = 0;
    for (; r + score_rows <= queries; r += score_rows) {
        T *to = out + r * rapt_additive_tile;
        int64_t c = 0;
        for (; c + score_columns <= keys; c += score_columns) score_block(p, i + r, j + c, to + c);
        for (; c < keys; c++) score_column(p, i + r, j + c, to + c);
    }
    for (; r < queries; r++) {
        T *to = out + r * rapt_additive_tile;
        int64_t c = 0;
        for (; c + score_columns <= keys; c += score_columns) score_row(p, i + r, j + c, to + c);
        for (; c < keys; c++) score_pair(p, i + r, j + c, to + c);
    }
}
