/* GRU and LSTM: stacks of recurrent layers, by the fused recurrence or step by step from ops. */
#include <rapt/recurrent.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "recurrence.h"
#include "tensor/random.h"
#include "tensor/scratch.h"

static void destroy(rapt_module *module)
{
    free(((rapt_recurrent *)module)->layer);
}

static void describe(const rapt_module *module, char *text, size_t size)
{
    const rapt_recurrent *r = (const rapt_recurrent *)module;
    snprintf(text, size, "%lld -> %lld, %d layer%s, dropout %g", (long long)r->in, (long long)r->hidden, r->layers,
             r->layers == 1 ? "" : "s", r->dropout);
}

static const rapt_module_class gru_kind = {.name = "GRU", .destroy = destroy, .describe = describe};
static const rapt_module_class lstm_kind = {.name = "LSTM", .destroy = destroy, .describe = describe};

/* weight_ih_l0 and its like: uniform within ±1/√hidden. */
static rapt_tensor *add(rapt_recurrent *r, const char *what, int layer, int rank, const int64_t *shape)
{
    char name[32];
    snprintf(name, sizeof name, "%s_l%d", what, layer);
    double bound = 1 / sqrt((double)r->hidden);
    rapt_tensor *tensor = rapt_empty(RAPT_FLOAT32, rank, shape);
    bool good = tensor && rapt_fill_uniform(tensor, -bound, bound);
    return rapt_module_add_parameter(&r->module, name, good ? tensor : NULL);
}

static void *recurrent_new(const rapt_module_class *kind, int gates, int64_t in, int64_t hidden, int layers,
                           double dropout)
{
    RAPT_SCOPE;
    if (in < 1 || hidden < 1 || hidden > INT64_MAX / gates || layers < 1 || layers > 1000 ||
        !(dropout >= 0 && dropout <= 1)) {
        rapt_fail(
            RAPT_ERROR_VALUE, kind->name,
            "input size %lld, hidden size %lld, %d layers, dropout %g; sizes of 1 or more, 1 to 1000 layers and a "
            "dropout of 0 to 1 expected",
            (long long)in, (long long)hidden, layers, dropout);
        return NULL;
    }
    rapt_recurrent *r = rapt_module_new(sizeof *r, kind);
    if (!r) return NULL;
    r->in = in;
    r->hidden = hidden;
    r->layers = layers;
    r->gates = gates;
    r->dropout = dropout;
    r->layer = calloc((size_t)layers, sizeof *r->layer);
    r->module.failed = !r->layer && !rapt_fail(RAPT_ERROR_MEMORY, kind->name, "no memory for %d layers", layers);
    int64_t width = gates * hidden;
    for (int i = 0; i < layers && !r->module.failed; i++) {
        r->layer[i].weight_ih = add(r, "weight_ih", i, RAPT_SHAPE(width, i == 0 ? in : hidden));
        r->layer[i].weight_hh = add(r, "weight_hh", i, RAPT_SHAPE(width, hidden));
        r->layer[i].bias_ih = add(r, "bias_ih", i, RAPT_SHAPE(width));
        r->layer[i].bias_hh = add(r, "bias_hh", i, RAPT_SHAPE(width));
    }
    return rapt_module_finish(&r->module);
}

rapt_gru *rapt_gru_new(int64_t in, int64_t hidden, int layers, double dropout)
{
    return recurrent_new(&gru_kind, 3, in, hidden, layers, dropout);
}

rapt_lstm *rapt_lstm_new(int64_t in, int64_t hidden, int layers, double dropout)
{
    return recurrent_new(&lstm_kind, 4, in, hidden, layers, dropout);
}

typedef struct rapt_recurrent_layer layer;

