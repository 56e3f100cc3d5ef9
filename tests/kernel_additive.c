/* The kernels of additive attention at the level in use against plain loops over doubles, on sizes that fill
 * nothing. */
#include <math.h>
#include <stdlib.h>

#include "draw.h"
#include "expect.h"
#include "tensor/kernels.h"
#include "tensor/system.h"

typedef struct sizes {
    int64_t batch, heads, groups, queries, keys, hidden, value_size;
    double scale; /* of what tanh is taken of: far beyond the reach of exponentials, or not */
} sizes;

static const sizes cases[] = {
    {1, 1, 1, 1, 1, 1, 1, 1},      {2, 2, 1, 3, 5, 7, 3, 1},     {1, 4, 2, 5, 9, 16, 16, 1},
    {2, 1, 1, 17, 33, 31, 18, 1},  {1, 2, 2, 20, 150, 65, 5, 1}, {1, 1, 1, 1, 300, 100, 33, 1},
    {1, 3, 1, 33, 129, 70, 64, 1}, {1, 2, 1, 9, 6, 20, 4, 60},   {1, 1, 1, 18, 140, 80, 90, 40},
    {3, 2, 2, 1, 40, 150, 9, 1},   {2, 2, 1, 1, 7, 33, 9, 1},    {1, 1, 1, 1, 50, 40, 3, 60},
};

/* Numbers of the kernels' type, and the same as doubles. */
typedef struct numbers {
    void *typed;
    double *exact;
    int64_t count;
} numbers;

static double get(rapt_dtype dtype, const void *typed, int64_t i)
{
    return dtype == RAPT_FLOAT32 ? (double)((const float *)typed)[i] : ((const double *)typed)[i];
}

static numbers new_numbers(rapt_dtype dtype, int64_t count, double scale, uint64_t *state)
{
    numbers n = {.count = count};
    const size_t bytes = ((size_t)count + 1) * sizeof(double);
    n.typed = rapt_system_allocate(64, (bytes + 63) / 64 * 64);
    n.exact = calloc((size_t)count + 1, sizeof(double));
    cr_assert(n.typed && n.exact);
    memset(n.typed, 0xff, bytes); /* NaN, for what is to be written */
    for (int64_t i = 0; state && i < count; i++) {
        const double value = scale * draw_number(state);
        if (dtype == RAPT_FLOAT32)
            ((float *)n.typed)[i] = (float)value;
        else
            ((double *)n.typed)[i] = value;
        n.exact[i] = get(dtype, n.typed, i);
    }
    return n;
}

static void free_numbers(numbers *n)
{
    rapt_system_free(n->typed);
    free(n->exact);
}

enum {
    query,
    key,
    weight,
    value,
    gradient,
    of_weights, /* the gradient that they have of their own; every other trial reads it */
    out,
    statistics,
    weights,
    d_query,
    d_key,
    d_weight,
    d_value,
    all_numbers
};

typedef struct trial {
    const sizes *size;
    rapt_dtype dtype;
    numbers n[all_numbers];
    int64_t *ranges;
    double *scores_gradient; /* of the definition */
    bool reads_weights;
} trial;

static trial new_trial(const sizes *s, rapt_dtype dtype, uint64_t seed)
{
    trial t = {.size = s, .dtype = dtype, .reads_weights = seed % 2};
    const int64_t rows = s->batch * s->heads * s->queries, key_rows = s->batch * s->groups * s->keys;
    const int64_t counts[all_numbers] = {rows * s->hidden,
                                         key_rows * s->hidden,
                                         s->hidden,
                                         key_rows * s->value_size,
                                         rows * s->value_size,
                                         rows * s->keys,
                                         rows * s->value_size,
                                         rows * 2,
                                         rows * s->keys,
                                         rows * s->hidden,
                                         key_rows * s->hidden,
                                         s->batch * s->groups * s->hidden,
                                         key_rows * s->value_size};
    for (int i = 0; i < all_numbers; i++)
        t.n[i] = new_numbers(dtype, counts[i], i < weight ? s->scale : 0.5, i <= of_weights ? &seed : NULL);
    t.ranges = calloc((size_t)(2 * s->batch * s->queries), sizeof *t.ranges);
    t.scores_gradient = calloc((size_t)(rows * s->keys), sizeof(double));
    cr_assert(t.ranges && t.scores_gradient);
    for (int64_t i = 0; i < s->batch * s->queries; i++) {
        t.ranges[2 * i] = draw_below(&seed, s->keys + 1);
        t.ranges[2 * i + 1] = t.ranges[2 * i] + draw_below(&seed, s->keys + 1 - t.ranges[2 * i]);
        if (draw_chance(&seed, 50)) t.ranges[2 * i] = 0;
    }
    return t;
}

