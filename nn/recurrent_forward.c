/* What goes through the layers of GRU and LSTM: sequences of one length, padded or packed. */
#include <rapt/recurrent.h>

#include "nn/entry.h"
#include "recurrence.h"
#include "tensor/core.h"
#include "tensor/random.h"
#include "tensor/scratch.h"

typedef struct rapt_recurrent_layer layer;

/* One layer. states[0] and, of an LSTM, [1] become sequences (T, B, hidden) or, of packed rows, (rows, hidden). */
static bool run_layer(const rapt_recurrent *r, const layer *l, const rapt_step_order *order, rapt_tensor *from_input,
                      rapt_tensor *state, rapt_tensor *cell, rapt_tensor **states)
{
    rapt_tensor *starts = order ? order->step_starts : NULL;
    const rapt_recurrence_inputs in = {from_input, {state, cell}, l->weight_hh, l->bias_hh, starts};
    return (r->plain ? rapt_recurrence_plainly : rapt_recurrence)(r->gates, &in, states);
}

/* Of all layers, in all directions. */
static int runs_of(const rapt_recurrent *r)
{
    return r->layers * r->directions;
}

static bool check_state(const rapt_recurrent *r, const rapt_tensor *state, int64_t batch)
{
    char text[128];
    return !state ||
           (rapt_rank(state) == 3 && rapt_size(state, 0) == runs_of(r) && rapt_size(state, 1) == batch &&
            rapt_size(state, 2) == r->hidden) ||
           rapt_fail(RAPT_ERROR_SHAPE, r->module.kind->name, "state [%d, %lld, %lld] expected, not %s", runs_of(r),
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
    return rapt_fail(RAPT_ERROR_SHAPE, op, "input (%s%lld)%s expected, not %s%s", is_packed ? "rows, " : "T, B, ",
                     (long long)width, is_packed ? "" : " with T of 1 or more", rapt_describe(x, text, sizeof text),
                     rapt_batch_cure(x, is_packed ? 0 : 3));
}

/* The state of one run: its part of what was given; NULL: zeros. */
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
    rapt_tensor *mirror;          /* of two directions and an order: rapt_step_order_mirror */
} start;

static rapt_tensor *last_of(const start *s, rapt_tensor *states)
{
    return s->order ? rapt_index_select(states, 0, s->order->last) : rapt_select(states, 0, -1);
}

/* Each sequence from its end to its beginning. */
static rapt_tensor *turn(const start *s, rapt_tensor *x)
{
    return s->order ? rapt_index_select(x, 0, s->mirror) : rapt_flip(x, RAPT_AXES(0));
}

/* One layer in one direction, number i of all: its outputs in x's order; last[0][i] and, of an LSTM, last[1][i] become
 * its last states. */
static rapt_tensor *run_direction(const rapt_recurrent *r, const start *s, int i, rapt_tensor *x, rapt_tensor **last[2])
{
    const layer *l = &r->layer[i];
    const bool reverse = i % r->directions > 0;
    rapt_tensor *states[2], *h, *c = NULL;
    if (reverse) x = turn(s, x);
    rapt_tensor *from_input = s->projected && i == 0 ? s->projected : rapt_affine(x, l->weight_ih, l->bias_ih);
    if (!from_input || !initial(s->state, i, &h) || !initial(s->cell, i, &c) ||
        !run_layer(r, l, s->order, from_input, h, c, states))
        return NULL;
    last[0][i] = last_of(s, states[0]);
    if (last[1]) last[1][i] = last_of(s, states[1]);
    return reverse ? turn(s, states[0]) : states[0];
}

/* Runs all layers; last[0] and last[1] (of as many tensors as there are runs; [1] NULL for a GRU) become the final
 * states. */
static rapt_tensor *run_layers(rapt_recurrent *r, const start *s, rapt_tensor **last[2])
{
    rapt_tensor *x = s->x;
    for (int i = 0; i < r->layers && x; i++) {
        rapt_tensor *outputs[2];
        for (int k = 0; k < r->directions; k++)
            if (!(outputs[k] = run_direction(r, s, i * r->directions + k, x, last))) return NULL;
        x = r->directions == 2 ? rapt_concat(2, outputs, -1) : outputs[0];
        bool drops = r->module.training && r->dropout != 0 && i < r->layers - 1;
        if (drops) x = rapt_drop(x, r->dropout);
    }
    return x;
}