/* h' = (1 − z)·n + z·h, from the projections of input and state */
static rapt_tensor *gru_step(rapt_tensor *i, rapt_tensor *h, rapt_tensor *state)
{
    int64_t hidden = rapt_size(state, 1);
    rapt_tensor *i_part[3], *h_part[3];
    const int64_t thirds[] = {hidden, hidden, hidden};
    if (!rapt_split(i, 1, 3, thirds, i_part) || !rapt_split(h, 1, 3, thirds, h_part)) return NULL;
    rapt_tensor *r = rapt_sigmoid(rapt_add(i_part[0], h_part[0]));
    rapt_tensor *z = rapt_sigmoid(rapt_add(i_part[1], h_part[1]));
    rapt_tensor *n = rapt_tanh(rapt_add(i_part[2], rapt_mul(r, h_part[2])));
    return rapt_add(n, rapt_mul(z, rapt_sub(state, n)));
}

/* c' = f·c + i·g, h' = o·tanh(c'); *cell goes from c to c' */
static rapt_tensor *lstm_step(rapt_tensor *i, rapt_tensor *h, rapt_tensor **cell)
{
    int64_t hidden = rapt_size(*cell, 1);
    rapt_tensor *part[4];
    if (!rapt_split(rapt_add(i, h), 1, 4, (int64_t[]){hidden, hidden, hidden, hidden}, part)) return NULL;
    rapt_tensor *kept = rapt_mul(rapt_sigmoid(part[1]), *cell);
    *cell = rapt_add(kept, rapt_mul(rapt_sigmoid(part[0]), rapt_tanh(part[2])));
    return rapt_mul(rapt_sigmoid(part[3]), rapt_tanh(*cell));
}

/* One layer from ops. states[0] and, of an LSTM, [1] become sequences (T, B, hidden). */
static bool run_plain(const layer *l, int gates, rapt_tensor *from_input, rapt_tensor *state, rapt_tensor *cell,
                      rapt_tensor **states)
{
    const bool has_cell = gates == 4;
    int64_t steps = rapt_size(from_input, 0);
    rapt_tensor **sequence = rapt_scratch_list("recurrent", 2 * steps, sizeof *sequence);
    if (!sequence) return false;
    for (int64_t t = 0; t < steps && state; t++) {
        rapt_tensor *i = rapt_select(from_input, 0, t), *h = rapt_affine(state, l->weight_hh, l->bias_hh);
        state = has_cell ? lstm_step(i, h, &cell) : gru_step(i, h, state);
        sequence[t] = state;
        sequence[steps + t] = cell;
    }
    states[0] = state ? rapt_stack((int)steps, sequence, 0) : NULL;
    states[1] = state && has_cell ? rapt_stack((int)steps, sequence + steps, 0) : NULL;
    return states[0] && (!has_cell || states[1]);
}

static bool run_fused(const layer *l, int gates, rapt_tensor *from_input, rapt_tensor *state, rapt_tensor *cell,
                      rapt_tensor **states)
{
    if (gates == 4) return rapt_lstm_recurrence(from_input, state, cell, l->weight_hh, l->bias_hh, states);
    states[0] = rapt_gru_recurrence(from_input, state, l->weight_hh, l->bias_hh);
    return states[0] != NULL;
}

/* x: the input, `width` numbers for each item and step. */
static bool check(const rapt_recurrent *r, const rapt_tensor *x, int64_t width, const rapt_tensor *state,
                  const rapt_tensor *cell)
{
    const char *op = r->module.kind->name;
    char text[128];
    if (!x) return rapt_fail(RAPT_ERROR_NULL, op, "the input is NULL");
    if (rapt_rank(x) != 3 || rapt_size(x, 2) != width || rapt_size(x, 0) < 1)
        return rapt_fail(RAPT_ERROR_SHAPE, op, "input (T, B, %lld) with T of 1 or more expected, not %s",
                         (long long)width, rapt_describe(x, text, sizeof text));
    for (int i = 0; i < 2; i++) {
        const rapt_tensor *s = i ? cell : state;
        if (s && (rapt_rank(s) != 3 || rapt_size(s, 0) != r->layers || rapt_size(s, 1) != rapt_size(x, 1) ||
                  rapt_size(s, 2) != r->hidden))
            return rapt_fail(RAPT_ERROR_SHAPE, op, "state [%d, %lld, %lld] expected, not %s", r->layers,
                             (long long)rapt_size(x, 1), (long long)r->hidden, rapt_describe(s, text, sizeof text));
    }
    return true;
}

