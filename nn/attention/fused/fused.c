/* How the fused attentions are applied as ops, and differentiated by their backward. */
#include "fused.h"

rapt_tensor *rapt_fused_apply(const rapt_op *op, const void *options, int count, rapt_tensor *const *inputs,
                              const rapt_attention_call *call)
{
    rapt_tensor *outputs[rapt_fused_output_count] = {0};
    const int wanted = call->weights ? rapt_fused_output_count : 1;
    if (!rapt_apply_counted(op, options, count, inputs, wanted, outputs)) return NULL;
    if (call->weights) *call->weights = rapt_detach(outputs[rapt_fused_weights]);
    return outputs[rapt_fused_pooled];
}

bool rapt_fused_gives_weights(const rapt_call *call)
{
    return rapt_call_output_count(call) > rapt_fused_weights;
}

bool rapt_fused_vjp(rapt_call *call, const rapt_fused_backward *b)
{
    enum { most_inputs = RAPT_MAX_SAVED + rapt_fused_more_inputs, most_gradients = 8 };
    rapt_tensor *in[most_inputs], *gradients[most_gradients], **more = in + b->saved_count;
    for (int i = 0; i < b->saved_count; i++) in[i] = rapt_call_saved(call, i);
    more[rapt_fused_gradient] = rapt_call_gradient(call, rapt_fused_pooled);
    more[rapt_fused_keys_so_far] = rapt_call_gradient_so_far(call, b->keys);
    more[rapt_fused_values_so_far] = rapt_call_gradient_so_far(call, b->values);
    for (int i = 0; i < b->gradient_count; i++) b->wants[i] = rapt_call_wants(call, i);
    if (!rapt_apply_many(b->op, b->options, b->saved_count + rapt_fused_more_inputs, in, gradients)) return false;
    if (more[rapt_fused_keys_so_far]) b->wants[b->keys] = false; /* they are there already */
    if (more[rapt_fused_values_so_far]) b->wants[b->values] = false;
    for (int i = 0; i < b->gradient_count; i++)
        if (b->wants[i] && !rapt_call_give(call, i, gradients[i])) return false;
    return true;
}
