/* Softmax, logsumexp, variance, norms, losses and attention of random rows that are hard: logits of 10⁸ with
 * differences of 1, exponents all mixed, equal maxima, −∞, lengths from 1 to 10⁵.
 *
 *     numerics_rows [rows [seed]]
 *
 * Compares float32 with long double, or as numerics_rows_quad with numbers of 113 bits, and prints the largest error of
 * each op, in units of 2⁻²⁴ of the number that its column "of" has: y is the result, w a softmax, v what attention
 * weighs. Fails beyond 8 of them. */
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rapt.h>

#ifdef WITH_QUADMATH
#include <quadmath.h>
typedef __float128 real;
#define REAL(function) function##q
#else
typedef long double real;
#define REAL(function) function##l
#endif

enum { most = 100000, elements = 1 << 14, kinds = 8 };
static const double limit = 8;

static uint64_t state;

static double uniform(void)
{ /* splitmix64 */
    state += 0x9e3779b97f4a7c15u;
    uint64_t z = state;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (double)((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

static double normal(void)
{
    return sqrt(-2 * log(1 - uniform())) * cos(6.283185307179586 * uniform());
}

/* A float of any exponent between the two. */
static double any_exponent(double low, double high)
{
    return (uniform() < 0.5 ? -1 : 1) * (1 + uniform()) * exp2(floor(low + (high - low) * uniform()));
}

/* Numbers of the row's kind, whose squares do not overflow in double. */
static void fill_row(int kind, int64_t n, float *x)
{
    static const double offsets[] = {1e3, 1e5, 1e7, 1e8};
    const double offset = offsets[(int)(4 * uniform())] * (uniform() < 0.5 ? -1 : 1),
                 spread = exp2(20 * uniform() - 10);
    for (int64_t i = 0; i < n; i++) {
        const double z = normal();
        x[i] = (float)(kind == 0   ? z
                       : kind == 1 ? spread * z
                       : kind == 2 ? offset + spread * z
                       : kind == 3 ? any_exponent(-30, 7)
                       : kind == 4 ? any_exponent(-120, 120)
                       : kind == 5 ? 80 + floor(3 * uniform())
                       : kind == 6 ? (i % 2 ? -offset : offset) * (1 + 1e-7 * z)
                                   : (uniform() < 0.5 ? -(double)INFINITY : z));
    }
    if (kind == 7) x[(int64_t)(uniform() * (double)n)] = 1;
}

/* What the reference knows of a row. */
typedef struct row {
    int64_t n, target;
    const float *x, *v; /* v: numbers to weigh */
    bool infinite;
    real max, sum_exp, sum, sum_magnitudes, mean, square_sum, squares, weighted, weighted_unit;
} row;

/* Long double's own are slow, and double's 2²⁹ times finer than what is measured. */
static real exponential(real x)
{
#ifdef WITH_QUADMATH
    return expq(x);
#else
    return (real)exp((double)x);
#endif
}

static void measure(row *r)
{
    r->max = -(real)INFINITY;
    r->sum_exp = r->sum = r->sum_magnitudes = r->square_sum = r->squares = r->weighted = r->weighted_unit = 0;
    r->infinite = false;
    for (int64_t i = 0; i < r->n; i++) {
        const real x = (real)r->x[i];
        r->max = x > r->max ? x : r->max;
        r->infinite = r->infinite || isinf(r->x[i]);
        r->sum += x;
        r->sum_magnitudes += REAL(fabs)(x);
        r->square_sum += x * x;
    }
    r->mean = r->sum / (real)r->n;
    for (int64_t i = 0; i < r->n; i++) {
        const real x = (real)r->x[i], e = exponential(x - r->max);
        r->sum_exp += e;
        r->squares += (x - r->mean) * (x - r->mean);
        r->weighted += e * (real)r->v[i];
        if (e > 0) r->weighted_unit += e * (1 + REAL(fabs)(x)) * REAL(fabs)((real)r->v[i]);
    }
}

/* --- the ops: what they give, and what they should for element i, known to how much --- */

typedef struct exact {
    real value, unit;
} exact;

static rapt_tensor *targets, *values;
static const double epsilon = 1e-5;

static exact softmax(const row *r, int64_t i)
{
    const real distance = (real)r->x[i] - r->max, w = exponential(distance) / r->sum_exp;
    return (exact){w, isinf(r->x[i]) ? 1 : w * (1 - distance) + 0x1p-126L};
}

static exact log_softmax(const row *r, int64_t i)
{
    const real y = (real)r->x[i] - r->max - REAL(log)(r->sum_exp);
    return (exact){y, REAL(fabs)(y) + 1};
}

static exact logsumexp(const row *r, int64_t i)
{
    (void)i;
    const real y = r->max + REAL(log)(r->sum_exp);
    return (exact){y, REAL(fabs)(y) + 1};
}

static exact cross_entropy(const row *r, int64_t i)
{
    (void)i;
    exact e = log_softmax(r, r->target);
    e.value = -e.value;
    return e;
}

/* Doubles add what is added: 2⁻⁵³ of its magnitude, n times. */
static exact sum(const row *r, int64_t i)
{
    (void)i;
    return (exact){r->sum, REAL(fabs)(r->sum) + 0x1p-29L * (real)r->n * r->sum_magnitudes + 0x1p-126L};
}

static exact mean(const row *r, int64_t i)
{
    const exact e = sum(r, i);
    return (exact){r->mean, e.unit / (real)r->n + 0x1p-126L};
}

static exact var(const row *r, int64_t i)
{
    (void)i;
    const real y = r->squares / (real)r->n;
    return (exact){y, y + 0x1p-29L * r->mean * r->mean * 0x1p-24L + 0x1p-126L};
}

static exact standard_deviation(const row *r, int64_t i)
{
    const exact e = var(r, i);
    return (exact){REAL(sqrt)(e.value), REAL(sqrt)(e.unit) + 0x1p-126L};
}

static exact norm(const row *r, int64_t i)
{
    (void)i;
    const real y = REAL(sqrt)(r->square_sum);
    return (exact){y, y + 0x1p-126L};
}

static exact layer_normalize(const row *r, int64_t i)
{
    const real distance = (real)r->x[i] - r->mean;
    const real deviation = REAL(sqrt)(r->squares / (real)r->n + (real)epsilon);
    return (exact){distance / deviation,
                   (REAL(fabs)(distance) + 0x1p-29L * REAL(fabs)(r->mean)) / deviation + 0x1p-126L};
}

static exact rms_normalize(const row *r, int64_t i)
{
    const real y = (real)r->x[i] / REAL(sqrt)(r->square_sum / (real)r->n + (real)epsilon);
    return (exact){y, REAL(fabs)(y) + 0x1p-126L};
}

static exact attention(const row *r, int64_t i)
{
    (void)i;
    return (exact){r->weighted / r->sum_exp, r->weighted_unit / r->sum_exp + 0x1p-126L};
}

static rapt_tensor *call_attention(rapt_tensor *x)
{ /* each row is a query of one item, whose keys are zeros: its scores are its bias */
    const int64_t rows = rapt_size(x, 0), n = rapt_size(x, 1);
    rapt_attention *pooling = rapt_attention_new(rapt_scaled_dot_product_scoring_new(), 0);
    rapt_tensor *queries = rapt_zeros(RAPT_FLOAT32, RAPT_SHAPE(1, rows, 4));
    rapt_tensor *keys = rapt_zeros(RAPT_FLOAT32, RAPT_SHAPE(1, n, 4));
    rapt_tensor *y = rapt_attention_forward(pooling, queries, keys, rapt_reshape(values, 3, (int64_t[]){1, n, 1}),
                                            RAPT_MASK(.bias = x));
    rapt_module_free(&pooling->module);
    return rapt_reshape(y, 1, (int64_t[]){rows});
}

#define OF_ROW RAPT_AXES(-1), false
#define CALL(name, formula)                                                                                            \
    static rapt_tensor *call_##name(rapt_tensor *x)                                                                    \
    {                                                                                                                  \
        return formula;                                                                                                \
    }
static const rapt_cross_entropy_options unreduced = {.reduction = RAPT_REDUCE_NONE};
CALL(softmax, rapt_softmax(x, -1))
CALL(log_softmax, rapt_log_softmax(x, -1))
CALL(logsumexp, rapt_logsumexp(x, OF_ROW))
CALL(cross_entropy, rapt_cross_entropy(x, targets, &unreduced))
CALL(sum, rapt_sum(x, OF_ROW))
CALL(mean, rapt_mean(x, OF_ROW))
CALL(var, rapt_var(x, OF_ROW, 0))
CALL(std, rapt_std(x, OF_ROW, 0))
CALL(norm, rapt_norm(x, 2, OF_ROW))
CALL(layer_normalize, rapt_layer_normalize(x, NULL, NULL, epsilon))
CALL(rms_normalize, rapt_rms_normalize(x, NULL, epsilon))

typedef struct op {
    const char *name, *of;
    rapt_tensor *(*call)(rapt_tensor *x);
    exact (*reference)(const row *r, int64_t i);
    bool each;     /* a result for each element, not for each row */
    bool infinite; /* takes −∞ */
    double worst, at_value, at_found;
    int at_kind;
    int64_t at_n;
} op;

static op ops[] = {
    {"softmax", "w (1 + max − x)", call_softmax, softmax, .each = true, .infinite = true},
    {"log_softmax", "y + 1", call_log_softmax, log_softmax, .each = true},
    {"logsumexp", "y + 1", call_logsumexp, logsumexp, .infinite = true},
    {"cross_entropy", "y + 1", call_cross_entropy, cross_entropy, .each = false},
    {"sum", "y + 2⁻²⁹ n Σ|x|", call_sum, sum, .each = false},
    {"mean", "y + 2⁻²⁹ Σ|x|", call_mean, mean, .each = false},
    {"var", "y + 2⁻⁵³ mean²", call_var, var, .each = false},
    {"std", "y + 2⁻²⁷ mean", call_std, standard_deviation, .each = false},
    {"norm", "y", call_norm, norm, .each = false},
    {"layer_normalize", "y + 2⁻²⁹ mean / deviation", call_layer_normalize, layer_normalize, .each = true},
    {"rms_normalize", "y", call_rms_normalize, rms_normalize, .each = true},
    {"attention", "Σ w (1 + |x|) |v|", call_attention, attention, .infinite = true},
};
enum { op_count = sizeof ops / sizeof *ops };

static real within_floats(real x)
{
    return x > 0x1p128L ? 0x1p128L : x < -0x1p128L ? -0x1p128L : x;
}

static void compare(op *o, const row *r, int kind, int64_t i, float found)
{
    const exact e = o->reference(r, i);
    const real expected = within_floats(e.value), unit = e.unit < expected ? REAL(fabs)(expected) : e.unit;
    const real distance = REAL(fabs)(within_floats((real)found) - expected);
    /* half a unit in the last place of a denormal is nobody's fault */
    const real error = distance <= 0x1p-149L ? 0 : distance / unit * 0x1p24L;
    if (!(error <= (real)o->worst)) {
        o->worst = isnan(error) ? (double)INFINITY : (double)error;
        o->at_value = (double)e.value, o->at_found = (double)found, o->at_kind = kind, o->at_n = r->n;
    }
}

static void try_rows(int kind, int64_t count, int64_t n)
{
    RAPT_SCOPE;
    static float x[elements + most], v[most];
    static int64_t classes[elements];
    for (int64_t i = 0; i < n; i++) v[i] = (float)normal();
    for (int64_t k = 0; k < count; k++) {
        fill_row(kind, n, x + k * n);
        classes[k] = (int64_t)(uniform() * (double)n);
    }
    targets = rapt_from(RAPT_INT64, RAPT_SHAPE(count), classes);
    values = rapt_from(RAPT_FLOAT32, RAPT_SHAPE(n), v);
    rapt_tensor *input = rapt_from(RAPT_FLOAT32, RAPT_SHAPE(count, n), x), *found[op_count];
    for (int k = 0; k < op_count; k++) {
        found[k] = rapt_contiguous(ops[k].call(input));
        if (!found[k]) {
            fprintf(stderr, "numerics_rows: %s: %s\n", ops[k].name, rapt_error());
            exit(2);
        }
    }
    for (int64_t k = 0; k < count; k++) {
        row r = {.n = n, .target = classes[k], .x = x + k * n, .v = v};
        measure(&r);
        for (int o = 0; o < op_count; o++) {
            if (r.infinite && !ops[o].infinite) continue;
            const float *y = rapt_data(found[o]);
            const int64_t count_of_row = ops[o].each ? n : 1;
            for (int64_t i = 0; i < count_of_row; i++) compare(&ops[o], &r, kind, i, y[k * count_of_row + i]);
        }
    }
}

/* 1 to 32 mostly, now and then as long as rows get. */
static int64_t any_length(void)
{
    const double chance = uniform();
    return chance < 0.95    ? 1 + (int64_t)(32 * uniform())
           : chance < 0.999 ? 1 + (int64_t)(1000 * uniform())
                            : 1 + (int64_t)(most * uniform());
}

int main(int argc, char **argv)
{
    const int64_t rows = argc > 1 ? strtoll(argv[1], NULL, 10) : 100000;
    state = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    int64_t done = 0;
    for (int kind = 0; done < rows; kind = (kind + 1) % kinds) {
        const int64_t n = any_length(), fit = n < elements ? elements / n : 1;
        const int64_t count = fit < rows - done ? fit : rows - done;
        try_rows(kind, count, n);
        done += count;
    }
    bool good = true;
    for (int k = 0; k < op_count; k++) {
        printf("%s\t%s\t%.3f\t%.9g, not %.9g, of %" PRId64 " numbers of kind %d\n", ops[k].name, ops[k].of,
               ops[k].worst, ops[k].at_found, ops[k].at_value, ops[k].at_n, ops[k].at_kind);
        good = good && ops[k].worst <= limit;
    }
    return good ? 0 : 1;
}
