/* GRU and LSTM: stacks of recurrent layers, of one direction or two, and their weights. */
#include <rapt/recurrent.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "nn/entry.h"

static void destroy(rapt_module *module)
{
    free(((rapt_recurrent *)module)->layer);
}

static void describe(const rapt_module *module, char *text, size_t size)
{
    const rapt_recurrent *r = (const rapt_recurrent *)module;
    snprintf(text, size, "%lld -> %lld, %d %slayer%s, dropout %g", (long long)r->in, (long long)r->hidden, r->layers,
             r->directions == 2 ? "bidirectional " : "", r->layers == 1 ? "" : "s", r->dropout);
}

static const rapt_module_class gru_kind = {.name = "GRU", .destroy = destroy, .describe = describe};
static const rapt_module_class lstm_kind = {.name = "LSTM", .destroy = destroy, .describe = describe};

/* weight_ih_l0, weight_ih_l0_reverse and their like: uniform within ±1/√hidden. */
static rapt_tensor *add(rapt_recurrent *r, const char *what, int number, int rank, const int64_t *shape)
{
    char name[32];
    const bool reverse = number % r->directions > 0;
    snprintf(name, sizeof name, "%s_l%d%s", what, number / r->directions, reverse ? "_reverse" : "");
    return rapt_module_add_parameter(&r->module, name, rapt_new_uniform(rank, shape, 1 / sqrt((double)r->hidden)));
}

static void *recurrent_new(const rapt_module_class *kind, int gates, int directions, int64_t in, int64_t hidden,
                           int layers, double dropout)
{
    RAPT_SCOPE;
    if (in < 1 || hidden < 1 || hidden > INT64_MAX / gates || layers < 1 || layers > 1000 ||
        !(dropout >= 0 && dropout <= 1)) {
        rapt_fail(
            RAPT_ERROR_VALUE, kind->name,
            "input size %lld, hidden size %lld, %d layers, dropout %g; input sizes of 1 or more, hidden sizes of 1 to "
            "%lld, 1 to 1000 layers and a dropout of 0 to 1 expected",
            (long long)in, (long long)hidden, layers, dropout, (long long)(INT64_MAX / gates));
        return NULL;
    }
    rapt_recurrent *r = rapt_module_new(sizeof *r, kind);
    if (!r) return NULL;
    r->in = in;
    r->hidden = hidden;
    r->layers = layers;
    r->gates = gates;
    r->directions = directions;
    r->dropout = dropout;
    const int count = layers * directions;
    r->layer = calloc((size_t)count, sizeof *r->layer);
    r->module.failed = !r->layer && !rapt_fail(RAPT_ERROR_MEMORY, kind->name, "no memory for %d layers", layers);
    int64_t width = gates * hidden;
    for (int i = 0; i < count && !r->module.failed; i++) {
        r->layer[i].weight_ih = add(r, "weight_ih", i, RAPT_SHAPE(width, i < directions ? in : directions * hidden));
        r->layer[i].weight_hh = add(r, "weight_hh", i, RAPT_SHAPE(width, hidden));
        r->layer[i].bias_ih = add(r, "bias_ih", i, RAPT_SHAPE(width));
        r->layer[i].bias_hh = add(r, "bias_hh", i, RAPT_SHAPE(width));
    }
    return rapt_module_finish(&r->module);
}

rapt_gru *rapt_gru_new(int64_t in, int64_t hidden, int layers, double dropout)
{
    return recurrent_new(&gru_kind, 3, 1, in, hidden, layers, dropout);
}

rapt_gru *rapt_bidirectional_gru_new(int64_t in, int64_t hidden, int layers, double dropout)
{
    return recurrent_new(&gru_kind, 3, 2, in, hidden, layers, dropout);
}

rapt_lstm *rapt_lstm_new(int64_t in, int64_t hidden, int layers, double dropout)
{
    return recurrent_new(&lstm_kind, 4, 1, in, hidden, layers, dropout);
}

rapt_lstm *rapt_bidirectional_lstm_new(int64_t in, int64_t hidden, int layers, double dropout)
{
    return recurrent_new(&lstm_kind, 4, 2, in, hidden, layers, dropout);
}
