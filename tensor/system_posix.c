/* What is asked of the system, where that is Linux or like it. */
#include "tensor/system.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <locale.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* --- memory --- */

int64_t rapt_system_cache_bytes(void)
{
#ifdef _SC_LEVEL2_CACHE_SIZE
    return sysconf(_SC_LEVEL2_CACHE_SIZE);
#else
    return 0;
#endif
}

void *rapt_system_allocate(size_t alignment, size_t size)
{
    return aligned_alloc(alignment, size);
}

void rapt_system_free(void *block)
{
    free(block);
}

void rapt_system_trim(void)
{
#ifdef __GLIBC__
    malloc_trim(0); /* others do so by themselves */
#endif
}

void rapt_system_prefer_huge_pages(void *block, size_t size)
{
#ifdef __EMSCRIPTEN__
    (void)block, (void)size; /* which would say on stderr that it has no madvise */
#else
    madvise(block, size, MADV_HUGEPAGE); /* only advice: it may fail */
#endif
}

/* --- processes and time --- */

int64_t rapt_system_coarse_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void rapt_system_random(uint64_t numbers[2])
{
    struct timespec now;
    if (getentropy(numbers, 2 * sizeof *numbers) == 0) return;
    clock_gettime(CLOCK_REALTIME, &now);
    numbers[0] = (uint64_t)now.tv_nsec;
    numbers[1] = (uintptr_t)numbers; /* an address, which differs from run to run */
}

int64_t rapt_system_preemptions(void)
{
    struct rusage usage;
    return getrusage(RUSAGE_SELF, &usage) == 0 ? usage.ru_nivcsw : 0;
}

bool rapt_system_is_alone(void)
{
    struct stat tasks; /* a folder, in which each thread of the process is one */
    return stat("/proc/self/task", &tasks) == 0 && tasks.st_nlink == 3;
}

void rapt_system_at_fork(void (*before)(void), void (*in_parent)(void), void (*in_child)(void))
{
    pthread_atfork(before, in_parent, in_child);
}

/* --- files --- */

/* The C library has either GNU's strerror_r, which returns the text, or POSIX's, which fills the room. */
static inline const char *reason_of_gnu(const char *reason, const char *text)
{
    (void)text;
    return reason;
}

static inline const char *reason_of_posix(int failed, const char *text)
{
    return failed ? "unknown reason" : text;
}

const char *rapt_system_reason(int code, char *text, size_t size)
{
    return _Generic(strerror_r(code, text, size), char *: reason_of_gnu, int: reason_of_posix)(
        strerror_r(code, text, size), text);
}

/* The descriptors of a program's own streams are those below. */
enum { STREAMS = 3 };

int rapt_system_leave_streams(int file)
{
    if (file < 0 || file >= STREAMS) return file;
    const int moved = fcntl(file, F_DUPFD_CLOEXEC, STREAMS), code = errno;
    close(file);
    errno = code;
    return moved;
}

int rapt_system_open(const char *path)
{
    return rapt_system_leave_streams(open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK));
}

/* Takes over the descriptor; < 0: NULL. */
static FILE *stream_of(int file, const char *mode)
{
    FILE *stream = file >= 0 ? fdopen(file, mode) : NULL;
    const int code = errno;
    if (file >= 0 && !stream) close(file);
    errno = code;
    return stream;
}

/* Of pipes and devices many may be the writers. */
static bool lock_stream(FILE *stream)
{
#ifndef __EMSCRIPTEN__ /* where no other process is */
    struct stat status;
    if (fstat(fileno(stream), &status) != 0 || !S_ISREG(status.st_mode)) return true;
    while (flock(fileno(stream), LOCK_EX | LOCK_NB) != 0)
        if (errno != EINTR) return errno != EWOULDBLOCK;
#else
    (void)stream;
#endif
    return true;
}

FILE *rapt_system_open_stream(const char *path, const char *mode, bool alone)
{
    const int flags = (strchr(mode, '+') ? O_RDWR : O_WRONLY) | (*mode == 'w' ? O_CREAT : 0);
    FILE *stream = stream_of(rapt_system_leave_streams(open(path, flags | O_CLOEXEC, 0666)), mode);
    /* emptied only now: without memory for a stream the file is as it was. EINVAL: it has no length */
    if (!stream ||
        ((!alone || lock_stream(stream)) && (*mode != 'w' || ftruncate(fileno(stream), 0) == 0 || errno == EINVAL)))
        return stream;
    const int code = errno;
    fclose(stream);
    errno = code;
    return NULL;
}

void rapt_system_unlock_stream(FILE *stream)
{
#ifndef __EMSCRIPTEN__
    flock(fileno(stream), LOCK_UN);
#else
    (void)stream;
#endif
}

FILE *rapt_system_renew_stream(FILE *stream)
{
    const int file = fcntl(fileno(stream), F_DUPFD_CLOEXEC, STREAMS), code = errno;
    fclose(stream);
    errno = code;
    return stream_of(file, "r+b");
}

void *rapt_system_map(int file, size_t size)
{
    void *bytes = mmap(NULL, size, PROT_READ, MAP_PRIVATE, file, 0);
    return bytes == MAP_FAILED ? NULL : bytes;
}

void rapt_system_unmap(void *bytes, size_t size)
{
    munmap(bytes, size);
}

bool rapt_system_make_folder(const char *path)
{
    return mkdir(path, 0777) == 0;
}

bool rapt_system_make_file(const char *path)
{
    const int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    return file >= 0 && close(file) == 0;
}

bool rapt_system_is_at(int file, const char *path, bool *is_there)
{
    struct stat held, there;
    if (fstat(file, &held) != 0 || stat(path, &there) != 0) return false;
    *is_there = held.st_ino == there.st_ino && held.st_dev == there.st_dev;
    return true;
}

int rapt_system_lock(const char *path)
{
    enum { most_turns = 100 }; /* a file system may give a file another number when it is asked by its path */
    for (int turn = 1;; turn++) {
        const int file = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
        if (file < 0) return -1;
#ifndef __EMSCRIPTEN__ /* where no other process is */
        while (flock(file, LOCK_EX) != 0 && errno == EINTR) continue;
#endif
        bool is_there;
        if (turn == most_turns || !rapt_system_is_at(file, path, &is_there) || is_there) return file;
        rapt_system_unlock(file);
    }
}

void rapt_system_unlock(int file)
{
    if (file < 0) return;
#ifndef __EMSCRIPTEN__
    flock(file, LOCK_UN); /* which a child of a fork holds, too */
#endif
    close(file);
}

/* --- names and texts --- */

void rapt_system_host_name(char *name, size_t size)
{
    name[size - 1] = '\0';
    if (gethostname(name, size - 1) != 0) strcpy(name, "host");
}

int rapt_system_terminal_width(FILE *stream)
{
    struct winsize size = {0}; /* Emscripten's ioctl succeeds and leaves it so */
    return ioctl(fileno(stream), TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

bool rapt_system_matches(const char *pattern, const char *name)
{
    return fnmatch(pattern, name, 0) == 0;
}

bool rapt_plain_numbers_begin(rapt_plain_numbers *kept)
{
    const locale_t plain = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0);
    if (plain) *kept = (rapt_plain_numbers){.plain = plain, .before = uselocale(plain)};
    return plain != (locale_t)0;
}

void rapt_plain_numbers_end(rapt_plain_numbers *kept)
{
    uselocale(kept->before);
    freelocale(kept->plain);
}
