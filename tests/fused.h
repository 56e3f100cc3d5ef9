/* Calls of attention drawn at random, by the fused way and by the plain one. */
#ifndef RAPT_TESTS_FUSED_H
#define RAPT_TESTS_FUSED_H

#include "draw.h"
#include "largest.h"
#include "mask_rules.h"
#include "scorings.h"
#include "tensor/core.h"

/* One call, drawn at random: a scoring function of the family, shapes, layouts, a mask. */
typedef struct drawn {
    uint64_t seed, state;
    rapt_dtype dtype;
    int64_t batch, heads, groups, queries, keys, query_size, key_size, value_size;
    rapt_attention *attention;
    rapt_tensor *inputs[5]; /* queries, keys, values, bias, relative bias: leaves, the last two perhaps NULL */
    rapt_tensor *views[3];  /* the first three as attention gets them */
    rapt_mask mask;
    double dropout;
    bool uses_pooled, uses_weights; /* what gradients start from */
} drawn;

static inline int64_t draw_length(uint64_t *state, int64_t most)
{
    static const int64_t percent[] = {4, 20, 100};
    return draw_below(state, (most * percent[draw_below(state, 3)] + 99) / 100) + 1;
}

/* A leaf of some layout, and a view (B, heads, length, size) of it. */
static inline rapt_tensor *draw_input(drawn *d, int64_t heads, int64_t length, int64_t size, rapt_tensor **view)
{
    rapt_tensor *leaf;
    switch (draw_below(&d->state, 4)) {
    case 0:
        leaf = rapt_require_gradient(rapt_randn(d->dtype, RAPT_SHAPE(d->batch, heads, length, size)));
        *view = leaf;
        break;
    case 1: /* the heads split from one row */
        leaf = rapt_require_gradient(rapt_randn(d->dtype, RAPT_SHAPE(d->batch, length, heads * size)));
        *view = rapt_permute(rapt_reshape(leaf, RAPT_SHAPE(d->batch, length, heads, size)), RAPT_AXES(0, 2, 1, 3));
        break;
    case 2: /* rows farther apart than they are long */
        leaf = rapt_require_gradient(rapt_randn(d->dtype, RAPT_SHAPE(d->batch, heads, length, size + 3)));
        *view = rapt_slice(leaf, -1, 1, size + 1, 1);
        break;
    default: /* elements apart */
        leaf = rapt_require_gradient(rapt_randn(d->dtype, RAPT_SHAPE(d->batch, heads, size, length)));
        *view = rapt_transpose(leaf, -1, -2);
    }
    return leaf;
}

/* A shape that broadcasts to (B, heads, Q, last). */
static inline rapt_tensor *draw_bias(drawn *d, int64_t last, bool infinite)
{
    int64_t shape[] = {d->batch, d->heads, d->queries, last};
    for (int axis = 0; axis < 3; axis++)
        if (draw_chance(&d->state, 50)) shape[axis] = 1;
    rapt_tensor *bias = rapt_randn(d->dtype, 4, shape);
    if (infinite) {
        rapt_tensor *hidden = rapt_less(bias, rapt_scalar(d->dtype, -1));
        bias = rapt_where(hidden, rapt_full(d->dtype, 0, NULL, -(double)INFINITY), bias);
    }
    return rapt_require_gradient(rapt_clone(bias));
}

static inline void draw_fused_mask(drawn *d)
{
    uint64_t *state = &d->state;
    if (draw_chance(state, 30)) {
        bool by_query = draw_chance(state, 50);
        int64_t count = by_query ? d->queries : 1;
        d->mask.valid_lengths = rapt_randint(0, d->keys + 1, RAPT_SHAPE(d->batch, count));
        if (!by_query) d->mask.valid_lengths = rapt_squeeze(d->mask.valid_lengths, 1);
    }
    d->mask.causal = draw_chance(state, 30);
    d->mask.window = draw_chance(state, 25) ? draw_below(state, d->keys) + 1 : 0;
    d->mask.offset = draw_chance(state, 30) ? draw_below(state, d->keys) - d->keys / 4 : 0;
    if (draw_chance(state, 25)) {
        int64_t shape[] = {d->batch, d->heads, d->queries, d->keys};
        for (int axis = 0; axis < 4; axis++)
            if (draw_chance(state, 40)) shape[axis] = 1;
        d->mask.seen = rapt_greater(rapt_rand(RAPT_FLOAT32, 4, shape), rapt_scalar(RAPT_FLOAT32, 0.3));
    }
    if (draw_chance(state, 25)) d->inputs[3] = d->mask.bias = draw_bias(d, d->keys, draw_chance(state, 40));
    if (draw_chance(state, 20))
        d->inputs[4] = d->mask.relative_bias = draw_bias(d, 2 * draw_below(state, 6) + 1, draw_chance(state, 20));
    draw_rules(state, d->batch, d->queries, d->keys, false, &d->mask);
}

