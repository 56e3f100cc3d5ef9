/* Rows of the data set as tensors. */
#ifndef TRANSLATE_BATCHES_H
#define TRANSLATE_BATCHES_H

#include <rapt.h>

#include "pairs.h"

struct batch {
    int64_t first, count;                           /* its rows in the order of the epoch */
    rapt_tensor *sources, *decoder_inputs, *labels; /* int64 (count, num_steps), or packed: (rows) */
    rapt_tensor *valid_lengths, *target_lengths;    /* int64 (count): of the sources, and of what is not padding */
    rapt_tensor *source_starts, *target_starts;     /* of a packed batch; otherwise NULL */
    int64_t num_tokens;                             /* labels that are not padding */
};

/* Epochs of the pairs first … first + count − 1, of which there is one or more, in batches. NULL after an error. */
rapt_loader *batches_of(const struct pairs *pairs, int64_t first, int64_t count, int64_t batch_size, bool shuffle);

/* The next batch, whose tensors are the loader's until the next call. False at the end of an epoch and after an
   error. */
bool batches_next(rapt_loader *batches, struct batch *batch);

/* Rows [first, last) of a batch that is not packed. */
struct batch batch_rows(const struct batch *batch, int64_t first, int64_t last);

/* The same batch without its padding, or without that of the sources. Tensors are NULL after an error. */
struct batch batch_packed(const struct batch *batch);
struct batch batch_with_packed_sources(const struct batch *batch);

/* One sentence of num_steps ids, without a target. */
struct batch batch_from_sentence(const int64_t *ids, int64_t num_steps, int64_t valid_length);

#endif