/* The state of one layer: its part of what was given, or zeros, which the fused way knows without being given them. */
static bool initial(const rapt_recurrent *r, rapt_tensor *x, rapt_tensor *given, int i, rapt_tensor **state)
{
    *state = given      ? rapt_select(given, 0, i)
             : r->plain ? rapt_zeros(rapt_get_dtype(x), RAPT_SHAPE(rapt_size(x, 1), r->hidden))
                        : NULL;
    return *state || !(given || r->plain);
}

/* Runs all layers, from x or, if that is not NULL, what the first one makes of it; last[0] and last[1] (of `layers`
 * tensors each; [1] NULL for a GRU) become the final states. */
static rapt_tensor *run_layers(rapt_recurrent *r, rapt_tensor *x, rapt_tensor *projected, rapt_tensor *state,
                               rapt_tensor *cell, rapt_tensor **last[2])
{
    for (int i = 0; i < r->layers && x; i++) {
        const layer *l = &r->layer[i];
        rapt_tensor *states[2], *h, *c = NULL;
        rapt_tensor *from_input = projected && i == 0 ? projected : rapt_affine(x, l->weight_ih, l->bias_ih);
        if (!from_input || !initial(r, x, state, i, &h) || (last[1] && !initial(r, x, cell, i, &c)) ||
            !(r->plain ? run_plain : run_fused)(l, r->gates, from_input, h, c, states))
            return NULL;
        last[0][i] = rapt_select(states[0], 0, -1);
        if (last[1]) last[1][i] = rapt_select(states[1], 0, -1);
        bool drops = r->module.training && r->dropout > 0 && i < r->layers - 1;
        x = drops ? rapt_drop(states[0], r->dropout) : states[0];
    }
    return x;
}

static rapt_tensor *recurrent_forward(rapt_recurrent *r, rapt_tensor *x, rapt_tensor *projected, rapt_tensor *state,
                                      rapt_tensor *cell, rapt_tensor **final_state, rapt_tensor **final_cell)
{
    RAPT_UNDO_DRAWS;
    if (!check(r, x, projected ? r->gates * r->hidden : r->in, state, cell)) return NULL;
    bool has_cell = r->gates == 4;
    rapt_tensor **last = rapt_scratch_list(r->module.kind->name, 2 * r->layers, sizeof *last);
    if (!last) return NULL;
    rapt_tensor **parts[2] = {last, has_cell ? last + r->layers : NULL};
    rapt_tensor *output = run_layers(r, x, projected, state, cell, parts);
    if (final_state) *final_state = output ? rapt_stack(r->layers, parts[0], 0) : NULL;
    if (final_cell) *final_cell = output && has_cell ? rapt_stack(r->layers, parts[1], 0) : NULL;
    bool good = output && (!final_state || *final_state) && (!final_cell || *final_cell);
    return good ? output : NULL;
}

rapt_tensor *rapt_gru_forward(rapt_gru *gru, rapt_tensor *x, rapt_tensor *state, rapt_tensor **final_state)
{
    if (gru) return recurrent_forward(&gru->recurrent, x, NULL, state, NULL, final_state, NULL);
    rapt_fail(RAPT_ERROR_NULL, "GRU", "the layer is NULL");
    return NULL;
}

rapt_tensor *rapt_gru_forward_projected(rapt_gru *gru, rapt_tensor *projected, rapt_tensor *state,
                                        rapt_tensor **final_state)
{
    return recurrent_forward(&gru->recurrent, projected, projected, state, NULL, final_state, NULL);
}

rapt_tensor *rapt_lstm_forward(rapt_lstm *lstm, rapt_tensor *x, rapt_tensor *hidden, rapt_tensor *cell,
                               rapt_tensor **final_hidden, rapt_tensor **final_cell)
{
    if (lstm && !hidden == !cell)
        return recurrent_forward(&lstm->recurrent, x, NULL, hidden, cell, final_hidden, final_cell);
    rapt_fail(RAPT_ERROR_NULL, "LSTM",
              lstm ? "one of hidden and cell is NULL; both or neither expected" : "the layer is NULL");
    return NULL;
}
