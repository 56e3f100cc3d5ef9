/* Writing beside the target, syncing, renaming, syncing the directory. */
#include "tensor/replace_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rapt/error.h>

/* "op: doing 'path': why", from errno. */
static bool fail(const rapt_replacement *replacement, const char *doing, const char *path)
{
    const int reason = errno;
    char text[128];
    return rapt_fail(RAPT_ERROR_FILE, replacement->op, "cannot %s '%.200s': %s", doing, path,
                     strerror_r(reason, text, sizeof text));
}

static bool open_directory(rapt_replacement *replacement)
{
    char *directory = strdup(replacement->path);
    if (!directory) return rapt_fail(RAPT_ERROR_MEMORY, replacement->op, "no memory for a path");
    char *slash = strrchr(directory, '/');
    if (slash) slash[slash == directory] = '\0'; /* "/" stays */
    const char *name = slash ? directory : ".";
    replacement->directory = open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const bool opened = replacement->directory >= 0 || fail(replacement, "open the directory", name);
    free(directory);
    return opened;
}

/* A name that no other thread or process uses; what a killed process left behind is passed over. */
static bool open_temporary(rapt_replacement *replacement)
{
    static _Atomic unsigned counter;
    const size_t size = strlen(replacement->path) + 48;
    replacement->temporary = malloc(size);
    if (!replacement->temporary) return rapt_fail(RAPT_ERROR_MEMORY, replacement->op, "no memory for a path");
    do {
        snprintf(replacement->temporary, size, "%s.%ld-%u.tmp", replacement->path, (long)getpid(),
                 atomic_fetch_add(&counter, 1));
        replacement->file = open(replacement->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    } while (replacement->file < 0 && errno == EEXIST);
    if (replacement->file >= 0) return true;
    fail(replacement, "create", replacement->temporary);
    free(replacement->temporary);
    return false;
}

bool rapt_replacement_begin(rapt_replacement *replacement, const char *op, const char *path)
{
    *replacement = (rapt_replacement){.op = op, .path = path, .file = -1, .directory = -1};
    if (!open_directory(replacement)) return false;
    if (open_temporary(replacement)) return true;
    close(replacement->directory);
    return false;
}

bool rapt_replacement_write(const rapt_replacement *replacement, const void *data, size_t size)
{
    const char *next = data;
    while (size > 0) {
        const ssize_t written = write(replacement->file, next, size);
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) return fail(replacement, "write", replacement->temporary);
        next += written;
        size -= (size_t)written;
    }
    return true;
}

/* Some file systems have no way to sync a directory, and say so with EINVAL. */
static bool sync_directory(const rapt_replacement *replacement)
{
    return fsync(replacement->directory) == 0 || errno == EINVAL ||
           fail(replacement, "sync the directory of", replacement->path);
}

bool rapt_replacement_end(rapt_replacement *replacement, bool keep)
{
    keep = keep && (fsync(replacement->file) == 0 || fail(replacement, "sync", replacement->temporary));
    const bool closed = close(replacement->file) == 0;
    keep = keep && (closed || fail(replacement, "close", replacement->temporary));
    keep = keep &&
           (rename(replacement->temporary, replacement->path) == 0 || fail(replacement, "replace", replacement->path));
    if (keep)
        keep = sync_directory(replacement);
    else
        unlink(replacement->temporary);
    close(replacement->directory);
    free(replacement->temporary);
    return keep;
}
