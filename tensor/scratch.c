/* Scratch memory, from the caching allocator. */
#include "tensor/scratch.h"

#include <string.h>

#include <rapt/runtime.h>

#include "tensor/core.h"
#include "tensor/memory.h"

/* What stands before each piece. */
typedef struct head {
    _Alignas(64) _Atomic bool is_lent;
} head;

static char *piece_at(const rapt_scratch *scratch, int64_t i)
{
    return scratch->block + (size_t)i * scratch->bytes;
}

bool rapt_scratch_take(const char *op, rapt_scratch *scratch, int64_t tasks, size_t bytes)
{
    enum { line = 64 };
    const int64_t threads = rapt_get_threads();
    scratch->count = tasks < threads ? tasks : threads;
    if (scratch->count < 1) scratch->count = 1;
    scratch->bytes = (bytes + line - 1) / line * line + sizeof(head);
    scratch->block = rapt_block_take(op, (size_t)scratch->count * scratch->bytes, &scratch->capacity);
    if (!scratch->block) return false;
    for (int64_t i = 0; i < scratch->count; i++) atomic_init(&((head *)(void *)piece_at(scratch, i))->is_lent, false);
    return true;
}

void rapt_scratch_give(rapt_scratch *scratch)
{
    rapt_block_give(scratch->block, scratch->capacity);
}

/* No more tasks run at a time than there are pieces, so one is free. */
void *rapt_scratch_borrow(const rapt_scratch *scratch)
{
    for (int64_t i = 0;; i = (i + 1) % scratch->count) {
        head *found = (head *)(void *)piece_at(scratch, i);
        if (!atomic_exchange_explicit(&found->is_lent, true, memory_order_acquire)) return found + 1;
    }
}

void rapt_scratch_return(const rapt_scratch *scratch, void *piece)
{
    (void)scratch;
    atomic_store_explicit(&((head *)piece - 1)->is_lent, false, memory_order_release);
}

void *rapt_scratch_list(const char *op, int64_t count, size_t item_bytes)
{
    rapt_tensor *bytes = rapt_new(op, RAPT_UINT8, 2, (int64_t[]){count, (int64_t)item_bytes});
    return bytes ? memset(bytes->data, 0, (size_t)bytes->count) : NULL;
}
