/* Values by name: an array in the order in which they came, and an open hash table of places in it. */
#include "tensor/names.h"

#include <stdlib.h>
#include <string.h>

#include "tensor/system.h"

static uint64_t turn(uint64_t word, int bits)
{
    return word << bits | word >> (64 - bits);
}

static void mix(uint64_t v[4])
{
    v[0] += v[1], v[1] = turn(v[1], 13) ^ v[0], v[0] = turn(v[0], 32);
    v[2] += v[3], v[3] = turn(v[3], 16) ^ v[2];
    v[0] += v[3], v[3] = turn(v[3], 21) ^ v[0];
    v[2] += v[1], v[1] = turn(v[1], 17) ^ v[2], v[2] = turn(v[2], 32);
}

/* SipHash-1-3, with a last word that is the size. https://cr.yp.to/siphash/siphash-20120918.pdf */
uint64_t rapt_name_hash(const uint64_t key[2], const char *name, size_t length)
{
    uint64_t v[] = {key[0] ^ UINT64_C(0x736f6d6570736575), key[1] ^ UINT64_C(0x646f72616e646f6d),
                    key[0] ^ UINT64_C(0x6c7967656e657261), key[1] ^ UINT64_C(0x7465646279746573)};
    for (size_t i = 0; i <= length; i += sizeof *v) {
        const size_t rest = length - i;
        uint64_t word = 0;
        memcpy(&word, name + i, rest < sizeof word ? rest : sizeof word);
        v[3] ^= word;
        mix(v);
        v[0] ^= word;
    }
    v[3] ^= length;
    mix(v);
    v[0] ^= length;
    v[2] ^= 0xff;
    for (int i = 0; i < 3; i++) mix(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

/* The slot where the name is or would be. There is always a free one. */
static int64_t *slot_of(const rapt_names *names, const char *name)
{
    uint64_t slot = rapt_name_hash(names->key, name, strlen(name)) % (uint64_t)names->slot_count;
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
    rapt_system_random(names->key);
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
