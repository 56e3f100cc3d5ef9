/* Rows of the data set as tensors. */
#include "batches.h"

#include <string.h>

struct batch batch_from_pairs(const struct pairs *pairs, const int64_t *rows, int64_t first, int64_t count)
{
    int64_t steps = pairs->num_steps;
    size_t row_bytes = (size_t)steps * sizeof(int64_t);
    struct batch batch = {
        .sources = rapt_empty(RAPT_INT64, RAPT_SHAPE(count, steps)),
        .decoder_inputs = rapt_empty(RAPT_INT64, RAPT_SHAPE(count, steps)),
        .labels = rapt_empty(RAPT_INT64, RAPT_SHAPE(count, steps)),
        .valid_lengths = rapt_empty(RAPT_INT64, RAPT_SHAPE(count)),
    };
    int64_t *sources = rapt_data_for_writing(batch.sources), *labels = rapt_data_for_writing(batch.labels);
    int64_t *inputs = rapt_data_for_writing(batch.decoder_inputs),
            *lengths = rapt_data_for_writing(batch.valid_lengths);
    if (!sources || !labels || !inputs || !lengths) return batch;
    for (int64_t i = 0; i < count; i++) {
        int64_t row = rows ? rows[i] : first + i;
        memcpy(sources + i * steps, pairs->sources + row * steps, row_bytes);
        memcpy(inputs + i * steps, pairs->decoder_inputs + row * steps, row_bytes);
        memcpy(labels + i * steps, pairs->labels + row * steps, row_bytes);
        lengths[i] = pairs->valid_lengths[row];
    }
    for (int64_t i = 0; i < count * steps; i++) batch.num_tokens += labels[i] != pairs->target_vocabulary->padding;
    return batch;
}

struct batch batch_from_sentence(const int64_t *ids, int64_t num_steps, int64_t valid_length)
{
    return (struct batch){.sources = rapt_from(RAPT_INT64, RAPT_SHAPE(1, num_steps), ids),
                          .valid_lengths = rapt_from(RAPT_INT64, RAPT_SHAPE(1), &valid_length)};
}
