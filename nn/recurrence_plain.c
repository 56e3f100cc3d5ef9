/* The recurrences of GRU and LSTM by their definition, made of small ops. */
#include "recurrence.h"
#include "tensor/scratch.h"

/* h' = (1 − z)·n + z·h */
rapt_tensor *rapt_gru_step(rapt_tensor *i, rapt_tensor *h, rapt_tensor *state)
{
    if (!i || !h || !state) return NULL;
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
    if (!i || !h || !*cell) return NULL;
    int64_t hidden = rapt_size(*cell, 1);
    rapt_tensor *part[4];
    if (!rapt_split(rapt_add(i, h), 1, 4, (int64_t[]){hidden, hidden, hidden, hidden}, part)) return NULL;
    rapt_tensor *kept = rapt_mul(rapt_sigmoid(part[1]), *cell);
    *cell = rapt_add(kept, rapt_mul(rapt_sigmoid(part[0]), rapt_tanh(part[2])));
    return rapt_mul(rapt_sigmoid(part[3]), rapt_tanh(*cell));
}

/* Where the rows of the steps begin, *steps of them; NULL without an error: each has all rows of the batch. */
static const int64_t *read_starts(const rapt_recurrence_inputs *in, int64_t *steps, int64_t *batch)
{
    const int64_t *starts = in->step_starts ? rapt_data(in->step_starts) : NULL;
    *steps = starts ? rapt_count(in->step_starts) - 1 : rapt_size(in->from_input, 0);
    *batch = starts ? starts[1] - starts[0] : rapt_size(in->from_input, 1);
    return starts;
}

static rapt_tensor *first_state(const rapt_recurrence_inputs *in, int which, int64_t batch)
{
    if (in->states[which]) return in->states[which];
    return rapt_zeros(rapt_get_dtype(in->from_input), RAPT_SHAPE(batch, rapt_size(in->weight_hh, 1)));
}

bool rapt_recurrence_plainly(int gates, const rapt_recurrence_inputs *in, rapt_tensor **outputs)
{
    const bool has_cell = gates == 4;
    int64_t steps, batch;
    const int64_t *starts = read_starts(in, &steps, &batch);
    rapt_tensor **sequence = rapt_scratch_list("recurrent", 2 * steps, sizeof *sequence);
    rapt_tensor *state = first_state(in, 0, batch), *cell = has_cell ? first_state(in, 1, batch) : NULL;
    if (!sequence) return false;
    for (int64_t t = 0; t < steps && state; t++) {
        rapt_tensor *i =
            starts ? rapt_slice(in->from_input, 0, starts[t], starts[t + 1], 1) : rapt_select(in->from_input, 0, t);
        if (starts) state = rapt_slice(state, 0, 0, starts[t + 1] - starts[t], 1);
        if (starts && has_cell) cell = rapt_slice(cell, 0, 0, starts[t + 1] - starts[t], 1);
        rapt_tensor *h = rapt_affine(state, in->weight_hh, in->bias_hh);
        state = has_cell ? lstm_step(i, h, &cell) : rapt_gru_step(i, h, state);
        sequence[t] = state;
        sequence[steps + t] = cell;
    }
    rapt_tensor *(*const join)(int, rapt_tensor *const *, int) = starts ? rapt_concat : rapt_stack;
    outputs[0] = state ? join((int)steps, sequence, 0) : NULL;
    if (!has_cell) return outputs[0] != NULL;
    outputs[1] = state ? join((int)steps, sequence + steps, 0) : NULL;
    return outputs[0] && outputs[1];
}
