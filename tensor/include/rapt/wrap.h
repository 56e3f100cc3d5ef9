/* Memory of others as tensors, and tensors as memory for others, without a copy: arrays of any library, and DLPack. */
#ifndef RAPT_WRAP_H
#define RAPT_WRAP_H

#include <rapt/base.h>

RAPT_BEGIN_DECLS

/* A tensor of the innermost scope whose elements are those at `data`, in memory that somebody else owns. Strides count
 * elements, as rapt_stride does; NULL means row-major. A stride of 0 repeats one element, and such a tensor can only be
 * read; other elements must each have a place of their own, and no stride may be negative. `data` is aligned to the
 * dtype's size and may be NULL where there are no elements. What bool reads is 0 or 1.
 *
 * release(owner) is called once, when the last reader lets go: the tensor, its views, or a graph that backward needs
 * it for. That may be in any thread, and in a forked child for its copy of the memory; release may give tensors back,
 * but makes none. NULL calls nothing: the memory then outlives the tensor. What is still held when the process ends is
 * not released. After an error (NULL) the memory is the caller's as before, and release is never called.
 *
 * Changes made through rapt are counted as always (rapt_version). Whoever changes the memory otherwise says so with
 * rapt_data_for_writing, so that backward notices; no thread may read the tensor meanwhile. Ops never write their
 * results into it. */
RAPT_API rapt_tensor *rapt_wrap(rapt_dtype dtype, int rank, const int64_t *shape, const int64_t *strides, void *data,
                                void (*release)(void *owner), void *owner);

/* The same for memory that may only be read: a change in place is an error. */
RAPT_API rapt_tensor *rapt_wrap_read_only(rapt_dtype dtype, int rank, const int64_t *shape, const int64_t *strides,
                                          const void *data, void (*release)(void *owner), void *owner);

RAPT_END_DECLS

#endif
