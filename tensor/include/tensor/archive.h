/* What an archive is made of, for the readers and writers of files. */
#ifndef RAPT_TENSOR_ARCHIVE_H
#define RAPT_TENSOR_ARCHIVE_H

#include <rapt/tensor.h>

#include "tensor/names.h"

struct rapt_archive {
    rapt_names tensors; /* of rapt_tensor, a share of each */
    rapt_names texts;   /* of char */
};

/* The tensor of an entry: the archive's own, or, of one that is kept as stored, a new one of the innermost scope. NULL
 * after an error. */
rapt_tensor *rapt_archive_open(const rapt_named *entry);

/* Adds a share of a tensor under a name that is not there yet; halves as of a rapt_named, or NULL. False, and no error,
 * without memory. */
bool rapt_archive_keep(rapt_archive *archive, const char *name, rapt_tensor *tensor,
                       const struct rapt_stored_type *halves);

/* Takes off all but the first so many tensors and texts, after something failed. Returns false. */
bool rapt_archive_cut(rapt_archive *archive, int64_t tensors, int64_t texts);

/* The key of a safetensors header that is not a tensor. */
#define RAPT_METADATA_KEY "__metadata__"

#endif
