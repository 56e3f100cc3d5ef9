/* GRU and LSTM: stacks of recurrent layers, by the fused recurrence or step by step from ops. */
#include <rapt/recurrent.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "nn/entry.h"
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

/* One layer. states[0] and, of an LSTM, [1] become sequences (T, B, hidden) or, of packed rows, (rows, hidden). */
static bool run_layer(const rapt_recurrent *r, const layer *l, const rapt_step_order *order, rapt_tensor *from_input,
                      rapt_tensor *state, rapt_tensor *cell, rapt_tensor **states)
{
    rapt_tensor *starts = order ? order->step_starts : NULL;
    const rapt_recurrence_inputs in = {from_input, {state, cell}, l->weight_hh, l->bias_hh, starts};
    return (r->plain ? rapt_recurrence_plainly : rapt_recurrence)(r->gates, &in, states);
}

static bool check_state(const rapt_recurrent *r, const rapt_tensor *state, int64_t batch)
{
    char text[128];
    return !state ||
           (rapt_rank(state) == 3 && rapt_size(state, 0) == r->layers && rapt_size(state, 1) == batch &&
            rapt_size(state, 2) == r->hidden) ||
           rapt_fail(RAPT_ERROR_SHAPE, r->module.kind->name, "state [%d, %lld, %lld] expected, not %s", r->layers,
                     (long long)batch, (long long)r->hidden, rapt_describe(state, text, sizeof text));
}

/* x: the input, `width` numbers for each item and step. */
static bool check(const rapt_recurrent *r, const rapt_tensor *x, int64_t width, bool is_packed)
{
    const char *op = r->module.kind->name;
    char text[128];
    if (!x) return rapt_fail(RAPT_ERROR_NULL, op, "the input is NULL");
    if (rapt_rank(x) == (is_packed ? 2 : 3) && rapt_size(x, -1) == width && (is_packed || rapt_size(x, 0) > 0))
        return true;
    return rapt_fail(RAPT_ERROR_SHAPE, op, "input (%s%lld)%s expected, not %s", is_packed ? "rows, " : "T, B, ",
                     (long long)width, is_packed ? "" : " with T of 1 or more", rapt_describe(x, text, sizeof text));
}

/* The state of one layer: its part of what was given; NULL: zeros. */
static bool initial(rapt_tensor *given, int i, rapt_tensor **state)
{
    *state = given ? rapt_select(given, 0, i) : NULL;
    return *state || !given;
}

/* What goes into all layers: the input (T, B, in), or its packed rows in a recurrence's order; or, if that is not
 * NULL, what the first layer makes of it. */
typedef struct start {
    rapt_tensor *x, *projected, *state, *cell;
    int64_t batch;
    const rapt_step_order *order; /* NULL: not packed */
} start;

static rapt_tensor *last_of(const start *s, rapt_tensor *states)
{
    return s->order ? rapt_index_select(states, 0, s->order->last) : rapt_select(states, 0, -1);
}

/* Runs all layers; last[0] and last[1] (of `layers` tensors each; [1] NULL for a GRU) become the final states. */
static rapt_tensor *run_layers(rapt_recurrent *r, const start *s, rapt_tensor **last[2])
{
    rapt_tensor *x = s->x;
    for (int i = 0; i < r->layers && x; i++) {
        const layer *l = &r->layer[i];
        rapt_tensor *states[2], *h, *c = NULL;
        rapt_tensor *from_input = s->projected && i == 0 ? s->projected : rapt_affine(x, l->weight_ih, l->bias_ih);
        if (!from_input || !initial(s->state, i, &h) || !initial(s->cell, i, &c) ||
            !run_layer(r, l, s->order, from_input, h, c, states))
            return NULL;
        last[0][i] = last_of(s, states[0]);
        if (last[1]) last[1][i] = last_of(s, states[1]);
        bool drops = r->module.training && r->dropout > 0 && i < r->layers - 1;
        x = drops ? rapt_drop(states[0], r->dropout) : states[0];
    }
    return x;
}

static rapt_tensor *run_checked(rapt_recurrent *r, const start *s, rapt_tensor **final_state, rapt_tensor **final_cell)
{
    bool has_cell = r->gates == 4;
    rapt_tensor **last = rapt_scratch_list(r->module.kind->name, 2 * r->layers, sizeof *last);
    if (!last) return NULL;
    rapt_tensor **parts[2] = {last, has_cell ? last + r->layers : NULL};
    rapt_tensor *output = run_layers(r, s, parts);
    if (final_state) *final_state = output ? rapt_stack(r->layers, parts[0], 0) : NULL;
    if (final_cell) *final_cell = output && has_cell ? rapt_stack(r->layers, parts[1], 0) : NULL;
    bool good = output && (!final_state || *final_state) && (!final_cell || *final_cell);
    return good ? output : NULL;
}

