/* Values by name, in the order in which they came. */
#ifndef RAPT_TENSOR_NAMES_H
#define RAPT_TENSOR_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct rapt_named {
    char *name;
    void *value;
    /* Of an archive's tensor that is kept as stored its type; the value is its bytes, uint8, with a last axis of 2. */
    const struct rapt_stored_type *halves;
} rapt_named;

typedef struct rapt_names {
    rapt_named *entries;
    int64_t count, capacity;
    int64_t *slots; /* a hash table of indices into entries, -1 where free */
    int64_t slot_count;
    uint64_t key[2]; /* of the hashes: secret, since names come from files of anybody */
} rapt_names;

/* The entry of that name, and its value; NULL when there is none. */
const rapt_named *rapt_names_entry(const rapt_names *names, const char *name);
void *rapt_names_find(const rapt_names *names, const char *name);

/* Adds a value under a name that is not there yet, which is copied. False, and no error, without memory; then the
 * value is still the caller's. */
bool rapt_names_add(rapt_names *names, const char *name, void *value);

/* Frees all names but the first `count`, not the values. */
void rapt_names_cut(rapt_names *names, int64_t count);

/* Frees the names, not the values. */
void rapt_names_free(rapt_names *names);

/* What places of names in hash tables go by. Without the key nobody can choose names that collide. */
uint64_t rapt_name_hash(const uint64_t key[2], const char *name, size_t length);

#endif
