/* The system's memory, in aligned blocks that are counted. */
#include "system_memory.h"

#include <stdatomic.h>

#include "size_class.h"
#include "tensor/system.h"

static _Atomic int64_t system_bytes, system_allocations;

/* Large blocks on huge pages where the system has them: a tensor that is read across its rows touches a page a row. */
static void *allocate(size_t size)
{
    enum { huge_page = 2 << 20 };
    if (size < huge_page) return rapt_system_allocate(alignment, size);
    void *block = rapt_system_allocate(huge_page, (size + huge_page - 1) / huge_page * huge_page);
    if (block) rapt_system_prefer_huge_pages(block, size / huge_page * huge_page);
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
    rapt_system_free(block);
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