static void free_trial(trial *t)
{
    for (int i = 0; i < all_numbers; i++) free_numbers(&t->n[i]);
    free(t->ranges);
    free(t->scores_gradient);
}

/* One row of the definition: weights and pooled values of query i of a head. */
static void define_row(trial *t, int64_t item, int64_t head, int64_t i)
{
    const sizes *s = t->size;
    const int64_t group = head * s->groups / s->heads, row = (item * s->heads + head) * s->queries + i;
    const int64_t first_key = (item * s->groups + group) * s->keys, *range = t->ranges + 2 * (item * s->queries + i);
    const double *a = t->n[query].exact + row * s->hidden;
    double *p = t->n[weights].exact + row * s->keys, largest = -(double)INFINITY, sum = 0;
    for (int64_t j = range[0]; j < range[1]; j++) {
        const double *b = t->n[key].exact + (first_key + j) * s->hidden;
        for (int64_t h = 0; h < s->hidden; h++) p[j] += t->n[weight].exact[h] * tanh(a[h] + b[h]);
        largest = fmax(largest, p[j]);
    }
    for (int64_t j = range[0]; j < range[1]; j++) sum += p[j] = exp(p[j] - largest);
    for (int64_t j = range[0]; j < range[1]; j++) p[j] /= sum;
    for (int64_t j = range[0]; j < range[1]; j++)
        for (int64_t c = 0; c < s->value_size; c++)
            t->n[out].exact[row * s->value_size + c] += p[j] * t->n[value].exact[(first_key + j) * s->value_size + c];
}

/* And its part of all gradients. */
static void define_row_backward(trial *t, int64_t item, int64_t head, int64_t i)
{
    const sizes *s = t->size;
    const int64_t group = head * s->groups / s->heads, row = (item * s->heads + head) * s->queries + i;
    const int64_t first_key = (item * s->groups + group) * s->keys;
    const double *p = t->n[weights].exact + row * s->keys, *g = t->n[gradient].exact + row * s->value_size;
    double *ds = t->scores_gradient + row * s->keys, mean = 0;
    for (int64_t j = 0; j < s->keys; j++) {
        for (int64_t c = 0; c < s->value_size; c++) {
            const int64_t at = (first_key + j) * s->value_size + c;
            ds[j] += g[c] * t->n[value].exact[at];
            t->n[d_value].exact[at] += p[j] * g[c];
        }
        if (t->reads_weights) ds[j] += t->n[of_weights].exact[row * s->keys + j];
        mean += p[j] * ds[j];
    }
    for (int64_t j = 0; j < s->keys; j++) {
        ds[j] = p[j] * (ds[j] - mean);
        for (int64_t h = 0; h < s->hidden; h++) {
            const int64_t at_query = row * s->hidden + h, at_key = (first_key + j) * s->hidden + h;
            const double tangent = tanh(t->n[query].exact[at_query] + t->n[key].exact[at_key]);
            const double slope = ds[j] * t->n[weight].exact[h] * (1 - tangent * tangent);
            t->n[d_query].exact[at_query] += slope;
            t->n[d_key].exact[at_key] += slope;
            t->n[d_weight].exact[(item * s->groups + group) * s->hidden + h] += ds[j] * tangent;
        }
    }
}

