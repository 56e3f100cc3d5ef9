/* The safetensors format: 8 bytes of header size, a JSON header, and the bytes of all tensors without a gap.
 * https://huggingface.co/docs/safetensors */
#ifndef RAPT_TENSOR_SAFETENSORS_H
#define RAPT_TENSOR_SAFETENSORS_H

#include <limits.h>

#include <rapt/file.h>
#include <rapt/tensor.h>

#include "read_file.h"
#include "tensor/archive.h"

#define RAPT_SAFETENSORS_MAX_HEADER 100000000

/* A type of element in the file and the dtype that it becomes. */
typedef struct rapt_stored_type {
    const char *name;
    size_t size; /* bytes of an element in the file */
    rapt_dtype dtype;
    void (*widen)(const void *in, int64_t count, float *out); /* NULL: the bytes are the dtype's */
} rapt_stored_type;

/* The type of that name in a header, NULL for one that is not known. */
const rapt_stored_type *rapt_stored_type_find(const char *name);

/* The name under which a dtype is written. */
const char *rapt_stored_type_name(rapt_dtype dtype);

/* A tensor as the header describes it. */
typedef struct rapt_stored_tensor {
    const char *name; /* in the text of the header */
    const rapt_stored_type *type;
    int rank;
    int64_t shape[RAPT_MAX_RANK];
    int64_t begin, end; /* in the bytes after the header */
    int64_t position;   /* in the header */
} rapt_stored_tensor;

typedef struct rapt_stored_header {
    rapt_stored_tensor *tensors;
    int64_t count, capacity;
} rapt_stored_header;

/* Reads and checks a header, whose text it changes and which must outlive it; the tensors come in the order of their
 * bytes, the metadata goes to the archive. path is for the error. The header is to be freed with
 * rapt_stored_header_free, also after an error (false). */
bool rapt_stored_header_parse(const char *path, char *text, size_t size, int64_t data_size, rapt_archive *archive,
                              rapt_stored_header *header);
void rapt_stored_header_free(rapt_stored_header *header);

/* Adds what a file holds, read or mapped, to an archive without tensors. */
bool rapt_read_safetensors(const char *path, bool maps, rapt_archive *archive);

/* Calls the visitor for each tensor of a file, of which only the header is read, until it gives false. */
typedef bool rapt_stored_visitor(const rapt_stored_tensor *stored, void *context);
bool rapt_visit_safetensors(const char *path, rapt_stored_visitor *visitor, void *context);

/* A file in memory, for as long as somebody has a share of it. */
typedef struct rapt_mapping rapt_mapping;
rapt_mapping *rapt_mapping_new(const rapt_reading *reading);
void rapt_mapping_release(void *mapping);

/* Adds a tensor that lies in the mapping to the archive; one that is not aligned is copied. data: where in the file the
 * data begins. */
bool rapt_mapping_add(rapt_mapping *mapping, const rapt_reading *reading, int64_t data,
                      const rapt_stored_tensor *stored, rapt_archive *archive);

/* Does the path name an index of shards? And what is in them. */
bool rapt_is_index(const char *path);
bool rapt_read_index(const char *path, bool maps, rapt_archive *archive);

/* The names of the shards that an index leads to; only the names, the values are gone. Where there is no file, none; of
 * one that is damaged those before the damage, and *is_whole is false. The names are to be freed, also after an error
 * (false): a file that cannot be read, or no memory. */
bool rapt_index_shards(const char *op, const char *path, rapt_names *shards, bool *is_whole);

/* Makes target what the path leads to, and checks that it ends as that of an index of a set of shards. */
bool rapt_index_target(const char *op, const char *path, char target[PATH_MAX]);

/* Removes the first shards, so many, of a set to which no index leads. Takes no memory. */
void rapt_shard_set_drop(const char *path, const rapt_shard_set *set, int count);

/* Whether a name is one of a file beside the index; and its path, false where that is too long. */
bool rapt_is_shard_name(const char *name);
bool rapt_shard_path(const char *index, const char *shard, char path[PATH_MAX]);

#endif
