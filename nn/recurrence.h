/* All steps of one recurrent layer in one op, so that its weights' gradient is one matrix product and not one a
 * step. */
#ifndef RAPT_NN_RECURRENCE_H
#define RAPT_NN_RECURRENCE_H

#include <rapt/recurrent.h>

#include "step_order.h"

/* from_input (T, B, 3·hidden) is x W_ihᵀ + b_ih of all steps, state (B, hidden) or NULL for zeros; bias_hh
 * may be NULL → (T, B, hidden). With step_starts (T + 1) not NULL steps have ever fewer of the batch's first rows, and
 * from_input and the outputs are the rows of all steps, those of step t from step_starts[t] on. */
rapt_tensor *rapt_gru_recurrence(rapt_tensor *from_input, rapt_tensor *state, rapt_tensor *weight_hh,
                                 rapt_tensor *bias_hh, rapt_tensor *step_starts);

/* The same with 4·hidden and a cell state: outputs[0] the hidden states, outputs[1] the cells, both (T, B, hidden). */
bool rapt_lstm_recurrence(rapt_tensor *from_input, rapt_tensor *state, rapt_tensor *cell_state, rapt_tensor *weight_hh,
                          rapt_tensor *bias_hh, rapt_tensor *step_starts, rapt_tensor **outputs);

/* rapt_gru_forward of x, from zeros, from what the first layer makes of it: x W_ihᵀ + b_ih (T, B, 3·hidden). With an
 * order not NULL it is of packed rows by steps, and so is the output (rows, hidden). */
rapt_tensor *rapt_gru_forward_projected(rapt_gru *gru, rapt_tensor *projected, const rapt_step_order *order,
                                        rapt_tensor **final_state);

#endif
