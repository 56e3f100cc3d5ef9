/* A resolved mask as inputs of the fused ops, and as the kernels read it. */
#include "mask_inputs.h"

#include <string.h>

#include "nn/pooling.h"
#include "tensor/random.h"

void rapt_mask_put_inputs(const rapt_resolved_mask *mask, rapt_tensor *inputs[rapt_mask_input_count])
{
    inputs[rapt_input_bias] = mask->bias;
    inputs[rapt_input_relative_bias] = mask->relative_bias;
    inputs[rapt_input_ranges] = mask->ranges;
    inputs[rapt_input_seen] = mask->seen;
}

rapt_resolved_mask rapt_mask_of_inputs(rapt_tensor *const *inputs, const rapt_mask_options *o,
                                       const rapt_tensor *queries, const rapt_tensor *keys)
{
    return (rapt_resolved_mask){.batch = queries->shape[0],
                                .heads = rapt_heads_of(queries),
                                .queries = rapt_length_of(queries),
                                .keys = rapt_length_of(keys),
                                .ranges = inputs[rapt_input_ranges],
                                .seen = inputs[rapt_input_seen],
                                .bias = inputs[rapt_input_bias],
                                .relative_bias = inputs[rapt_input_relative_bias],
                                .offset = o->offset,
                                .sequences = o->sequences,
                                .longest_queries = o->longest_queries,
                                .longest_keys = o->longest_keys};
}

rapt_mask_options rapt_mask_options_of(const rapt_attention_call *call)
{
    const rapt_resolved_mask *mask = call->mask;
    rapt_mask_options options = {.offset = mask->offset,
                                 .sequences = mask->sequences,
                                 .longest_queries = mask->longest_queries,
                                 .longest_keys = mask->longest_keys,
                                 .dropout = call->dropout};
    const int64_t pairs = mask->sequences > 0 ? mask->sequences * mask->longest_queries * mask->longest_keys
                                              : mask->batch * mask->queries * mask->keys;
    if (call->dropout > 0 && call->dropout < 1) options.random = rapt_random_reserve(mask->heads * pairs);
    return options;
}

static rapt_raw_grid grid_of(const rapt_tensor *tensor)
{
    rapt_raw_grid grid = {0};
    if (!tensor) return grid;
    grid.data = tensor->data;
    memcpy(grid.strides, tensor->strides, sizeof grid.strides);
    return grid;
}

rapt_raw_mask rapt_raw_mask_of(const rapt_call *call, int first, const rapt_mask_options *options,
                               const int64_t scores[4])
{
    const rapt_tensor *ranges = rapt_call_input(call, first + rapt_input_ranges);
    const rapt_tensor *relative_bias = rapt_call_input(call, first + rapt_input_relative_bias);
    rapt_raw_mask mask = {.batch = scores[0],
                          .heads = scores[1],
                          .queries = scores[2],
                          .keys = scores[3],
                          .seen = grid_of(rapt_call_input(call, first + rapt_input_seen)),
                          .bias = grid_of(rapt_call_input(call, first + rapt_input_bias)),
                          .relative_bias = grid_of(relative_bias),
                          .reach = relative_bias ? relative_bias->shape[3] / 2 : 0,
                          .offset = options->offset,
                          .keep = 1 - options->dropout,
                          .random = options->random};
    if (ranges) mask.ranges = (const int64_t *)(const void *)ranges->data;
    if (options->sequences > 0) {
        mask.starts = mask.ranges + 2 * mask.queries;
        mask.batch = options->sequences;
        mask.queries = options->longest_queries;
        mask.keys = options->longest_keys;
    } else if (ranges && ranges->shape[0] > 1) {
        mask.range_item = 2 * mask.queries;
    }
    return mask;
}
