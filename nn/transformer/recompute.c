/* A Transformer's layer that the graph does not keep: layer and masks live on until it was computed again. */
#include "nn/mask.h"
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
    rapt_module_free(held->call.layer);
    rapt_block_give(held, held->capacity);
}

rapt_tensor *rapt_layer_recompute(rapt_recompute_function *function, rapt_module *layer, int count,
                                  rapt_tensor *const *inputs, const rapt_mask *mask, const rapt_mask *memory_mask)
{
    const rapt_mask *const masks[] = {mask, memory_mask};
    size_t capacity;
    held_call *held = rapt_block_take(layer->kind->name, sizeof *held, &capacity);
    if (!held) return NULL;
    *held = (held_call){.call.layer = rapt_module_retain(layer), .capacity = capacity};
    for (int i = 0; i < 2; i++) {
        if (!masks[i]) continue;
        held->masks[i] = rapt_mask_retain(masks[i]);
        held->call.masks[i] = &held->masks[i];
    }
    return rapt_recompute(function, count, inputs, held, held_call_free);
}
