/* Packed sequences in the order in which a recurrence runs: step by step, at each step the longer ones first. */
#ifndef RAPT_NN_STEP_ORDER_H
#define RAPT_NN_STEP_ORDER_H

#include <rapt/tensor.h>

/* All int64. A sequence's place is that among all from the longest to the shortest. */
typedef struct rapt_step_order {
    rapt_tensor *step_starts; /* (T + 1): the first row of each step */
    rapt_tensor *rows;        /* (rows): of a row by steps, which packed row it is */
    rapt_tensor *packed;      /* (rows): of a packed row, which row by steps it is */
    rapt_tensor *sequences;   /* (B): of a place, which sequence has it */
    rapt_tensor *places;      /* (B): of a sequence, its place */
    rapt_tensor *last;        /* (B): of a sequence, the row by steps of its last step */
} rapt_step_order;

/* Of a packing's starts (B + 1), for a sequence of `rows` rows. False after an error under the op's name, as when a
 * sequence has no rows or there is none. The tensors belong to the innermost scope. */
bool rapt_step_order_make(const char *op, const rapt_tensor *starts, int64_t rows, rapt_step_order *order);

/* int64 (rows): of a row by steps, that of the same sequence as far from its end as this is from its beginning. */
rapt_tensor *rapt_step_order_mirror(const char *op, const rapt_step_order *order);

#endif