static rapt_tensor *recurrent_forward(rapt_recurrent *r, rapt_tensor *x, rapt_tensor *state, rapt_tensor *cell,
                                      rapt_tensor **final_state, rapt_tensor **final_cell)
{
    RAPT_UNDO_DRAWS;
    RAPT_ENTER((const rapt_module *)r);
    if (!check(r, x, r->in, false)) return NULL;
    const start s = {.x = x, .state = state, .cell = cell, .batch = rapt_size(x, 1)};
    if (!check_state(r, state, s.batch) || !check_state(r, cell, s.batch)) return NULL;
    return run_checked(r, &s, final_state, final_cell);
}

/* The state of a sequence stands at its place. */
static bool reorder(const rapt_step_order *order, rapt_tensor **state)
{
    return !*state || (*state = rapt_index_select(*state, 1, order->sequences)) != NULL;
}

static rapt_tensor *recurrent_forward_packed(rapt_recurrent *r, rapt_tensor *rows, rapt_tensor *starts,
                                             rapt_tensor *state, rapt_tensor *cell, rapt_tensor **final_state,
                                             rapt_tensor **final_cell)
{
    RAPT_UNDO_DRAWS;
    RAPT_ENTER((const rapt_module *)r);
    rapt_step_order order;
    if (!check(r, rows, r->in, true) || !rapt_step_order_make(r->module.kind->name, starts, rapt_size(rows, 0), &order))
        return NULL;
    start s = {.state = state, .cell = cell, .batch = rapt_count(order.last), .order = &order};
    if (!check_state(r, state, s.batch) || !check_state(r, cell, s.batch) || !reorder(&order, &s.state) ||
        !reorder(&order, &s.cell) || !(s.x = rapt_index_select(rows, 0, order.rows)))
        return NULL;
    rapt_tensor *output = run_checked(r, &s, final_state, final_cell);
    return output ? rapt_index_select(output, 0, order.packed) : NULL;
}

rapt_tensor *rapt_gru_forward(rapt_gru *gru, rapt_tensor *x, rapt_tensor *state, rapt_tensor **final_state)
{
    if (gru) return recurrent_forward(&gru->recurrent, x, state, NULL, final_state, NULL);
    rapt_fail(RAPT_ERROR_NULL, "GRU", "the layer is NULL");
    return NULL;
}

rapt_tensor *rapt_gru_forward_projected(rapt_gru *gru, rapt_tensor *projected, const rapt_step_order *order,
                                        rapt_tensor **final_state)
{
    RAPT_UNDO_DRAWS;
    RAPT_ENTER((const rapt_module *)gru);
    rapt_recurrent *r = &gru->recurrent;
    if (!check(r, projected, r->gates * r->hidden, order != NULL)) return NULL;
    const start s = {.x = projected,
                     .projected = projected,
                     .batch = order ? rapt_count(order->last) : rapt_size(projected, 1),
                     .order = order};
    return run_checked(r, &s, final_state, NULL);
}

rapt_tensor *rapt_lstm_forward(rapt_lstm *lstm, rapt_tensor *x, rapt_tensor *hidden, rapt_tensor *cell,
                               rapt_tensor **final_hidden, rapt_tensor **final_cell)
{
    if (lstm && !hidden == !cell) return recurrent_forward(&lstm->recurrent, x, hidden, cell, final_hidden, final_cell);
    rapt_fail(RAPT_ERROR_NULL, "LSTM",
              lstm ? "one of hidden and cell is NULL; both or neither expected" : "the layer is NULL");
    return NULL;
}

rapt_tensor *rapt_gru_forward_packed(rapt_gru *gru, rapt_tensor *rows, rapt_tensor *starts, rapt_tensor *state,
                                     rapt_tensor **final_state)
{
    if (gru) return recurrent_forward_packed(&gru->recurrent, rows, starts, state, NULL, final_state, NULL);
    rapt_fail(RAPT_ERROR_NULL, "GRU", "the layer is NULL");
    return NULL;
}

rapt_tensor *rapt_lstm_forward_packed(rapt_lstm *lstm, rapt_tensor *rows, rapt_tensor *starts, rapt_tensor *hidden,
                                      rapt_tensor *cell, rapt_tensor **final_hidden, rapt_tensor **final_cell)
{
    if (lstm && !hidden == !cell)
        return recurrent_forward_packed(&lstm->recurrent, rows, starts, hidden, cell, final_hidden, final_cell);
    rapt_fail(RAPT_ERROR_NULL, "LSTM",
              lstm ? "one of hidden and cell is NULL; both or neither expected" : "the layer is NULL");
    return NULL;
}