static void define(trial *t)
{
    const sizes *s = t->size;
    for (int64_t item = 0; item < s->batch; item++)
        for (int64_t head = 0; head < s->heads; head++)
            for (int64_t i = 0; i < s->queries; i++) {
                define_row(t, item, head, i);
                define_row_backward(t, item, head, i);
            }
}

/* Exponentials, with the constants, as the driver makes them. */
enum { weight_constants, offsets, folded, query_powers, key_powers, query_largest, key_largest, all_scratch };

static rapt_additive_attention describe(const trial *t, numbers *scratch)
{
    const sizes *s = t->size;
    const rapt_additive_kernels *k = &rapt_kernel.additive[t->dtype];
    const int64_t padded = RAPT_ADDITIVE_PADDED(s->hidden), rows = s->batch * s->heads * s->queries,
                  key_rows = s->batch * s->groups * s->keys;
    const int64_t counts[all_scratch] = {padded, padded,  rows * padded, rows * padded, key_rows * padded,
                                         rows,   key_rows};
    for (int i = 0; i < all_scratch; i++) scratch[i] = new_numbers(t->dtype, counts[i], 1, NULL);
    rapt_additive_attention a = {.dtype = t->dtype,
                                 .mask = {.batch = s->batch,
                                          .heads = s->heads,
                                          .queries = s->queries,
                                          .keys = s->keys,
                                          .ranges = t->ranges,
                                          .range_item = 2 * s->queries,
                                          .keep = 1},
                                 .groups = s->groups,
                                 .hidden = s->hidden,
                                 .padded = padded,
                                 .value_size = s->value_size,
                                 .queries = {t->n[query].typed, scratch[query_powers].typed,
                                             scratch[query_largest].typed},
                                 .keys = {t->n[key].typed, scratch[key_powers].typed, scratch[key_largest].typed},
                                 .folded = scratch[folded].typed,
                                 .raw_weight = t->n[weight].typed,
                                 .constants = {scratch[weight_constants].typed, scratch[offsets].typed, 0},
                                 .values = {t->n[value].typed,
                                            {s->groups * s->keys * s->value_size, s->keys * s->value_size,
                                             s->value_size, 1}}};
    a.constants.scale = k->constants(s->hidden, a.raw_weight, &a.constants);
    k->powers(rows, s->hidden, a.queries.rows, 1, a.constants.offset, scratch[folded].typed, NULL);
    k->powers(rows, s->hidden, a.queries.rows, 0.5, NULL, scratch[query_powers].typed, scratch[query_largest].typed);
    k->powers(key_rows, s->hidden, a.keys.rows, 1, NULL, scratch[key_powers].typed, scratch[key_largest].typed);
    return a;
}

static void *element(const trial *t, void *typed, int64_t index)
{
    return (char *)typed + index * (int64_t)rapt_dtype_size(t->dtype);
}

static rapt_additive_output output_of(const trial *t, void *pooled, void *row_statistics, int64_t row)
{
    return (rapt_additive_output){element(t, pooled, row * t->size->value_size), element(t, row_statistics, 2 * row),
                                  element(t, t->n[weights].typed, row * t->size->keys), false};
}

