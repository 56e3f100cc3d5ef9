/* Replacing a file in one step: readers, and a crash at any moment, see the old content or the whole new one. */
#ifndef RAPT_TENSOR_REPLACE_FILE_H
#define RAPT_TENSOR_REPLACE_FILE_H

#include <limits.h>

#include <rapt/base.h>

/* A file that is being written beside its target. */
typedef struct rapt_replacement {
    const char *op, *path; /* path is the caller's and must outlive this */
    char target[PATH_MAX]; /* what the path leads to: its directory, then, behind a NUL, its name */
    const char *name;      /* the last part of target */
    char temporary[160];   /* the name of what is being written, in the same directory */
    int file, directory;   /* descriptors */
} rapt_replacement;

/* Makes target what the path leads to, link by link, whether it is there or not; on Windows the path itself. False and
 * an error for links in a ring and for what is too long. */
bool rapt_follow_links(const char *op, const char *path, char target[PATH_MAX]);

/* Makes an empty file beside what path leads to. A symbolic link stays, and what it leads to is replaced, or made. A
 * file that is there hands on its permissions and, where the process may, owner and group; a new one follows the
 * umask. Other hard links to the old file keep the old content. False and an error when path leads to anything but a
 * regular file that may be written, or when no file can be made beside it; then there is nothing to end. Until the end
 * errors are held, since a handler that ends the program would leave what is beside the target. Takes no memory. */
bool rapt_replacement_begin(rapt_replacement *replacement, const char *op, const char *path);

bool rapt_replacement_write(const rapt_replacement *replacement, const void *data, size_t size);

/* Ends it: with keep, and if all goes well, the new file takes the target's place; else it is removed and the target is
 * as it was. */
bool rapt_replacement_end(rapt_replacement *replacement, bool keep);

#endif