/* A scoring function for queries and keys of sizes that it may change, in float32; and what its inputs are
 * multiplied by. */
typedef rapt_scoring *draw_scoring(drawn *d, double scales[2]);

static inline drawn draw_fused(uint64_t seed, draw_scoring *draw_one)
{
    drawn d = {.seed = seed, .state = seed * 77 + 5};
    uint64_t *state = &d.state;
    double scales[2] = {1, 1};
    rapt_seed(seed);
    d.dtype = draw_chance(state, 60) ? RAPT_FLOAT32 : RAPT_FLOAT64;
    d.batch = draw_below(state, 3) + 1;
    d.groups = draw_below(state, 2) + 1;
    d.heads = d.groups * (draw_below(state, 3) + 1);
    d.queries = draw_length(state, 40);
    const int64_t many_keys = d.queries <= 4 ? 1000 : 700; /* of several tiles, for few queries also in parts */
    d.keys = draw_chance(state, 5) ? draw_below(state, many_keys) + 1 : draw_length(state, 150);
    d.query_size = draw_length(state, 40);
    d.key_size = draw_length(state, 40);
    d.value_size = draw_length(state, 24);
    d.dropout = draw_chance(state, 20) ? 0.3 : 0;
    d.attention = rapt_attention_new(draw_one(&d, scales), d.dropout);
    cr_assert(d.attention, "%s", rapt_error());
    d.inputs[0] = draw_input(&d, d.heads, d.queries, d.query_size, &d.views[0]);
    d.inputs[1] = draw_input(&d, d.groups, d.keys, d.key_size, &d.views[1]);
    for (int i = 0; i < 2; i++)
        if (scales[i] != 1) d.views[i] = rapt_mul_scalar(d.views[i], scales[i]);
    d.inputs[2] = draw_input(&d, d.groups, d.keys, d.value_size, &d.views[2]);
    draw_fused_mask(&d);
    d.uses_weights = draw_chance(state, 50);
    d.uses_pooled = !d.uses_weights || draw_chance(state, 60);
    return d;
}

enum { most_wanted = 5 + most_parameters };

typedef struct answer {
    rapt_tensor *tensors[2 + most_wanted]; /* pooled, weights, gradients */
    double of_weights;                     /* the largest weight times its own gradient */
} answer;

static const char *const answer_names[] = {"pooled values", "weights",     "queries",       "keys",
                                           "values",        "bias",        "relative bias", "parameter 0",
                                           "parameter 1",   "parameter 2", "parameter 3",   "parameter 4",
                                           "parameter 5",   "parameter 6", "parameter 7",   "parameter 8"};

static inline void fail_drawn(const drawn *d, const char *what, double error)
{
    char modifications[200] = "none";
    for (int k = 0, used = 0; k < d->attention->modification_count; k++)
        used += snprintf(modifications + used, sizeof modifications - (size_t)used, "%s%s", k == 0 ? "" : ", ",
                         d->attention->modifications[k]->module.kind->name);
    cr_assert_fail("seed %llu: %s, error %g (%s, %s; batch %lld, %lld heads of %lld groups, %lld queries of %lld, %lld "
                   "keys of %lld, values of %lld; lengths %d, causal %d, window %lld, offset %lld, seen %d, bias %d, "
                   "relative bias %d, dropout %g; modifications %s) %s",
                   (unsigned long long)d->seed, what, error, d->attention->scoring->module.kind->name,
                   rapt_dtype_name(d->dtype), (long long)d->batch, (long long)d->heads, (long long)d->groups,
                   (long long)d->queries, (long long)d->query_size, (long long)d->keys, (long long)d->key_size,
                   (long long)d->value_size, d->mask.valid_lengths != NULL, d->mask.causal, (long long)d->mask.window,
                   (long long)d->mask.offset, d->mask.seen != NULL, d->mask.bias != NULL, d->mask.relative_bias != NULL,
                   d->dropout, modifications, rapt_error() ? rapt_error() : "");
}

