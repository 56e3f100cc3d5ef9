/* Tensors from nothing, from numbers and from each other; and changes in place. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "tensor/debug.h"
#include "tensor/map.h"

rapt_tensor *rapt_empty(rapt_dtype dtype, int rank, const int64_t *shape)
{
    return rapt_new("empty", dtype, rank, shape);
}

rapt_tensor *rapt_new_like(const char *op, const rapt_tensor *tensor)
{
    if (!tensor) rapt_fail_null(op, "tensor");
    if (!tensor || !rapt_check_alive(op, "the tensor", tensor)) return NULL;
    return rapt_new_shaped(op, tensor->dtype, tensor);
}

rapt_tensor *rapt_empty_like(const rapt_tensor *tensor)
{
    return rapt_new_like("empty_like", tensor);
}

void rapt_write_element(rapt_dtype dtype, double value, void *element)
{
    const int64_t stride = 0;
    char *data[] = {element, (char *)&value};
    rapt_kernel.elementwise.cast[dtype][RAPT_FLOAT64](1, data, (int64_t[]){stride, stride}, NULL);
}

/* A new tensor with the value everywhere; NULL when it is. */
static rapt_tensor *fill_new(rapt_tensor *tensor, double value)
{
    if (!tensor) return NULL;
    if (value == 0 && !signbit(value))
        memset(tensor->data, 0, (size_t)tensor->count * rapt_dtype_size(tensor->dtype));
    else if (!rapt_fill(tensor, value))
        return NULL;
    return tensor;
}

static rapt_tensor *filled(const char *op, rapt_dtype dtype, int rank, const int64_t *shape, double value)
{
    return fill_new(rapt_new(op, dtype, rank, shape), value);
}

rapt_tensor *rapt_zeros(rapt_dtype dtype, int rank, const int64_t *shape)
{
    return filled("zeros", dtype, rank, shape, 0);
}

rapt_tensor *rapt_ones(rapt_dtype dtype, int rank, const int64_t *shape)
{
    return filled("ones", dtype, rank, shape, 1);
}

rapt_tensor *rapt_full(rapt_dtype dtype, int rank, const int64_t *shape, double value)
{
    return filled("full", dtype, rank, shape, value);
}

rapt_tensor *rapt_scalar(rapt_dtype dtype, double value)
{
    return filled("scalar", dtype, 0, NULL, value);
}

rapt_tensor *rapt_zeros_like(const rapt_tensor *tensor)
{
    return fill_new(rapt_new_like("zeros_like", tensor), 0);
}

rapt_tensor *rapt_ones_like(const rapt_tensor *tensor)
{
    return fill_new(rapt_new_like("ones_like", tensor), 1);
}

rapt_tensor *rapt_full_like(const rapt_tensor *tensor, double value)
{
    return fill_new(rapt_new_like("full_like", tensor), value);
}

static void write_at(rapt_tensor *tensor, int64_t i, double value)
{
    rapt_write_element(tensor->dtype, value, tensor->data + (size_t)i * rapt_dtype_size(tensor->dtype));
}

/* start + i · step, exact where double is, and by halves where the product alone is too large. */
static double on_the_way(double start, double step, double i)
{
    const double value = start + i * step;
    return isfinite(value) ? value : 2 * (start / 2 + i * (step / 2));
}

rapt_tensor *rapt_arange(rapt_dtype dtype, double start, double stop, double step)
{
    if (!isfinite(start) || !isfinite(stop) || !isfinite(step) || step == 0) {
        rapt_fail(RAPT_ERROR_VALUE, "arange", "start %g, stop %g and step %g must be finite and the step not 0", start,
                  stop, step);
        return NULL;
    }
    const double way = stop - start, count = ceil(isfinite(way) ? way / step : (stop / 2 - start / 2) / (step / 2));
    if (count > 1e15) {
        rapt_fail(RAPT_ERROR_MEMORY, "arange", "%g elements are too many", count);
        return NULL;
    }
    const int64_t size = count > 0 ? (int64_t)count : 0;
    rapt_tensor *tensor = rapt_new("arange", dtype, 1, &size);
    for (int64_t i = 0; tensor && i < size; i++) write_at(tensor, i, on_the_way(start, step, (double)i));
    return tensor;
}

