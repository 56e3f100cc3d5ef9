/* What convolutions see of images: each window's numbers as a column of a matrix. */
#ifndef RAPT_OPS_COLUMNS_H
#define RAPT_OPS_COLUMNS_H

#include "tensor/core.h"
#include "tensor/kernel_columns.h"

/* Windows of one axis, the columns of images of one row, or of two. stride and dilation: 0 is 1. */
rapt_windows rapt_windows_of(int axes, const int64_t *in, const int64_t *size, const int64_t *stride,
                             const int64_t *padding, const int64_t *dilation);

/* Fills in `out` of what is given otherwise; false and an error when a number is none or no window fits. With ceil the
 * last window may reach past the padding by less than a stride, if it begins before that; where it is the only one and
 * larger than the image with its padding, its size is cut. */
bool rapt_windows_place(const char *op, rapt_windows *w, bool ceil);

static inline int64_t rapt_windows_count(const rapt_windows *w)
{
    return w->out[0] * w->out[1];
}

/* The numbers of windows [first, last) of an image, rows [top, bottom) of all (channels·size), to dense columns
 * (bottom − top, last − first); 0 for padding. */
void rapt_columns_fill(const rapt_windows *w, rapt_dtype dtype, const char *image, int64_t top, int64_t bottom,
                       int64_t first, int64_t last, char *columns);

/* The opposite, of all rows of so many channels: each number of the columns is added to where it came from. */
void rapt_columns_add(const rapt_windows *w, rapt_dtype dtype, int64_t channels, const char *columns, int64_t first,
                      int64_t last, char *image);

/* Ops, each the other's derivative: images (B, C, height, width) → (B, C·size, windows), and back. */
rapt_tensor *rapt_unfold(rapt_tensor *images, const rapt_windows *w);
rapt_tensor *rapt_fold_columns(rapt_tensor *columns, const rapt_windows *w);

#endif
