/* A resolved mask's tensors as the kernels read them. */
#include "nn/kernel_mask.h"

#include <string.h>

#include "tensor/random.h"

rapt_mask_inputs rapt_mask_inputs_of(const rapt_resolved_mask *mask)
{
    return (rapt_mask_inputs){mask->bias, mask->distance_bias, mask->ranges, mask->seen};
}

rapt_mask_options rapt_mask_options_of(const rapt_attention_call *call)
{
    const rapt_resolved_mask *mask = call->mask;
    rapt_mask_options options = {.offset = mask->offset, .dropout = call->dropout};
    if (call->dropout > 0 && call->dropout < 1)
        options.random = rapt_random_reserve(mask->batch * mask->heads * mask->queries * mask->keys);
    return options;
}

static rapt_kernel_grid grid_of(const rapt_tensor *tensor)
{
    rapt_kernel_grid grid = {0};
    if (!tensor) return grid;
    grid.data = tensor->data;
    memcpy(grid.strides, tensor->strides, sizeof grid.strides);
    return grid;
}

rapt_kernel_mask rapt_kernel_mask_of(const rapt_mask_inputs *inputs, const rapt_mask_options *options,
                                     const int64_t scores[4])
{
    const rapt_tensor *ranges = inputs->ranges, *nearby = inputs->nearby;
    rapt_kernel_mask mask = {.batch = scores[0],
                             .heads = scores[1],
                             .queries = scores[2],
                             .keys = scores[3],
                             .seen = grid_of(inputs->seen),
                             .bias = grid_of(inputs->bias),
                             .nearby = grid_of(nearby),
                             .reach = nearby ? nearby->shape[3] / 2 : 0,
                             .offset = options->offset,
                             .keep = 1 - options->dropout,
                             .random = options->random};
    if (ranges) mask.ranges = (const int64_t *)(const void *)ranges->data;
    if (ranges && ranges->shape[0] > 1) mask.range_item = 2 * mask.queries;
    return mask;
}
