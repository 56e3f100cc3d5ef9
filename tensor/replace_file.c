/* Writing beside the target, syncing, renaming, syncing the directory. */
#include "tensor/replace_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <rapt/error.h>

#include "read_file.h"
#include "tensor/core.h"
#include "tensor/system.h"

enum { most_links = 40, most_of_name = 100 };

static bool fail(const rapt_replacement *replacement, const char *doing, const char *path)
{
    return rapt_fail_file(replacement->op, doing, path);
}

static bool fail_with(const rapt_replacement *replacement, int reason)
{
    errno = reason;
    return fail(replacement, "write", replacement->path);
}

/* Looks at the file that is to be replaced; *exists: there is one. */
static bool look_at(const rapt_replacement *replacement, struct stat *old, bool *exists)
{
    *exists = stat(replacement->path, old) == 0;
    if (!*exists) return errno == ENOENT || fail(replacement, "write", replacement->path);
    if (!S_ISREG(old->st_mode))
        return rapt_fail(RAPT_ERROR_FILE, replacement->op, "'%.200s' is not a regular file", replacement->path);
    return faccessat(AT_FDCWD, replacement->path, W_OK, AT_EACCESS) == 0 ||
           fail(replacement, "write", replacement->path);
}

bool rapt_follow_links(const char *op, const char *path, char target[PATH_MAX])
{
    char link[PATH_MAX];
    size_t kept = 0, length = strlen(path);
    const char *next = path;
    for (int links = 0; links <= most_links && kept + length < PATH_MAX; links++) {
        memcpy(target + kept, next, length);
        target[kept + length] = '\0';
        const ssize_t size = readlink(target, link, sizeof link);
        if (size < 0) return true; /* no link; whatever else is wrong, using it will tell */
        const char *slash = strrchr(target, '/');
        next = link;
        length = (size_t)size;
        kept = link[0] == '/' || !slash ? 0 : (size_t)(slash + 1 - target);
    }
    errno = kept + length < PATH_MAX ? ELOOP : ENAMETOOLONG;
    return rapt_fail_file(op, "follow", path);
}

/* A file that lost its name is still seen through a link below /proc, but nothing can take the place of a name. */
static bool has_name(const rapt_replacement *replacement)
{
    return faccessat(AT_FDCWD, replacement->target, F_OK, AT_EACCESS) == 0 ||
           rapt_fail(RAPT_ERROR_FILE, replacement->op, "'%.200s' leads to a file without a name", replacement->path);
}

/* One that may be written but not listed gives a place for names, which cannot be synced. */
static int open_folder(const char *path)
{
    const int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
#ifdef O_PATH
    if (folder < 0 && errno == EACCES) return open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
#endif
    return folder;
}

static bool open_directory(rapt_replacement *replacement)
{
    char *slash = strrchr(replacement->target, '/');
    replacement->name = slash ? slash + 1 : replacement->target;
    if (slash == replacement->target) {
        replacement->directory = open_folder("/");
    } else {
        if (slash) *slash = '\0';
        replacement->directory = open_folder(slash ? replacement->target : ".");
    }
    return replacement->directory >= 0 ||
           fail(replacement, "open the directory", slash ? replacement->target : replacement->path);
}

/* In a sticky folder the name of another's file stays with it, for all who may not change that file's mode either. */
static bool check_owner(const rapt_replacement *replacement, const struct stat *old)
{
    struct stat folder;
    if (fstat(replacement->directory, &folder) != 0)
        return fail(replacement, "open the directory of", replacement->path);
    if (!(folder.st_mode & S_ISVTX) || folder.st_uid == geteuid() || old->st_uid == geteuid()) return true;
    return fchmodat(replacement->directory, replacement->name, old->st_mode & 07777, 0) == 0 ||
           fail(replacement, "replace", replacement->path);
}

/* The target's name, cut between two characters where there would be no room for more. */
static int length_of_name(const char *name)
{
    size_t length = strlen(name);
    if (length > most_of_name)
        for (length = most_of_name; length > 0 && (name[length] & 0xc0) == 0x80;) length--;
    return (int)length;
}

