/* The rows of a recurrence's steps, one step behind the other: each has all rows of the batch, or ever fewer. */
#ifndef RAPT_NN_STEP_ROWS_H
#define RAPT_NN_STEP_ROWS_H

#include <rapt/tensor.h>

typedef struct rapt_step_rows {
    int64_t count, batch, rows; /* count: of steps; rows: of all of them */
    const int64_t *starts;      /* the first row of each step; NULL: each has `batch` of them */
} rapt_step_rows;

/* Of a sequence (T, B, …), or, where starts (T + 1) are not NULL, of packed rows. False after an error under the op's
 * name. What is needed belongs to the innermost scope. */
bool rapt_step_rows_read(const char *op, const rapt_tensor *sequence, const rapt_tensor *starts, rapt_step_rows *r);

/* A tensor (T, B, width) or, of packed rows, (rows, width). NULL after an error. */
rapt_tensor *rapt_step_rows_new(const char *op, const rapt_step_rows *r, rapt_dtype dtype, int64_t width);

/* The first row of a step, among those of all steps. */
int64_t rapt_step_first_row(const rapt_step_rows *r, int64_t step);

/* The rows of a step, on average. */
int64_t rapt_step_rows_mean(const rapt_step_rows *r);

/* How many of `rows` rows of the batch, from `row` on, a step still has; 0 or less for none, as behind the last. */
int64_t rapt_step_rows_left(const rapt_step_rows *r, int64_t step, int64_t row, int64_t rows);

/* A projection of the states before the steps: its gradient, (rows, width), and the states, (rows, hidden) after each
 * step, and (batch, hidden) before the first, where NULL stands for zeros. */
typedef struct rapt_state_projection {
    rapt_dtype dtype;
    int64_t width, hidden;
    const char *gradient, *initial, *states;
} rapt_state_projection;

/* The gradient of the projection's weight, (width, hidden), added to so_far if that is not NULL. NULL after an error,
 * with so_far as it was. */
rapt_tensor *rapt_state_projection_gradient(const char *op, const rapt_step_rows *r, const rapt_state_projection *p,
                                            rapt_tensor *so_far);

#endif
