/* All steps of Bahdanau's decoder in one op: between the steps nothing is made but what backward needs, and each
 * weight's gradient is one product. */
#ifndef RAPT_NN_BAHDANAU_STEPS_H
#define RAPT_NN_BAHDANAU_STEPS_H

#include <rapt/seq2seq.h>

/* Can the op run that decoder from that state, of so many sequences? Else it is made of smaller ops: for other scoring
 * functions, where weights are kept, by the plain way, and where something does not fit, for the error that names
 * it. */
bool rapt_bahdanau_steps_fit(const rapt_bahdanau_decoder *decoder, const rapt_bahdanau_state *state, int64_t batch);

/* tokens (T, B) → the last layer's states (T, B, hidden); state->hidden becomes the last ones. With step_starts (T + 1)
 * not NULL steps have ever fewer of the batch's first rows: tokens (rows) → (rows, hidden). *weights, if weights is not
 * NULL, becomes the attention weights (T, B, K), or (rows, K). NULL after an error. */
rapt_tensor *rapt_bahdanau_steps(rapt_bahdanau_decoder *decoder, rapt_tensor *tokens, rapt_tensor *step_starts,
                                 rapt_bahdanau_state *state, rapt_tensor **weights);

#endif
