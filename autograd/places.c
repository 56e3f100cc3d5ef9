/* The places of a walk: a list, and the set of what they are places of. */
#include "places.h"

#include "tensor/memory.h"

int64_t rapt_places_find(const rapt_places *places, const rapt_node *node, int output)
{
    return rapt_pointer_set_find(&places->outputs, &node->outputs[output]);
}

int64_t rapt_places_add(rapt_places *places, rapt_node *node, int output, bool *is_new)
{
    const int64_t index = rapt_places_find(places, node, output);
    *is_new = index < 0;
    if (index >= 0) return index;
    const size_t item = sizeof *places->list;
    rapt_place *list = rapt_block_grow("backward", places->list, &places->bytes, (size_t)places->count * item,
                                       (size_t)(places->count + 1) * item);
    if (!list) return -1;
    places->list = list;
    if (rapt_pointer_set_add(&places->outputs, &node->outputs[output]) == RAPT_SET_NO_MEMORY) {
        rapt_fail(RAPT_ERROR_MEMORY, "backward", "no memory for the place of a gradient");
        return -1;
    }
    list[places->count] = (rapt_place){.node = rapt_node_retain(node), .output = output, .input = -1};
    return places->count++;
}

void rapt_places_end(rapt_places *places)
{
    for (int64_t i = 0; i < places->count; i++) {
        rapt_release(places->list[i].gradient);
        rapt_release(places->list[i].replaced);
        rapt_node_release(places->list[i].node);
    }
    rapt_block_give(places->list, places->bytes);
    rapt_pointer_set_free(&places->outputs);
    *places = (rapt_places){0};
}
