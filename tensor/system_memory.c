/* The system's memory, in aligned blocks that are counted. */
#include "system_memory.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "size_class.h"

static _Atomic int64_t system_bytes, system_allocations;

/* Large blocks on huge pages where the system has them: a tensor that is read across its rows touches a page a row. */
static void *allocate(size_t size)
{
    enum { huge_page = 2 << 20 };
    if (size < huge_page) return aligned_alloc(alignment, size);
    void *block = aligned_alloc(huge_page, (size + huge_page - 1) / huge_page * huge_page);
    if (block) madvise(block, size / huge_page * huge_page, MADV_HUGEPAGE); /* only advice: it may fail */
    return block;
}

void *rapt_system_take(size_t size)
{
    void *block = allocate(size);
    if (!block) return NULL;
    atomic_fetch_add_explicit(&system_allocations, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&system_bytes, (int64_t)size, memory_order_relaxed);
    return block;
}

void rapt_system_give(void *block, size_t size)
{
    free(block);
    atomic_fetch_sub_explicit(&system_bytes, (int64_t)size, memory_order_relaxed);
}

int64_t rapt_system_bytes(void)
{
    return atomic_load(&system_bytes);
}

int64_t rapt_system_allocations(void)
{
    return atomic_load(&system_allocations);
}
