/* Drawing a token from logits: greedy, or at random with a temperature, the k likeliest, the nucleus. */
#include <math.h>

#include "nn/generate.h"
#include "tensor/parallel.h"
#include "tensor/random.h"

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
    if (!isfinite(how->length_penalty))
        return rapt_fail(RAPT_ERROR_VALUE, name, "length_penalty %g; a finite number expected", how->length_penalty);
    return check_sampling(name, how);
}

/* All rows of one draw. */
typedef struct drawing {
    const rapt_generation *how;
    int64_t classes;
    const double *logits, *uniforms; /* uniforms in [0, 1): NULL for greedy, */
    int64_t *places;                 /* places: NULL when all tokens take part */
    int64_t *picks;                  /* −1 for a row that has no distribution */
} drawing;

/* The first largest; −1 unless it is finite and no number is NaN. */
static int64_t find_largest(const double *x, int64_t count)
{
    int64_t largest = 0;
    for (int64_t i = 0; i < count; i++) {
        if (isnan(x[i])) return -1;
        if (x[i] > x[largest]) largest = i;
    }
    return isinf(x[largest]) ? -1 : largest;
}

/* Tokens of one row by number, or by rank where only the likeliest take part; with weights exp((x − max) /
 * temperature). */
typedef struct row {
    const double *x;
    double max, temperature;
    rapt_ranking *ranking; /* or NULL */
} row;

static int64_t token_at(const row *r, int64_t i)
{
    return r->ranking ? rapt_ranking_place(r->ranking, i) : i;
}

static double weight_of(const row *r, int64_t token)
{
    return exp((r->x[token] - r->max) / r->temperature);
}

/* The total weight of the first `count` tokens of the row, or of the fewest whose weight reaches `enough`; their number
 * goes to *count. */
static double add_weights(const row *r, double enough, int64_t *count)
{
    double sum = 0;
    int64_t i = 0;
    while (i < *count && sum < enough) sum += weight_of(r, token_at(r, i++));
    *count = i;
    return sum;
}

static int64_t draw(const drawing *d, int64_t index, const double *x, int64_t largest)
{
    const double p = d->how->top_p;
    rapt_ranking ranking = {.values = x,
                            .places = d->places ? d->places + index * d->classes : NULL,
                            .count = d->classes};
    row all = {.x = x, .max = x[largest], .temperature = d->how->temperature}, r = all;
    int64_t count = d->classes, pick = largest;
    if (ranking.places) {
        rapt_ranking_start(&ranking);
        r.ranking = &ranking;
        if (d->how->top_k > 0 && d->how->top_k < count) count = d->how->top_k;
    }
    double sum = add_weights(count < d->classes ? &r : &all, INFINITY, &count);
    if (p > 0 && p < 1) sum = add_weights(&r, p * sum, &count);
    const double threshold = d->uniforms[index] * sum;
    double passed = 0;
    for (int64_t i = 0; i < count && passed <= threshold; i++) {
        double weight = weight_of(&r, token_at(&r, i));
        if (weight > 0) pick = token_at(&r, i);
        passed += weight;
    }
    return pick;
}

static void draw_rows(void *context, int64_t first, int64_t last)
{
    const drawing *d = context;
    for (int64_t i = first; i < last; i++) {
        const double *x = d->logits + i * d->classes;
        int64_t largest = find_largest(x, d->classes);
        d->picks[i] = largest >= 0 && d->uniforms ? draw(d, i, x, largest) : largest;
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
    const bool is_random = how->temperature > 0, is_ranked = how->top_k > 0 || (how->top_p > 0 && how->top_p < 1);
    rapt_tensor *dense = rapt_contiguous(rapt_cast(logits, RAPT_FLOAT64));
    rapt_tensor *uniforms = is_random ? rapt_rand(RAPT_FLOAT64, RAPT_SHAPE(rows)) : NULL;
    rapt_tensor *places = is_ranked ? rapt_empty(RAPT_INT64, RAPT_SHAPE(rows, classes)) : NULL;
    rapt_tensor *picks = rapt_empty(RAPT_INT64, RAPT_SHAPE(rows));
    if (!dense || !picks || (is_random && !uniforms) || (is_ranked && !places)) return NULL;
    drawing d = {.how = how,
                 .classes = classes,
                 .logits = rapt_data(dense),
                 .uniforms = uniforms ? rapt_data(uniforms) : NULL,
                 .places = places ? rapt_data_for_writing(places) : NULL,
                 .picks = rapt_data_for_writing(picks)};
    rapt_parallel(rows, rapt_grain((is_random ? 16 : 1) * classes), draw_rows, &d);
    for (int64_t i = 0; i < rows; i++)
        if (d.picks[i] < 0) {
            rapt_fail(RAPT_ERROR_VALUE, op, "row %lld of the logits is no distribution: NaN, +∞, or −∞ throughout",
                      (long long)i);
            return NULL;
        }
    return rapt_keep(picks);
}
