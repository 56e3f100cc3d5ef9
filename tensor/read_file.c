/* Reading a file: what can go wrong is told with its path. */
#include "read_file.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tensor/core.h"
#include "tensor/system.h"

bool rapt_fail_file(const char *op, const char *doing, const char *path)
{
    const int reason = errno;
    char text[128];
    return rapt_fail(RAPT_ERROR_FILE, op, "cannot %s '%.200s': %s", doing, path,
                     rapt_system_reason(reason, text, sizeof text));
}

static bool fail_reading(const rapt_reading *r)
{
    return rapt_fail_file(r->op, "read", r->path);
}

bool rapt_reading_begin(rapt_reading *r, const char *op, const char *path)
{
    struct stat status;
    if (!path) return rapt_fail_null(op, "path");
    *r = (rapt_reading){.op = op, .path = path, .size = -1};
    r->file = rapt_system_open(path);
    const int reason = errno; /* on Windows also of a folder */
    if (r->file < 0 && (stat(path, &status) != 0 || S_ISREG(status.st_mode))) {
        errno = reason;
        return fail_reading(r);
    }
    if (r->file >= 0 && fstat(r->file, &status) != 0)
        fail_reading(r);
    else if (!S_ISREG(status.st_mode))
        rapt_fail(RAPT_ERROR_FILE, op, "'%.200s' is not a regular file", path);
    else
        r->size = (int64_t)status.st_size;
    if (r->size < 0 && r->file >= 0) close(r->file);
    return r->size >= 0;
}

void rapt_reading_end(const rapt_reading *r)
{
    close(r->file);
}

bool rapt_reading_check_place(const rapt_reading *r)
{
    bool is_there;
    if (!rapt_system_is_at(r->file, r->path, &is_there)) return fail_reading(r);
    return is_there || rapt_fail(RAPT_ERROR_FILE, r->op, "'%.200s' was replaced while it was read", r->path);
}

bool rapt_reading_take(const rapt_reading *r, void *data, size_t size)
{
    enum { most_at_once = 1 << 30 }; /* what every system takes */
    char *next = data;
    while (size > 0) {
        const ssize_t got = read(r->file, next, size < most_at_once ? (unsigned)size : most_at_once);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return fail_reading(r);
        if (got == 0)
            return rapt_fail(RAPT_ERROR_FILE, r->op, "'%.200s' became shorter than its %lld bytes while it was read",
                             r->path, (long long)r->size);
        next += got;
        size -= (size_t)got;
    }
    return true;
}

bool rapt_reading_seek(const rapt_reading *r, int64_t place)
{
    return lseek(r->file, (off_t)place, SEEK_SET) >= 0 || fail_reading(r);
}

bool rapt_reading_check_bools(const rapt_reading *r, const char *name, const rapt_tensor *tensor)
{
    const uint8_t *bytes = (const uint8_t *)tensor->data;
    for (int64_t i = 0; i < tensor->count; i++)
        if (bytes[i] > 1)
            return rapt_fail(RAPT_ERROR_FORMAT, r->op,
                             "'%.150s': element %lld of bool tensor '%.100s' is %d; 0 or 1 expected", r->path,
                             (long long)i, name, bytes[i]);
    return true;
}
