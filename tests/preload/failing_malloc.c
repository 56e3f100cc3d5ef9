/* A malloc that fails when it is told to, for a program that is started with it preloaded: request RAPT_FAIL_AT (0:
 * none) of those that anybody in the process makes gets nothing, and with RAPT_FAIL_ON all after it. They count from
 * main on, or with RAPT_FAIL_EARLY from the first that a library makes before. Their number goes to the file that
 * RAPT_FAIL_COUNT names, and that of those before main. */
#include <fcntl.h>
#include <malloc.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "failing_malloc.h"
#include "requests.h"

static long before_main;

long long preloaded_requests(void)
{
    return allocator.asked - before_main;
}

void *memalign(size_t alignment, size_t size)
{
    return aligned_alloc(alignment, size);
}

int posix_memalign(void **memory, size_t alignment, size_t size)
{
    void *block = aligned_alloc(alignment, size);
    if (!block) return ENOMEM;
    *memory = block;
    return 0;
}

/* Files of 64-bit offsets are a symbol of their own, which mmap means here or not. */
void *rapt_plain_mmap(void *address, size_t length, int protection, int flags, int file, long offset) __asm__("mmap");
void *rapt_large_mmap(void *address, size_t length, int protection, int flags, int file, long offset) __asm__("mmap64");

static void *next_mmap(void *address, size_t length, int protection, int flags, int file, long offset)
{
    static void *(*found)(void *, size_t, int, int, int, long);
    if (!found) *(void **)&found = dlsym(RTLD_NEXT, "mmap64");
    return found(address, length, protection, flags, file, offset);
}

void *rapt_plain_mmap(void *address, size_t length, int protection, int flags, int file, long offset)
{
    return is_to_fail() ? MAP_FAILED : next_mmap(address, length, protection, flags, file, offset);
}

void *rapt_large_mmap(void *address, size_t length, int protection, int flags, int file, long offset)
{
    return is_to_fail() ? MAP_FAILED : next_mmap(address, length, protection, flags, file, offset);
}

static void write_count(void)
{
    const char *path = getenv("RAPT_FAIL_COUNT");
    char text[64];
    const long asked = allocator.asked - before_main;
    fail_malloc(-1, false);
    const int file = path ? open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666) : -1;
    const int length = snprintf(text, sizeof text, "%ld %ld\n", asked, before_main);
    if (file >= 0 && write(file, text, (size_t)length) == length) close(file);
}

static void begin_to_fail(void)
{
    const char *at = getenv("RAPT_FAIL_AT");
    if (at && atol(at) > 0) fail_malloc(atol(at) - 1, getenv("RAPT_FAIL_ON") != NULL);
}

/* Before the constructors of all other libraries (-z initfirst). Children count on with their parents. */
__attribute__((constructor)) static void begin_early(void)
{
    next_mmap(&allocator, sizeof allocator, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    allocator.asked = 0;
    if (getenv("RAPT_FAIL_EARLY")) begin_to_fail();
}

/* --- from main on --- */

typedef int main_function(int count, char **arguments, char **environment);
static main_function *real_main;

static int counted_main(int count, char **arguments, char **environment)
{
    atexit(write_count);
    before_main = allocator.asked;
    if (!getenv("RAPT_FAIL_EARLY")) begin_to_fail();
    return real_main(count, arguments, environment);
}

int __libc_start_main(main_function *main, int count, char **arguments, void (*init)(void), void (*fini)(void),
                      void (*loader_fini)(void), void *stack_end);
int __libc_start_main(main_function *main, int count, char **arguments, void (*init)(void), void (*fini)(void),
                      void (*loader_fini)(void), void *stack_end)
{
    int (*next_main)(main_function *, int, char **, void (*)(void), void (*)(void), void (*)(void), void *);
    *(void **)&next_main = dlsym(RTLD_NEXT, "__libc_start_main");
    real_main = main;
    return next_main(counted_main, count, arguments, init, fini, loader_fini, stack_end);
}