/* A call that ran, what gradients start from, and what they are wanted of. */
typedef struct drawn_call {
    rapt_tensor *pooled, *weights, *roots[2], *wanted[most_wanted + 2];
    int places[most_wanted], count, root_count;
} drawn_call;

/* With the dtype of the inputs nothing is cast on the way. */
static inline drawn_call call_drawn(const drawn *d, bool plain, rapt_dtype dtype, bool keeps_weights)
{
    drawn_call c = {.count = 0};
    cr_assert(rapt_module_cast(&d->attention->module, dtype), "%s", rapt_error());
    parameter_list list = parameters_of(d->attention);
    for (int i = 0; i < 5 + list.count; i++) {
        rapt_tensor *one = i < 5 ? d->inputs[i] : list.tensors[i - 5];
        if (!one) continue;
        c.places[c.count] = i;
        c.wanted[c.count++] = one;
    }
    rapt_mask mask = d->mask;
    if (mask.bias) mask.bias = rapt_cast(mask.bias, dtype);
    if (mask.relative_bias) mask.relative_bias = rapt_cast(mask.relative_bias, dtype);
    rapt_tensor *views[3];
    for (int i = 0; i < 3; i++) views[i] = dtype == d->dtype ? d->views[i] : rapt_cast(d->views[i], dtype);
    d->attention->plain = plain;
    d->attention->keep_weights = d->uses_weights || keeps_weights;
    rapt_seed(d->seed + 1);
    c.pooled = rapt_attention_forward(d->attention, views[0], views[1], views[2], &mask);
    if (!c.pooled) fail_drawn(d, "gives NULL", 0);
    c.weights = d->attention->keep_weights ? rapt_field_get(&d->attention->weights) : NULL;
    if (d->uses_pooled) c.roots[c.root_count++] = c.pooled;
    if (d->uses_weights) c.roots[c.root_count++] = c.weights;
    return c;
}

static inline rapt_tensor *random_like(const rapt_tensor *x, rapt_dtype drawn_as)
{
    return rapt_cast(rapt_randn(drawn_as, rapt_rank(x), rapt_shape(x)), rapt_get_dtype(x));
}

/* Values and gradients, as float64. */
static inline answer run_drawn(const drawn *d, bool plain, rapt_dtype dtype)
{
    answer a = {.of_weights = 0};
    rapt_tensor *gradients[most_wanted], *from[2];
    const drawn_call c = call_drawn(d, plain, dtype, true);
    for (int k = 0; k < c.root_count; k++) from[k] = random_like(c.roots[k], d->dtype);
    if (!rapt_gradients(c.root_count, c.roots, from, c.count, c.wanted, gradients, RAPT_RETAIN_GRAPH))
        fail_drawn(d, "has no gradient", 0);
    a.tensors[0] = c.pooled;
    a.tensors[1] = c.weights;
    if (d->uses_weights) a.of_weights = largest_of(rapt_mul(c.weights, from[c.root_count - 1]));
    for (int i = 0; i < c.count; i++) a.tensors[2 + c.places[i]] = gradients[i];
    for (int i = 0; i < 2 + most_wanted; i++)
        if (a.tensors[i]) a.tensors[i] = rapt_clone(rapt_cast(rapt_detach(a.tensors[i]), RAPT_FLOAT64));
    return a;
}

/* The derivatives of a random projection of all gradients, by the gradients that these start from (in the places of
 * the pooled values and the weights) and by all inputs; in float64. */
static inline answer run_drawn_twice(const drawn *d, bool plain)
{
    answer a = {.of_weights = 0};
    rapt_tensor *first[most_wanted], *second[most_wanted + 2], *from[2],
        *projection = rapt_zeros(RAPT_FLOAT64, 0, NULL);
    drawn_call c = call_drawn(d, plain, RAPT_FLOAT64, false);
    for (int k = 0; k < c.root_count; k++)
        c.wanted[c.count + k] = from[k] = rapt_require_gradient(random_like(c.roots[k], d->dtype));
    if (!rapt_gradients(c.root_count, c.roots, from, c.count, c.wanted, first, RAPT_CREATE_GRAPH))
        fail_drawn(d, "has no gradient", 0);
    for (int i = 0; i < c.count; i++)
        if (first[i])
            projection =
                rapt_add(projection,
                         rapt_cast(rapt_sum(rapt_mul(first[i], random_like(first[i], d->dtype)), RAPT_ALL_AXES, false),
                                   RAPT_FLOAT64));
    if (!rapt_gradients(1, &projection, NULL, c.count + c.root_count, c.wanted, second, RAPT_RETAIN_GRAPH))
        fail_drawn(d, "has no second derivative", 0);
    for (int k = 0; k < c.root_count; k++) a.tensors[k] = second[c.count + k];
    for (int i = 0; i < c.count; i++) a.tensors[2 + c.places[i]] = second[i];
    return a;
}

