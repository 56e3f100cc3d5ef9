/* Random problems of dot-product attention, and what they must give by the definition: plain loops over doubles. */
#ifndef RAPT_TESTS_DOT_ATTENTION_REFERENCE_H
#define RAPT_TESTS_DOT_ATTENTION_REFERENCE_H

#include <math.h>
#include <stdlib.h>

#include "draw.h"
#include "tensor/kernels.h"

/* One problem: everything in doubles that the type under test holds exactly, dense in the order of the axes. */
typedef struct problem {
    rapt_dtype dtype;
    int64_t batch, heads, groups, queries, keys, size, value_size, reach, offset;
    bool is_gaussian, has_bias, has_relative_bias, has_seen, has_ranges;
    double scale, keep, largest_product;          /* of the gradient and a value */
    double *q, *k, *v, *g, *bias, *relative_bias; /* g: the gradient of the output */
    double *of_weights;                           /* the gradient that the weights have of their own; NULL: none */
    double *out, *weights, *dq, *dk, *dv, *d_scores, *d_relative_bias, *unit; /* by the definition; unit: 0 or 1/keep */
    uint8_t *seen;
    int64_t *ranges;
} problem;

static void *allocate(int64_t count, size_t bytes)
{
    void *block = calloc((size_t)(count > 0 ? count : 1), bytes);
    if (!block) abort();
    return block;
}

static double *new_numbers(int64_t count)
{
    return allocate(count, sizeof(double));
}

static double *draw_numbers(uint64_t *state, const problem *p, int64_t count, double spread)
{
    double *numbers = new_numbers(count);
    for (int64_t i = 0; i < count; i++) {
        numbers[i] = draw_number(state) * spread;
        if (p->dtype == RAPT_FLOAT32) numbers[i] = (double)(float)numbers[i];
    }
    return numbers;
}

static int64_t count_rows(const problem *p)
{
    return p->batch * p->heads * p->queries;
}

static int64_t count_keys(const problem *p)
{
    return p->batch * p->groups * p->keys;
}

static void draw_mask(uint64_t *state, problem *p)
{
    const int64_t rows = count_rows(p), positions = 2 * p->reach + 1;
    p->bias = draw_numbers(state, p, rows * p->keys, 1);
    p->relative_bias = draw_numbers(state, p, rows * positions, 1);
    p->seen = allocate(rows * p->keys, 1);
    p->ranges = allocate(p->batch * p->queries * 2, sizeof *p->ranges);
    const bool sparse = draw_chance(state, 30); /* whole tiles of it may be hidden */
    for (int64_t i = 0; i < rows * p->keys; i++) {
        p->seen[i] = (uint8_t)(sparse ? i / 97 % 3 == 0 : draw_chance(state, 70));
        if (draw_chance(state, 5)) p->bias[i] = -(double)INFINITY;
    }
    for (int64_t i = 0; i < p->batch * p->queries; i++) {
        p->ranges[2 * i] = draw_chance(state, 50) ? 0 : draw_below(state, p->keys + 1);
        p->ranges[2 * i + 1] = p->ranges[2 * i] + draw_below(state, p->keys - p->ranges[2 * i] + 1);
    }
    p->has_bias = draw_chance(state, 30);
    p->has_relative_bias = draw_chance(state, 30);
    p->has_seen = draw_chance(state, 30);
    p->has_ranges = draw_chance(state, 50);
}

/* Half of the problems have few queries, as in decoding, and of those half so many keys that they are cut into
 * parts. */
static problem draw_problem(uint64_t *state, rapt_dtype dtype, int64_t size, int64_t value_size, int64_t longest)
{
    problem p = {.dtype = dtype, .size = size, .value_size = value_size};
    p.batch = draw_below(state, 2) + 1;
    p.groups = draw_below(state, 2) + 1;
    p.heads = p.groups * (draw_below(state, 2) + 1);
    const bool has_few = draw_chance(state, 50);
    p.queries = draw_below(state, has_few ? 4 : longest) + 1;
    p.keys = draw_below(state, has_few && draw_chance(state, 50) ? 1500 : longest) + 1;
    p.reach = draw_below(state, 4);
    p.offset = draw_below(state, 5) - 2;
    p.is_gaussian = draw_chance(state, 25);
    p.scale = p.is_gaussian ? 1 : (double)(float)(1 / sqrt((double)size));
    p.keep = draw_chance(state, 25) ? 0.75 : 1;
    const double spread = p.is_gaussian ? 1 / sqrt((double)size) : 1;
    p.q = draw_numbers(state, &p, count_rows(&p) * size, spread);
    p.k = draw_numbers(state, &p, count_keys(&p) * size, spread);
    p.v = draw_numbers(state, &p, count_keys(&p) * value_size, 1);
    p.g = draw_numbers(state, &p, count_rows(&p) * value_size, 1);
    draw_mask(state, &p);
    if (draw_chance(state, 40)) p.of_weights = draw_numbers(state, &p, count_rows(&p) * p.keys, 1);
    return p;
}

