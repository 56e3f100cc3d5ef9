/* Tensors: typed, strided arrays of rank 0 to 8. Everything of the folder tensor, in one header. */
#ifndef RAPT_TENSOR_H
#define RAPT_TENSOR_H

#include <rapt/base.h>
#include <rapt/error.h>
#include <rapt/file.h>
#include <rapt/memory.h>
#include <rapt/npy.h>
#include <rapt/print.h>
#include <rapt/random.h>
#include <rapt/runtime.h>
#include <rapt/wrap.h>

RAPT_BEGIN_DECLS

/* A shape written in place: rapt_zeros(RAPT_FLOAT32, RAPT_SHAPE(2, 3)). A scalar is (dtype, 0, NULL). */
#define RAPT_SHAPE(...) RAPT_LENGTH_OF(int64_t, __VA_ARGS__), RAPT_ARRAY_OF(int64_t, __VA_ARGS__)

/* New tensors, contiguous, of the innermost scope. NULL after an error (bad dtype, rank or size; no memory). Sizes may
 * be 0. */
RAPT_API rapt_tensor *rapt_empty(rapt_dtype dtype, int rank, const int64_t *shape); /* values undefined */
RAPT_API rapt_tensor *rapt_zeros(rapt_dtype dtype, int rank, const int64_t *shape);
RAPT_API rapt_tensor *rapt_ones(rapt_dtype dtype, int rank, const int64_t *shape);
RAPT_API rapt_tensor *rapt_full(rapt_dtype dtype, int rank, const int64_t *shape, double value);
RAPT_API rapt_tensor *rapt_scalar(rapt_dtype dtype, double value);

/* start, start + step, …, below (above, for a negative step) stop: ⌈(stop − start) / step⌉ numbers, by float64, whose
 * rounding may add one that is stop, or nearly (for 1, 1.3 and 0.1: four numbers). Bounds and step are finite. */
RAPT_API rapt_tensor *rapt_arange(rapt_dtype dtype, double start, double stop, double step);
/* count numbers at equal distances, from the first to the last, both exact; these are finite. */
RAPT_API rapt_tensor *rapt_linspace(rapt_dtype dtype, double first, double last, int64_t count);
/* (size, size): 1 on the diagonal, else 0. */
RAPT_API rapt_tensor *rapt_eye(rapt_dtype dtype, int64_t size);

/* A copy of `data`, which holds the elements in row-major order in the type that dtype names (bool: one byte each);
 * NULL where there are none. */
RAPT_API rapt_tensor *rapt_from(rapt_dtype dtype, int rank, const int64_t *shape, const void *data);

/* New tensors of another's dtype and shape, contiguous and outside any graph. */
RAPT_API rapt_tensor *rapt_empty_like(const rapt_tensor *tensor); /* values undefined */
RAPT_API rapt_tensor *rapt_zeros_like(const rapt_tensor *tensor);
RAPT_API rapt_tensor *rapt_ones_like(const rapt_tensor *tensor);
RAPT_API rapt_tensor *rapt_full_like(const rapt_tensor *tensor, double value);

/* A new contiguous tensor with the same values, outside any graph. */
RAPT_API rapt_tensor *rapt_clone(const rapt_tensor *tensor);

/* Properties. NULL gives 0, rank 0 and float32, and records an error. */
RAPT_API rapt_dtype rapt_get_dtype(const rapt_tensor *tensor);
RAPT_API int rapt_rank(const rapt_tensor *tensor);
RAPT_API int64_t rapt_count(const rapt_tensor *tensor);            /* number of elements */
RAPT_API int64_t rapt_size(const rapt_tensor *tensor, int axis);   /* a negative axis counts from the last */
RAPT_API int64_t rapt_stride(const rapt_tensor *tensor, int axis); /* in elements */
RAPT_API const int64_t *rapt_shape(const rapt_tensor *tensor);     /* rank numbers */
RAPT_API bool rapt_is_contiguous(const rapt_tensor *tensor);
RAPT_API bool rapt_same_shape(const rapt_tensor *a, const rapt_tensor *b);

/* The first element. Reading through it is always right, with the strides above; NULL after an error. */
RAPT_API const void *rapt_data(const rapt_tensor *tensor);

/* The same for writing: counts as a change in place, which backward notices where the old values were needed. */
RAPT_API void *rapt_data_for_writing(rapt_tensor *tensor);

/* The one element of a tensor of count 1, as a double (NaN after an error). */
RAPT_API double rapt_item(const rapt_tensor *tensor);

/* The element at those indices (rank of them, negative ones from the end), as a double (NaN after an error). */
RAPT_API double rapt_at(const rapt_tensor *tensor, const int64_t *indices);

/* The same for integers and bool, exact where a double is not: beyond 2⁵³. 0 after an error, which a floating tensor
 * is. */
RAPT_API int64_t rapt_item_int64(const rapt_tensor *tensor);
RAPT_API int64_t rapt_at_int64(const rapt_tensor *tensor, const int64_t *indices);

/* In place, outside any graph; false after an error. copy broadcasts and converts; fill and set_at keep the dtype, and
 * convert numbers to it as rapt_cast does. set_at changes the element at those indices, which are as above. add, which
 * broadcasts, and scale are of floating tensors only; target and source have one dtype. */
RAPT_API bool rapt_fill(rapt_tensor *tensor, double value);
RAPT_API bool rapt_set_at(rapt_tensor *tensor, const int64_t *indices, double value);
RAPT_API bool rapt_set_at_int64(rapt_tensor *tensor, const int64_t *indices, int64_t value);
RAPT_API bool rapt_copy(rapt_tensor *target, const rapt_tensor *source);
RAPT_API bool rapt_add_in_place(rapt_tensor *target, const rapt_tensor *source,
                                double factor); /* target += factor·source */
RAPT_API bool rapt_scale_in_place(rapt_tensor *target, double factor);

/* How often the memory behind the tensor was changed in place. */
RAPT_API uint64_t rapt_version(const rapt_tensor *tensor);

RAPT_END_DECLS

#endif
