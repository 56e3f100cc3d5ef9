/* How the fused attentions are applied as ops, and differentiated by their backward. */
#include "fused.h"

#include <string.h>

#include "attention/mask/packed.h"
#include "attention/ring/ring.h"
#include "autograd/meeting.h"
#include "nn/padding.h"

rapt_fused_options rapt_fused_options_of(const rapt_attention_call *call)
{
    rapt_fused_options options = {.mask = rapt_mask_options_of(call),
                                  .is_sigmoid = call->is_sigmoid,
                                  .ring = call->mask->ring};
    if (call->changes) options.changes = call->changes->changes;
    return options;
}

void rapt_fused_put_inputs(const rapt_attention_call *call, rapt_tensor *inputs[rapt_mask_input_count])
{
    rapt_mask_put_inputs(call->mask, inputs);
    inputs[rapt_input_head_terms] = call->head_terms;
}

rapt_raw_normalizer rapt_fused_normalizer(const rapt_call *call, int mask, const rapt_fused_options *options,
                                          rapt_tensor *gradient, rapt_raw_changes *gathers)
{
    static const rapt_score_changes one = {.captured = 1};
    const rapt_tensor *head_terms = rapt_call_input(call, mask + rapt_input_head_terms);
    rapt_raw_normalizer normalizer = {.is_sigmoid = options->is_sigmoid,
                                      .head_terms = head_terms ? head_terms->data : NULL};
    if (!gradient) return normalizer;
    *gathers = (rapt_raw_changes){.changes = &one, .dtype = head_terms->dtype};
    gathers->captured[0] = (rapt_raw_captured){.data = head_terms->data,
                                               .items = 1,
                                               .heads = head_terms->count,
                                               .count = 1,
                                               .bytes = (int64_t)rapt_dtype_size(head_terms->dtype),
                                               .gradient = gradient->data};
    rapt_lay_out_gradients(gathers);
    normalizer.gathers = gathers;
    return normalizer;
}

rapt_tensor *rapt_fused_apply(const rapt_op *op, const void *options, int count, rapt_tensor *const *inputs,
                              const rapt_attention_call *call)
{
    enum { most_inputs = RAPT_MAX_SAVED };
    rapt_tensor *outputs[rapt_fused_output_count] = {0}, *in[most_inputs];
    const int wanted = call->weights ? rapt_fused_output_count : 1;
    const int captured = call->changes ? call->changes->changes.captured : 0;
    memcpy(in, inputs, (size_t)count * sizeof *in);
    if (captured > 0) memcpy(in + count, call->changes->captured, (size_t)captured * sizeof *in);
    if (!rapt_apply_counted(op, options, count + captured, in, wanted, outputs)) return NULL;
    if (call->weights) *call->weights = outputs[rapt_fused_weights];
    if (call->mask->ring) rapt_result_meets(outputs[rapt_fused_pooled], rapt_ring_end_backward, call->mask->ring);
    return outputs[rapt_fused_pooled];
}

bool rapt_fused_gives_weights(const rapt_call *call)
{
    return rapt_call_output_count(call) > rapt_fused_weights;
}

void rapt_fused_save_inputs(rapt_call *call)
{
    for (int i = 0; i < rapt_call_count(call); i++) rapt_call_save(call, rapt_call_input(call, i));
}

static rapt_tensor *pool(rapt_pooling *p)
{
    rapt_tensor *bias = p->resolved.relative_bias;
    if (bias && !rapt_resolve_relative_bias("Attention", bias, bias->dtype, true, &p->resolved)) return NULL;
    p->keys = rapt_hide_padding(p->keys, &p->resolved);
    p->values = rapt_hide_padding(p->values, &p->resolved);
    return p->keys && p->values ? rapt_pool_plainly(p) : NULL;
}

/* By the padded batch. */
static rapt_tensor *pool_packed(rapt_pooling *p)
{
    rapt_resolved_mask *r = &p->resolved;
    rapt_pooling padded;
    for (int i = 0; i < 2;
         i++) { /* where each sequence's queries and keys begin stands behind the ranges, in triples */
        rapt_tensor *starts = rapt_contiguous(rapt_slice(r->ranges, 0, 2 * r->queries + i, rapt_count(r->ranges), 3));
        *(i == 0 ? &p->mask.starts : &p->mask.key_starts) = starts;
        if (!starts) return NULL;
    }
    if (r->relative_bias && r->queries > 1 && r->relative_bias->strides[2] == 0)
        r->relative_bias = rapt_slice(r->relative_bias, 2, 0, 1, 1);
    p->mask.relative_bias = r->relative_bias;
    return rapt_unpack_pooling("Attention", p, &padded) ? rapt_pack_pooled(&p->mask, pool(&padded)) : NULL;
}

