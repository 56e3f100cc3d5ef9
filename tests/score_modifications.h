/* Score modifications of a user's own, written with the public interface: functions over tiles, and the same by ops. */
#ifndef RAPT_TESTS_SCORE_MODIFICATIONS_H
#define RAPT_TESTS_SCORE_MODIFICATIONS_H

#include <math.h>

#include <rapt.h>

#include "draw.h"

/* One of them; what it captures are parameters, or fixed. */
typedef struct own {
    rapt_score_modification modification;
    rapt_tensor *tensors[2];
    double number;
} own;

static inline bool capture_own(rapt_score_modification *modification, rapt_dtype dtype, rapt_tensor **captured)
{
    (void)dtype;
    for (int c = 0; c < modification->captured_count; c++) captured[c] = ((own *)modification)->tensors[c];
    return true;
}

/* The rest of a division that is never negative. */
static inline int64_t rest_of(int64_t a, int64_t b)
{
    return (a % b + b) % b;
}

typedef int64_t number_of_places(int64_t query, int64_t key);

static inline int64_t sum_of_places(int64_t query, int64_t key)
{
    return rest_of(query + key, 3);
}

static inline int64_t place_of_key(int64_t query, int64_t key)
{
    (void)query;
    return rest_of(key, 7);
}

static inline int64_t is_striped(int64_t query, int64_t key)
{
    return rest_of(query - key, 4) == 1;
}

/* int64 (Q, K) */
static inline rapt_tensor *numbers_of(rapt_tensor *queries, rapt_tensor *keys, number_of_places *number)
{
    const int64_t rows = rapt_count(queries), columns = rapt_size(keys, 0);
    rapt_tensor *numbers =
        rapt_rank(queries) == 2
            ? rapt_zeros(RAPT_INT64, RAPT_SHAPE(rows, columns))
            : rapt_zeros(RAPT_INT64, RAPT_SHAPE(rapt_size(queries, 0), 1, rapt_size(queries, 2), columns));
    int64_t *to = rapt_data_for_writing(numbers);
    const int64_t *query = rapt_data(queries), *key = rapt_data(keys);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++) *to++ = number(query[i], key[j]);
    return numbers;
}

/* A table (B or 1, heads or 1, numbers) by numbers (Q, K) or (B, 1, Q, K): (…, Q, K). */
static inline rapt_tensor *by_numbers(rapt_tensor *table, rapt_tensor *numbers)
{
    const int rank = rapt_rank(numbers);
    const int64_t rows = rapt_size(numbers, -2), columns = rapt_size(numbers, -1), heads = rapt_size(table, 1);
    const int64_t items = rank == 4 ? rapt_size(numbers, 0) : rapt_size(table, 0);
    rapt_tensor *flat = rapt_reshape(numbers, RAPT_SHAPE(rank == 4 ? items : 1, 1, rows * columns));
    flat = rapt_gather(rapt_expand(table, RAPT_SHAPE(items, heads, rapt_size(table, 2))), 2,
                       rapt_expand(flat, RAPT_SHAPE(items, heads, rows * columns)));
    return rapt_reshape(flat, RAPT_SHAPE(items, heads, rows, columns));
}

#define OWN_TILE(T)                                                                                                    \
    T *s = tile->scores, *g = tile->gradient;                                                                          \
    const T *old = tile->old_scores, *changed = tile->new_scores;                                                      \
    const double number = tile->options ? *(const double *)tile->options : 0;                                          \
    (void)s, (void)g, (void)old, (void)changed, (void)number

#define FOR_OWN_TILE                                                                                                   \
    for (int64_t r = 0; r < tile->rows; r++)                                                                           \
        for (int64_t c = 0, i = tile->queries[r], j = tile->first_key, at = r * tile->stride; c < tile->columns;       \
             c++, j++, at++, (void)i, (void)j)

