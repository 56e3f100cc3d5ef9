/* Lists of free blocks, one for each class: a thread's own, which need no lock, and those that threads share. */
#include "free_blocks.h"

#include "system_memory.h"
#include "tensor/debug.h"
#include "tensor/lock.h"

RAPT_LOCK(shared_lock, MEMORY)
static free_block *shared_head[class_count];

static void push(free_block **head, free_block *block)
{
    rapt_allow(block, sizeof *block);
    block->next = *head;
    *head = block;
}

static free_block *pop(free_block **head)
{
    free_block *block = *head;
    if (block) *head = block->next;
    return block;
}

void rapt_free_blocks_count(free_blocks *own, int class, size_t bytes)
{
    if (!own || class >= private_classes) return;
    const size_t taken = own->of[class].taken + bytes;
    own->of[class].taken = taken < private_bytes ? taken : private_bytes;
}

/* One block that others gave back, and further small ones. */
static void take_batch(free_blocks *own, int class)
{
    const size_t size = rapt_class_size(class);
    size_t bytes = 0;
    shared_lock_take();
    while (shared_head[class] && (bytes == 0 || bytes + size <= batch_bytes)) {
        push(&own->of[class].head, pop(&shared_head[class]));
        bytes += size;
    }
    shared_lock_give();
    own->of[class].bytes += bytes;
    rapt_free_blocks_count(own, class, bytes);
}

void *rapt_free_blocks_take(free_blocks *own, int class)
{
    if (!own || class >= private_classes) {
        shared_lock_take();
        free_block *block = pop(&shared_head[class]);
        shared_lock_give();
        return block;
    }
    if (!own->of[class].head) take_batch(own, class);
    if (!own->of[class].head) return NULL;
    own->of[class].bytes -= rapt_class_size(class);
    return pop(&own->of[class].head);
}

/* Half of what the thread holds of a full class. */
static void share_half(free_blocks *own, int class)
{
    const size_t size = rapt_class_size(class), half = most_kept(own, class) / 2;
    shared_lock_take();
    while (own->of[class].bytes > half) {
        push(&shared_head[class], pop(&own->of[class].head));
        own->of[class].bytes -= size;
    }
    shared_lock_give();
}

void rapt_free_blocks_keep(free_blocks *own, void *block, int class)
{
    const size_t size = rapt_class_size(class);
    rapt_forbid((char *)block + sizeof(free_block), size - sizeof(free_block));
    if (own && class < private_classes) {
        push(&own->of[class].head, block);
        own->of[class].bytes += size;
        if (own->of[class].bytes > most_kept(own, class)) share_half(own, class);
        return;
    }
    shared_lock_take();
    push(&shared_head[class], block);
    shared_lock_give();
}

/* Gives blocks of a list back to the system, so many bytes or a little more; those that are left of these. */
static int64_t release(free_block **head, int class, int64_t bytes)
{
    const size_t size = rapt_class_size(class);
    for (free_block *block; bytes > 0 && (block = pop(head)); bytes -= (int64_t)size) {
        rapt_allow(block, size);
        rapt_system_give(block, size);
    }
    return bytes;
}

void rapt_free_blocks_release(free_blocks *own)
{
    for (int class = 0; class < private_classes; class ++) release(&own->of[class].head, class, INT64_MAX);
}

void rapt_free_blocks_release_shared(int least, int64_t bytes)
{
    shared_lock_take();
    for (int class = class_count - 1; class >= least; class --) bytes = release(&shared_head[class], class, bytes);
    shared_lock_give();
}
