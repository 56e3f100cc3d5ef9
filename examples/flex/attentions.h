/* Six attentions: each makes of an attention over scores qᵀMk, and of the mask for its calls, what its name says. */
#ifndef EXAMPLES_ATTENTIONS_H
#define EXAMPLES_ATTENTIONS_H

#include <rapt.h>

enum { BATCH = 16, LENGTH = 32 }; /* of what they learn from */

/* Soft cap (Gemma 2, 2024): scores stay within ±CAP. */
enum { CAP = 1 };
void use_soft_cap(rapt_attention *attention, rapt_mask *mask);

/* T5 (Raffel et al. 2020): a learned number each for the nearest positions, and for the wider ranges behind them. */
void use_t5(rapt_attention *attention, rapt_mask *mask);

/* Prefix language models (Raffel et al. 2020): causal, but the prefix of each item is read both ways. */
int64_t prefix_of(int64_t item);
void use_prefix(rapt_attention *attention, rapt_mask *mask);

/* A sliding window with a sink (Xiao et al. 2023; learned as in gpt-oss, 2025): a score of no key, for the weight that
 * no key should have. */
enum { WINDOW = 4 };
void use_sink(rapt_attention *attention, rapt_mask *mask);

/* Learned relative bias (Shaw et al. 2018; Swin, 2021): a learned number for each position within a reach. */
enum { REACH = 4, POSITIONS = 2 * REACH + 1 };
void use_relative_bias(rapt_attention *attention, rapt_mask *mask);

/* Sigmoid attention (Ramapuram et al. 2024): σ(score − log n) in the place of softmax, so that weights need not sum
 * to 1. */
void use_sigmoid(rapt_attention *attention, rapt_mask *mask);

#endif