#define OWN_FUNCTIONS(T, dtype)                                                                                        \
    /* wave: s + a · sin((i − j) / 5), a by head */                                                                 \
    static void wave_##dtype(const rapt_score_tile *tile)                                                              \
    {                                                                                                                  \
        OWN_TILE(T);                                                                                                   \
        const T a = *(const T *)tile->captured[0];                                                                     \
        FOR_OWN_TILE s[at] += a * (T)sin(0.2 * (double)(i - j));                                                       \
    }                                                                                                                  \
    static void differentiate_wave_##dtype(const rapt_score_tile *tile)                                                \
    {                                                                                                                  \
        OWN_TILE(T);                                                                                                   \
        double *da = tile->captured_gradients[0];                                                                      \
        if (da) FOR_OWN_TILE *da += (double)g[at] * sin(0.2 * (double)(i - j));                                        \
    }                                                                                                                  \
    /* bend: p · s / (1 + |s|), p for all, which is read after and before */                                          \
    static void bend_##dtype(const rapt_score_tile *tile)                                                              \
    {                                                                                                                  \
        OWN_TILE(T);                                                                                                   \
        const T p = *(const T *)tile->captured[0];                                                                     \
        FOR_OWN_TILE s[at] = p * s[at] / (1 + (T)fabs((double)s[at]));                                                 \
    }                                                                                                                  \
    static void differentiate_bend_##dtype(const rapt_score_tile *tile)                                                \
    {                                                                                                                  \
        OWN_TILE(T);                                                                                                   \
        const T p = *(const T *)tile->captured[0];                                                                     \
        double *dp = tile->captured_gradients[0];                                                                      \
        FOR_OWN_TILE                                                                                                   \
        {                                                                                                              \
            const T slope = p / ((1 + (T)fabs((double)old[at])) * (1 + (T)fabs((double)old[at])));                     \
            if (dp) *dp += (double)(g[at] * changed[at] / p);                                                          \
            g[at] *= slope;                                                                                            \
        }                                                                                                              \
    }                                                                                                                  \
    /* gate: s · u + v[(i + j) mod 3], u by item and head, v by item */                                               \
    static void gate_##dtype(const rapt_score_tile *tile)                                                              \
    {                                                                                                                  \
        OWN_TILE(T);                                                                                                   \
        const T u = *(const T *)tile->captured[0], *v = tile->captured[1];                                             \
        FOR_OWN_TILE s[at] = s[at] * u + v[sum_of_places(i, j)];                                                       \
    }                                                                                                                  \
    static void differentiate_gate_##dtype(const rapt_score_tile *tile)                                                \
    {                                                                                                                  \
        OWN_TILE(T);                                                                                                   \
        const T u = *(const T *)tile->captured[0];                                                                     \
        double *du = tile->captured_gradients[0], *dv = tile->captured_gradients[1];                                   \
        FOR_OWN_TILE                                                                                                   \
        {                                                                                                              \
            if (du && g[at] != 0) *du += (double)(g[at] * old[at]);                                                    \
            if (dv) dv[sum_of_places(i, j)] += (double)g[at];                                                          \
            g[at] *= u;                                                                                                \
        }                                                                                                              \
    }                                                                                                                  \
    /* ripple: s + t[j mod 7] + number · sin s, t for all */                                                          \
    static void ripple_##dtype(const rapt_score_tile *tile)                                                            \
    {                                                                                                                  \
        OWN_TILE(T);                                                                                                   \
        const T *t = tile->captured[0];                                                                                \
        FOR_OWN_TILE s[at] += t[place_of_key(i, j)] + (T)(number * sin((double)s[at]));                                \
    }                                                                                                                  \
    static void differentiate_ripple_##dtype(const rapt_score_tile *tile)                                              \
    {                                                                                                                  \
        OWN_TILE(T);                                                                                                   \
        double *dt = tile->captured_gradients[0];                                                                      \
        FOR_OWN_TILE                                                                                                   \
        {                                                                                                              \
            if (dt) dt[place_of_key(i, j)] += (double)g[at];                                                           \
            g[at] = g[at] == 0 ? 0 : g[at] * (1 + (T)(number * cos((double)old[at])));                                 \
        }                                                                                                              \
    }                                                                                                                  \
    /* stripes: −∞ where (i − j) mod 4 = 1 */                                                                    \
    static void stripes_##dtype(const rapt_score_tile *tile)                                                           \
    {                                                                                                                  \
        OWN_TILE(T);                                                                                                   \
        FOR_OWN_TILE if (is_striped(i, j)) s[at] = -(T)INFINITY;                                                       \
    }

OWN_FUNCTIONS(float, float32)
OWN_FUNCTIONS(double, float64)

#define OWN_BY_OPS(name)                                                                                               \
    static rapt_tensor *name(const void *options, rapt_tensor *scores, rapt_tensor *const *captured,                   \
                             rapt_tensor *queries, rapt_tensor *keys)

OWN_BY_OPS(wave_by_ops)
{
    (void)options;
    rapt_tensor *relative = rapt_cast(rapt_sub(queries, keys), rapt_get_dtype(scores));
    return rapt_add(scores, rapt_mul(captured[0], rapt_sin(rapt_mul_scalar(relative, 0.2))));
}

OWN_BY_OPS(bend_by_ops)
{
    (void)options, (void)queries, (void)keys;
    return rapt_mul(captured[0], rapt_div(scores, rapt_add_scalar(rapt_abs(scores), 1)));
}

OWN_BY_OPS(gate_by_ops)
{
    (void)options;
    return rapt_add(rapt_mul(scores, captured[0]), by_numbers(captured[1], numbers_of(queries, keys, sum_of_places)));
}

