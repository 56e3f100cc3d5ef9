/* Rows of the data set as tensors. */
#ifndef TRANSLATE_BATCHES_H
#define TRANSLATE_BATCHES_H

#include <rapt.h>

#include "pairs.h"

struct batch {
    rapt_tensor *sources, *decoder_inputs, *labels; /* int64 (count, num_steps), or packed: (rows) */
    rapt_tensor *valid_lengths, *target_lengths;    /* int64 (count): of the sources, and of what is not padding */
    rapt_tensor *source_starts, *target_starts;     /* of a packed batch; otherwise NULL */
    int64_t num_tokens;                             /* labels that are not padding */
};

/* The rows rows[0 … count − 1]; or, with rows NULL, the rows first, first + 1, … */
struct batch batch_from_pairs(const struct pairs *pairs, const int64_t *rows, int64_t first, int64_t count);

/* The same batch without its padding, or without that of the sources. Tensors are NULL after an error. */
struct batch batch_packed(const struct batch *batch);
struct batch batch_with_packed_sources(const struct batch *batch);

/* One sentence of num_steps ids, without a target. */
struct batch batch_from_sentence(const int64_t *ids, int64_t num_steps, int64_t valid_length);

#endif
