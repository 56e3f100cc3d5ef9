/* GPT in two parts, so that who needs the last position's logits only computes no others. */
#ifndef RAPT_NN_GPT_H
#define RAPT_NN_GPT_H

#include <rapt/gpt.h>

#include "attention/ring/ring.h"

/* Are the tokens integers (B, T), T ≥ 1? False and an error when not. */
bool rapt_gpt_check_tokens(const rapt_tensor *tokens);

/* Tokens (B, T) that follow `before` others, which the caches (one for each block, or NULL) hold → (B, T, hidden). */
rapt_tensor *rapt_gpt_states(rapt_gpt *gpt, rapt_tensor *tokens, int64_t before, rapt_attention_cache *caches);

/* The same of packed tokens (rows), none of them before → (rows, hidden); the caches, if any, must be empty. */
rapt_tensor *rapt_gpt_packed_states(rapt_gpt *gpt, rapt_tensor *tokens, rapt_tensor *starts,
                                    rapt_attention_cache *caches);

/* What a forward of the whole model begins and ends with: it may go across ranks. */
rapt_ring_call rapt_gpt_begin(const rapt_gpt *gpt);
rapt_tensor *rapt_gpt_end(const rapt_ring_call *across, rapt_tensor *result);

/* States (…, hidden) → (…, vocabulary). NULL gives NULL. */
rapt_tensor *rapt_gpt_logits(rapt_gpt *gpt, rapt_tensor *states);

#endif