/* A name that no other thread or process uses; what a killed process left behind is passed over. */
static bool open_temporary(rapt_replacement *replacement, mode_t mode)
{
    static _Atomic unsigned counter;
    const char *name = replacement->name;
    if (*name == '\0') return fail_with(replacement, ENOENT);
    if (strlen(name) > NAME_MAX) return fail_with(replacement, ENAMETOOLONG);
    do {
        snprintf(replacement->temporary, sizeof replacement->temporary, "%.*s.%ld-%u.tmp", length_of_name(name), name,
                 (long)getpid(), atomic_fetch_add(&counter, 1));
        replacement->file =
            openat(replacement->directory, replacement->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    } while (replacement->file < 0 && errno == EEXIST);
    const bool is_made = replacement->file >= 0;
    replacement->file = rapt_system_leave_streams(replacement->file);
    if (replacement->file >= 0) return true;
    fail(replacement, "create a file beside", replacement->path);
    if (is_made) unlinkat(replacement->directory, replacement->temporary, 0);
    return false;
}

/* Permissions, owner and group of the old file. Where the group cannot be kept, the process's own gets the rights that
 * everybody has. */
static bool take_over(const rapt_replacement *replacement, const struct stat *old)
{
    struct stat made;
    mode_t mode = old->st_mode & (S_IRWXU | S_IRWXG | S_IRWXO);
    if (fstat(replacement->file, &made) != 0) return fail(replacement, "look at a file beside", replacement->path);
    const bool same_group = made.st_gid == old->st_gid;
    if ((made.st_uid != old->st_uid || !same_group) && fchown(replacement->file, old->st_uid, old->st_gid) != 0 &&
        !same_group && fchown(replacement->file, (uid_t)-1, old->st_gid) != 0)
        mode &= ~(mode_t)S_IRWXG | (mode & S_IRWXO) << 3;
    return (made.st_mode & 07777) == mode || fchmod(replacement->file, mode) == 0 ||
           fail(replacement, "keep the permissions of", replacement->path);
}

static bool begin(rapt_replacement *replacement, const char *op, const char *path)
{
    struct stat old;
    bool exists;
    replacement->op = op;
    replacement->path = path;
    if (!look_at(replacement, &old, &exists) || !rapt_follow_links(op, path, replacement->target) ||
        (exists && !has_name(replacement)) || !open_directory(replacement))
        return false;
    if ((!exists || check_owner(replacement, &old)) && open_temporary(replacement, exists ? S_IRUSR | S_IWUSR : 0666)) {
        if (!exists || take_over(replacement, &old)) return true;
        close(replacement->file);
        unlinkat(replacement->directory, replacement->temporary, 0);
    }
    close(replacement->directory);
    return false;
}

bool rapt_replacement_begin(rapt_replacement *replacement, const char *op, const char *path)
{
    rapt_error_hold();
    if (begin(replacement, op, path)) return true;
    rapt_error_release();
    return false;
}

bool rapt_replacement_write(const rapt_replacement *replacement, const void *data, size_t size)
{
    const char *next = data;
    while (size > 0) {
        const ssize_t written = write(replacement->file, next, size);
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) return fail(replacement, "write", replacement->path);
        next += written;
        size -= (size_t)written;
    }
    return true;
}

/* Some file systems have no way to sync a directory, and say so with EINVAL. EBADF: only its names were opened. */
static bool sync_directory(const rapt_replacement *replacement)
{
    return fsync(replacement->directory) == 0 || errno == EINVAL || errno == EBADF ||
           fail(replacement, "sync the directory of", replacement->path);
}

bool rapt_replacement_end(rapt_replacement *replacement, bool keep)
{
    const int directory = replacement->directory;
    keep = keep && (fsync(replacement->file) == 0 || fail(replacement, "sync", replacement->path));
    const bool closed = close(replacement->file) == 0;
    keep = keep && (closed || fail(replacement, "write", replacement->path));
    keep = keep && (renameat(directory, replacement->temporary, directory, replacement->name) == 0 ||
                    fail(replacement, "replace", replacement->path));
    if (keep)
        keep = sync_directory(replacement);
    else
        unlinkat(directory, replacement->temporary, 0);
    close(directory);
    rapt_error_release();
    return keep;
}
