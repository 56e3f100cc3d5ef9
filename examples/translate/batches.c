/* Rows of the data set as tensors. */
#include "batches.h"

/* The columns of the loader, in this order. */
enum { sources, decoder_inputs, labels, valid_lengths, target_lengths, column_count };

/* Rows of an array of num_steps numbers each. */
static rapt_column rows_of(const int64_t *numbers, int64_t first, int64_t count, int64_t num_steps)
{
    return (rapt_column){.values = rapt_from(RAPT_INT64, RAPT_SHAPE(count, num_steps), numbers + first * num_steps)};
}

/* How many labels of each row are not padding. */
static rapt_column target_lengths_of(const struct pairs *pairs, int64_t first, int64_t count)
{
    rapt_tensor *lengths = rapt_zeros(RAPT_INT64, RAPT_SHAPE(count));
    int64_t *numbers = lengths ? rapt_data_for_writing(lengths) : NULL;
    const int64_t *label = pairs->labels + first * pairs->num_steps;
    for (int64_t i = 0; numbers && i < count; i++)
        for (int64_t j = 0; j < pairs->num_steps; j++) numbers[i] += *label++ != pairs->target_vocabulary->padding;
    return (rapt_column){.values = lengths};
}

rapt_loader *batches_of(const struct pairs *pairs, int64_t first, int64_t count, int64_t batch_size, bool shuffle)
{
    RAPT_SCOPE;
    const int64_t steps = pairs->num_steps;
    const rapt_column columns[column_count] = {
        [sources] = rows_of(pairs->sources, first, count, steps),
        [decoder_inputs] = rows_of(pairs->decoder_inputs, first, count, steps),
        [labels] = rows_of(pairs->labels, first, count, steps),
        [valid_lengths] = {.values = rapt_from(RAPT_INT64, RAPT_SHAPE(count), pairs->valid_lengths + first)},
        [target_lengths] = target_lengths_of(pairs, first, count),
    };
    return rapt_loader_new(&(rapt_loader_config){.columns = columns,
                                                 .column_count = column_count,
                                                 .batch_size = batch_size,
                                                 .shuffle = shuffle});
}

static void count_tokens(struct batch *batch)
{
    const int64_t *lengths = batch->target_lengths ? rapt_data(batch->target_lengths) : NULL;
    batch->num_tokens = 0;
    for (int64_t i = 0; lengths && i < batch->count; i++) batch->num_tokens += lengths[i];
}

bool batches_next(rapt_loader *batches, struct batch *batch)
{
    rapt_batch rows;
    if (!rapt_loader_next(batches, &rows)) return false;
    *batch = (struct batch){.first = rows.first,
                            .count = rows.count,
                            .sources = rows.tensors[sources],
                            .decoder_inputs = rows.tensors[decoder_inputs],
                            .labels = rows.tensors[labels],
                            .valid_lengths = rows.tensors[valid_lengths],
                            .target_lengths = rows.tensors[target_lengths]};
    count_tokens(batch);
    return true;
}

struct batch batch_rows(const struct batch *batch, int64_t first, int64_t last)
{
    if (first == 0 && last == batch->count) return *batch;
    struct batch rows = {.first = batch->first + first, .count = last - first};
    rows.sources = rapt_slice(batch->sources, 0, first, last, 1);
    rows.decoder_inputs = rapt_slice(batch->decoder_inputs, 0, first, last, 1);
    rows.labels = rapt_slice(batch->labels, 0, first, last, 1);
    rows.valid_lengths = rapt_slice(batch->valid_lengths, 0, first, last, 1);
    rows.target_lengths = rapt_slice(batch->target_lengths, 0, first, last, 1);
    count_tokens(&rows);
    return rows;
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
