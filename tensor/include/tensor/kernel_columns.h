/* Windows of images as columns: what the loops that copy them and add them up are told. */
#ifndef RAPT_TENSOR_KERNEL_COLUMNS_H
#define RAPT_TENSOR_KERNEL_COLUMNS_H

#include <rapt/base.h>

/* How windows lie on images (…, C, height, width), by [0] rows and [1] columns of an image. */
typedef struct rapt_windows {
    int64_t size[2], stride[2], padding[2], dilation[2];
    int64_t in[2], out[2]; /* of the image, and how many windows there are */
} rapt_windows;

/* Windows [first, last) of one image; row `top` of the columns lies first, and each row is dense. */
typedef struct rapt_columns_part {
    rapt_windows windows;
    int64_t first, last;
    int64_t top;
    char *image, *columns;
} rapt_columns_part;

/* Tasks for rapt_parallel, whose context is a part: rows of the columns from `top` on are copied from the image, 0 for
 * padding; or those of whole channels, from 0 on, are added to it. */
typedef void rapt_columns_loop(void *part, int64_t first, int64_t last);

/* A number of a window: it stands so many elements behind the window's place. */
typedef struct rapt_tap {
    int64_t offset;
    double weight;
} rapt_tap;

/* Windows that follow one another are worked on in whole blocks of so many bytes: what lies behind the last is read,
 * and written, too. */
enum { rapt_taps_bytes = 256 };

/* out[p] = start + Σ weight · in[p + offset] */
typedef void rapt_taps_loop(int64_t count, int64_t taps, const rapt_tap *tap, double start, const void *in, void *out);

/* weight += Σ g[p] · in[p + offset] over the places where `seen` is not 0, as it must be behind the last one. */
typedef void rapt_taps_back_loop(int64_t count, int64_t taps, rapt_tap *tap, const void *g, const void *seen,
                                 const void *in);

typedef struct rapt_columns_kernels {
    rapt_columns_loop *fill[2], *add[2]; /* float32, float64 */
    rapt_taps_loop *taps[2];
    rapt_taps_back_loop *taps_back[2];
} rapt_columns_kernels;

/* Pools of dense images: tasks for rapt_parallel over images, whose context is this. */
typedef struct rapt_pool_images {
    rapt_windows windows;
    bool leaves_padding_out, back;
    char *in, *out;
    _Atomic bool failed; /* a window has no number */
} rapt_pool_images;

typedef void rapt_pool_loop(void *part, int64_t first, int64_t last);

typedef struct rapt_pool_kernels {
    rapt_pool_loop *largest[2]; /* float32, float64: the place of each window's largest number in its image, as int64:
                                   the first of equals, and NaN before all */
    rapt_pool_loop
        *mean[2]; /* y = Σ x / count over each window; back: dx = Σ g / count, added, over those that see x */
} rapt_pool_kernels;

#endif