static rapt_tensor *run_checked(rapt_recurrent *r, const start *s, rapt_tensor **final_state, rapt_tensor **final_cell)
{
    const bool has_cell = r->gates == 4;
    const int runs = runs_of(r);
    rapt_tensor **last = rapt_scratch_list(r->module.kind->name, 2 * runs, sizeof *last);
    if (!last) return NULL;
    rapt_tensor **parts[2] = {last, has_cell ? last + runs : NULL};
    rapt_tensor *output = run_layers(r, s, parts);
    if (final_state) *final_state = output ? rapt_stack(runs, parts[0], 0) : NULL;
    if (final_cell) *final_cell = output && has_cell ? rapt_stack(runs, parts[1], 0) : NULL;
    bool good = output && (!final_state || *final_state) && (!final_cell || *final_cell);
    return good ? output : NULL;
}

static rapt_tensor *recurrent_forward(rapt_recurrent *r, rapt_tensor *x, rapt_tensor *state, rapt_tensor *cell,
                                      rapt_tensor **final_state, rapt_tensor **final_cell)
{
    RAPT_UNDO_DRAWS;
    RAPT_ENTER((rapt_module *)r);
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
    RAPT_ENTER((rapt_module *)r);
    rapt_step_order order;
    if (!check(r, rows, r->in, true) || !rapt_step_order_make(r->module.kind->name, starts, rapt_size(rows, 0), &order))
        return NULL;
    start s = {.state = state, .cell = cell, .batch = rapt_count(order.last), .order = &order};
    if (!check_state(r, state, s.batch) || !check_state(r, cell, s.batch) || !reorder(&order, &s.state) ||
        !reorder(&order, &s.cell) || !(s.x = rapt_index_select(rows, 0, order.rows)) ||
        (r->directions == 2 && !(s.mirror = rapt_step_order_mirror(r->module.kind->name, &order))))
        return NULL;
    rapt_tensor *output = run_checked(r, &s, final_state, final_cell);
    return output ? rapt_index_select(output, 0, order.packed) : NULL;
}

/* Of as many sequences as x, (T, B, in), has, none beyond its T. */
static bool check_lengths(const rapt_recurrent *r, const rapt_tensor *lengths, const rapt_tensor *x)
{
    const char *op = r->module.kind->name;
    const int64_t steps = rapt_size(x, 0), batch = rapt_size(x, 1);
    char text[128];
    if (!lengths) return rapt_fail(RAPT_ERROR_NULL, op, "the lengths are NULL");
    if (!rapt_is_integer(lengths) || rapt_rank(lengths) != 1 || rapt_size(lengths, 0) != batch)
        return rapt_fail(rapt_is_integer(lengths) ? RAPT_ERROR_SHAPE : RAPT_ERROR_DTYPE, op,
                         "lengths (%lld) of int64 or int32 expected, not %s", (long long)batch,
                         rapt_describe(lengths, text, sizeof text));
    for (int64_t b = 0; b < batch; b++) {
        const int64_t length = rapt_at_int64(lengths, &b);
        if (length < 1 || length > steps)
            return rapt_fail(RAPT_ERROR_VALUE, op, "length %lld is %lld; 1 to %lld expected", (long long)b,
                             (long long)length, (long long)steps);
    }
    return true;
}

/* (T, B, in) by way of packed rows, so that no place behind a sequence's length is read. */
static rapt_tensor *recurrent_forward_padded(rapt_recurrent *r, rapt_tensor *x, rapt_tensor *lengths,
                                             rapt_tensor *state, rapt_tensor *cell, rapt_tensor **final_state,
                                             rapt_tensor **final_cell)
{
    RAPT_UNDO_DRAWS;
    RAPT_ENTER((rapt_module *)r);
    if (!check(r, x, r->in, false) || !check_lengths(r, lengths, x)) return NULL;
    rapt_tensor *starts = rapt_packing_starts(lengths), *rows = rapt_pack(rapt_transpose(x, 0, 1), starts);
    rapt_tensor *output = rows ? recurrent_forward_packed(r, rows, starts, state, cell, final_state, final_cell) : NULL;
    return rapt_transpose(rapt_unpack(output, starts, rapt_size(x, 0), 0), 0, 1);
}

