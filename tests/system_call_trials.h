/* Calls of the system that fail, one at a time and from one on: what reads and writes files says so, or does without
 * them, and a file is the old one or the new one. The linker puts the functions here before the system's. */
#ifndef RAPT_TESTS_SYSTEM_CALL_TRIALS_H
#define RAPT_TESTS_SYSTEM_CALL_TRIALS_H

#include "safetensors_file.h"

#include <errno.h>
#include <stdarg.h>
#include <sys/stat.h>

/* --- the calls --- */

static struct {
    const char *name, *other;
    int at, calls; /* they fail at that call, */
    bool for_good; /* and all later ones */
    int reason;    /* by that of errno; 0: a part is read or written */
    int refused;   /* calls that did */
    bool cannot_read;
    void (*meanwhile)(void); /* done once, before a file is mapped */
} failing;

static bool is_call_to_fail(const char *name)
{
    if (failing.meanwhile && strcmp(name, "mmap64") == 0) {
        void (*const meanwhile)(void) = failing.meanwhile;
        failing.meanwhile = NULL;
        meanwhile();
    }
    const bool is_meant = failing.name && (strcmp(name, failing.name) == 0 || strcmp(name, failing.other) == 0);
    if (!is_meant) return false;
    failing.calls++;
    if (failing.calls != failing.at && (!failing.for_good || failing.calls < failing.at)) return false;
    failing.refused++;
    if (failing.reason) errno = failing.reason;
    return true;
}

