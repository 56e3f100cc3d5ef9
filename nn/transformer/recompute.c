/* A Transformer's layer that the graph does not keep: layer and masks live on until it was computed again. */
#include "nn/entry.h"
#include "nn/mask.h"
#include "tensor/core.h"
#include "tensor/memory.h"
#include "transformer.h"

typedef struct held_call {
    rapt_layer_call call; /* first, so that the call is the whole */
    rapt_mask masks[2];
    size_t capacity;
} held_call;

static void held_call_free(void *context)
{
    held_call *held = context;
    for (int i = 0; i < 2; i++) rapt_mask_release(&held->masks[i]);
    rapt_module_leave_graph(held->call.layer);
    rapt_block_give(held, held->capacity);
}

rapt_tensor **rapt_layer_weights(const rapt_layer_call *call, int k, rapt_tensor **outputs)
{
    return call->attentions[k] ? outputs + (k > 0 && call->attentions[0] ? 2 : 1) : NULL;
}

static held_call *hold(const rapt_layer_call *call)
{
    size_t capacity;
    held_call *held = rapt_block_take(call->layer->kind->name, sizeof *held, &capacity);
    if (!held) return NULL;
    *held = (held_call){.call = *call, .capacity = capacity};
    rapt_module_hold_in_graph(call->layer);
    for (int i = 0; i < 2; i++) {
        if (!call->masks[i]) continue;
        held->masks[i] = rapt_mask_retain(call->masks[i]);
        held->call.masks[i] = &held->masks[i];
    }
    return held;
}

rapt_tensor *rapt_layer_recompute(rapt_recompute_many_function *function, const rapt_layer_call *call, int count,
                                  rapt_tensor *const *inputs)
{
    rapt_layer_call keeping = *call;
    rapt_tensor *outputs[3];
    int kept = 0;
    for (int k = 0; k < 2; k++)
        if (keeping.attentions[k] && keeping.attentions[k]->keep_weights)
            kept++;
        else
            keeping.attentions[k] = NULL;
    held_call *held = hold(&keeping);
    if (!held || !rapt_recompute_many(function, count, inputs, 1 + kept, outputs, held, held_call_free)) return NULL;
    for (int k = 0; k < 2; k++) /* in place of those that the function kept, which are in a graph of its own */
        if (keeping.attentions[k])
            rapt_field_set(&keeping.attentions[k]->weights, *rapt_layer_weights(&keeping, k, outputs));
    return outputs[0];
}