/* Blocks of queries, and the keys in parts of so many. */
static void run_forward(const trial *t, const rapt_additive_attention *a, int64_t part_keys)
{
    const sizes *s = t->size;
    const int64_t rows = s->batch * s->heads * s->queries, parts = (s->keys + part_keys - 1) / part_keys;
    numbers part_out = new_numbers(t->dtype, parts * rows * s->value_size, 1, NULL);
    numbers part_statistics = new_numbers(t->dtype, parts * rows * 2, 1, NULL);
    for (int64_t head = 0; head < s->batch * s->heads; head++)
        for (int64_t i = 0; i < s->queries; i += rapt_additive_block)
            for (int64_t p = 0; p < parts; p++) {
                const int64_t last = i + rapt_additive_block, last_key = (p + 1) * part_keys;
                const rapt_attention_piece piece = {head / s->heads,
                                                    head % s->heads,
                                                    i,
                                                    last < s->queries ? last : s->queries,
                                                    p * part_keys,
                                                    last_key < s->keys ? last_key : s->keys,
                                                    NULL};
                const rapt_additive_output output =
                    output_of(t, element(t, part_out.typed, p * rows * s->value_size),
                              element(t, part_statistics.typed, p * rows * 2), head * s->queries + i);
                rapt_kernel.additive[t->dtype].forward(a, &piece, &output);
            }
    const rapt_additive_parts of = {parts,   part_keys, part_out.typed, part_statistics.typed, rows * s->value_size,
                                    rows * 2};
    const rapt_additive_output output = output_of(t, t->n[out].typed, t->n[statistics].typed, 0);
    rapt_kernel.additive[t->dtype].merge(a, 0, rows, &of, &output);
    free_numbers(&part_out);
    free_numbers(&part_statistics);
}

static void run_chunk(const trial *t, const rapt_additive_attention *a, const rapt_additive_gradient *g,
                      const rapt_additive_chunk *chunk)
{
    const sizes *s = t->size;
    const rapt_additive_kernels *k = &rapt_kernel.additive[t->dtype];
    for (int64_t head = 0; head < s->batch * s->heads; head++)
        for (int64_t i = chunk->first; i < chunk->last; i += rapt_additive_block) {
            const int64_t last = i + rapt_additive_block;
            k->scores_backward(a, g, chunk,
                               &(rapt_attention_piece){head / s->heads, head % s->heads, i,
                                                       last < chunk->last ? last : chunk->last, 0, s->keys, NULL});
        }
    for (int64_t group = 0; group < s->batch * s->groups; group++) {
        for (int64_t h = 0; h < s->hidden; h += rapt_additive_slice)
            k->hidden_backward(a, g, chunk, group / s->groups, group % s->groups, h);
        for (int64_t j = 0; j < s->keys; j += rapt_additive_tile)
            k->values_backward(a, g, chunk, group / s->groups, group % s->groups, j);
    }
}

/* In chunks of so many queries, with the weights of forward or without; gradients of keys and values are written, or
 * added to what is there. */
static void run_backward(const trial *t, const rapt_additive_attention *a, int64_t rows, bool kept, bool adds)
{
    const sizes *s = t->size;
    numbers scores = new_numbers(t->dtype, s->batch * s->heads * rows * s->keys, 1, NULL);
    numbers pooled = new_numbers(t->dtype, scores.count, 1, NULL);
    rapt_additive_gradient g = {
        .gradient = {t->n[gradient].typed,
                     {s->heads * s->queries * s->value_size, s->queries * s->value_size, s->value_size, 1}},
        .statistics = t->n[statistics].typed,
        .weights = kept ? t->n[weights].typed : NULL,
        .stores_pooled = !kept,
        .queries = t->n[d_query].typed,
        .keys = t->n[d_key].typed,
        .values = t->n[d_value].typed,
        .raw_weight = t->n[d_weight].typed,
        .adds_keys = adds,
        .adds_values = adds,
    };
    if (t->reads_weights)
        g.d_weights = (rapt_raw_grid){t->n[of_weights].typed,
                                      {s->heads * s->queries * s->keys, s->queries * s->keys, s->keys, 1}};
    g.scores = (rapt_additive_rows_of_chunk){scores.typed, s->heads * rows * s->keys, rows * s->keys};
    g.pooled = (rapt_additive_rows_of_chunk){pooled.typed, g.scores.item, g.scores.head};
    for (int64_t first = 0; first < s->queries; first += rows) {
        if (kept)
            g.pooled = (rapt_additive_rows_of_chunk){element(t, t->n[weights].typed, first * s->keys),
                                                     s->heads * s->queries * s->keys, s->queries * s->keys};
        const rapt_additive_chunk chunk = {first, first + rows < s->queries ? first + rows : s->queries};
        run_chunk(t, a, &g, &chunk);
    }
    free_numbers(&scores);
    free_numbers(&pooled);
}

