/* Windows of images as columns, and columns added up to images. */
#include "columns.h"

#include <rapt/op.h>

#include "autograd/checks.h"
#include "tensor/kernels.h"
#include "tensor/parallel.h"

rapt_windows rapt_windows_of(int axes, const int64_t *in, const int64_t *size, const int64_t *stride,
                             const int64_t *padding, const int64_t *dilation)
{
    rapt_windows w = {.size = {1, 1}, .stride = {1, 1}, .dilation = {1, 1}, .in = {1, 1}};
    for (int axis = 0; axis < axes; axis++) {
        const int k = axis + 2 - axes;
        w.in[k] = in[axis];
        w.size[k] = size[axis];
        w.stride[k] = rapt_or_one(stride[axis]);
        w.padding[k] = padding[axis];
        w.dilation[k] = rapt_or_one(dilation[axis]);
    }
    return w;
}

bool rapt_check_window(const char *op, int64_t size, int64_t stride, int64_t padding, int64_t dilation)
{
    return (size >= 1 && stride >= 1 && padding >= 0 && dilation >= 1) ||
           rapt_fail(RAPT_ERROR_VALUE, op,
                     "size %lld, stride %lld, padding %lld and dilation %lld; 1 or more expected, of padding 0",
                     (long long)size, (long long)stride, (long long)padding, (long long)dilation);
}

bool rapt_windows_place(const char *op, rapt_windows *w, bool ceil)
{
    for (int k = 0; k < 2; k++) {
        int64_t reach, padded;
        if (!rapt_check_window(op, w->size[k], w->stride[k], w->padding[k], w->dilation[k])) return false;
        if (__builtin_mul_overflow(w->padding[k], 2, &padded) || __builtin_add_overflow(padded, w->in[k], &padded))
            return rapt_fail(RAPT_ERROR_SHAPE, op, "%lld with padding %lld on each side is more than 64 bits can count",
                             (long long)w->in[k], (long long)w->padding[k]);
        if (__builtin_mul_overflow(w->size[k] - 1, w->dilation[k], &reach) ||
            (padded <= reach && !(ceil && reach - padded < w->stride[k] - 1)))
            return rapt_fail(
                RAPT_ERROR_SHAPE, op,
                "a window of %lld with dilation %lld does not fit into %lld with padding %lld on each side",
                (long long)w->size[k], (long long)w->dilation[k], (long long)w->in[k], (long long)w->padding[k]);
        if (w->stride[k] > padded) w->stride[k] = padded; /* one window, however far the next would be */
        if (padded <= reach) {                            /* one, of which only the beginning is in the image */
            w->size[k] = (padded - 1) / w->dilation[k] + 1;
            w->out[k] = 1;
            continue;
        }
        const int64_t room = padded - reach - 1;
        w->out[k] = room / w->stride[k] + 1;
        const int64_t rest = room % w->stride[k];
        const bool next_begins_inside =
            room - rest < w->in[k] + w->padding[k] - w->stride[k]; /* room − rest: the last */
        if (ceil && rest > 0 && next_begins_inside) w->out[k]++;
    }
    int64_t count;
    return !__builtin_mul_overflow(w->out[0], w->out[1], &count) ||
           rapt_fail(RAPT_ERROR_SHAPE, op, "%lld times %lld windows are too many", (long long)w->out[0],
                     (long long)w->out[1]);
}

void rapt_columns_fill(const rapt_windows *w, rapt_dtype dtype, const char *image, int64_t top, int64_t bottom,
                       int64_t first, int64_t last, char *columns)
{
    rapt_columns_part part = {*w, first, last, top, (char *)(uintptr_t)image, columns};
    rapt_parallel(bottom - top, rapt_grain(last - first), rapt_kernel.columns.fill[dtype], &part);
}

void rapt_columns_add(const rapt_windows *w, rapt_dtype dtype, int64_t channels, const char *columns, int64_t first,
                      int64_t last, char *image)
{
    rapt_columns_part part = {*w, first, last, 0, image, (char *)(uintptr_t)columns};
    rapt_parallel(channels, rapt_grain((last - first) * w->size[0] * w->size[1]), rapt_kernel.columns.add[dtype],
                  &part);
}

/* --- ops --- */

/* out[b, (c, i, j), (y, x)] = image[b, c, y · stride + i · dilation − padding, x likewise] */
static rapt_tensor *unfold_forward(rapt_call *call)
{
    const rapt_windows *w = rapt_call_options(call);
    const rapt_tensor *images = rapt_as_contiguous(rapt_call_input(call, 0));
    if (!images) return NULL;
    const int64_t channels = images->shape[1], size = (int64_t)rapt_dtype_size(images->dtype);
    const int64_t rows = channels * w->size[0] * w->size[1], windows = rapt_windows_count(w);
    rapt_tensor *out = rapt_new("unfold", images->dtype, RAPT_SHAPE(images->shape[0], rows, windows));
    for (int64_t b = 0; out && b < images->shape[0]; b++)
        rapt_columns_fill(w, images->dtype, images->data + b * channels * w->in[0] * w->in[1] * size, 0, rows, 0,
                          windows, out->data + b * rows * windows * size);
    return out;
}

static bool unfold_vjp(rapt_call *call)
{
    return rapt_call_give(call, 0, rapt_fold_columns(rapt_call_gradient(call, 0), rapt_call_options(call)));
}

static const rapt_op unfold = {.name = "unfold",
                               .forward = unfold_forward,
                               .vjp = unfold_vjp,
                               .options_size = sizeof(rapt_windows)};

rapt_tensor *rapt_unfold(rapt_tensor *images, const rapt_windows *w)
{
    return RAPT_APPLY(&unfold, w, images);
}

static rapt_tensor *fold_forward(rapt_call *call)
{
    const rapt_windows *w = rapt_call_options(call);
    const rapt_tensor *columns = rapt_as_contiguous(rapt_call_input(call, 0));
    if (!columns) return NULL;
    const int64_t items = columns->shape[0], rows = columns->shape[1], windows = columns->shape[2];
    const int64_t channels = rows / (w->size[0] * w->size[1]), size = (int64_t)rapt_dtype_size(columns->dtype);
    rapt_tensor *out = rapt_zeros(columns->dtype, RAPT_SHAPE(items, channels, w->in[0], w->in[1]));
    for (int64_t b = 0; out && b < items; b++)
        rapt_columns_add(w, columns->dtype, channels, columns->data + b * rows * windows * size, 0, windows,
                         out->data + b * channels * w->in[0] * w->in[1] * size);
    return out;
}

static bool fold_vjp(rapt_call *call)
{
    return rapt_call_give(call, 0, rapt_unfold(rapt_call_gradient(call, 0), rapt_call_options(call)));
}

static const rapt_op fold = {.name = "fold",
                             .forward = fold_forward,
                             .vjp = fold_vjp,
                             .options_size = sizeof(rapt_windows)};

rapt_tensor *rapt_fold_columns(rapt_tensor *columns, const rapt_windows *w)
{
    return RAPT_APPLY(&fold, w, columns);
}
