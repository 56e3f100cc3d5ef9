/* Blocks of the allocator that nobody uses: those of the small classes that a thread has to itself, and those that
 * threads share. */
#ifndef RAPT_TENSOR_FREE_BLOCKS_H
#define RAPT_TENSOR_FREE_BLOCKS_H

#include <stddef.h>
#include <stdint.h>

#include "size_class.h"

/* A thread has blocks up to half a mebibyte to itself, a mebibyte of each class at most, and exchanges batches with the
 * others. */
enum { private_doublings = 9, private_classes = small_classes + private_doublings * steps_per_doubling };
enum { private_bytes = 1 << 20, batch_bytes = 1 << 14 };

/* What stands at the beginning of a free block. */
typedef struct free_block {
    struct free_block *next;
} free_block;

/* A thread's own, all 0 at first. */
typedef struct free_blocks {
    struct {
        free_block *head;
        size_t bytes;
        size_t taken; /* from elsewhere so far, up to private_bytes */
    } of[private_classes];
} free_blocks;

/* A thread keeps about as much of a class as it took of it: what others made and it gives back goes on to them. */
static inline size_t most_kept(const free_blocks *own, int class)
{
    return own->of[class].taken + batch_bytes;
}

/* A block of the class, from the thread's own or from those that threads share; NULL when there is none. Of a thread
 * without own ones, NULL, only from those. */
void *rapt_free_blocks_take(free_blocks *own, int class);

/* Keeps a block of the class for rapt_free_blocks_take, of this thread or, where it has enough or none, of any. */
void rapt_free_blocks_keep(free_blocks *own, void *block, int class);

/* The thread took a block of the class from elsewhere. */
void rapt_free_blocks_count(free_blocks *own, int class, size_t bytes);

/* Gives all of a thread's own back to the system. */
void rapt_free_blocks_release(free_blocks *own);

/* Of those that threads share, gives back to the system so many bytes or a little more, the largest first, none of a
 * class below `least`. */
void rapt_free_blocks_release_shared(int least, int64_t bytes);

#endif
