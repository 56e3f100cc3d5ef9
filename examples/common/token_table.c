/* The hash table of tokens. */
#include "token_table.h"

#include <stdlib.h>
#include <string.h>

#include "hash.h"

uint64_t token_hash(const char *token, size_t length)
{
    return hash_bytes(HASH_BEGIN, token, length);
}

/* The token's slot, or the empty one where it belongs. The table is never full. */
static struct token_slot *probe(const struct token_table *table, const char *token, size_t length)
{
    size_t mask = table->capacity - 1;
    for (size_t i = (size_t)token_hash(token, length);; i++) {
        struct token_slot *slot = &table->slots[i & mask];
        if (slot->token == NULL) return slot;
        if (slot->length == length && memcmp(slot->token, token, length) == 0) return slot;
    }
}

static int grow(struct token_table *table)
{
    struct token_table larger = {.capacity = table->capacity == 0 ? 256 : 2 * table->capacity, .used = table->used};
    larger.slots = calloc(larger.capacity, sizeof *larger.slots);
    if (larger.slots == NULL) return 0;
    for (size_t i = 0; i < table->capacity; i++) {
        const struct token_slot *slot = &table->slots[i];
        if (slot->token != NULL) *probe(&larger, slot->token, slot->length) = *slot;
    }
    free(table->slots);
    *table = larger;
    return 1;
}

const struct token_slot *token_table_find(const struct token_table *table, const char *token, size_t length)
{
    if (table->used == 0) return NULL;
    const struct token_slot *slot = probe(table, token, length);
    return slot->token != NULL ? slot : NULL;
}

struct token_slot *token_table_insert(struct token_table *table, const char *token, size_t length)
{
    if (2 * table->used >= table->capacity && !grow(table)) return NULL;
    struct token_slot *slot = probe(table, token, length);
    if (slot->token == NULL) {
        *slot = (struct token_slot){.token = token, .length = length};
        table->used++;
    }
    return slot;
}

void token_table_free(struct token_table *table)
{
    free(table->slots);
    *table = (struct token_table){0};
}