rapt_tensor *rapt_gru_forward_projected(rapt_gru *gru, rapt_tensor *projected, const rapt_step_order *order,
                                        rapt_tensor **final_state)
{
    RAPT_UNDO_DRAWS;
    RAPT_ENTER((rapt_module *)gru);
    rapt_recurrent *r = &gru->recurrent;
    if (!check(r, projected, r->gates * r->hidden, order != NULL)) return NULL;
    const start s = {.x = projected,
                     .projected = projected,
                     .batch = order ? rapt_count(order->last) : rapt_size(projected, 1),
                     .order = order};
    return run_checked(r, &s, final_state, NULL);
}

/* --- the public functions: after an error the final states are NULL as the result is --- */

static bool check_gru(const rapt_gru *gru)
{
    return gru || rapt_fail(RAPT_ERROR_NULL, "GRU", "the layer is NULL");
}

rapt_tensor *rapt_gru_forward(rapt_gru *gru, rapt_tensor *x, rapt_tensor *state, rapt_tensor **final_state)
{
    rapt_tensor *y = check_gru(gru) ? recurrent_forward(&gru->recurrent, x, state, NULL, final_state, NULL) : NULL;
    return rapt_with_output(y, final_state);
}

rapt_tensor *rapt_gru_forward_packed(rapt_gru *gru, rapt_tensor *rows, rapt_tensor *starts, rapt_tensor *state,
                                     rapt_tensor **final_state)
{
    rapt_tensor *y =
        check_gru(gru) ? recurrent_forward_packed(&gru->recurrent, rows, starts, state, NULL, final_state, NULL) : NULL;
    return rapt_with_output(y, final_state);
}

rapt_tensor *rapt_gru_forward_padded(rapt_gru *gru, rapt_tensor *x, rapt_tensor *lengths, rapt_tensor *state,
                                     rapt_tensor **final_state)
{
    rapt_tensor *y =
        check_gru(gru) ? recurrent_forward_padded(&gru->recurrent, x, lengths, state, NULL, final_state, NULL) : NULL;
    return rapt_with_output(y, final_state);
}

static bool check_lstm(const rapt_lstm *lstm, const rapt_tensor *hidden, const rapt_tensor *cell)
{
    return (lstm && !hidden == !cell) ||
           rapt_fail(RAPT_ERROR_NULL, "LSTM",
                     lstm ? "one of hidden and cell is NULL; both or neither expected" : "the layer is NULL");
}

rapt_tensor *rapt_lstm_forward(rapt_lstm *lstm, rapt_tensor *x, rapt_tensor *hidden, rapt_tensor *cell,
                               rapt_tensor **final_hidden, rapt_tensor **final_cell)
{
    rapt_tensor *y = NULL;
    if (check_lstm(lstm, hidden, cell))
        y = recurrent_forward(&lstm->recurrent, x, hidden, cell, final_hidden, final_cell);
    return rapt_with_output(rapt_with_output(y, final_hidden), final_cell);
}

rapt_tensor *rapt_lstm_forward_packed(rapt_lstm *lstm, rapt_tensor *rows, rapt_tensor *starts, rapt_tensor *hidden,
                                      rapt_tensor *cell, rapt_tensor **final_hidden, rapt_tensor **final_cell)
{
    rapt_tensor *y = NULL;
    if (check_lstm(lstm, hidden, cell))
        y = recurrent_forward_packed(&lstm->recurrent, rows, starts, hidden, cell, final_hidden, final_cell);
    return rapt_with_output(rapt_with_output(y, final_hidden), final_cell);
}

rapt_tensor *rapt_lstm_forward_padded(rapt_lstm *lstm, rapt_tensor *x, rapt_tensor *lengths, rapt_tensor *hidden,
                                      rapt_tensor *cell, rapt_tensor **final_hidden, rapt_tensor **final_cell)
{
    rapt_tensor *y = NULL;
    if (check_lstm(lstm, hidden, cell))
        y = recurrent_forward_padded(&lstm->recurrent, x, lengths, hidden, cell, final_hidden, final_cell);
    return rapt_with_output(rapt_with_output(y, final_hidden), final_cell);
}
