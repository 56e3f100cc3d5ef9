/* Memory of others as tensors, and tensors as memory for others, without a copy: arrays of any library, and DLPack. */
#ifndef RAPT_WRAP_H
#define RAPT_WRAP_H

#include <rapt/base.h>

RAPT_BEGIN_DECLS

/* A tensor of the innermost scope whose elements are those at `data`, in memory that somebody else owns. Strides count
 * elements, as rapt_stride does; NULL means row-major. A stride of 0 repeats one element, and such a tensor can only be
 * read; every other one must lead past all that the axes with smaller strides reach, as in an array that was sliced or
 * transposed, so that no two elements share a place; none may be negative. Along an axis of size 1 no step is taken:
 * its stride may be any number. `data` is aligned to the dtype's size and may be NULL where there are no elements. What
 * bool reads is 0 or 1.
 *
 * release(owner) is called once, when the last reader lets go: the tensor, its views, or a graph that backward needs
 * it for. That may be in any thread, and in a forked child for its copy of the memory; release may give tensors back,
 * but makes none. NULL calls nothing: the memory then outlives the tensor. What is still held when the process ends is
 * not released. After an error (NULL) the memory is the caller's as before, and release is never called.
 *
 * Changes made through rapt are counted as always (rapt_version). Whoever changes the memory otherwise says so with
 * rapt_data_for_writing, so that backward notices; no thread may read the tensor meanwhile. Ops never write their
 * results into it. Two tensors that were wrapped at one address count their changes apart: wrap once, and share by
 * rapt_detach. */
RAPT_API rapt_tensor *rapt_wrap(rapt_dtype dtype, int rank, const int64_t *shape, const int64_t *strides, void *data,
                                void (*release)(void *owner), void *owner);

/* The same for memory that may only be read: a change in place is an error. */
RAPT_API rapt_tensor *rapt_wrap_read_only(rapt_dtype dtype, int rank, const int64_t *shape, const int64_t *strides,
                                          const void *data, void (*release)(void *owner), void *owner);

/* DLPack's structs, as <dlpack/dlpack.h> declares them. Array libraries hand memory to each other by these. */
struct DLManagedTensor;
struct DLManagedTensorVersioned;

/* The tensor's own memory for another library, outside any graph; it lives at least until the receiver calls the
 * struct's deleter, which may be in any thread. What may not be changed in place (a recorded result, an expanded view,
 * memory that is only read) is marked as read-only, which the unversioned struct, that of versions before 1.0, cannot
 * say: there it is an error. A receiver that writes says so with rapt_data_for_writing. NULL after an error. */
RAPT_API struct DLManagedTensorVersioned *rapt_to_dlpack(const rapt_tensor *tensor);
RAPT_API struct DLManagedTensor *rapt_to_dlpack_unversioned(const rapt_tensor *tensor);

/* A tensor in another library's memory, as from rapt_wrap; its deleter is called when the last reader lets go. What
 * rapt exported itself, and may be written, becomes what rapt_detach gives: changes of either are counted for both.
 * After an error (another device than the processor, an element type that is no dtype, strides that rapt_wrap refuses)
 * NULL, and the struct is the caller's as before. */
RAPT_API rapt_tensor *rapt_from_dlpack(struct DLManagedTensorVersioned *managed);
RAPT_API rapt_tensor *rapt_from_dlpack_unversioned(struct DLManagedTensor *managed);

/* Functions of Python's, which hands DLPack's structs on in capsules. */
typedef struct rapt_python {
    int (*capsule_is_valid)(void *capsule, const char *name);         /* PyCapsule_IsValid */
    void *(*capsule_get_pointer)(void *capsule, const char *name);    /* PyCapsule_GetPointer */
    void (*error_fetch)(void **type, void **value, void **traceback); /* PyErr_Fetch */
    void (*error_restore)(void *type, void *value, void *traceback);  /* PyErr_Restore */
} rapt_python;

/* Sets them, once, for the destructor below, which PyCapsule_New is given: it gives back the struct of a capsule that
 * nobody took. An exception that is on its way meanwhile waits, as no function of Python's may run while it is. */
RAPT_API void rapt_python_set(const rapt_python *functions);
RAPT_API void rapt_python_capsule_destructor(void *capsule);

RAPT_END_DECLS

#endif
