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
        .target_lengths = rapt_zeros(RAPT_INT64, RAPT_SHAPE(count)),
    };
    int64_t *sources = rapt_data_for_writing(batch.sources), *labels = rapt_data_for_writing(batch.labels);
    int64_t *inputs = rapt_data_for_writing(batch.decoder_inputs),
            *lengths = rapt_data_for_writing(batch.valid_lengths),
            *target_lengths = rapt_data_for_writing(batch.target_lengths);
    if (!sources || !labels || !inputs || !lengths || !target_lengths) return batch;
    for (int64_t i = 0; i < count; i++) {
        int64_t row = rows ? rows[i] : first + i;
        memcpy(sources + i * steps, pairs->sources + row * steps, row_bytes);
        memcpy(inputs + i * steps, pairs->decoder_inputs + row * steps, row_bytes);
        memcpy(labels + i * steps, pairs->labels + row * steps, row_bytes);
        lengths[i] = pairs->valid_lengths[row];
        for (int64_t j = 0; j < steps; j++)
            target_lengths[i] += labels[i * steps + j] != pairs->target_vocabulary->padding;
        batch.num_tokens += target_lengths[i];
    }
    return batch;
}

struct batch batch_with_packed_sources(const struct batch *batch)
{
    struct batch packed = *batch;
    packed.source_starts = rapt_packing_starts(batch->valid_lengths);
    packed.sources = rapt_pack(batch->sources, packed.source_starts);
    return packed;
}

struct batch batch_packed(const struct batch *batch)
{
    struct batch packed = batch_with_packed_sources(batch);
    packed.target_starts = rapt_packing_starts(batch->target_lengths);
    packed.decoder_inputs = rapt_pack(batch->decoder_inputs, packed.target_starts);
    packed.labels = rapt_pack(batch->labels, packed.target_starts);
    return packed;
}

struct batch batch_from_sentence(const int64_t *ids, int64_t num_steps, int64_t valid_length)
{
    return (struct batch){.sources = rapt_from(RAPT_INT64, RAPT_SHAPE(1, num_steps), ids),
                          .valid_lengths = rapt_from(RAPT_INT64, RAPT_SHAPE(1), &valid_length)};
}
