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
    inputs[rapt_input_answers] = mask->answers;
    for (int i = 0; i < RAPT_MASK_CAPTURED; i++)
        inputs[rapt_input_captured + i] = mask->answers ? mask->captured[i] : NULL;
    inputs[rapt_input_places] = mask->places;
}

static rapt_resolved_mask of_inputs(rapt_tensor *const *inputs, const rapt_mask_options *o, const int64_t scores[4])
{
    rapt_resolved_mask mask = {.batch = scores[0],
                               .heads = scores[1],
                               .queries = scores[2],
                               .keys = scores[3],
                               .ranges = inputs[rapt_input_ranges],
                               .seen = inputs[rapt_input_seen],
                               .answers = inputs[rapt_input_answers],
                               .code = o->code,
                               .bias = inputs[rapt_input_bias],
                               .relative_bias = inputs[rapt_input_relative_bias],
                               .offset = o->offset,
                               .places = inputs[rapt_input_places],
                               .packed = o->packed,
                               .sequences = o->sequences,
                               .longest_queries = o->longest_queries,
                               .longest_keys = o->longest_keys};
    memcpy(mask.captured, inputs + rapt_input_captured, sizeof mask.captured);
    return mask;
}

rapt_resolved_mask rapt_mask_of_inputs(rapt_tensor *const *inputs, const rapt_mask_options *o,
                                       const rapt_tensor *queries, const rapt_tensor *keys)
{
    return of_inputs(inputs, o,
                     (const int64_t[]){queries->shape[0], rapt_heads_of(queries), rapt_length_of(queries),
                                       rapt_length_of(keys)});
}

rapt_mask_options rapt_mask_options_of(const rapt_attention_call *call)
{
    const rapt_resolved_mask *mask = call->mask;
    rapt_mask_options options = {.offset = mask->offset,
                                 .code = mask->code,
                                 .packed = mask->packed,
                                 .sequences = mask->sequences,
                                 .longest_queries = mask->longest_queries,
                                 .longest_keys = mask->longest_keys,
                                 .dropout = call->dropout};
    const int64_t pairs = mask->packed ? mask->sequences * mask->longest_queries * mask->longest_keys
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

static rapt_raw_rule rule_of(const rapt_resolved_mask *r)
{
    rapt_raw_rule rule = {.code = r->code};
    for (int i = 0; i < RAPT_MASK_CAPTURED; i++) rule.captured[i] = r->captured[i] ? r->captured[i]->data : NULL;
    if (!r->answers) return rule;
    const int64_t *shape = r->answers->shape, row = shape[3], head = shape[2] * row;
    rule.answers = (const uint8_t *)r->answers->data;
    rule.strides[0] = shape[0] > 1 ? shape[1] * head : 0;
    rule.strides[1] = shape[1] > 1 ? head : 0;
    rule.strides[2] = row;
    return rule;
}

rapt_raw_mask rapt_raw_mask_of_resolved(const rapt_resolved_mask *r)
{
    rapt_raw_mask mask = {.batch = r->batch,
                          .heads = r->heads,
                          .queries = r->queries,
                          .keys = r->keys,
                          .ranges = rapt_integers_of(r->ranges),
                          .seen = grid_of(r->seen),
                          .bias = grid_of(r->bias),
                          .relative_bias = grid_of(r->relative_bias),
                          .reach = r->relative_bias ? r->relative_bias->shape[3] / 2 : 0,
                          .offset = r->offset,
                          .places = rapt_integers_of(r->places),
                          .place_item = r->places ? rapt_integers_item(r->places, r->queries) : 0,
                          .rule = rule_of(r),
                          .keep = 1};
    if (r->packed) {
        mask.starts = mask.ranges + 2 * mask.queries;
        mask.batch = r->sequences;
        mask.queries = r->longest_queries;
        mask.keys = r->longest_keys;
    } else if (r->ranges && r->ranges->shape[0] > 1) {
        mask.range_item = 2 * mask.queries;
    }
    return mask;
}

rapt_raw_mask rapt_raw_mask_of(const rapt_call *call, int first, const rapt_mask_options *options,
                               const int64_t scores[4])
{
    const rapt_resolved_mask resolved = of_inputs(rapt_call_inputs(call) + first, options, scores);
    rapt_raw_mask mask = rapt_raw_mask_of_resolved(&resolved);
    mask.keep = 1 - options->dropout;
    mask.random = options->random;
    return mask;
}
