/* What Bahdanau's encoder and decoder share. */
#ifndef RAPT_NN_BAHDANAU_H
#define RAPT_NN_BAHDANAU_H

#include <rapt/seq2seq.h>

#include "step_order.h"

/* False and an error when a size is not 1 or more. */
bool rapt_bahdanau_check(const char *op, const rapt_bahdanau_config *config);

/* False and an error when the tokens are NULL or not (B, T) with a T of 1 or more. */
bool rapt_bahdanau_check_tokens(const char *op, const rapt_tensor *tokens);

/* Packed tokens (rows) in the order of a recurrence, which is found. NULL after an error, as when a sequence has
 * none. */
rapt_tensor *rapt_bahdanau_order_tokens(const char *op, rapt_tensor *tokens, const rapt_tensor *starts,
                                        rapt_step_order *order);

/* The embeddings of tokens, of any shape, times weightᵀ, plus bias. Of few words and many tokens each word's is
 * computed once. NULL after an error. */
rapt_tensor *rapt_bahdanau_project(rapt_embedding *embedding, rapt_tensor *tokens, rapt_tensor *weight,
                                   rapt_tensor *bias);

/* Xavier-uniform for the whole stacked matrices of every layer; false for NULL or after an error. */
bool rapt_bahdanau_init_gru(rapt_gru *gru);

#endif
