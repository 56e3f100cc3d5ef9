/* Random calls of attention, and what each must give by the definition: plain loops over doubles. */
#ifndef RAPT_TESTS_RANDOM_ATTENTION_H
#define RAPT_TESTS_RANDOM_ATTENTION_H

#include <stdlib.h>

#include "draw.h"
#include "mask_rules.h"
#include "scorings.h"

/* So small that all products of matrices go the same way, padded by 2 keys or not. */
enum { most_batch = 2, most_heads = 4, most_length = 6, most_size = 4, most_reach = 2 };
enum { most_places = most_batch * most_heads * most_length * most_length };
enum { most_numbers = most_batch * most_heads * most_length * most_size };

/* A tensor of a mask: it broadcasts to the scores' shape, or that without keys and with relative positions instead.
 * rank −1: none. */
typedef struct mask_field {
    int rank;
    int64_t shape[4];
    double data[most_places];
} mask_field;

/* What a case is made of. Numbers are such as the dtype holds. */
typedef struct attention_case {
    uint64_t seed;
    rapt_dtype dtype;
    const scoring_case *scoring;
    bool has_values; /* of a relative scoring */
    int normalizer;
    bool has_heads;
    int64_t batch, heads, groups, queries, keys, query_size, key_size, value_size;
    double query[most_numbers], key[most_numbers], value[most_numbers];
    int lengths_rank; /* 0: no lengths */
    rapt_dtype lengths_dtype;
    double lengths[most_batch * most_length];
    bool fills_million;
    int64_t reach;
    rapt_mask rules; /* causality, window and all that draw_rules draws */
    mask_field seen, bias, relative_bias;
} attention_case;

/* By the definition: weights (B, heads, Q, K), results (B, heads, Q, v), and which keys a query sees. */
typedef struct attention_result {
    double weights[most_places], pooled[most_numbers];
    /* how much more a row's weights may suffer by rounding than one number; infinite where a choice hangs on it */
    double error[most_batch * most_heads * most_length];
    bool seen[most_places];
} attention_result;

enum { softmax, sum_of_kernels, no_normalizer, hard, uniform, normalizer_count };
static const char *const normalizer_names[] = {"softmax", "sum", "none", "hard", "uniform"};
static rapt_normalizer *const normalizers[] = {rapt_masked_softmax, rapt_masked_sum, rapt_masked_none, rapt_masked_hard,
                                               rapt_masked_uniform};

/* A shape that broadcasts to the scores', with that last axis. */
static void draw_shape(uint64_t *state, const attention_case *c, int64_t last, mask_field *field)
{
    const int64_t full[] = {c->batch, c->heads, c->queries, last};
    const int64_t *shape = c->has_heads ? full : (int64_t[]){c->batch, c->queries, last};
    int rank = c->has_heads ? 4 : 3;
    field->rank = (int)draw_below(state, rank) + 1;
    for (int axis = 0; axis < field->rank; axis++) {
        int64_t size = shape[rank - field->rank + axis];
        field->shape[axis] = axis + 1 == field->rank || draw_chance(state, 60) ? size : 1;
    }
}

static int64_t field_count(const mask_field *field)
{
    int64_t count = 1;
    for (int axis = 0; axis < field->rank; axis++) count *= field->shape[axis];
    return count;
}

/* The element for that place, where the last axis is at `last`. */
static double field_at(const attention_case *c, const mask_field *field, int64_t b, int64_t h, int64_t i, int64_t last)
{
    const int64_t full[] = {b, h, i, last};
    const int64_t *place = c->has_heads ? full : (int64_t[]){b, i, last};
    int rank = c->has_heads ? 4 : 3;
    int64_t at = 0;
    for (int axis = 0; axis < field->rank; axis++)
        at = at * field->shape[axis] + (field->shape[axis] == 1 ? 0 : place[rank - field->rank + axis]);
    return field->data[at];
}

static double rounded(const attention_case *c, double x)
{
    return c->dtype == RAPT_FLOAT32 ? (double)(float)x : x;
}

