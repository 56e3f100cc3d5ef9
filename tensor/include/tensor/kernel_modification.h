/* The functions over tiles of the library's own score modifications. */
#ifndef RAPT_TENSOR_KERNEL_MODIFICATION_H
#define RAPT_TENSOR_KERNEL_MODIFICATION_H

#include <rapt/score_tile.h>

/* Captured: the table (1, heads, buckets), and int64 (1, 1, side): the smallest distance |j − i| of each bucket of one
 * side. */
typedef struct rapt_bucket_options {
    int64_t side; /* buckets of one side */
    bool bidirectional;
} rapt_bucket_options;

typedef struct rapt_modification_kernels {
    rapt_score_functions soft_cap;         /* options: the cap, a double */
    rapt_score_functions head_temperature; /* captured: (1, heads) */
    rapt_score_functions alibi;            /* captured: the slopes (1, heads) */
    rapt_score_functions bucketed_bias;    /* options as above */
    rapt_score_functions learned_bias;     /* captured: (1, heads, 2·reach + 1); options: the reach, an int64 */
    rapt_score_functions gaussian_window;  /* captured: the widths (1, heads) */
    rapt_score_functions prefix;           /* captured: int64 (items, 1) */
} rapt_modification_kernels;

#endif
