/* Transformers of a few sizes, and their layers written as plain loops over doubles, for the tests. */
#ifndef RAPT_TESTS_TRANSFORMER_H
#define RAPT_TESTS_TRANSFORMER_H

#include "modules.h"

typedef rapt_transformer_config config;

/* Hidden size 8 in 2 heads, float64 when cast. */
static const config small =
    {.hidden = 8, .heads = 2, .feed_forward = 5, .encoder_layers = 2, .decoder_layers = 2, .attention_bias = true};

/* Any module, cast to float64, in evaluation, with all parameters drawn anew. */
static inline void *drawn(void *module)
{
    draw_parameters(in_float64(module));
    rapt_module_train(module, false);
    return module;
}

static inline rapt_tensor *random_input(int64_t batch, int64_t length, int64_t size)
{
    return rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(batch, length, size));
}

/* Every element within 1e-12 of the other's. */
static inline void expect_equal(const char *what, rapt_tensor *actual, rapt_tensor *expected)
{
    RAPT_SCOPE;
    cr_assert(actual && expected, "%s: %s", what, rapt_error());
    expect_shape(actual, rapt_rank(expected), rapt_shape(expected));
    expect_values(what, actual, rapt_count(expected), values_of(expected), 1e-12);
}

/* x − mean over √(variance + 1e-5), times weight, plus bias, for each row of the last axis. */
static inline rapt_tensor *defined_norm(const rapt_layer_norm *norm, rapt_tensor *x)
{
    rapt_tensor *y = rapt_clone(x);
    const int64_t n = rapt_size(x, -1), rows = rapt_count(x) / n;
    const double *weight = values_of(norm->weight), *bias = norm->bias ? values_of(norm->bias) : NULL;
    double *row = rapt_data_for_writing(y);
    for (int64_t r = 0; r < rows; r++, row += n) {
        double mean = 0, variance = 0;
        for (int64_t i = 0; i < n; i++) mean += row[i] / (double)n;
        for (int64_t i = 0; i < n; i++) variance += (row[i] - mean) * (row[i] - mean) / (double)n;
        for (int64_t i = 0; i < n; i++)
            row[i] = (row[i] - mean) / sqrt(variance + 1e-5) * weight[i] + (bias ? bias[i] : 0);
    }
    return y;
}

/* x over √(mean of squares + epsilon), times weight, for each row of the last axis. */
static inline rapt_tensor *defined_rms_norm(const rapt_rms_norm *norm, double epsilon, rapt_tensor *x)
{
    rapt_tensor *y = rapt_clone(x);
    const int64_t n = rapt_size(x, -1), rows = rapt_count(x) / n;
    const double *weight = values_of(norm->weight);
    double *row = rapt_data_for_writing(y);
    for (int64_t r = 0; r < rows; r++, row += n) {
        double squares = 0;
        for (int64_t i = 0; i < n; i++) squares += row[i] * row[i] / (double)n;
        for (int64_t i = 0; i < n; i++) row[i] = row[i] / sqrt(squares + epsilon) * weight[i];
    }
    return y;
}

/* One output of a linear layer for one vector. */
static inline double defined_linear(const rapt_linear *linear, int64_t out, const double *x)
{
    double sum = linear->bias ? values_of(linear->bias)[out] : 0;
    const double *weight = values_of(linear->weight) + out * linear->in;
    for (int64_t i = 0; i < linear->in; i++) sum += weight[i] * x[i];
    return sum;
}

static inline double defined_activation(rapt_feed_forward_kind kind, double x)
{
    switch (kind) {
    case RAPT_FEED_FORWARD_RELU:
        return fmax(0, x);
    case RAPT_FEED_FORWARD_GELU:
        return x * 0.5 * (1 + erf(x / sqrt(2)));
    case RAPT_FEED_FORWARD_SWIGLU:
        return x / (1 + exp(-x));
    case RAPT_FEED_FORWARD_GELU_TANH:
        return 0.5 * x * (1 + tanh(sqrt(2 / acos(-1)) * (x + 0.044715 * x * x * x)));
    }
    return NAN;
}

static inline rapt_tensor *defined_feed_forward(const rapt_feed_forward *f, rapt_tensor *x)
{
    const int64_t vectors = rapt_count(x) / f->linear1->in, out = f->linear2->out;
    rapt_tensor *y = rapt_empty(RAPT_FLOAT64, RAPT_SHAPE(rapt_size(x, 0), rapt_size(x, 1), out));
    const double *from = values_of(x);
    double *to = rapt_data_for_writing(y), inner[64];
    for (int64_t v = 0; v < vectors; v++, from += f->linear1->in, to += out) {
        for (int64_t i = 0; i < f->linear1->out; i++) {
            inner[i] = defined_activation(f->kind, defined_linear(f->linear1, i, from));
            if (f->linear3) inner[i] *= defined_linear(f->linear3, i, from);
        }
        for (int64_t i = 0; i < out; i++) to[i] = defined_linear(f->linear2, i, inner);
    }
    return y;
}

/* A decoder's caches, one for each layer. */
enum { cached_layers = 2 };
typedef struct caches {
    rapt_decoder_cache layer[cached_layers];
} caches;

static inline void clear(caches *c)
{
    for (int i = 0; i < cached_layers; i++) rapt_decoder_cache_clear(&c->layer[i]);
}

#endif
