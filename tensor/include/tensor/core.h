/* The tensor itself, for the library's own folders: header, storage, the link to the graph, and checks that all ops
 * share. */
#ifndef RAPT_TENSOR_CORE_H
#define RAPT_TENSOR_CORE_H

#include <stdatomic.h>
#include <string.h>

#include <rapt/tensor.h>

/* Memory that one or several tensors look at. The elements follow the header unless they are foreign. */
typedef struct rapt_storage {
    _Atomic int64_t references;
    _Atomic uint64_t version; /* changes in place so far */
    size_t capacity;          /* of the block that holds this header, as the allocator wants it back */
    _Atomic int64_t parts;    /* of the block that are in use: the storage, and the tensor that may stand before it */
    bool follows_tensor;
    bool is_foreign; /* the elements lie in memory of somebody else, who may look at it */
    bool is_read_only;
    char *data;
    void (*release_foreign)(void *owner); /* NULL: nobody wants to hear of the end */
    void *foreign_owner;
} rapt_storage;

/* What ties a tensor to the graph. The folder tensor knows only this much of it. */
typedef struct rapt_graph_link {
    const struct rapt_link_kind *kind;
} rapt_graph_link;

typedef struct rapt_link_kind {
    void (*retain)(rapt_graph_link *link);
    void (*release)(rapt_graph_link *link, rapt_tensor *tensor); /* the tensor that is about to go */
    bool is_leaf;
} rapt_link_kind;

/* In the order of use: a tensor of rank 1 or 0 is in its first two cache lines. */
struct rapt_tensor {
    _Atomic int64_t references;
    rapt_storage *storage;
    char *data; /* the first element */
    rapt_graph_link *link;
    int64_t count;
    int32_t output; /* which output of the node behind link this is */
    rapt_dtype dtype;
    uint8_t rank;
    bool contiguous;
    bool has_storage_behind; /* in one block with it: the storage that it was made with */
    int64_t shape[RAPT_MAX_RANK];
    int64_t strides[RAPT_MAX_RANK]; /* in elements; 0 where an axis is expanded */
    const char *made_by;            /* an op's name; set in the debugging mode only */
};

/* A storage that follows its tensor begins so many bytes behind the tensor's begin: on a cache line. */
enum { RAPT_TENSOR_ROOM = (sizeof(rapt_tensor) + 63) / 64 * 64 };

/* A header like the tensor's, for use in one call: it holds no share of anything, and is to be read only by what
 * takes a tensor's shape, strides and elements. The share count is left out, since other threads may be changing it. */
static inline rapt_tensor rapt_header_of(const rapt_tensor *tensor)
{
    rapt_tensor header;
    atomic_init(&header.references, 1);
    memcpy(&header.storage, &tensor->storage, sizeof header - offsetof(rapt_tensor, storage));
    return header;
}

/* How often the memory that the tensor looks at has been changed in place. */
static inline uint64_t rapt_version_of(const rapt_tensor *tensor)
{
    return atomic_load_explicit(&tensor->storage->version, memory_order_relaxed);
}

/* Bytes of one element. */
extern const uint8_t rapt_element_bytes[RAPT_DTYPE_COUNT];

/* Where the element is that stands so many behind the tensor's first one in memory. */
static inline char *rapt_data_at(const rapt_tensor *tensor, int64_t element)
{
    return tensor->data + element * rapt_element_bytes[tensor->dtype];
}

/* The error of a NULL argument, unless an error stands already (then NULL is only its trace). Returns false. */
bool rapt_fail_null(const char *op, const char *argument) __attribute__((cold));

/* The usual cure where dtypes of inputs and parameters differ. */
#define RAPT_CAST_CURE "(rapt_cast converts, rapt_module_cast a whole module)"

/* The usual cure where x has one axis less than `rank`, since a batch is expected; else "". */
const char *rapt_batch_cure(const rapt_tensor *x, int rank);

/* Takes the memory for the message of this thread's errors, so that it is there when there is no memory. */
void rapt_error_reserve(void);

/* Whether errors of this thread are told by another one, or later, from now on: the handler does not hear of them here.
 * Returns what was said before. */
bool rapt_error_leave_to_others(bool leave);

/* An error that stands is put aside, so that what fails next is the first; putting it back, where there was one, drops
 * whatever stands by then. */
typedef struct rapt_standing_error {
    rapt_error_code code; /* RAPT_OK: there was none */
    void *text;
} rapt_standing_error;
rapt_standing_error rapt_error_put_aside(void);
void rapt_error_put_back(rapt_standing_error standing);

/* Between the two the handler is not called in this thread: it may end the program while something is to be removed, or
 * ask for a lock that is held. The outermost release calls it, if there was an error. */
void rapt_error_hold(void);
void rapt_error_release(void);

/* How often something has failed in this thread, also while an error stood. */
uint64_t rapt_count_failures(void);

/* False and an error when the dtype, rank or a size is bad or the bytes overflow; else *count is the number of
 * elements. */
bool rapt_check_shape(const char *op, rapt_dtype dtype, int rank, const int64_t *shape, int64_t *count);

/* False and an error when the tensor is not of a floating dtype. */
bool rapt_check_floating(const char *op, const rapt_tensor *tensor);

/* False and an error when the number, which the caller calls so, is none from 0 to 1. */
bool rapt_check_probability(const char *op, const char *what, double probability);

