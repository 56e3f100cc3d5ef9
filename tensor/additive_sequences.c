/* Additive attention cut into blocks of queries, and a packed batch into its sequences. */
#include "additive_sequences.h"

rapt_attention_tasks rapt_additive_cut_queries(const rapt_additive_attention *call, int64_t first, int64_t last)
{
    const rapt_raw_mask *mask = &call->mask;
    rapt_attention_tasks tasks = rapt_attention_tasks_of(mask->batch, mask->heads, last - first, mask->keys);
    tasks.first_row = first;
    rapt_attention_cut_rows(&tasks, rapt_additive_block);
    return tasks;
}

static rapt_additive_rows rows_from(const rapt_additive_attention *call, rapt_additive_rows rows, int64_t first)
{
    const int64_t bytes = (int64_t)rapt_dtype_size(call->dtype);
    return (rapt_additive_rows){rapt_moved(rows.rows, first, call->hidden, bytes),
                                rapt_moved(rows.powers, first, call->padded, bytes),
                                rapt_moved(rows.largest, first, 1, bytes)};
}

rapt_additive_attention rapt_additive_call_of_sequence(const rapt_additive_attention *call, int64_t sequence)
{
    rapt_additive_attention one = *call;
    if (!call->mask.starts) return one;
    const int64_t bytes = (int64_t)rapt_dtype_size(call->dtype);
    const rapt_raw_place place = rapt_raw_place_of(&call->mask, sequence);
    one.first_item = sequence;
    one.mask = rapt_raw_mask_of_sequence(&call->mask, sequence, bytes);
    one.queries = rows_from(call, call->queries, place.first_query);
    one.keys = rows_from(call, call->keys, place.first_key);
    one.folded = rapt_moved(call->folded, place.first_query, call->padded, bytes);
    one.values.data = rapt_moved(call->values.data, place.first_key, call->values.strides[2], bytes);
    return one;
}

bool rapt_additive_enter_sequence(const rapt_additive_attention *call, const rapt_raw_place *place,
                                  rapt_attention_piece *piece)
{
    return !call->mask.starts || rapt_attention_enter_sequence(place, 1, piece);
}
