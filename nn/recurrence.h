/* All steps of one recurrent layer in one op, so that its weights' gradient is one matrix product and not one a
 * step. */
#ifndef RAPT_NN_RECURRENCE_H
#define RAPT_NN_RECURRENCE_H

#include <rapt/recurrent.h>

#include "step_order.h"

/* Of a GRU (3 gates, no cell) or an LSTM (4 gates). from_input (T, B, gates·hidden) is x W_ihᵀ + b_ih of all steps, the
 * states (B, hidden) or NULL for zeros; bias_hh may be NULL. With step_starts (T + 1) not NULL steps have ever fewer of
 * the batch's first rows, and from_input and what comes out are the rows of all steps, those of step t from
 * step_starts[t] on. */
typedef struct rapt_recurrence_inputs {
    rapt_tensor *from_input, *states[2], *weight_hh, *bias_hh, *step_starts; /* states: hidden, and of an LSTM cell */
} rapt_recurrence_inputs;

/* outputs[0]: the hidden states after all steps (T, B, hidden); [1], of an LSTM, the cells. False after an error. */
bool rapt_recurrence(int gates, const rapt_recurrence_inputs *in, rapt_tensor **outputs);

/* The same made of small ops, step by step: the definition. */
bool rapt_recurrence_plainly(int gates, const rapt_recurrence_inputs *in, rapt_tensor **outputs);

/* A step of a GRU: h' (B, hidden) from the projections of input and state (B, 3·hidden) and the state. */
rapt_tensor *rapt_gru_step(rapt_tensor *from_input, rapt_tensor *from_state, rapt_tensor *state);

/* rapt_gru_forward of x, from zeros, from what the first layer makes of it: x W_ihᵀ + b_ih (T, B, 3·hidden). With an
 * order not NULL it is of packed rows by steps, and so is the output (rows, hidden). */
rapt_tensor *rapt_gru_forward_projected(rapt_gru *gru, rapt_tensor *projected, const rapt_step_order *order,
                                        rapt_tensor **final_state);

/* The result. Where it is NULL so is what goes with it. */
static inline rapt_tensor *rapt_with_output(rapt_tensor *result, rapt_tensor **output)
{
    if (!result && output) *output = NULL;
    return result;
}

#endif
