/* GRU and LSTM as loops in double, written from PyTorch's equations, with derivatives by differences: slow and
 * simple. */
#ifndef RAPT_TESTS_RECURRENT_REFERENCE_H
#define RAPT_TESTS_RECURRENT_REFERENCE_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { most_layers = 3, most_pieces = 3 + 4 * most_layers, most_numbers = 2000, most_outputs = 400 };

/* What goes in, one after the other in `numbers`: x, h, c (LSTM), then weight_ih, weight_hh, bias_ih, bias_hh of
 * each layer. */
typedef struct problem {
    int gates, layers, steps, batch, in, hidden;
    bool given; /* the initial states; else zeros */
    int pieces, start[most_pieces + 1];
    int outputs; /* outputs (T, B, H), final h (L, B, H), final c */
    double numbers[most_numbers];
} problem;

static inline void problem_add(problem *p, int count)
{
    p->start[p->pieces + 1] = p->start[p->pieces] + count;
    p->pieces++;
}

static inline void problem_lay_out(problem *p)
{
    bool has_cell = p->gates == 4;
    int state = p->layers * p->batch * p->hidden, width = p->gates * p->hidden;
    p->pieces = p->start[0] = 0;
    problem_add(p, p->steps * p->batch * p->in);
    problem_add(p, state);
    if (has_cell) problem_add(p, state);
    for (int l = 0; l < p->layers; l++) {
        problem_add(p, width * (l ? p->hidden : p->in));
        problem_add(p, width * p->hidden);
        problem_add(p, width);
        problem_add(p, width);
    }
    p->outputs = p->steps * p->batch * p->hidden + (has_cell ? 2 : 1) * state;
    for (int i = 0; i < p->start[p->pieces]; i++) p->numbers[i] = sin(1.7 * i + 0.3) * 0.9;
}

static inline double logistic(double x)
{
    return 1 / (1 + exp(-x));
}

static inline double dot(const double *a, const double *b, int count)
{
    double sum = 0;
    for (int i = 0; i < count; i++) sum += a[i] * b[i];
    return sum;
}

/* One unit of one item: x and h are the item's vectors, weights those of the layer, c the unit's cell. Returns h'. */
static inline double unit(const problem *p, const double *const *weight, int in, int u, const double *x,
                          const double *h, double *c)
{
    double i[4], s[4];
    for (int g = 0; g < p->gates; g++) {
        int row = g * p->hidden + u;
        i[g] = dot(weight[0] + row * in, x, in) + weight[2][row];
        s[g] = dot(weight[1] + row * p->hidden, h, p->hidden) + weight[3][row];
    }
    if (p->gates == 3) {
        double r = logistic(i[0] + s[0]), z = logistic(i[1] + s[1]), n = tanh(i[2] + r * s[2]);
        return (1 - z) * n + z * h[u];
    }
    *c = logistic(i[1] + s[1]) * *c + logistic(i[0] + s[0]) * tanh(i[2] + s[2]);
    return logistic(i[3] + s[3]) * tanh(*c);
}

static inline void reference_forward(const problem *p, double *outputs)
{
    const int first = p->gates == 4 ? 3 : 2, state = p->batch * p->hidden, sequence = p->steps * state;
    double layer_in[most_outputs], h[most_outputs], c[most_outputs] = {0};
    const double *x = p->numbers;
    for (int l = 0; l < p->layers; l++) {
        const double *weight[4];
        for (int w = 0; w < 4; w++) weight[w] = p->numbers + p->start[first + 4 * l + w];
        int in = l ? p->hidden : p->in;
        for (int i = 0; i < state; i++) {
            h[i] = p->given ? p->numbers[p->start[1] + l * state + i] : 0;
            c[i] = p->given && p->gates == 4 ? p->numbers[p->start[2] + l * state + i] : 0;
        }
        for (int t = 0; t < p->steps; t++) {
            double next[most_outputs];
            for (int b = 0; b < p->batch; b++)
                for (int u = 0; u < p->hidden; u++)
                    next[b * p->hidden + u] =
                        unit(p, weight, in, u, x + (t * p->batch + b) * in, h + b * p->hidden, &c[b * p->hidden + u]);
            memcpy(h, next, (size_t)state * sizeof *h);
            memcpy(outputs + t * state, h, (size_t)state * sizeof *h);
        }
        memcpy(outputs + sequence + l * state, h, (size_t)state * sizeof *h);
        if (p->gates == 4) memcpy(outputs + sequence + (p->layers + l) * state, c, (size_t)state * sizeof *c);
        memcpy(layer_in, outputs, (size_t)sequence * sizeof *layer_in);
        x = layer_in;
    }
}

/* The number that is differentiated: the outputs, each with a weight of its own. */
static inline double loss_weight(int output)
{
    return cos(0.7 * output);
}

static inline double reference_loss(const problem *p)
{
    double outputs[most_outputs], sum = 0;
    reference_forward(p, outputs);
    for (int i = 0; i < p->outputs; i++) sum += loss_weight(i) * outputs[i];
    return sum;
}

/* Differences of fourth order. */
static inline void reference_gradients(problem *p, double *gradients)
{
    const double step = 1e-3;
    for (int i = 0; i < p->start[p->pieces]; i++) {
        double value = p->numbers[i], at[4];
        const double offsets[] = {-2, -1, 1, 2};
        for (int k = 0; k < 4; k++) {
            p->numbers[i] = value + offsets[k] * step;
            at[k] = reference_loss(p);
        }
        p->numbers[i] = value;
        gradients[i] = (at[0] - 8 * at[1] + 8 * at[2] - at[3]) / (12 * step);
    }
}

#endif