rapt_tensor *rapt_fused_define(rapt_call *call, int mask, const rapt_fused_options *options, rapt_scoring *scoring,
                               rapt_tensor *queries, rapt_tensor *keys, rapt_tensor *values)
{
    if (!queries || !keys || !values) return NULL;
    rapt_attention attention = {.module.training = true,
                                .scoring = scoring,
                                .normalizer = options->is_sigmoid ? rapt_masked_sigmoid : rapt_masked_softmax,
                                .dropout = options->mask.dropout};
    const int64_t heads = rapt_heads_of(queries), groups = rapt_heads_of(keys);
    rapt_resolved_changes changes = {.changes = options->changes};
    rapt_tensor *weights = NULL;
    if (changes.changes.captured > 0)
        memcpy(changes.captured, rapt_call_inputs(call) + mask + rapt_mask_input_count,
               (size_t)changes.changes.captured * sizeof *changes.captured);
    rapt_pooling p = {.attention = &attention,
                      .queries = queries,
                      .keys = keys,
                      .values = values,
                      .resolved = rapt_mask_of_inputs(rapt_call_inputs(call) + mask, &options->mask, queries, keys),
                      .changes = changes.changes.count > 0 ? &changes : NULL,
                      .head_terms = rapt_call_inputs(call)[mask + rapt_input_head_terms],
                      .groups = groups,
                      .repeats = groups > 0 ? heads / groups : 1,
                      .weights = rapt_fused_gives_weights(call) ? &weights : NULL};
    const rapt_random_state before = rapt_random_get_state();
    rapt_random_set_state(options->mask.random);
    rapt_tensor *pooled = (p.resolved.packed ? pool_packed : pool)(&p);
    rapt_random_set_state(before);
    if (pooled && p.weights)
        rapt_call_set_output(call, rapt_fused_weights, queries->rank == 4 ? weights : rapt_unsqueeze(weights, 1));
    return pooled;
}

bool rapt_fused_gradients(const rapt_call *call, int first, const rapt_tensor **pooled, const rapt_tensor **weights)
{
    rapt_tensor *of_pooled = rapt_call_input(call, first + rapt_fused_gradient),
                *of_weights = rapt_call_input(call, first + rapt_fused_weights_gradient);
    *pooled = of_pooled ? rapt_as_dense_rows(of_pooled) : NULL;
    *weights = of_weights ? rapt_as_dense_rows(of_weights) : NULL;
    return (*pooled || !of_pooled) && (*weights || !of_weights);
}

static bool give_gradients(rapt_call *call, const rapt_fused_backward *b)
{
    enum { most_inputs = RAPT_MAX_SAVED + rapt_fused_more_inputs, most_gradients = 8 + rapt_most_captured };
    rapt_tensor *in[most_inputs], *gradients[most_gradients], **more = in + b->saved_count;
    for (int i = 0; i < b->saved_count; i++) in[i] = rapt_call_saved(call, i < b->first_captured ? i : i + b->captured);
    rapt_tensor *gradient = rapt_call_gradient(call, rapt_fused_pooled);
    more[rapt_fused_gradient] = gradient;
    more[rapt_fused_weights_gradient] =
        rapt_fused_gives_weights(call) ? rapt_call_gradient(call, rapt_fused_weights) : NULL;
    more[rapt_fused_keys_so_far] = rapt_call_gradient_so_far(call, b->keys);
    more[rapt_fused_values_so_far] = gradient ? rapt_call_gradient_so_far(call, b->values) : NULL;
    for (int i = 0; i < b->gradient_count; i++) b->wants[i] = rapt_call_wants(call, i);
    b->wants[b->values] = b->wants[b->values] && gradient; /* the weights do not depend on the values */
    for (int c = 0; c < b->captured; c++) {
        more[rapt_fused_more_inputs + c] = rapt_call_saved(call, b->first_captured + c);
        b->wants_captured[c] = rapt_call_wants(call, b->first_captured + c);
    }
    if (!rapt_apply_counted(b->op, b->options, b->saved_count + rapt_fused_more_inputs + b->captured, in,
                            b->gradient_count + b->captured, gradients))
        return false;
    if (more[rapt_fused_keys_so_far]) b->wants[b->keys] = false; /* they are there already */
    if (more[rapt_fused_values_so_far]) b->wants[b->values] = false;
    for (int i = 0; i < b->gradient_count; i++)
        if (b->wants[i] && !rapt_call_give(call, i, gradients[i])) return false;
    for (int c = 0; c < b->captured; c++)
        if (b->wants_captured[c] && !rapt_call_give(call, b->first_captured + c, gradients[b->gradient_count + c]))
            return false;
    return true;
}

bool rapt_fused_vjp(rapt_call *call, const rapt_fused_backward *b)
{
    const int64_t before = b->ring ? b->ring->meetings : 0;
    const bool given = give_gradients(call, b);
    rapt_ring_tell(b->ring, b->name, !given, before);
    return given;
}