/* Biases from −2 to 2, some −∞; for sums 0 or −∞, since a sum of any numbers may be as near to 0 as it likes. */
static void draw_biases(uint64_t *state, const attention_case *c, mask_field *field)
{
    int infinite = draw_chance(state, 50) ? 30 : 0;
    for (int64_t n = 0; n < field_count(field); n++) {
        double bias = c->normalizer == sum_of_kernels ? 0 : rounded(c, draw_number(state));
        field->data[n] = draw_chance(state, infinite) ? -(double)INFINITY : bias;
    }
}

static void draw_mask(uint64_t *state, attention_case *c)
{
    c->lengths_rank = (int)draw_below(state, 3);
    c->lengths_dtype = (rapt_dtype)draw_below(state, RAPT_UINT8 + 1);
    for (int64_t n = 0; n < c->batch * (c->queries > 0 ? c->queries : 1); n++) { /* read without queries too */
        c->lengths[n] = (double)draw_below(state, c->keys + 1);
        if (c->lengths_dtype <= RAPT_FLOAT64 && draw_chance(state, 30)) c->lengths[n] -= 0.5;
    }
    c->rules = (rapt_mask){.causal = draw_chance(state, 30)};
    c->rules.window = draw_chance(state, 30) ? draw_below(state, 4) + 1 : 0;
    c->rules.offset = draw_chance(state, 50) ? 0 : draw_below(state, 7) - 2;
    c->seen.rank = c->bias.rank = c->relative_bias.rank = -1;
    c->reach = 0;
    if (draw_chance(state, 30)) {
        draw_shape(state, c, c->keys, &c->seen);
        for (int64_t n = 0; n < field_count(&c->seen); n++) c->seen.data[n] = draw_chance(state, 70);
    }
    if (draw_chance(state, 30)) {
        draw_shape(state, c, c->keys, &c->bias);
        draw_biases(state, c, &c->bias);
    }
    if (draw_chance(state, 25)) {
        c->reach = draw_below(state, most_reach + 1);
        draw_shape(state, c, 2 * c->reach + 1, &c->relative_bias);
        draw_biases(state, c, &c->relative_bias);
    }
    c->fills_million = c->normalizer == softmax && draw_chance(state, 8);
    draw_rules(state, c->batch, c->queries, c->keys, false, &c->rules);
}

static attention_case draw_case(uint64_t seed, rapt_dtype dtype)
{
    attention_case c;
    uint64_t state = seed;
    c.seed = seed;
    c.dtype = dtype;
    c.scoring = &scoring_cases[draw_below(&state, scoring_case_count)];
    c.has_values = draw_chance(&state, 50);
    do c.normalizer = draw_chance(&state, 50) ? softmax : (int)draw_below(&state, normalizer_count);
    while (c.normalizer == sum_of_kernels && !c.scoring->is_kernel);
    c.has_heads = draw_chance(&state, 60);
    c.batch = draw_below(&state, most_batch) + 1;
    c.groups = c.has_heads ? draw_below(&state, most_heads) + 1 : 1;
    c.heads = c.has_heads ? c.groups * (draw_below(&state, most_heads / c.groups) + 1) : 1;
    c.queries = draw_chance(&state, 1) ? 0 : draw_below(&state, most_length) + 1;
    c.keys = draw_chance(&state, 1) ? 0 : draw_below(&state, most_length) + 1;
    c.query_size = draw_below(&state, most_size) + 1;
    c.key_size = c.scoring->one_size ? c.query_size : draw_below(&state, most_size) + 1;
    c.value_size = draw_below(&state, most_size) + 1;
    /* In eighths half of the time: then there are equal vectors, and distances are 1 exactly. A boxcar jumps there. */
    bool eighths = draw_chance(&state, 50) || c.scoring->define == defined_boxcar;
    const struct {
        double *numbers;
        int64_t count;
    } parts[] = {{c.query, c.batch * c.heads * c.queries * c.query_size},
                 {c.key, c.batch * c.groups * c.keys * c.key_size},
                 {c.value, c.batch * c.groups * c.keys * c.value_size}};
    for (int part = 0; part < 3; part++)
        for (int64_t n = 0; n < parts[part].count; n++) {
            double number = draw_number(&state);
            parts[part].numbers[n] = eighths ? floor(number * 8) / 8 : rounded(&c, number);
        }
    draw_mask(&state, &c);
    return c;
}