/* Do both ways agree when they compute in the dtype of the inputs? */
static inline bool agree_as_drawn(const drawn *d, const answer *fused, int which, double allowed)
{
    const answer plain = run_drawn(d, true, d->dtype);
    return largest_of(rapt_sub(fused->tensors[which], plain.tensors[which])) <= allowed;
}

/* Scores (B, heads, Q, keys) by the plain way in float64, 0 where a key is not seen: pooled from the identity. */
static inline drawn_call score_drawn(const drawn *d)
{
    drawn scored = *d;
    rapt_attention *attention = d->attention;
    const rapt_attention kept = *attention;
    rapt_tensor *relative_values = attention->scoring->relative_values;
    scored.views[2] = rapt_expand(rapt_eye(d->dtype, d->keys), RAPT_SHAPE(d->batch, d->groups, d->keys, d->keys));
    attention->normalizer = rapt_masked_none;
    attention->dropout = 0;
    attention->sink = -(double)INFINITY;
    attention->sinks = NULL;
    attention->scoring->relative_values = NULL;
    scored.uses_pooled = true;
    scored.uses_weights = false;
    const drawn_call scores = call_drawn(&scored, true, RAPT_FLOAT64, false);
    attention->normalizer = kept.normalizer;
    attention->dropout = kept.dropout;
    attention->sink = kept.sink;
    attention->sinks = kept.sinks;
    attention->scoring->relative_values = relative_values;
    return scores;
}

/* Is that the gradient of sinks or of sigmoid's biases? */
static inline bool is_of_head_terms(const drawn *d, const drawn_call *c, int place)
{
    bool is = false;
    for (int i = 0; i < c->count; i++)
        is = is || (c->places[i] == place &&
                    (c->wanted[i] == d->attention->sinks || c->wanted[i] == d->attention->sigmoid_biases));
    return is;
}

/* By how much rounding may move the gradient of an input or parameter x in the fused way, which never has all weights
 * of a row: in dS = P (dP − D) it takes D = Σ dO O of outputs O, of which the sum and the factor 1 / Σ exp are rounded,
 * by 2 u A with A = Σ |dO| Σ P |V|, and where the weights have a gradient G too, Σ P |G| more. That goes to all scores
 * of the row alike, and so to x by Σ P ∂s/∂x; in the plain way, whose D is Σ P dP, it would go away again. The sum over
 * all rows of 2 u A |Σ P ∂s/∂x|. A head term counts in all scores of a row, or in D: 2 u A. Otherwise sigmoid has
 * no D. */
static inline double rounding_of_rows(const drawn *d, int place)
{
    const double unit = d->dtype == RAPT_FLOAT32 ? 0x1p-24 : 0x1p-53;
    const int64_t count = d->batch * d->heads * d->queries;
    double sum = 0;
    drawn sizes = *d;
    sizes.views[2] = rapt_abs(d->views[2]);
    const drawn_call read = call_drawn(&sizes, true, RAPT_FLOAT64, true);
    rapt_tensor *size = rapt_zeros(RAPT_FLOAT64, 0, NULL);
    for (int k = 0; k < read.root_count; k++) {
        rapt_tensor *from = rapt_abs(random_like(read.roots[k], d->dtype));
        size = rapt_add(size, rapt_sum(rapt_mul(from, read.roots[k]), RAPT_AXES(-1), true));
    }
    if (is_of_head_terms(d, &read, place)) return 2 * unit * rapt_item(rapt_sum(size, RAPT_ALL_AXES, false));
    if (d->attention->normalizer != rapt_masked_softmax) return 0;
    const drawn_call scores = score_drawn(d);
    rapt_tensor *rows = rapt_detach(rapt_reshape(rapt_mul(read.weights, size), RAPT_SHAPE(count, d->keys)));
    for (int64_t row = 0; row < count; row++) {
        RAPT_SCOPE;
        rapt_tensor *is_row = rapt_slice(rapt_eye(RAPT_FLOAT64, count), 1, row, row + 1, 1), *gradients[most_wanted];
        rapt_tensor *one = rapt_reshape(rapt_mul(rows, is_row), RAPT_SHAPE(d->batch, d->heads, d->queries, d->keys));
        if (!rapt_gradients(1, &scores.pooled, &one, scores.count, scores.wanted, gradients, RAPT_RETAIN_GRAPH))
            fail_drawn(d, "has no gradient by the scores", 0);
        for (int i = 0; i < scores.count; i++)
            if (scores.places[i] == place) sum += largest_of(gradients[i]);
    }
    return 2 * unit * sum;
}

