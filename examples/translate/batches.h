/* Rows of the data set as tensors. */
#ifndef TRANSLATE_BATCHES_H
#define TRANSLATE_BATCHES_H

#include <rapt.h>

#include "pairs.h"

struct batch {
    rapt_tensor *sources, *decoder_inputs, *labels; /* int64 (count, num_steps) */
    rapt_tensor *valid_lengths;                     /* int64 (count) */
    int64_t num_tokens;                             /* labels that are not padding */
};

/* The rows rows[0 … count − 1]; or, with rows NULL, the rows first, first + 1, … */
struct batch batch_from_pairs(const struct pairs *pairs, const int64_t *rows, int64_t first, int64_t count);

/* One sentence of num_steps ids, without a target. */
struct batch batch_from_sentence(const int64_t *ids, int64_t num_steps, int64_t valid_length);

#endif
