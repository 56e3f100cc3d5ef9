/* The allocator of this program: the C library's, but that the test can make the n-th call fail, whoever makes it.
 * For one source file of a program; the calls of all libraries come here, too. */
#ifndef RAPT_TESTS_FAILING_MALLOC_H
#define RAPT_TESTS_FAILING_MALLOC_H

#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* These run before a sanitizer is ready. */
#define PLAIN __attribute__((no_sanitize("address", "undefined")))

/* In a page of its own, which processes can share. */
enum { page_of_allocator = 4096 };
static union {
    struct {
        _Atomic long asked;  /* calls, by anybody */
        long fails_from;     /* the number of the call that fails; 0: none does */
        bool for_good;       /* so do all after it */
        _Atomic long failed; /* calls that did, since fail_malloc */
        _Atomic long live;   /* blocks that were not given back */
    };
    _Alignas(page_of_allocator) char page[page_of_allocator];
} allocator;

/* So many calls succeed before one fails, and with `for_good` all after it; negative: none fails. */
static inline void fail_malloc(long after, bool for_good)
{
    allocator.failed = 0;
    allocator.for_good = for_good;
    allocator.fails_from = after < 0 ? 0 : allocator.asked + after + 1;
}

PLAIN static bool is_to_fail(void)
{
    const long number = ++allocator.asked;
    if (allocator.fails_from == 0 || number < allocator.fails_from) return false;
    if (number > allocator.fails_from && !allocator.for_good) return false;
    allocator.failed++;
    errno = ENOMEM;
    return true;
}

PLAIN static void *counted(void *block)
{
    allocator.live += block != NULL;
    return block;
}

/* The next allocator behind this one: a sanitizer's or the C library's. */
static struct {
    void *(*malloc)(size_t size);
    void *(*realloc)(void *block, size_t size);
    void *(*aligned_alloc)(size_t alignment, size_t size);
    void (*free)(void *block);
    bool is_looked_up;
} next;

/* Looking them up may itself allocate: a few bytes, which are never given back. */
static bool is_looking_up;
static _Alignas(16) char early_room[8192];

PLAIN static void *early(size_t size)
{
    static size_t used;
    const size_t start = used;
    used += (size + 15) / 16 * 16;
    return used <= sizeof early_room ? early_room + start : NULL;
}

PLAIN static void look_up(void)
{
    if (next.is_looked_up) return;
    is_looking_up = true;
    *(void **)&next.malloc = dlsym(RTLD_NEXT, "malloc");
    *(void **)&next.realloc = dlsym(RTLD_NEXT, "realloc");
    *(void **)&next.aligned_alloc = dlsym(RTLD_NEXT, "aligned_alloc");
    *(void **)&next.free = dlsym(RTLD_NEXT, "free");
    is_looking_up = false;
    next.is_looked_up = true;
}

PLAIN void *malloc(size_t size)
{
    if (is_looking_up) return early(size);
    look_up();
    return is_to_fail() ? NULL : counted(next.malloc(size));
}

/* By malloc, which musl's calloc would ask here. */
PLAIN void *calloc(size_t count, size_t size)
{
    size_t bytes;
    if (is_looking_up) return early(count * size);
    look_up();
    if (__builtin_mul_overflow(count, size, &bytes) || is_to_fail()) return NULL;
    void *block = counted(next.malloc(bytes));
    return block ? memset(block, 0, bytes) : NULL;
}

PLAIN void *realloc(void *block, size_t size)
{
    look_up();
    if (is_to_fail()) return NULL;
    void *moved = next.realloc(block, size);
    return block ? moved : counted(moved);
}

PLAIN void *aligned_alloc(size_t alignment, size_t size)
{
    look_up();
    return is_to_fail() ? NULL : counted(next.aligned_alloc(alignment, size));
}

/* A sanitizer's own would not come by here. */
PLAIN char *strdup(const char *text)
{
    const size_t size = strlen(text) + 1;
    char *copy = malloc(size);
    return copy ? memcpy(copy, text, size) : NULL;
}

PLAIN void free(void *block)
{
    const bool is_early = (char *)block >= early_room && (char *)block < early_room + sizeof early_room;
    if (!block || is_early || is_looking_up) return;
    look_up();
    allocator.live--;
    next.free(block);
}

#endif
