/* What the allocator asks of the system and gives back to it, and how much that is. */
#ifndef RAPT_TENSOR_SYSTEM_MEMORY_H
#define RAPT_TENSOR_SYSTEM_MEMORY_H

#include <stddef.h>
#include <stdint.h>

/* A block of so many bytes, a multiple of 64; NULL without an error when there is none. */
void *rapt_system_take(size_t size);
void rapt_system_give(void *block, size_t size);

/* Taken and not given back, by all threads. */
int64_t rapt_system_bytes(void);

/* How many blocks were ever taken. */
int64_t rapt_system_allocations(void);

#endif