static void compare(const trial *t, const char *what, int from, int to)
{
    static const char *const names[all_numbers] = {[out] = "pooled",   [weights] = "weights",   [d_query] = "d queries",
                                                   [d_key] = "d keys", [d_weight] = "d weight", [d_value] = "d values"};
    const sizes *s = t->size;
    for (int n = from; n < to; n++) {
        if (!names[n]) continue;
        double largest = 1, worst = 0;
        for (int64_t i = 0; i < t->n[n].count; i++) largest = fmax(largest, fabs(t->n[n].exact[i]));
        for (int64_t i = 0; i < t->n[n].count; i++) {
            const double error = fabs(get(t->dtype, t->n[n].typed, i) - t->n[n].exact[i]);
            worst = error <= worst ? worst : error; /* NaN is the worst */
        }
        cr_expect(worst <= (t->dtype == RAPT_FLOAT32 ? 3e-6 : 1e-13) * largest,
                  "%s, %s of %s: %g off (%lld queries, %lld keys, %lld hidden, values of %lld, scale %g)", names[n],
                  what, rapt_dtype_name(t->dtype), worst, (long long)s->queries, (long long)s->keys,
                  (long long)s->hidden, (long long)s->value_size, s->scale);
    }
}

static void run_case(const sizes *s, rapt_dtype dtype, uint64_t seed)
{
    trial t = new_trial(s, dtype, seed);
    numbers scratch[all_scratch];
    define(&t);
    const rapt_additive_attention a = describe(&t, scratch);
    run_forward(&t, &a, rapt_additive_tile);
    compare(&t, "in parts", out, d_query);
    run_forward(&t, &a, s->keys);
    compare(&t, "at once", out, d_query);
    run_backward(&t, &a, rapt_additive_block, true, false);
    compare(&t, "from kept weights", d_query, all_numbers);
    run_backward(&t, &a, s->queries, false, false);
    compare(&t, "from weights made again", d_query, all_numbers);
    run_backward(&t, &a, rapt_additive_block, true, true);
    for (int64_t i = 0; i < t.n[d_key].count; i++) t.n[d_key].exact[i] *= 2;
    for (int64_t i = 0; i < t.n[d_value].count; i++) t.n[d_value].exact[i] *= 2;
    compare(&t, "added to itself", d_query, all_numbers);
    for (int i = 0; i < all_scratch; i++) free_numbers(&scratch[i]);
    free_trial(&t);
}

Test(kernel_additive, gives_what_plain_loops_give)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int dtype = RAPT_FLOAT32; dtype <= RAPT_FLOAT64; dtype++) run_case(&cases[i], (rapt_dtype)dtype, i);
}

/* A weight of 0 counts as nothing, however many there are; the others at any power of two. */
Test(kernel_additive, weights_of_any_size)
{
    enum { hidden = 40, padded = RAPT_ADDITIVE_PADDED(hidden) };
    for (int exponent = -60; exponent <= 60; exponent += 30) {
        float raw[hidden] = {0}, weight_out[padded], offset_out[padded];
        raw[3] = (float)ldexp(0.75, exponent);
        raw[8] = (float)ldexp(-0.3, exponent);
        const rapt_additive_constants constants = {.weight = weight_out, .offset = offset_out};
        const double scale = rapt_kernel.additive[RAPT_FLOAT32].constants(hidden, raw, &constants);
        double rest = 0;
        for (int h = 0; h < padded; h++) {
            cr_expect_lt(fabsf(weight_out[h]), 1);
            cr_expect(isfinite(offset_out[h]));
            if (h != 3 && h != 8) rest += fabs((double)weight_out[h]);
        }
        cr_expect_eq(scale * (double)weight_out[3], (double)raw[3]);
        cr_expect_eq(scale * (double)weight_out[8], (double)raw[8]);
        cr_expect_lt(rest, 1e-9);
    }
}
