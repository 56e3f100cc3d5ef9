/* A set of pointers: an array in the order of adding, and an open hash table of places in it. */
#include "tensor/pointer_set.h"

#include <string.h>

#include "tensor/memory.h"

enum { first_capacity = 16 };

/* At least half of the slots, a power of two of them, are free. Multiplied by 2⁶⁴ / the golden ratio, whose upper bits
 * differ for near pointers. */
static int64_t *slot_of(const rapt_pointer_set *set, const void *pointer)
{
    const uint64_t mask = 2 * (uint64_t)set->capacity - 1;
    uint64_t slot = (uint64_t)(uintptr_t)pointer * UINT64_C(0x9E3779B97F4A7C15) >> 32 & mask;
    while (set->slots[slot] >= 0 && set->pointers[set->slots[slot]] != pointer) slot = (slot + 1) & mask;
    return &set->slots[slot];
}

int64_t rapt_pointer_set_find(const rapt_pointer_set *set, const void *pointer)
{
    return set->count > 0 ? *slot_of(set, pointer) : -1;
}

static bool grow(rapt_pointer_set *set)
{
    rapt_pointer_set grown = {.count = set->count, .capacity = set->capacity ? 2 * set->capacity : first_capacity};
    const size_t slots = 2 * (size_t)grown.capacity * sizeof *grown.slots;
    char *block = rapt_block_try((size_t)grown.capacity * sizeof *grown.pointers + slots, &grown.block_capacity);
    if (!block) return false;
    grown.slots = (int64_t *)(void *)block;
    grown.pointers = (const void **)(void *)(block + slots);
    memset(grown.slots, -1, slots);
    for (int64_t i = 0; i < set->count; i++) {
        grown.pointers[i] = set->pointers[i];
        *slot_of(&grown, grown.pointers[i]) = i;
    }
    rapt_pointer_set_free(set);
    *set = grown;
    return true;
}

rapt_set_result rapt_pointer_set_add(rapt_pointer_set *set, const void *pointer)
{
    if (rapt_pointer_set_find(set, pointer) >= 0) return RAPT_SET_KNOWN;
    if (set->count == set->capacity && !grow(set)) return RAPT_SET_NO_MEMORY;
    *slot_of(set, pointer) = set->count;
    set->pointers[set->count++] = pointer;
    return RAPT_SET_NEW;
}

void rapt_pointer_set_free(rapt_pointer_set *set)
{
    rapt_block_give(set->slots, set->block_capacity);
    *set = (rapt_pointer_set){0};
}
