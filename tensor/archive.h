/* What an archive is made of, for the readers and writers of files. */
#ifndef RAPT_TENSOR_ARCHIVE_H
#define RAPT_TENSOR_ARCHIVE_H

#include <rapt/tensor.h>

/* Values by name, in the order in which they came. */
typedef struct rapt_named {
    char *name;
    void *value;
    /* Of a tensor that is kept as stored its type; the value is its bytes, uint8, with a last axis of 2. */
    const struct rapt_stored_type *halves;
} rapt_named;

typedef struct rapt_names {
    rapt_named *entries;
    int64_t count, capacity;
    int64_t *slots; /* a hash table of indices into entries, -1 where free */
    int64_t slot_count;
} rapt_names;

struct rapt_archive {
    rapt_names tensors; /* of rapt_tensor, a share of each */
    rapt_names texts;   /* of char */
};

/* The value of that name, NULL when there is none. */
void *rapt_names_find(const rapt_names *names, const char *name);

/* Adds a value under a name that is not there yet, which is copied. False, and no error, without memory; then the
 * value is still the caller's. */
bool rapt_names_add(rapt_names *names, const char *name, void *value);

/* Frees the names, not the values. */
void rapt_names_free(rapt_names *names);

/* The tensor of an entry: the archive's own, or, of one that is kept as stored, a new one of the innermost scope. NULL
 * after an error. */
rapt_tensor *rapt_archive_open(const rapt_named *entry);

/* Adds a share of a tensor under a name that is not there yet; halves as above, or NULL. False, and no error, without
 * memory. */
bool rapt_archive_keep(rapt_archive *archive, const char *name, rapt_tensor *tensor,
                       const struct rapt_stored_type *halves);

/* The key of a safetensors header that is not a tensor. */
#define RAPT_METADATA_KEY "__metadata__"

#endif
