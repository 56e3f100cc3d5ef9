/* What the library's own score modifications share. */
#ifndef RAPT_NN_MODIFICATIONS_H
#define RAPT_NN_MODIFICATIONS_H

#include <rapt/score_modification.h>

#include "tensor/kernels.h"

/* Gives it the kernels' functions of that name. */
#define RAPT_SET_FUNCTIONS(to, name)                                                                                   \
    ((to)->float32 = rapt_kernel.modification[RAPT_FLOAT32].name,                                                      \
     (to)->float64 = rapt_kernel.modification[RAPT_FLOAT64].name)

/* False and an error unless there is a head; op: the name of the modification. */
bool rapt_check_modified_heads(const char *op, int64_t heads);

/* Captures (heads) as (1, heads, 1, 1), which broadcasts to scores. False after an error. */
bool rapt_capture_by_head(rapt_tensor *by_head, rapt_tensor **captured);

/* j − i in that dtype, (Q, K). */
rapt_tensor *rapt_relative_places(rapt_tensor *queries, rapt_tensor *keys, rapt_dtype dtype);

/* Elements of a table (1, heads, count) by their numbers, int64 (Q, K): (heads, Q, K). */
rapt_tensor *rapt_look_up_biases(rapt_tensor *table, rapt_tensor *numbers);

#endif
