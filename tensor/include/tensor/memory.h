/* The caching allocator: blocks of 64-byte-aligned memory, kept in size classes when they are given back. */
#ifndef RAPT_TENSOR_MEMORY_H
#define RAPT_TENSOR_MEMORY_H

#include <rapt/memory.h>

#include "tensor/thread.h"

/* At least that many bytes; *capacity is what rapt_block_give wants to hear again. NULL and an error (under the op's
 * name) when there is no memory. */
void *rapt_block_take(const char *op, size_t bytes, size_t *capacity);
void *rapt_block_try(size_t bytes, size_t *capacity); /* without an error, for who can do without */
void rapt_block_give(void *block, size_t capacity);

/* A block of at least `wanted` bytes in the place of one (NULL at first) of *capacity bytes, with the same first `used`
 * ones: itself, or one of at least twice its size. NULL and an error when there is no memory; the old one is then as it
 * was. */
void *rapt_block_grow(const char *op, void *block, size_t *capacity, size_t used, size_t wanted);

/* The same without a change of its bytes while the debugging mode keeps it back. */
void rapt_block_give_as_it_is(void *block, size_t capacity);

/* Lists a tensor in the innermost scope, which takes over the caller's share. NULL passes through. When the list
 * cannot grow the tensor is released and NULL returned. */
rapt_tensor *rapt_scope_own(rapt_tensor *tensor);

/* How many scopes of this thread are open. */
extern RAPT_THREAD_LOCAL int64_t rapt_open_scopes;

/* Hands a tensor of the scopes that were opened when `open` or more were open already to the scope around all of them.
 * One that they do not own stays where it is. */
void rapt_scope_hand_out(int64_t open, rapt_tensor *tensor);

/* Ends a scope, and those in it, and begins it anew. */
void rapt_scope_renew(rapt_scope scope);

/* A share of a tensor: the innermost scope's own where it is the last one listed there, so that nothing needs to be
 * counted, else a new one. */
rapt_tensor *rapt_scope_take(rapt_tensor *tensor);

/* For tests: the count-th block asked for from now on, and all after it, fail, or that one alone; a negative count
 * switches that off. The first gives what was left of the last count: below 0 where one alone has failed. */
int64_t rapt_memory_fail_after(int64_t count);
void rapt_memory_fail_once(int64_t count);

#endif
