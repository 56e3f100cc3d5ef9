/* Replacing a file in one step: readers, and a crash at any moment, see the old content or the whole new one. */
#ifndef RAPT_TENSOR_REPLACE_FILE_H
#define RAPT_TENSOR_REPLACE_FILE_H

#include <rapt/base.h>

/* A file that is being written beside its target. */
typedef struct rapt_replacement {
    const char *op, *path; /* of the target; path is the caller's and must outlive this */
    char *temporary;       /* the path of what is being written */
    int file, directory;   /* descriptors */
} rapt_replacement;

/* False and an error when no file can be made beside path; then there is nothing to end. */
bool rapt_replacement_begin(rapt_replacement *replacement, const char *op, const char *path);

bool rapt_replacement_write(const rapt_replacement *replacement, const void *data, size_t size);

/* Ends it: with keep, and if all goes well, the new file takes the target's place; else it is removed and the target is
 * as it was. */
bool rapt_replacement_end(rapt_replacement *replacement, bool keep);

#endif