/* Relative to the largest value: for pooled values, of those that are pooled; for a gradient, of all the gradients,
 * since one may be 0 but for rounding, and of what the weights give, since then all may be; and for biases and
 * parameters, whose gradients sum up what cancels, the roundings of all rows. Two cases in 10,000 cancel so far that
 * the definition in float32 is off as well; then both must agree. Of the others, one in 10,000 needs its rounding
 * computed. */
static inline void compare_answers(const drawn *d, const answer *exact, const answer *fused)
{
    const double tolerance = d->dtype == RAPT_FLOAT64 ? 1e-12 : 2e-6;
    double largest_gradient = exact->of_weights;
    for (int i = 2; i < 2 + most_wanted; i++) largest_gradient = fmax(largest_gradient, largest_of(exact->tensors[i]));
    for (int i = 0; i < 2 + most_wanted; i++) {
        rapt_tensor *a = exact->tensors[i], *b = fused->tensors[i];
        if (!a && !b) continue;
        if (!a || !b || !rapt_same_shape(a, b)) fail_drawn(d, answer_names[i], (double)NAN);
        double error = largest_of(rapt_sub(a, b)), largest = i == 0 ? largest_of(d->inputs[2]) : largest_gradient;
        if (i == 1) largest = largest_of(a);
        if (i >= 5) largest *= sqrt((double)(d->batch * d->heads * d->queries));
        const double allowed = tolerance * largest;
        if (!(error <= allowed) && !agree_as_drawn(d, fused, i, allowed) &&
            !(i >= 2 && error <= allowed + rounding_of_rows(d, i - 2)))
            fail_drawn(d, answer_names[i], error / largest);
    }
}

/* What is still to be drawn for an attention. */
typedef void draw_more(drawn *d);

/* Every `parts`-th case, from number `part` on: the fused way against the plain one in float64. */
static inline void run_more_drawn_cases(int cases, int part, int parts, draw_scoring *draw_one, draw_more *draw_rest)
{
    for (int i = part; i < cases; i += parts) {
        RAPT_SCOPE;
        drawn d = draw_fused((uint64_t)i, draw_one);
        if (draw_rest) draw_rest(&d);
        const answer exact = run_drawn(&d, true, RAPT_FLOAT64), fused = run_drawn(&d, false, d.dtype);
        compare_answers(&d, &exact, &fused);
        rapt_module_free(&d.attention->module);
    }
    expect_no_error();
}

static inline void run_drawn_cases(int cases, int part, int parts, draw_scoring *draw_one)
{
    run_more_drawn_cases(cases, part, parts, draw_one, NULL);
}

/* Likewise the second derivatives, in float64, to a part of the largest one. NULL is zeros. */
static inline void compare_more_second_derivatives(int cases, draw_scoring *draw_one, draw_more *draw_rest)
{
    for (int i = 0; i < cases; i++) {
        RAPT_SCOPE;
        drawn d = draw_fused((uint64_t)i + 70000, draw_one);
        if (draw_rest) draw_rest(&d);
        const answer plain = run_drawn_twice(&d, true), fused = run_drawn_twice(&d, false);
        double largest = 0;
        for (int k = 0; k < 2 + most_wanted; k++) largest = fmax(largest, largest_of(plain.tensors[k]));
        for (int k = 0; k < 2 + most_wanted; k++) {
            rapt_tensor *a = plain.tensors[k], *b = fused.tensors[k];
            const double error = largest_of(a && b ? rapt_sub(a, b) : a ? a : b);
            const double allowed = d.dtype == RAPT_FLOAT64 || k < 2 ? 1e-12 : 1e-6; /* as the gradient is rounded */
            if (!(error <= allowed * largest)) fail_drawn(&d, answer_names[k], error / largest);
        }
        rapt_module_free(&d.attention->module);
    }
    expect_no_error();
}

static inline void compare_second_derivatives(int cases, draw_scoring *draw_one)
{
    compare_more_second_derivatives(cases, draw_one, NULL);
}

#endif
