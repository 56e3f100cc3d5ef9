/* Writing beside the target, syncing, moving it there, on Windows. */
#include "tensor/replace_file.h"

#include <windows.h>

#include <errno.h>
#include <fcntl.h>
#include <io.h>
#include <process.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <rapt/error.h>

#include "read_file.h"
#include "tensor/core.h"

enum { most_of_name = 100 };

static bool fail(const rapt_replacement *replacement, const char *doing)
{
    return rapt_fail_file(replacement->op, doing, replacement->path);
}

/* The same of a function of Windows. */
static bool fail_in_windows(const rapt_replacement *replacement, const char *doing)
{
    return rapt_fail(RAPT_ERROR_FILE, replacement->op, "cannot %s '%.200s': error %lu of Windows", doing,
                     replacement->path, GetLastError());
}

/* The last part of the path, behind its folder's slash or the drive's colon. */
static const char *name_in(const char *path)
{
    const char *name = path;
    for (; *path; path++)
        if (*path == '/' || *path == '\\' || *path == ':') name = path + 1;
    return name;
}

bool rapt_follow_links(const char *op, const char *path, char target[PATH_MAX])
{
    errno = ENAMETOOLONG;
    if (strlen(path) >= PATH_MAX) return rapt_fail_file(op, "follow", path);
    strcpy(target, path);
    return true;
}

static bool check_target(const rapt_replacement *replacement)
{
    struct _stat64 old;
    if (_stat64(replacement->path, &old) != 0) return errno == ENOENT || fail(replacement, "write");
    if ((old.st_mode & _S_IFMT) != _S_IFREG)
        return rapt_fail(RAPT_ERROR_FILE, replacement->op, "'%.200s' is not a regular file", replacement->path);
    return _access(replacement->path, 2) == 0 || fail(replacement, "write");
}

/* Makes target the path of the file beside it, whose name no other thread or process uses. */
static bool open_temporary(rapt_replacement *replacement)
{
    static _Atomic unsigned counter;
    const char *path = replacement->path;
    const size_t folder = (size_t)(replacement->name - path);
    if (*replacement->name == '\0') {
        errno = ENOENT;
        return fail(replacement, "write");
    }
    do {
        snprintf(replacement->temporary, sizeof replacement->temporary, "%.*s.%d-%u.tmp", most_of_name,
                 replacement->name, _getpid(), atomic_fetch_add(&counter, 1));
        if (folder + strlen(replacement->temporary) >= sizeof replacement->target) {
            errno = ENAMETOOLONG;
            return fail(replacement, "write");
        }
        memcpy(replacement->target, path, folder);
        strcpy(replacement->target + folder, replacement->temporary);
        replacement->file =
            _open(replacement->target, _O_WRONLY | _O_CREAT | _O_EXCL | _O_BINARY | _O_NOINHERIT, _S_IREAD | _S_IWRITE);
    } while (replacement->file < 0 && errno == EEXIST);
    return replacement->file >= 0 || fail(replacement, "create a file beside");
}

bool rapt_replacement_begin(rapt_replacement *replacement, const char *op, const char *path)
{
    replacement->op = op;
    replacement->path = path;
    replacement->name = name_in(path);
    replacement->directory = -1;
    if (!check_target(replacement) || !open_temporary(replacement)) return false;
    rapt_error_hold();
    return true;
}

bool rapt_replacement_write(const rapt_replacement *replacement, const void *data, size_t size)
{
    enum { most_at_once = 1 << 30 };
    const char *next = data;
    while (size > 0) {
        const int written = _write(replacement->file, next, size < most_at_once ? (unsigned)size : most_at_once);
        if (written < 0) return fail(replacement, "write");
        next += written;
        size -= (size_t)written;
    }
    return true;
}

bool rapt_replacement_end(rapt_replacement *replacement, bool keep)
{
    keep = keep && (_commit(replacement->file) == 0 || fail(replacement, "sync"));
    const bool closed = _close(replacement->file) == 0;
    keep = keep && (closed || fail(replacement, "write"));
    keep = keep &&
           (MoveFileExA(replacement->target, replacement->path, MOVEFILE_REPLACE_EXISTING | MOVEFILE_WRITE_THROUGH) ||
            fail_in_windows(replacement, "replace"));
    if (!keep) _unlink(replacement->target);
    rapt_error_release();
    return keep;
}
