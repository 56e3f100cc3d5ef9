/* Rows: the recurrent layers, with states, with lengths and packed, against the way of small ops. */
#include <rapt/nn.h>
#include <rapt/packing.h>

#include "layers.h"

/* variant */
enum { outputs, with_states, padded, packed };

LAYER_MAKE(gru, rapt_gru_new(2, 3, 2, 0.25))
LAYER_MAKE(lstm, rapt_lstm_new(2, 3, 2, 0.25))
LAYER_MAKE(bidirectional_gru, rapt_bidirectional_gru_new(2, 2, 2, 0.25))
LAYER_MAKE(bidirectional_lstm, rapt_bidirectional_lstm_new(2, 2, 2, 0.25))

static rapt_tensor *flat(rapt_tensor *x)
{
    return rapt_reshape(x, RAPT_SHAPE(rapt_count(x)));
}

/* Three sequences that share the rows. */
static rapt_tensor *starts_of(rapt_tensor *rows)
{
    const int64_t count = rapt_size(rows, 0), first = (count + 1) / 2;
    return rapt_packing_starts(rapt_from(RAPT_INT64, RAPT_SHAPE(3), (int64_t[]){first, 1, count - first - 1}));
}

/* Lengths from 1 on. */
static rapt_tensor *lengths_of(rapt_tensor *from_zero)
{
    return rapt_add_scalar(from_zero, 1);
}

/* in: x; lengths or NULL; the state or NULL */
static rapt_tensor *call_gru(void *m, rapt_tensor *const *in, const op_sample *s)
{
    rapt_tensor *state = s->variant == outputs ? NULL : in[2], *last, *y;
    if (s->variant == padded)
        y = rapt_gru_forward_padded(m, in[0], lengths_of(in[1]), state, &last);
    else if (s->variant == packed)
        y = rapt_gru_forward_packed(m, in[0], starts_of(in[0]), state, &last);
    else
        y = rapt_gru_forward(m, in[0], state, &last);
    if (!y || s->variant == outputs) return y;
    return rapt_concat(2, (rapt_tensor *[]){flat(y), flat(last)}, 0);
}

static rapt_tensor *call_lstm(void *m, rapt_tensor *const *in, const op_sample *s)
{
    const bool has_state = s->variant != outputs;
    rapt_tensor *hidden = has_state ? in[2] : NULL, *cell = has_state ? in[3] : NULL, *h, *c, *y;
    if (s->variant == padded)
        y = rapt_lstm_forward_padded(m, in[0], lengths_of(in[1]), hidden, cell, &h, &c);
    else if (s->variant == packed)
        y = rapt_lstm_forward_packed(m, in[0], starts_of(in[0]), hidden, cell, &h, &c);
    else
        y = rapt_lstm_forward(m, in[0], hidden, cell, &h, &c);
    if (!y || s->variant == outputs) return y;
    return rapt_concat(3, (rapt_tensor *[]){flat(y), flat(h), flat(c)}, 0);
}

static rapt_tensor *in_small_ops(layer_call *call, void *m, rapt_tensor *const *in, const op_sample *s)
{
    rapt_recurrent *recurrent = m;
    recurrent->plain = true;
    rapt_tensor *y = call(m, in, s);
    recurrent->plain = false;
    return y;
}

LAYER_FUNCTION(gru_by_ops, in_small_ops(call_gru, m, in, s))
LAYER_FUNCTION(lstm_by_ops, in_small_ops(call_lstm, m, in, s))

/* Of `states` states of that size, as many as there are layers times directions. */
#define SAMPLES_OF(name, states, size)                                                                                 \
    static const op_sample name[] = {                                                                                  \
        {.in = {SHAPE(3, 2, 2), ABSENT, ABSENT, ABSENT}},                                                              \
        {.in = {SHAPE(1, 1, 2), ABSENT, ABSENT, ABSENT}},                                                              \
        {.in = {SHAPE(2, 0, 2), ABSENT, ABSENT, ABSENT}},                                                              \
        {.in = {SHAPE(2, 2, 2), ABSENT, SHAPE(states, 2, size), SHAPE(states, 2, size)}, .variant = with_states},      \
        {.in = {SHAPE(3, 2, 2), SHAPE(2), SHAPE(states, 2, size), SHAPE(states, 2, size)},                             \
         .limit = 3,                                                                                                   \
         .variant = padded},                                                                                           \
        {.in = {SHAPE(5, 2), ABSENT, SHAPE(states, 3, size), SHAPE(states, 3, size)}, .variant = packed},              \
    };
SAMPLES_OF(of_one_direction, 2, 3)
SAMPLES_OF(of_two_directions, 4, 2)

#define ROW(id, function, sample_array)                                                                                \
    .row = {.name = #id, .domain = {any_value, index64}, .differentiable = 13, SAMPLES(sample_array)},                 \
    .make = make_##id, .call = call_##function, .definition = function##_by_ops

static const layer_row rows[] = {
    {ROW(gru, gru, of_one_direction)},
    {ROW(lstm, lstm, of_one_direction)},
    {ROW(bidirectional_gru, gru, of_two_directions)},
    {ROW(bidirectional_lstm, lstm, of_two_directions)},
};

LAYER_FAMILY(layers_recurrent, rows);