/* rapt_empty under the name of an op. */
rapt_tensor *rapt_new(const char *op, rapt_dtype dtype, int rank, const int64_t *shape);

/* The same of a tensor's shape. */
rapt_tensor *rapt_new_shaped(const char *op, rapt_dtype dtype, const rapt_tensor *shaped);

/* A tensor that looks at the storage of another, outside any graph. data is its first element. Strides in elements. */
rapt_tensor *rapt_new_view(const rapt_tensor *base, char *data, int rank, const int64_t *shape, const int64_t *strides);

/* A view of the same shape with the same link to the graph: another header for one tensor. */
rapt_tensor *rapt_new_alias(const rapt_tensor *tensor, bool keep_link);

/* The same in no scope: its share is the caller's. */
rapt_tensor *rapt_alias_share(const rapt_tensor *tensor, bool keep_link);

/* The tensor with a size of 1 for each of its first `axes` axes that repeats its elements (stride 0). NULL after an
 * error. */
const rapt_tensor *rapt_without_repeats(const rapt_tensor *tensor, int axes);

/* A contiguous tensor around memory that somebody else owns; release(owner), unless it is NULL, is called when the last
 * view of it goes, and not when this fails. */
rapt_tensor *rapt_new_foreign(const char *op, rapt_dtype dtype, int rank, const int64_t *shape, void *data,
                              void (*release)(void *), void *owner);

/* The same with strides, of what may only be read or not, and with all checks of rapt_wrap. */
rapt_tensor *rapt_new_wrapped(const char *op, rapt_dtype dtype, int rank, const int64_t *shape, const int64_t *strides,
                              const void *data, bool is_read_only, void (*release)(void *), void *owner);

/* Gives a tensor with elements other strides; those of axes of size 1 say nothing. */
void rapt_set_strides(rapt_tensor *tensor, const int64_t *strides);

/* A contiguous tensor of the innermost scope, of another's dtype and shape; NULL and an error when that is NULL or
 * gone. */
rapt_tensor *rapt_new_like(const char *op, const rapt_tensor *tensor);

/* The tensor itself if contiguous, else a contiguous copy of the innermost scope. */
const rapt_tensor *rapt_as_contiguous(const rapt_tensor *tensor);
/* The same if only the last axis is dense; of rank 1 or more. */
const rapt_tensor *rapt_as_dense_rows(const rapt_tensor *tensor);

/* The axis counted from the first, or −1 and an error. extra: how many places past the last are allowed. */
int rapt_check_axis(const char *op, int axis, int rank, int extra);

/* The shape two shapes broadcast to (numpy's rules), its rank or −1 and an error. */
int rapt_broadcast(const char *op, const rapt_tensor *a, const rapt_tensor *b, int64_t shape[RAPT_MAX_RANK]);

/* Strides for reading the tensor as if it had that shape, which it broadcasts to. */
void rapt_broadcast_strides(const rapt_tensor *tensor, int rank, const int64_t *shape, int64_t strides[RAPT_MAX_RANK]);

/* "[2, 3]" into buffer; returns buffer. */
#define RAPT_SHAPE_TEXT 192
char *rapt_shape_text(int rank, const int64_t *shape, char buffer[RAPT_SHAPE_TEXT]);

/* Puts a double into an element of any dtype, as C converts. */
void rapt_write_element(rapt_dtype dtype, double value, void *element);

/* Two tensors of one shape exchange what they hold: elements, dtype, strides, and the link to the graph, whose nodes
 * do not hear of it. */
void rapt_exchange(rapt_tensor *a, rapt_tensor *b);

/* The first axis along which one element stands for several (stride 0), or −1. */
int rapt_repeated_axis(const rapt_tensor *tensor);

/* May it be changed in place? An error (false) when the tensor is the result of a recorded op, an expanded view, or in
 * memory that is only read. */
bool rapt_check_writable(const char *op, const rapt_tensor *tensor);

/* The same, and counts a change in place. */
bool rapt_begin_writing(const char *op, rapt_tensor *tensor);

/* Behind the last byte of its elements; no stride is negative. */
const char *rapt_end_of(const rapt_tensor *tensor);

/* True when nobody else can see the elements: one header, one view. */
static inline bool rapt_is_unique(const rapt_tensor *tensor)
{
    return !tensor->storage->is_foreign && atomic_load_explicit(&tensor->references, memory_order_acquire) == 1 &&
           atomic_load_explicit(&tensor->storage->references, memory_order_acquire) == 1;
}

/* Gives one share back; true when it was the last. Nobody can add one to the only share, so that one needs no
 * exchange. */
static inline bool rapt_drop_reference(_Atomic int64_t *references)
{
    return atomic_load_explicit(references, memory_order_acquire) == 1 ||
           atomic_fetch_sub_explicit(references, 1, memory_order_acq_rel) == 1;
}

static inline bool rapt_has_shape(const rapt_tensor *tensor, int rank, const int64_t *shape)
{
    if (tensor->rank != rank) return false;
    for (int axis = 0; axis < rank; axis++)
        if (tensor->shape[axis] != shape[axis]) return false;
    return true;
}

/* Of the dtypes that number things. */
static inline bool rapt_is_integer(const rapt_tensor *tensor)
{
    return tensor->dtype == RAPT_INT64 || tensor->dtype == RAPT_INT32;
}

static inline bool rapt_is_floating(const rapt_tensor *tensor)
{
    return tensor->dtype <= RAPT_FLOAT64;
}

#endif
