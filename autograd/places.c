/* The places of a walk: a list, and a hash table into it. */
#include "places.h"

#include <string.h>

#include "tensor/memory.h"

enum { first_count = 32 };

/* The slot where that output is or would be; there is always a free one. */
static int32_t *slot_of(const rapt_places *places, const rapt_node *node, int output)
{
    const uint32_t mask = (uint32_t)places->slot_count - 1;
    const uint64_t hash = ((uintptr_t)node / 64 + (uint64_t)output) * UINT64_C(0x9e3779b97f4a7c15);
    for (uint32_t slot = (uint32_t)(hash >> 32) & mask;; slot = (slot + 1) & mask) {
        const int32_t index = places->slots[slot];
        if (index < 0 || (places->list[index].node == node && places->list[index].output == output))
            return &places->slots[slot];
    }
}

int32_t rapt_places_find(const rapt_places *places, const rapt_node *node, int output)
{
    return places->count > 0 ? *slot_of(places, node, output) : -1;
}

/* Room for one more, with at least half of the slots free. */
static bool make_room(rapt_places *places)
{
    if (2 * places->count < places->slot_count) return true;
    const int32_t count = places->slot_count ? places->slot_count : first_count;
    rapt_places larger = {.count = places->count, .slot_count = 2 * count};
    larger.list = rapt_block_take("backward", (size_t)count * sizeof *larger.list, &larger.list_bytes);
    larger.slots = rapt_block_take("backward", 2 * (size_t)count * sizeof *larger.slots, &larger.slots_bytes);
    if (!larger.list || !larger.slots) {
        rapt_block_give(larger.list, larger.list_bytes);
        rapt_block_give(larger.slots, larger.slots_bytes);
        return false;
    }
    if (places->count > 0) memcpy(larger.list, places->list, (size_t)places->count * sizeof *larger.list);
    for (int32_t slot = 0; slot < larger.slot_count; slot++) larger.slots[slot] = -1;
    for (int32_t i = 0; i < larger.count; i++) *slot_of(&larger, larger.list[i].node, larger.list[i].output) = i;
    rapt_block_give(places->list, places->list_bytes);
    rapt_block_give(places->slots, places->slots_bytes);
    *places = larger;
    return true;
}

int32_t rapt_places_add(rapt_places *places, rapt_node *node, int output, bool *is_new)
{
    int32_t index = rapt_places_find(places, node, output);
    *is_new = index < 0;
    if (index >= 0) return index;
    if (!make_room(places)) return -1;
    index = places->count++;
    places->list[index] = (rapt_place){.node = rapt_node_retain(node), .output = output, .input = -1};
    *slot_of(places, node, output) = index;
    return index;
}

rapt_tensor **rapt_places_sum(const rapt_places *places, rapt_node *node, int output)
{
    if (node->op) return &node->outputs[output].gradient;
    return &places->list[rapt_places_find(places, node, output)].gradient;
}

void rapt_places_end(rapt_places *places)
{
    for (int32_t i = 0; i < places->count; i++) {
        rapt_release(places->list[i].gradient);
        rapt_node_release(places->list[i].node);
    }
    rapt_block_give(places->list, places->list_bytes);
    rapt_block_give(places->slots, places->slots_bytes);
    *places = (rapt_places){0};
}