rapt_tensor *rapt_linspace(rapt_dtype dtype, double first, double last, int64_t count)
{
    if (!isfinite(first) || !isfinite(last)) {
        rapt_fail(RAPT_ERROR_VALUE, "linspace", "first %g and last %g must be finite", first, last);
        return NULL;
    }
    rapt_tensor *tensor = rapt_new("linspace", dtype, 1, &count);
    if (!tensor) return NULL;
    const double way = last - first, steps = count > 1 ? (double)(count - 1) : 1, step = way / steps;
    for (int64_t i = 0; i < count; i++) {
        const double part = (double)i / steps;
        write_at(tensor, i, isfinite(way) ? first + (double)i * step : (1 - part) * first + part * last);
    }
    if (count > 1) write_at(tensor, count - 1, last);
    return tensor;
}

rapt_tensor *rapt_eye(rapt_dtype dtype, int64_t size)
{
    rapt_tensor *tensor = filled("eye", dtype, 2, (int64_t[]){size, size}, 0);
    for (int64_t i = 0; tensor && i < size; i++)
        rapt_write_element(dtype, 1, tensor->data + (size_t)(i * (size + 1)) * rapt_dtype_size(dtype));
    return tensor;
}

static bool has_elements(int rank, const int64_t *shape)
{
    bool none = false;
    for (int i = 0; i < rank && shape; i++) none = none || shape[i] == 0;
    return !none;
}

rapt_tensor *rapt_from(rapt_dtype dtype, int rank, const int64_t *shape, const void *data)
{
    if (!data && has_elements(rank, shape)) return rapt_fail_null("from", "data"), NULL;
    rapt_tensor *tensor = rapt_new("from", dtype, rank, shape);
    if (tensor && data) memcpy(tensor->data, data, (size_t)tensor->count * rapt_dtype_size(dtype));
    return tensor;
}

rapt_tensor *rapt_clone(const rapt_tensor *tensor)
{
    rapt_tensor *clone = rapt_new_like("clone", tensor);
    if (!clone) return NULL;
    rapt_map(rapt_kernel.elementwise.cast[clone->dtype][tensor->dtype], NULL, 1, 2,
             (const rapt_tensor *[]){clone, tensor});
    return clone;
}

const rapt_tensor *rapt_as_contiguous(const rapt_tensor *tensor)
{
    return tensor && !tensor->contiguous ? rapt_clone(tensor) : tensor;
}

const rapt_tensor *rapt_as_dense_rows(const rapt_tensor *tensor)
{
    const int last = tensor->rank - 1;
    return tensor->shape[last] <= 1 || tensor->strides[last] == 1 ? tensor : rapt_as_contiguous(tensor);
}

bool rapt_fill(rapt_tensor *tensor, double value)
{
    if (!rapt_begin_writing("fill", tensor)) return false;
    double element; /* room for any dtype */
    rapt_write_element(tensor->dtype, value, &element);
    rapt_map(rapt_kernel.elementwise.fill[tensor->dtype], &element, 1, 1, (const rapt_tensor *[]){tensor});
    return true;
}

/* The checks of an in-place op whose source broadcasts to the target, but for its dtypes. */
static bool check_source(const char *op, rapt_tensor *target, const rapt_tensor *source)
{
    if (!target || !source) return rapt_fail_null(op, target ? "source" : "target");
    if (!rapt_check_alive(op, "the target", target) || !rapt_check_alive(op, "the source", source)) return false;
    int64_t shape[RAPT_MAX_RANK];
    int rank = rapt_broadcast(op, target, source, shape);
    if (rank < 0) return false;
    bool same = rank == target->rank;
    for (int axis = 0; same && axis < rank; axis++) same = shape[axis] == target->shape[axis];
    if (!same) {
        char a[RAPT_SHAPE_TEXT], b[RAPT_SHAPE_TEXT];
        return rapt_fail(RAPT_ERROR_SHAPE, op, "source of shape %s does not broadcast to target of shape %s",
                         rapt_shape_text(source->rank, source->shape, a),
                         rapt_shape_text(target->rank, target->shape, b));
    }
    return rapt_check_writable(op, target);
}

