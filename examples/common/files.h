/* Files of examples: read whole, and looked at before the work that they are to hold. */
#ifndef EXAMPLES_FILES_H
#define EXAMPLES_FILES_H

#include <stdbool.h>
#include <stddef.h>

/* All bytes of a file, and a NUL behind them that *size does not count; it may be one without a size, such as a
   pipe. The caller frees it. NULL with errno for what cannot be read, ENOMEM without memory. */
char *file_read(const char *path, size_t *size);

struct file_option {
    const char *option, *path; /* a path that is NULL was not given */
};

/* Does each of these options (closed by one without a name) name another file, which need not be there yet? False after
   a sentence on stderr. */
bool files_are_apart(const char *program, const struct file_option *options);

/* Can a file be saved there (see rapt_can_save)? False after a sentence on stderr, "program: …". */
bool file_can_be_saved(const char *program, const char *path);

/* False after a sentence on stderr that says what is not there. */
bool file_is_there(const char *program, const char *path, const char *what);

/* Makes the folder, if it is not there, and asks the same for each of the names in it (closed by NULL). */
bool folder_can_be_saved(const char *program, const char *folder, const char *const *names);

#endif
