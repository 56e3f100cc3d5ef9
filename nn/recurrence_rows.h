/* The loops of the recurrences: what they read and write, and the run of all rows through all steps. */
#ifndef RAPT_NN_RECURRENCE_ROWS_H
#define RAPT_NN_RECURRENCE_ROWS_H

#include <rapt/op.h>

#include "step_rows.h"
#include "tensor/kernels.h"
#include "tensor/packed_matrix.h"

/* What distinguishes the cells. Inputs of the op: from_input, `states` states (NULL: zeros), weight_hh, bias_hh and the
 * steps' starts (NULL: all steps alike). Its backward gets the gradients of the `states` outputs (NULL: zeros), those
 * outputs, the initial states, kept, weight_hh, or NULL, the gradient of weight_hh so far, and the starts; and gives
 * the gradients of from_input, of the projected hidden state, of the states, of weight_hh. */
typedef struct rapt_cell {
    const char *name;
    int gates, states;
    rapt_cell_loop *const *forward, *const *backward;
    const rapt_op *backward_op;
} rapt_cell;

typedef struct rapt_recurrence_sizes {
    rapt_dtype dtype;
    rapt_step_rows steps;
    int64_t hidden, width; /* width: gates · hidden */
    int64_t bytes;         /* of an element */
} rapt_recurrence_sizes;

enum { RAPT_RECURRENCE_KEPT = 4 };

/* Rows of a batch do not meet in a recurrence: a task takes some of them through all steps. */
typedef struct rapt_recurrence_run {
    const rapt_cell *cell;
    const rapt_recurrence_sizes *s;
    rapt_packed_matrix weight;
    const char *bias;
    const rapt_tensor *from_input, *initial[2]; /* initial: NULL for zeros */
    rapt_tensor *kept, *states[2];
    const rapt_tensor *gradients[2]; /* of states, in backward */
    rapt_tensor *input_gradient, *hidden_gradient, *carry[2];
    const char *zeros; /* as many as a task's rows of a state */
} rapt_recurrence_run;

/* Takes so many rows of the batch, from `row` on, through all steps. */
typedef void rapt_recurrence_body(const void *run, int64_t row, int64_t rows, char *scratch);

/* The rows of the batch in the most tasks that are run as one. They are cut into tasks by their number and that of
 * each step alone, so that a task has about as many rows of all steps as any other. */
int64_t rapt_recurrence_task_rows(const rapt_step_rows *rows);

/* All rows by tasks of that many additions and scratch bytes, which multiply their states with weights such as this,
 * packed; neighbours are run as one where that is faster, and threads are few enough. False after an error under the
 * op's name (no memory). */
bool rapt_recurrence_run_tasks(const char *op, const rapt_step_rows *rows, const rapt_packed_matrix *weight,
                               int64_t cost, size_t scratch_bytes, rapt_recurrence_body *body, const void *run);

/* Takes all rows through all steps: forward, or backward where there is an input_gradient. weight: what the state or,
 * backward, the gradient of its projection is multiplied with, (k, n). False after an error (no memory). */
bool rapt_recurrence_run_all(rapt_recurrence_run *r, const rapt_tensor *weight, int64_t k, int64_t n,
                             int64_t row_stride, int64_t column_stride);

#endif
