/* Drawing a token from logits: greedy, or at random with a temperature, the k likeliest, the nucleus. */
#include <float.h>
#include <math.h>

#include "nn/generate.h"
#include "tensor/kernels.h"
#include "tensor/parallel.h"
#include "tensor/random.h"
#include "tensor/scratch.h"

static const char op[] = "sample";

static bool check_sampling(const char *name, const rapt_generation *how)
{
    if (!(how->temperature >= 0 && how->temperature < INFINITY))
        return rapt_fail(RAPT_ERROR_VALUE, name, "temperature %g; 0 or more expected", how->temperature);
    if (how->top_k < 0)
        return rapt_fail(RAPT_ERROR_VALUE, name, "top_k %lld; 0 or more expected", (long long)how->top_k);
    if (!(how->top_p >= 0 && how->top_p <= 1))
        return rapt_fail(RAPT_ERROR_VALUE, name, "top_p %g; 0 to 1 expected", how->top_p);
    return how->temperature > 0 || (how->top_k == 0 && how->top_p == 0) ||
           rapt_fail(RAPT_ERROR_VALUE, name,
                     "top_k %lld and top_p %g without a temperature, which is greedy; a temperature (1) expected",
                     (long long)how->top_k, how->top_p);
}

bool rapt_generation_check(const char *name, const rapt_generation *how)
{
    if (!how) return rapt_fail(RAPT_ERROR_NULL, name, "the settings are NULL");
    if (how->length < 0)
        return rapt_fail(RAPT_ERROR_VALUE, name, "length %lld; 0 or more expected", (long long)how->length);
    if (how->beams < 0) return rapt_fail(RAPT_ERROR_VALUE, name, "%d beams; 0 or more expected", how->beams);
    if (how->beams > 1 && (how->temperature != 0 || how->top_k != 0 || how->top_p != 0))
        return rapt_fail(RAPT_ERROR_VALUE, name,
                         "%d beams and temperature %g, top_k %lld, top_p %g; either beams or sampling expected",
                         how->beams, how->temperature, (long long)how->top_k, how->top_p);
    const double divisor = pow((double)how->length + 2, how->length_penalty); /* beyond the longest */
    if (how->beams > 1 && !(divisor > 1e-250 && divisor < 1e250))
        return rapt_fail(RAPT_ERROR_VALUE, name,
                         "length_penalty %g for %lld tokens; length^penalty within 1e-250 and 1e250 expected",
                         how->length_penalty, (long long)how->length);
    return check_sampling(name, how);
}

/* All rows of one draw. */
typedef struct drawing {
    const rapt_generation *how;
    int64_t classes;
    const double *logits, *uniforms; /* uniforms in [0, 1): NULL for greedy */
    rapt_scratch scratch;
    int64_t *picks; /* −1 for a row that has no distribution */
} drawing;

enum { block = 256 };

/* The fold of the block of numbers that begins at `start`. */
static double fold(const rapt_fold *fold, const double *x, int64_t start, int64_t count)
{
    double result = fold->number;
    fold->rows[RAPT_FLOAT64](1, 0, count - start < block ? count - start : block, sizeof(double),
                             (const char *)(x + start), &result, NULL);
    return result;
}

/* The first largest; −1 unless it is finite and no number is NaN. */
static int64_t find_largest(const double *x, int64_t count)
{
    double largest = -INFINITY;
    int64_t place = 0;
    for (int64_t start = 0; start < count; start += block) {
        const double of_block = fold(&rapt_kernel.reduce.max, x, start, count);
        if (of_block <= largest) continue;
        largest = of_block;
        place = start;
        if (isnan(largest)) return -1;
    }
    if (isinf(largest)) return -1;
    while (x[place] < largest) place++;
    return place;
}

/* Buckets hold tokens by how far they lie below the largest, in steps of temperature / steps_a_unit; the last takes the
 * rest. */
enum { buckets = 2048, steps_a_unit = 64 };

/* One row and its scratch memory. */
typedef struct row {
    const double *x;
    int64_t classes, largest;
    double max, scale, uniform; /* scale: 1 / temperature, finite */
    double *weights;            /* exp((x − max) / temperature) of each token */
    double *sums;               /* the weights' sum up to each block's end */
    double *masses;             /* the weight of each bucket */
    int64_t *places;            /* tokens in the order of their rank */
    uint16_t *buckets;          /* each token's */
} row;