#define CALL(result, name, in_place, parameters, arguments)                                                            \
    result __real_##name parameters;                                                                                   \
    result __wrap_##name parameters;                                                                                   \
    result __wrap_##name parameters                                                                                    \
    {                                                                                                                  \
        return is_call_to_fail(#name) ? in_place : __real_##name arguments;                                            \
    }

CALL(int, stat64, -1, (const char *file, void *status), (file, status))
CALL(int, fstat64, -1, (int file, void *status), (file, status))
CALL(int, faccessat, -1, (int folder, const char *file, int mode, int flags), (folder, file, mode, flags))
CALL(int, fchmod, -1, (int file, mode_t mode), (file, mode))
CALL(int, fchown, -1, (int file, uid_t owner, gid_t group), (file, owner, group))
CALL(int, fsync, -1, (int file), (file))
CALL(int, renameat, -1, (int from_folder, const char *from, int folder, const char *to),
     (from_folder, from, folder, to))
CALL(int, mkdir, -1, (const char *folder, mode_t mode), (folder, mode))
CALL(int, gethostname, -1, (char *name, size_t size), (name, size))
CALL(int, ftruncate64, -1, (int file, off_t size), (file, size))
CALL(off_t, lseek64, -1, (int file, off_t place, int from), (file, place, from))
CALL(void *, mmap64, (void *)-1, (void *at, size_t size, int access, int flags, int file, off_t place),
     (at, size, access, flags, file, place))
CALL(FILE *, fopen64, NULL, (const char *file, const char *mode), (file, mode))
CALL(int, fflush, EOF, (FILE * stream), (stream))
CALL(int, fseeko64, -1, (FILE * stream, off_t place, int from), (stream, place, from))
CALL(off_t, ftello64, -1, (FILE * stream), (stream))
CALL(size_t, fwrite, __real_fwrite(bytes, size, count / 2, stream),
     (const void *bytes, size_t size, size_t count, FILE *stream), (bytes, size, count, stream))
CALL(ssize_t, write, failing.reason ? -1 : __real_write(file, bytes, (size + 1) / 2),
     (int file, const void *bytes, size_t size), (file, bytes, size))
CALL(ssize_t, read, failing.reason ? -1 : __real_read(file, bytes, (size + 1) / 2),
     (int file, void *bytes, size_t size), (file, bytes, size))
/* What is closed is closed whatever the call says. */
CALL(int, close, (__real_close(file), -1), (int file), (file))
CALL(int, fclose, (__real_fclose(stream), EOF), (FILE * stream), (stream))
CALL(FILE *, fdopen, NULL, (int file, const char *mode), (file, mode))
/* What cannot be read looks like the end to who does not ask. */
CALL(int, fgetc, (failing.cannot_read = true, EOF), (FILE * stream), (stream))

int __real_ferror(FILE *stream);
int __wrap_ferror(FILE *stream);
int __wrap_ferror(FILE *stream)
{
    return is_call_to_fail("ferror") || failing.cannot_read ? 1 : __real_ferror(stream);
}

int __real_open64(const char *file, int flags, ...);
int __wrap_open64(const char *file, int flags, ...);
int __wrap_open64(const char *file, int flags, ...)
{
    return is_call_to_fail("open64") ? -1 : __real_open64(file, flags, 0666);
}

int __real_openat64(int folder, const char *file, int flags, ...);
int __wrap_openat64(int folder, const char *file, int flags, ...);
int __wrap_openat64(int folder, const char *file, int flags, ...)
{
    va_list more;
    va_start(more, flags);
    const mode_t mode = va_arg(more, mode_t);
    va_end(more);
    return is_call_to_fail("openat64") ? -1 : __real_openat64(folder, file, flags, mode);
}

/* --- trials --- */

/* What is done, from what stands there before, and what must hold after. */
typedef struct trial {
    const char *name;
    void (*prepare)(void);
    bool (*succeeds)(void);
    void (*check)(bool good);
    const char *const *calls; /* that may fail, NULL behind the last */
} trial;

typedef struct failure {
    const char *name;
    int reason;
    bool for_good;
} failure;

static const failure failures[] = {{"EIO", EIO, false},
                                   {"EIO from there on", EIO, true},
                                   {"EINVAL", EINVAL, false},
                                   {"EINTR", EINTR, false},
                                   {"a part", 0, false}};

static bool moves_bytes(const char *call)
{
    return strcmp(call, "write") == 0 || strcmp(call, "read") == 0;
}

/* Without these nothing is done: not to tell would be to lie. */
static bool is_needed(const char *call)
{
    static const char *const needed[] = {"fwrite",   "fflush", "write",    "read",
                                         "renameat", "open64", "openat64", "fopen64"};
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
        if (strcmp(call, needed[i]) == 0) return true;
    return false;
}

/* At that call, and at all later ones if it is for good. */
static void fail_call(const char *call, int at, int reason, bool for_good)
{
    memset(&failing, 0, sizeof failing);
    failing.name = failing.other = call;
    failing.at = at;
    failing.reason = reason;
    failing.for_good = for_good;
}

/* False when there are fewer calls. */
static bool try_failure(const trial *t, const char *call, const failure *f, int at)
{
    t->prepare();
    fail_call(call, at, f->reason, f->for_good);
    const bool good = t->succeeds();
    failing.name = NULL;
    const bool goes_on = moves_bytes(call) && (f->reason == 0 || f->reason == EINTR);
    cr_expect(good == !rapt_error(), "%s, %s %d, %s: %s", t->name, call, at, f->name,
              rapt_error() ? rapt_error() : "it fails without an error");
    if (failing.refused > 0 && (goes_on || is_needed(call)))
        cr_expect(good == goes_on, "%s, %s %d, %s: %s", t->name, call, at, f->name,
                  rapt_error() ? rapt_error() : "nobody is told");
    rapt_clear_error();
    t->check(good);
    return failing.refused > 0;
}

static void try_failures(const trial *t)
{
    for (const char *const *call = t->calls; *call; call++) {
        int refused = 0;
        for (size_t k = 0; k < sizeof failures / sizeof *failures; k++) {
            if (!moves_bytes(*call) && (failures[k].reason == EINTR || failures[k].reason == 0)) continue;
            for (int at = 1; try_failure(t, *call, &failures[k], at); at++) refused++;
        }
        cr_expect_gt(refused, 0, "%s: no %s", t->name, *call);
    }
}

#endif
