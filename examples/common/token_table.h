/* A hash table from tokens to whole numbers: open addressing, linear probing. */
#ifndef EXAMPLES_TOKEN_TABLE_H
#define EXAMPLES_TOKEN_TABLE_H

#include <stddef.h>
#include <stdint.h>

/* The text is borrowed, need not end in a NUL, and must outlive the table. An empty slot has a NULL token. */
struct token_slot {
    const char *token;
    size_t length;
    int64_t value;
};

/* Starts as {0}. Walk over slots[0 .. capacity) to see all tokens. */
struct token_table {
    struct token_slot *slots;
    size_t capacity, used;
};

/* The slot of a token, or NULL if it is not there. */
const struct token_slot *token_table_find(const struct token_table *table, const char *token, size_t length);

/* The slot of a token, made with value 0 if it was not there; valid until the next call. NULL without memory. */
struct token_slot *token_table_insert(struct token_table *table, const char *token, size_t length);

void token_table_free(struct token_table *table);

/* The table's hash. */
uint64_t token_hash(const char *token, size_t length);

#endif
