/* Memory behind whose last byte is a page that nobody may touch: who reads or writes beyond it dies. */
#ifndef RAPT_TESTS_FENCED_H
#define RAPT_TESTS_FENCED_H

#include <stdlib.h>

#include "expect.h"

#ifndef _WIN32
#include <sys/mman.h>
#include <unistd.h>

static inline size_t fenced_size(size_t bytes)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return (bytes + page - 1) / page * page + page;
}

/* Zeros; given back with the same number of bytes. */
static inline void *fenced_take(size_t bytes)
{
    const size_t mapped = fenced_size(bytes), page = fenced_size(0);
    char *first = mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    cr_assert((void *)first != MAP_FAILED);
    cr_assert_eq(mprotect(first + mapped - page, page, PROT_NONE), 0);
    return first + mapped - page - bytes;
}

static inline void fenced_give(void *data, size_t bytes)
{
    const size_t mapped = fenced_size(bytes), page = fenced_size(0);
    munmap((char *)data + bytes + page - mapped, mapped);
}

#else /* which has no such pages here */

static inline void *fenced_take(size_t bytes)
{
    void *data = calloc(bytes + 1, 1);
    cr_assert(data);
    return data;
}

static inline void fenced_give(void *data, size_t bytes)
{
    (void)bytes;
    free(data);
}

#endif

#endif