static bool is_seen(const attention_case *c, int64_t b, int64_t h, int64_t i, int64_t j, double *bias)
{
    int64_t position = j - place_of(&c->rules, b, i);
    int64_t clamped = position < -c->reach ? -c->reach : position > c->reach ? c->reach : position;
    *bias = 0;
    if (c->bias.rank >= 0) *bias += field_at(c, &c->bias, b, h, i, j);
    if (c->relative_bias.rank >= 0) *bias += field_at(c, &c->relative_bias, b, h, i, c->reach + clamped);
    if (c->lengths_rank && (double)j >= c->lengths[c->lengths_rank == 1 ? b : b * c->queries + i]) return false;
    if (!rules_show(&c->rules, b, h, i, j, c->keys)) return false;
    if (c->seen.rank >= 0 && field_at(c, &c->seen, b, h, i, j) == 0) return false;
    return *bias > -(double)INFINITY;
}

/* Scores of one query to weights. Scores are exact where equal ones are equal however they are computed. */
static void normalize(int normalizer, int64_t keys, const bool *seen, const double *a, bool exact, double *w,
                      double *error)
{
    double largest = 0, sum = 0;
    int64_t first = -1;
    for (int64_t j = 0; j < keys; j++) {
        if (!seen[j]) continue;
        if (first < 0 || a[j] > a[first]) first = j;
        largest = fmax(largest, fabs(a[j]));
    }
    *error = 1 + largest;
    for (int64_t j = 0; j < keys; j++) {
        w[j] = 0;
        if (!seen[j]) continue;
        w[j] = normalizer == softmax ? exp(a[j] - a[first]) : normalizer == uniform ? 1 : a[j];
        if (normalizer == hard) {
            w[j] = j == first;
            if (j != first && a[first] - a[j] < 1e-4 && !(exact && a[first] == a[j])) *error = (double)INFINITY;
        }
        sum += w[j];
    }
    if (normalizer == sum_of_kernels && sum > 0) *error = 1 + 1 / sum;
    for (int64_t j = 0; j < keys && normalizer != no_normalizer; j++) w[j] = sum > 0 ? w[j] / sum : 0;
}

/* The whole definition. parameters: what the scoring function's hold, in the order of the module. */
static void define(const attention_case *c, const double *const *parameters, attention_result *r)
{
    scored_pair pair = {.query_size = c->query_size, .key_size = c->key_size};
    for (int p = 0; p < most_parameters; p++) pair.parameters[p] = parameters[p];
    const bool adds_values = c->has_values && c->scoring->define == defined_relative;
    const bool exact = c->scoring->define == defined_constant || c->scoring->define == defined_boxcar;
    const bool all_seen[most_length] = {true, true, true, true, true, true};
    for (int64_t row = 0; row < c->batch * c->heads * c->queries; row++) {
        int64_t b = row / c->queries / c->heads, h = row / c->queries % c->heads, i = row % c->queries;
        int64_t first_key = (b * c->groups + h * c->groups / c->heads) * c->keys;
        double scores[most_length], *weights = &r->weights[row * c->keys];
        bool *seen = &r->seen[row * c->keys];
        pair.query = &c->query[row * c->query_size];
        pair.i = place_of(&c->rules, b, i);
        for (int64_t j = 0; j < c->keys; j++) {
            double bias;
            pair.key = &c->key[(first_key + j) * c->key_size];
            pair.j = j;
            seen[j] = is_seen(c, b, h, i, j, &bias);
            scores[j] = seen[j] ? c->scoring->define(&pair) + bias : -1e6;
        }
        normalize(c->normalizer, c->keys, c->fills_million ? all_seen : seen, scores, exact, weights, &r->error[row]);
        for (int64_t v = 0; v < c->value_size; v++) {
            double *pooled = &r->pooled[row * c->value_size + v];
            *pooled = 0;
            for (int64_t j = 0; j < c->keys; j++) {
                int64_t position = j - place_of(&c->rules, b, i);
                int64_t place = position < -scoring_reach  ? 0
                                : position > scoring_reach ? 2 * scoring_reach
                                                           : scoring_reach + position;
                if (weights[j] == 0) continue;
                *pooled += weights[j] * c->value[(first_key + j) * c->value_size + v];
                if (adds_values) *pooled += weights[j] * parameters[1][place * c->value_size + v];
            }
        }
    }
}

#endif
