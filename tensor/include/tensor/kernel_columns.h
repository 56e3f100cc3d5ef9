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

typedef struct rapt_columns_kernels {
    rapt_columns_loop *fill[2], *add[2]; /* float32, float64 */
} rapt_columns_kernels;

#endif