static size_t row_bytes(int64_t classes)
{
    const size_t n = (size_t)classes;
    return n * (sizeof(double) + sizeof(int64_t) + sizeof(uint16_t)) + (n / block + 1 + buckets) * sizeof(double);
}

static void divide_scratch(row *r, void *piece)
{
    r->weights = piece;
    r->sums = r->weights + r->classes;
    r->masses = r->sums + r->classes / block + 1;
    r->places = (int64_t *)(void *)(r->masses + buckets);
    r->buckets = (uint16_t *)(void *)(r->places + r->classes);
}

static void weigh(const row *r, const double *from, int64_t count, double *weights)
{
    char *data[] = {(char *)weights, (char *)(uintptr_t)from};
    rapt_kernel.unary.weight[RAPT_FLOAT64](count, data, (const int64_t[]){sizeof(double), sizeof(double)},
                                           (const double[]){r->max, r->scale});
}

/* All weights by token, and their sums. */
static double weigh_all(const row *r)
{
    double sum = 0;
    weigh(r, r->x, r->classes, r->weights);
    for (int64_t start = 0; start < r->classes; start += block)
        r->sums[start / block] = sum += fold(&rapt_kernel.reduce.sum, r->weights, start, r->classes);
    return sum;
}

/* The token at which the weights of tokens `first` to `last`, by places or by number, and what came before them pass
 * the threshold; else the last that has a weight. */
static int64_t walk(const row *r, const int64_t *places, int64_t first, int64_t last, double passed, double threshold)
{
    int64_t pick = r->largest;
    for (int64_t i = first; i < last && passed <= threshold; i++) {
        const int64_t token = places ? places[i] : i;
        if (r->weights[token] > 0) pick = token;
        passed += r->weights[token];
    }
    return pick;
}

static int64_t draw_from_all(const row *r)
{
    const double threshold = r->uniform * weigh_all(r);
    int64_t i = 0;
    while ((i + 1) * block < r->classes && r->sums[i] <= threshold) i++;
    return walk(r, NULL, i * block, r->classes, i > 0 ? r->sums[i - 1] : 0, threshold);
}

/* The weight of the first `count` places, or of the fewest whose weight reaches `enough` with what came before; their
 * number goes to *count. */
static double add_weights(const row *r, double sum, double enough, int64_t *count)
{
    int64_t i = 0;
    while (i < *count && sum < enough) sum += r->weights[r->places[i++]];
    *count = i;
    return sum;
}

static int64_t draw_from_few(const row *r, int64_t count, double p)
{
    rapt_rank_few(r->x, r->classes, count, r->places);
    for (int64_t i = 0; i < count; i++) {
        const int64_t token = r->places[i];
        weigh(r, &r->x[token], 1, &r->weights[token]);
    }
    double sum = add_weights(r, 0, INFINITY, &count);
    if (p > 0 && p < 1) sum = add_weights(r, 0, p * sum, &count);
    return walk(r, r->places, 0, count, 0, r->uniform * sum);
}

static void fill_buckets(const row *r)
{
    const double max = r->max, scale = (double)steps_a_unit * r->scale;
    for (int i = 0; i < buckets; i++) r->masses[i] = 0;
    for (int64_t i = 0; i < r->classes; i++) {
        const double steps = (max - r->x[i]) * scale;
        const int bucket = steps < buckets - 1 ? (int)steps : buckets - 1;
        r->buckets[i] = (uint16_t)bucket;
        r->masses[bucket] += r->weights[i];
    }
}

/* Returns the number of the bucket's tokens, which go to places by rank. */
static int64_t rank_bucket(const row *r, int bucket)
{
    int64_t count = 0;
    for (int64_t i = 0; i < r->classes; i++) {
        r->places[count] = i;
        count += r->buckets[i] == bucket;
    }
    rapt_rank_places(r->x, count, r->places);
    return count;
}

