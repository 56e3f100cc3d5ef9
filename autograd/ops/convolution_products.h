/* The three products of a convolution: of weight and windows, and those of its derivatives. */
#ifndef RAPT_OPS_CONVOLUTION_PRODUCTS_H
#define RAPT_OPS_CONVOLUTION_PRODUCTS_H

#include "columns.h"

/* Sizes of one convolution; one axis of an image of conv1d is its columns, and it has one row. */
typedef struct rapt_convolution_sizes {
    const char *op;
    rapt_windows windows;
    rapt_dtype dtype;
    int64_t items, groups;
    int64_t in, out;         /* channels of a group */
    int64_t depth;           /* numbers of a window of a group: rows of the columns */
    int64_t pixels, results; /* of an image, and of what comes out */
    bool is_dense;           /* the columns are the image itself */
} rapt_convolution_sizes;

/* The numbers of a window of one channel. */
static inline int64_t rapt_window_size(const rapt_convolution_sizes *sizes)
{
    return sizes->windows.size[0] * sizes->windows.size[1];
}

/* y[b, o] = bias[o] + Σ weight[o, c] over the windows of the channels c of o's group; bias may be NULL. All dense;
 * false after an error (no memory). */
bool rapt_convolution_forward(const rapt_convolution_sizes *sizes, const char *x, const char *weight, const char *bias,
                              char *y);

/* dx = weightᵀ g, each number where it came from; dx is zeros before, but where the columns are the image itself. */
bool rapt_convolution_of_x(const rapt_convolution_sizes *sizes, const char *g, const char *weight, char *dx);

/* dweight = Σ g columnsᵀ over all images; it is zeros before. */
bool rapt_convolution_of_weight(const rapt_convolution_sizes *sizes, const char *g, const char *x, char *dweight);

#endif
