/* What Bahdanau's encoder and decoder share. */
#ifndef RAPT_NN_BAHDANAU_H
#define RAPT_NN_BAHDANAU_H

#include <rapt/seq2seq.h>

/* False and an error when a size is not 1 or more. */
bool rapt_bahdanau_check(const char *op, const rapt_bahdanau_config *config);

/* False and an error when the tokens are NULL or not (B, T) with a T of 1 or more. */
bool rapt_bahdanau_check_tokens(const char *op, const rapt_tensor *tokens);

/* Xavier-uniform for the whole stacked matrices of every layer; false for NULL or after an error. */
bool rapt_bahdanau_init_gru(rapt_gru *gru);

#endif
