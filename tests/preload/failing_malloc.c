/* A malloc that fails when it is told to, for a program that is started with it preloaded. From main on it counts
 * what is asked of the system by anybody in the process; request RAPT_FAIL_AT (0: none) gets nothing, and with
 * RAPT_FAIL_ON all after it. The number of requests goes to the file that RAPT_FAIL_COUNT names. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "requests.h"

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *memory, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);

static atomic_bool counting;
static atomic_llong requests;
static long long fail_at;
static bool fail_on;

long long preloaded_requests(void)
{
    return atomic_load(&requests);
}

static bool fails(void)
{
    if (!atomic_load_explicit(&counting, memory_order_relaxed)) return false;
    const long long number = atomic_fetch_add(&requests, 1) + 1;
    if (fail_at <= 0 || (fail_on ? number < fail_at : number != fail_at)) return false;
    errno = ENOMEM;
    return true;
}

void *malloc(size_t size)
{
    return fails() ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    return fails() ? NULL : __libc_calloc(count, size);
}

void *realloc(void *memory, size_t size)
{
    return fails() ? NULL : __libc_realloc(memory, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    return fails() ? NULL : __libc_memalign(alignment, size);
}

void *memalign(size_t alignment, size_t size)
{
    return fails() ? NULL : __libc_memalign(alignment, size);
}

int posix_memalign(void **memory, size_t alignment, size_t size)
{
    if (fails()) return ENOMEM;
    *memory = __libc_memalign(alignment, size);
    return *memory ? 0 : ENOMEM;
}

void *mmap(void *address, size_t length, int protection, int flags, int file, off_t offset)
{
    static void *(*next)(void *, size_t, int, int, int, off_t);
    if (!next) *(void **)&next = dlsym(RTLD_NEXT, "mmap");
    return fails() ? MAP_FAILED : next(address, length, protection, flags, file, offset);
}

static void write_count(void)
{
    const char *path = getenv("RAPT_FAIL_COUNT");
    char text[32];
    atomic_store(&counting, false);
    const int file = path ? open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666) : -1;
    const int length = snprintf(text, sizeof text, "%lld\n", (long long)atomic_load(&requests));
    if (file >= 0 && write(file, text, (size_t)length) == length) close(file);
}

/* --- from main on --- */

typedef int main_function(int count, char **arguments, char **environment);
static main_function *real_main;

static int counted_main(int count, char **arguments, char **environment)
{
    const char *at = getenv("RAPT_FAIL_AT");
    fail_at = at ? atoll(at) : 0;
    fail_on = getenv("RAPT_FAIL_ON") != NULL;
    atexit(write_count);
    atomic_store(&counting, true);
    return real_main(count, arguments, environment);
}

int __libc_start_main(main_function *main, int count, char **arguments, void (*init)(void), void (*fini)(void),
                      void (*loader_fini)(void), void *stack_end);
int __libc_start_main(main_function *main, int count, char **arguments, void (*init)(void), void (*fini)(void),
                      void (*loader_fini)(void), void *stack_end)
{
    int (*next)(main_function *, int, char **, void (*)(void), void (*)(void), void (*)(void), void *);
    *(void **)&next = dlsym(RTLD_NEXT, "__libc_start_main");
    real_main = main;
    return next(counted_main, count, arguments, init, fini, loader_fini, stack_end);
}
