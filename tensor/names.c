/* Values by name: an array in the order in which they came, and an open hash table of places in it. */
#include "tensor/names.h"

#include <stdlib.h>
#include <string.h>

/* FNV-1a. */
uint64_t rapt_name_hash(const char *name, size_t length)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < length; i++) hash = (hash ^ (unsigned char)name[i]) * UINT64_C(0x100000001b3);
    return hash;
}

/* The slot where the name is or would be. There is always a free one. */
static int64_t *slot_of(const rapt_names *names, const char *name)
{
    uint64_t slot = rapt_name_hash(name, strlen(name)) % (uint64_t)names->slot_count;
    while (names->slots[slot] >= 0 && strcmp(names->entries[names->slots[slot]].name, name) != 0)
        slot = (slot + 1) % (uint64_t)names->slot_count;
    return &names->slots[slot];
}

const rapt_named *rapt_names_entry(const rapt_names *names, const char *name)
{
    const int64_t index = names->count > 0 ? *slot_of(names, name) : -1;
    return index < 0 ? NULL : &names->entries[index];
}

void *rapt_names_find(const rapt_names *names, const char *name)
{
    const rapt_named *entry = rapt_names_entry(names, name);
    return entry ? entry->value : NULL;
}

/* Room for one more, with at least half of the slots free. */
static bool grow(rapt_names *names)
{
    if (names->count < names->capacity) return true;
    const int64_t capacity = names->capacity ? names->capacity * 2 : 16;
    rapt_named *entries = realloc(names->entries, (size_t)capacity * sizeof *entries);
    if (!entries) return false;
    names->entries = entries;
    int64_t *slots = malloc((size_t)capacity * 2 * sizeof *slots);
    if (!slots) return false;
    free(names->slots);
    names->slots = slots;
    names->slot_count = capacity * 2;
    names->capacity = capacity;
    for (int64_t i = 0; i < names->slot_count; i++) slots[i] = -1;
    for (int64_t i = 0; i < names->count; i++) *slot_of(names, entries[i].name) = i;
    return true;
}

bool rapt_names_add(rapt_names *names, const char *name, void *value)
{
    char *copy = strdup(name);
    if (!copy || !grow(names)) {
        free(copy);
        return false;
    }
    *slot_of(names, copy) = names->count;
    names->entries[names->count++] = (rapt_named){.name = copy, .value = value};
    return true;
}

/* The newest go first, so that no other name was put behind one that goes. */
void rapt_names_cut(rapt_names *names, int64_t count)
{
    while (names->count > count) {
        char *name = names->entries[names->count - 1].name;
        *slot_of(names, name) = -1;
        names->count--;
        free(name);
    }
}

void rapt_names_free(rapt_names *names)
{
    rapt_names_cut(names, 0);
    free(names->entries);
    free(names->slots);
}