OWN_BY_OPS(ripple_by_ops)
{
    rapt_tensor *ripples = rapt_mul_scalar(rapt_sin(scores), *(const double *)options);
    return rapt_add(rapt_add(scores, ripples), by_numbers(captured[0], numbers_of(queries, keys, place_of_key)));
}

OWN_BY_OPS(stripes_by_ops)
{
    (void)options, (void)captured;
    rapt_tensor *striped = rapt_cast(numbers_of(queries, keys, is_striped), RAPT_BOOL);
    return rapt_where(striped, rapt_scalar(rapt_get_dtype(scores), -(double)INFINITY), scores);
}

enum { wave, bend, gate, ripple, stripes, own_count };

typedef struct own_kind {
    rapt_module_class kind;
    rapt_score_modification fields;
} own_kind;

#define OWN(which, derivative, before, after, count)                                                                   \
    {                                                                                                                  \
        {.name = #which},                                                                                              \
        {                                                                                                              \
            .float32 = {which##_float32, derivative(which, float32)},                                                  \
            .float64 = {which##_float64, derivative(which, float64)}, .by_ops = which##_by_ops, .reads_old = before,   \
            .reads_new = after, .captured_count = count, .capture = capture_own                                        \
        }                                                                                                              \
    }
#define ITS_OWN(which, dtype) differentiate_##which##_##dtype
#define NONE(which, dtype) NULL

static const own_kind own_kinds[own_count] = {OWN(wave, ITS_OWN, false, false, 1), OWN(bend, ITS_OWN, true, true, 1),
                                              OWN(gate, ITS_OWN, true, false, 2), OWN(ripple, ITS_OWN, true, false, 1),
                                              OWN(stripes, NONE, false, false, 0)};

/* For scores (batch, heads, …); parameters are drawn. */
static inline rapt_score_modification *own_new(int which, int64_t batch, int64_t heads)
{
    const int64_t shapes[][2][4] = {{{1, heads, 1, 1}},
                                    {{1, 1, 1, 1}},
                                    {{batch, heads, 1, 1}, {batch, 1, 3, 1}},
                                    {{1, 1, 7, 1}},
                                    {{0}}};
    own *m = rapt_module_new(sizeof *m, &own_kinds[which].kind);
    const rapt_module module = m->modification.module;
    m->modification = own_kinds[which].fields;
    m->modification.module = module;
    m->number = 0.25;
    m->modification.options = &m->number;
    m->modification.options_size = sizeof m->number;
    for (int c = 0; c < m->modification.captured_count; c++) {
        const int rank = c == 1 || which == ripple ? 3 : 4;
        rapt_tensor *start = rapt_rand(RAPT_FLOAT32, rank, shapes[which][c]);
        m->tensors[c] = rapt_module_add_parameter(&m->modification.module, c == 0 ? "first" : "second",
                                                  rapt_add_scalar(start, 0.5));
    }
    return rapt_module_finish(&m->modification.module);
}

/* Those of the library, by number; parameters that begin with zeros are drawn too. */
enum {
    soft_cap,
    head_temperature,
    alibi,
    bucketed,
    bucketed_both,
    learned_bias,
    gaussian_window,
    fixed_window,
    prefix,
    library_count
};

static inline rapt_score_modification *library_new(int which, int64_t batch, int64_t heads)
{
    rapt_score_modification *m = NULL;
    if (which == soft_cap) m = rapt_soft_cap_new(2);
    if (which == head_temperature) m = rapt_head_temperature_new(heads);
    if (which == alibi) m = rapt_alibi_modification_new(heads);
    if (which == bucketed) m = rapt_bucketed_bias_new(heads, 12, 40, false);
    if (which == bucketed_both) m = rapt_bucketed_bias_new(heads, 16, 60, true);
    if (which == learned_bias) m = rapt_learned_bias_new(heads, 5);
    if (which == gaussian_window || which == fixed_window)
        m = rapt_gaussian_window_new(heads, 9, which == gaussian_window);
    if (which == prefix) m = rapt_prefix_modification_new(rapt_randint(0, 30, RAPT_SHAPE(batch)));
    rapt_tensor *weight = m ? rapt_module_find(&m->module, "weight") : NULL;
    if (!weight && m) weight = rapt_module_find(&m->module, "temperature");
    if (weight) rapt_fill_uniform(weight, 0.5, 1.5);
    return m;
}

/* One of all. hides: it may make −∞ of scores, which another one behind it could make NaN of. */
static inline rapt_score_modification *draw_modification(uint64_t *state, int64_t batch, int64_t heads, bool hides)
{
    const int which = (int)draw_below(state, own_count + library_count);
    if (!hides && (which == stripes || which == own_count + prefix)) return own_new(wave, batch, heads);
    return which < own_count ? own_new(which, batch, heads) : library_new(which - own_count, batch, heads);
}

#endif
