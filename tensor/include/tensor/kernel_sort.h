/* The kernels of sorting, one for each dtype. */
#ifndef RAPT_TENSOR_KERNEL_SORT_H
#define RAPT_TENSOR_KERNEL_SORT_H

#include <rapt/base.h>

/* The first `wanted` of a line's `count` elements in order, fewer than 2³². Equal elements stay in order, and a NaN is
 * larger than all else. */
typedef struct rapt_sort_options {
    int64_t count, in_stride, wanted, value_stride, index_stride; /* strides in bytes */
    bool descending;
} rapt_sort_options;

/* The values, unless they are NULL, and the places in the line that they have, int64. room: for twice as many
 * rapt_sort_item as rapt_sort_held says. */
typedef void rapt_sort_loop(const rapt_sort_options *options, const char *in, char *values, char *indices, void *room);

typedef struct rapt_sort_item {
    uint64_t key;
    uint32_t index;
} rapt_sort_item;

enum { rapt_sort_block = 32 };

/* How many items are held at once: all, or where few are wanted the best so far and some more. */
static inline int64_t rapt_sort_held(int64_t count, int64_t wanted)
{
    const int64_t held = wanted < count ? 2 * (wanted + rapt_sort_block) : count;
    return held < count ? held : count;
}

typedef struct rapt_sort_kernels {
    rapt_sort_loop *sort[RAPT_DTYPE_COUNT];
} rapt_sort_kernels;

#endif
