/* What sampling and beam search share. */
#ifndef RAPT_NN_GENERATE_H
#define RAPT_NN_GENERATE_H

#include <rapt/generate.h>

/* False and an error when a number in it cannot be, or two of them contradict. */
bool rapt_generation_check(const char *op, const rapt_generation *how);

/* Sorts places by their values (no NaN) from the largest; of equals the first comes first. */
void rapt_rank_places(const double *values, int64_t count, int64_t *places);

/* The places of the first `few` (1 to count) in that order: one pass, where few change what is kept. */
void rapt_rank_few(const double *values, int64_t count, int64_t few, int64_t *places);

/* What sequences begin with: tokens (B, T), or packed (rows) with starts. */
typedef struct rapt_prompt {
    rapt_tensor *tokens, *starts; /* starts: NULL if not packed */
    int64_t batch;
} rapt_prompt;

/* A step of the model: logits (rows, vocabulary), checked. *vocabulary is 0 before the first step. NULL after an
 * error. */
rapt_tensor *rapt_next_logits(const rapt_token_model *model, rapt_tensor *tokens, const rapt_generation *how,
                              int64_t *vocabulary);

/* The first step. */
rapt_tensor *rapt_first_logits(const rapt_token_model *model, const rapt_prompt *prompt, const rapt_generation *how,
                               int64_t *vocabulary);

/* Makes these rows the model's batch, where it wants to know of it. False after an error. */
bool rapt_select_rows(const rapt_token_model *model, int64_t count, const int64_t *rows);

/* Tokens to be written: int64 (rows, columns) of the padding. NULL after an error. */
rapt_tensor *rapt_new_padding(const rapt_generation *how, int64_t rows, int64_t columns);

/* Makes room for step number `step` in *steps (capacity, width), which grows by doubling and keeps the steps before it;
 * NULL at first. False after an error. */
bool rapt_make_room(const rapt_generation *how, rapt_tensor **steps, int64_t step, int64_t width);

/* rapt_generate with several beams, of a prompt that was checked. */
rapt_tensor *rapt_beam_search(const rapt_token_model *model, const rapt_prompt *prompt, const rapt_generation *how);

#endif