/* All tokens by rank as far as p asks. Only two buckets are sorted: where the nucleus ends, and where the draw is. */
static int64_t draw_from_nucleus(const row *r, double p)
{
    const double sum = weigh_all(r), enough = p > 0 && p < 1 ? p * sum : INFINITY;
    fill_buckets(r);
    double before = 0, passed = 0;
    int last = 0, bucket = 0;
    for (; last < buckets - 1 && before + r->masses[last] < enough; last++) before += r->masses[last];
    int64_t count = rank_bucket(r, last);
    const double threshold = r->uniform * add_weights(r, before, enough, &count);
    for (; bucket < last && passed + r->masses[bucket] <= threshold; bucket++) passed += r->masses[bucket];
    if (bucket < last) count = rank_bucket(r, bucket);
    return walk(r, r->places, 0, count, passed, threshold);
}

static int64_t draw(const drawing *d, row *r)
{
    const double p = d->how->top_p;
    const int64_t k = d->how->top_k;
    void *piece = rapt_scratch_borrow(&d->scratch);
    divide_scratch(r, piece);
    const int64_t pick = k > 0 && k < r->classes     ? draw_from_few(r, k, p)
                         : k > 0 || (p > 0 && p < 1) ? draw_from_nucleus(r, p)
                                                     : draw_from_all(r);
    rapt_scratch_return(&d->scratch, piece);
    return pick;
}

static void draw_rows(void *context, int64_t first, int64_t last)
{
    const drawing *d = context;
    for (int64_t i = first; i < last; i++) {
        row r = {.x = d->logits + i * d->classes,
                 .classes = d->classes,
                 .scale = fmin(1 / d->how->temperature, DBL_MAX)};
        d->picks[i] = r.largest = find_largest(r.x, d->classes);
        if (r.largest < 0 || !d->uniforms) continue;
        r.max = r.x[r.largest];
        r.uniform = d->uniforms[i];
        d->picks[i] = draw(d, &r);
    }
}

rapt_tensor *rapt_sample(rapt_tensor *logits, const rapt_generation *how)
{
    RAPT_UNDO_DRAWS;
    char text[128];
    if (!rapt_generation_check(op, how)) return NULL;
    if (how->beams > 1) {
        rapt_fail(RAPT_ERROR_UNSUPPORTED, op, "%d beams are not drawn from one distribution; use rapt_generate",
                  how->beams);
        return NULL;
    }
    if (!logits || rapt_rank(logits) != 2 || rapt_size(logits, 1) < 1) {
        rapt_fail(logits ? RAPT_ERROR_SHAPE : RAPT_ERROR_NULL, op, "logits (B, vocabulary) expected, not %s",
                  logits ? rapt_describe(logits, text, sizeof text) : "NULL");
        return NULL;
    }
    if (!rapt_dtype_is_floating(rapt_get_dtype(logits))) {
        rapt_fail(RAPT_ERROR_DTYPE, op, "logits of %s; float32 or float64 expected",
                  rapt_dtype_name(rapt_get_dtype(logits)));
        return NULL;
    }
    RAPT_SCOPE;
    RAPT_NO_GRADIENT;
    const int64_t rows = rapt_size(logits, 0), classes = rapt_size(logits, 1);
    const bool is_random = how->temperature > 0;
    rapt_tensor *dense = rapt_contiguous(rapt_cast(logits, RAPT_FLOAT64));
    rapt_tensor *uniforms = is_random ? rapt_rand(RAPT_FLOAT64, RAPT_SHAPE(rows)) : NULL;
    rapt_tensor *picks = rapt_empty(RAPT_INT64, RAPT_SHAPE(rows));
    if (!dense || !picks || (is_random && !uniforms)) return NULL;
    drawing d = {.how = how,
                 .classes = classes,
                 .logits = rapt_data(dense),
                 .uniforms = uniforms ? rapt_data(uniforms) : NULL,
                 .picks = rapt_data_for_writing(picks)};
    if (is_random && !rapt_scratch_take(op, &d.scratch, rows, row_bytes(classes))) return NULL;
    rapt_parallel(rows, rapt_grain((is_random ? 16 : 1) * classes), draw_rows, &d);
    if (is_random) rapt_scratch_give(&d.scratch);
    for (int64_t i = 0; i < rows; i++)
        if (d.picks[i] < 0) {
            rapt_fail(RAPT_ERROR_VALUE, op, "row %lld of the logits is no distribution: NaN, +∞, or −∞ throughout",
                      (long long)i);
            return NULL;
        }
    return rapt_keep(picks);
}