static void free_problem(problem *p)
{
    double *all[] = {p->q,         p->k,  p->v,  p->g,  p->bias,     p->relative_bias,   p->out,
                     p->weights,   p->dq, p->dk, p->dv, p->d_scores, p->d_relative_bias, p->unit,
                     p->of_weights};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
    free(p->seen);
    free(p->ranges);
}

static int64_t position_place(const problem *p, int64_t row, int64_t j)
{
    const int64_t position = j - row % p->queries - p->offset;
    const int64_t clamped = position < -p->reach ? -p->reach : position > p->reach ? p->reach : position;
    return row * (2 * p->reach + 1) + p->reach + clamped;
}

static double define_score(const problem *p, int64_t row, int64_t j, const double *q, const double *k)
{
    const int64_t *range = p->ranges + 2 * (row / p->queries / p->heads * p->queries + row % p->queries);
    double score = 0;
    for (int64_t t = 0; t < p->size; t++)
        score += p->is_gaussian ? -0.5 * (q[t] - k[t]) * (q[t] - k[t]) : p->scale * q[t] * k[t];
    if (p->has_bias) score += p->bias[row * p->keys + j];
    if (p->has_relative_bias) score += p->relative_bias[position_place(p, row, j)];
    if (p->has_ranges && (j < range[0] || j >= range[1])) return -(double)INFINITY;
    return p->has_seen && !p->seen[row * p->keys + j] ? -(double)INFINITY : score;
}

static void define_row(problem *p, int64_t row)
{
    const int64_t head = row / p->queries, group = head / p->heads * p->groups + head % p->heads * p->groups / p->heads;
    const double *q = p->q + row * p->size, *k = p->k + group * p->keys * p->size;
    const double *v = p->v + group * p->keys * p->value_size, *g = p->g + row * p->value_size;
    double *w = p->weights + row * p->keys, largest = -(double)INFINITY, sum = 0, mean = 0;
    for (int64_t j = 0; j < p->keys; j++) {
        w[j] = define_score(p, row, j, q, k + j * p->size);
        largest = fmax(largest, w[j]);
    }
    for (int64_t j = 0; j < p->keys; j++) sum += w[j] = w[j] == -(double)INFINITY ? 0 : exp(w[j] - largest);
    for (int64_t j = 0; j < p->keys; j++) {
        double *of_weight = p->d_scores + row * p->keys + j;
        const double unit = p->unit[row * p->keys + j];
        w[j] = sum > 0 ? w[j] / sum : 0;
        for (int64_t t = 0; t < p->value_size; t++) {
            p->out[row * p->value_size + t] += w[j] * unit * v[j * p->value_size + t];
            p->dv[(group * p->keys + j) * p->value_size + t] += w[j] * unit * g[t];
            *of_weight += unit * g[t] * v[j * p->value_size + t];
        }
        if (p->of_weights) *of_weight += p->of_weights[row * p->keys + j];
        p->largest_product = fmax(p->largest_product, fabs(*of_weight));
        mean += w[j] * *of_weight;
    }
    for (int64_t j = 0; j < p->keys; j++) {
        double *d = p->d_scores + row * p->keys + j;
        *d = w[j] * (*d - mean);
        if (p->has_relative_bias) p->d_relative_bias[position_place(p, row, j)] += *d;
        for (int64_t t = 0; t < p->size; t++) {
            const double other = p->is_gaussian ? k[j * p->size + t] - q[t] : p->scale * k[j * p->size + t];
            const double back = p->is_gaussian ? -other : p->scale * q[t];
            p->dq[row * p->size + t] += *d * other;
            p->dk[(group * p->keys + j) * p->size + t] += *d * back;
        }
    }
}

static void define(problem *p, rapt_random_state random)
{
    const int64_t rows = count_rows(p), places = rows * p->keys;
    p->out = new_numbers(rows * p->value_size);
    p->weights = new_numbers(places);
    p->dq = new_numbers(rows * p->size);
    p->dk = new_numbers(count_keys(p) * p->size);
    p->dv = new_numbers(count_keys(p) * p->value_size);
    p->d_scores = new_numbers(places);
    p->d_relative_bias = new_numbers(rows * (2 * p->reach + 1));
    p->unit = new_numbers(places);
    uint8_t *kept = allocate(places, 1);
    rapt_kernel.random.bernoulli(random, 0, places, kept, p->keep, 0);
    for (int64_t i = 0; i < places; i++) p->unit[i] = p->keep < 1 ? kept[i] / p->keep : 1;
    free(kept);
    for (int64_t row = 0; row < rows; row++) define_row(p, row);
}

#endif
