/* Generation of sequences, token by token: greedy, sampled, or by beam search. */
#ifndef RAPT_GENERATE_H
#define RAPT_GENERATE_H

#include <rapt/autograd.h>

RAPT_BEGIN_DECLS

/* A model as generation sees it. */
typedef struct rapt_token_model {
    void *context;
    /* Takes the tokens (B, T) that are new since the last call (int64; the prompt first) and gives the logits (B,
     * vocabulary) of the token after the last. A logit of −∞ rules a token out. NULL after an error. */
    rapt_tensor *(*next)(void *context, rapt_tensor *tokens);
    /* Item b becomes what item rows[b] was (int64 (B), B may change). NULL: the model carries nothing from step to
     * step. */
    bool (*select)(void *context, rapt_tensor *rows);
    /* Takes the first tokens (rows) of sequences of different lengths, packed, with their starts (B + 1), and gives
     * what next gives, for the last token of each. NULL: the model takes prompts of one length only. */
    rapt_tensor *(*begin_packed)(void *context, rapt_tensor *tokens, rapt_tensor *starts);
} rapt_token_model;

/* How tokens are chosen, and when it ends. */
typedef struct rapt_generation {
    int64_t length;     /* most tokens to generate; INT64_MAX: no limit, memory is taken for those that come */
    double temperature; /* logits are divided by it; 0: greedy, the likeliest token always (of equals the first) */
    int64_t top_k;      /* only the k likeliest; 0: all */
    /* After top_k, only the likeliest whose probabilities reach p (nucleus: Holtzman et al. 2019); 0 or 1: all. */
    double top_p;
    int beams;             /* > 1: beam search (with temperature, top_k and top_p 0); its best beam is the result */
    double length_penalty; /* beams compare log p / length^penalty; 0: log p; above 0 they may go on to the length */
    bool stops;            /* at end_token: a sequence that gave it is finished, and filled up with padding */
    int64_t end_token, padding;
} rapt_generation;

/* Prompt (B, T) of integers, T ≥ 1 → int64 (B, n), n ≤ length, without the prompt; ends early when every sequence is
 * finished (the end token is part of a sequence). Finished sequences are taken out of the batch, so the model runs
 * for the others only. Random numbers come from the thread's generator. Runs without gradients, and gives back the
 * memory of each step. NULL after an error: the model then holds what it has read so far, so clear its cache. */
RAPT_API rapt_tensor *rapt_generate(const rapt_token_model *model, rapt_tensor *prompt, const rapt_generation *how);

/* The same for prompts of different lengths, packed: integers (rows) with starts (rapt_packing_starts), each of 1 token
 * or more. A sequence goes on as it would alone. */
RAPT_API rapt_tensor *rapt_generate_packed(const rapt_token_model *model, rapt_tensor *prompts, rapt_tensor *starts,
                                           const rapt_generation *how);

/* One draw from logits (B, vocabulary) as above (not for beams): int64 (B). Logits that are NaN or +∞, or all −∞,
 * are an error. */
RAPT_API rapt_tensor *rapt_sample(rapt_tensor *logits, const rapt_generation *how);

RAPT_END_DECLS

#endif