const char *rapt_end_of(const rapt_tensor *tensor)
{
    int64_t elements = tensor->count > 0;
    for (int axis = 0; axis < tensor->rank && elements > 0; axis++)
        elements += (tensor->shape[axis] - 1) * tensor->strides[axis];
    return tensor->data + elements * rapt_element_bytes[tensor->dtype];
}

/* True when a byte of the one may be a byte of the other. */
static bool share_memory(const rapt_tensor *a, const rapt_tensor *b)
{
    return a->data < rapt_end_of(b) && b->data < rapt_end_of(a);
}

/* True when writing the target element by element could overwrite elements of the source before they are read. Memory
 * of others may be seen through several storages. */
static bool overlaps(const rapt_tensor *target, const rapt_tensor *source)
{
    if (target->storage != source->storage &&
        !((target->storage->is_foreign || source->storage->is_foreign) && share_memory(target, source)))
        return false;
    if (target->data != source->data || target->dtype != source->dtype ||
        !rapt_has_shape(target, source->rank, source->shape))
        return true;
    return memcmp(target->strides, source->strides, target->rank * sizeof *target->strides) != 0;
}

/* Begins to write, as the last thing that can fail; returns the source, or a copy of it where it would be overwritten.
 * NULL after an error. */
static const rapt_tensor *begin_from(const char *op, rapt_tensor *target, const rapt_tensor *source)
{
    if (overlaps(target, source) && !(source = rapt_clone(source))) return NULL;
    return rapt_begin_writing(op, target) ? source : NULL;
}

bool rapt_copy(rapt_tensor *target, const rapt_tensor *source)
{
    if (!check_source("copy", target, source) || !(source = begin_from("copy", target, source))) return false;
    rapt_map(rapt_kernel.elementwise.cast[target->dtype][source->dtype], NULL, 1, 2,
             (const rapt_tensor *[]){target, source});
    return true;
}

bool rapt_add_in_place(rapt_tensor *target, const rapt_tensor *source, double factor)
{
    if (!check_source("add_in_place", target, source)) return false;
    if (target->dtype != source->dtype || !rapt_is_floating(target))
        return rapt_fail(RAPT_ERROR_DTYPE, "add_in_place",
                         "target is %s, source is %s; one floating dtype expected (rapt_cast converts)",
                         rapt_dtype_name(target->dtype), rapt_dtype_name(source->dtype));
    if (!(source = begin_from("add_in_place", target, source))) return false;
    rapt_map(rapt_kernel.elementwise.add_scaled[target->dtype], &factor, 1, 3,
             (const rapt_tensor *[]){target, target, source});
    return true;
}

bool rapt_scale_in_place(rapt_tensor *target, double factor)
{
    if (!rapt_check_writable("scale_in_place", target)) return false;
    if (!rapt_is_floating(target))
        return rapt_fail(RAPT_ERROR_DTYPE, "scale_in_place", "target is %s; floating expected",
                         rapt_dtype_name(target->dtype));
    if (!rapt_begin_writing("scale_in_place", target)) return false;
    /* A float32 below its least normal number has few digits, or none: then in two steps. */
    const bool is_small = target->dtype == RAPT_FLOAT32 && factor != 0 && fabs(factor) < (double)FLT_MIN;
    const double first = is_small ? sqrt(fabs(factor)) : factor, factors[] = {first, factor / first};
    for (int step = 0; step <= is_small; step++)
        rapt_map(rapt_kernel.elementwise.scale[target->dtype], &factors[step], 1, 2,
                 (const rapt_tensor *[]){target, target});
    return true;
}
