/* The loops of the recurrences: a task takes some rows of the batch through all steps. */
#include "recurrence_rows.h"

#include <string.h>

#include "tensor/core.h"
#include "tensor/flops.h"
#include "tensor/parallel.h"
#include "tensor/scratch.h"

/* The rows of a task: few enough to keep threads busy, and enough to make much of weights that come to the cache. */
static int64_t count_tasks(int64_t batch)
{
    enum { fewest = 8, most = 32, wanted = 4 };
    const int64_t rows = batch / wanted;
    return rapt_divide_up(batch, rows < fewest ? fewest : rows < most ? rows : most);
}

/* How many rows of all steps are of the batch's first `rows`. */
static int64_t count_rows(const rapt_step_rows *r, int64_t rows)
{
    int64_t sum = 0;
    for (int64_t t = 0; t < r->count; t++) sum += rapt_step_rows_left(r, t, 0, rows);
    return sum;
}

/* The first row of a task: where steps have ever fewer rows, tasks have more rows of fewer steps. */
static int64_t first_row(const rapt_step_rows *r, int64_t task)
{
    const int64_t tasks = count_tasks(r->batch);
    if (!r->starts) return r->batch * task / tasks;
    const int64_t wanted = r->rows / tasks * task + r->rows % tasks * task / tasks;
    int64_t low = 0, high = r->batch;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (count_rows(r, middle) < wanted)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Weights split into limbs take more time to come to the cache: worth it where the rows of two tasks meet them. */
enum { most_joined = 2 };

static int64_t count_joined(const rapt_step_rows *r, const rapt_packed_matrix *weight)
{
    const int64_t share = count_tasks(r->batch) / rapt_get_threads();
    return !weight->kernels->multiplies_limbs || share <= 1 ? 1 : rapt_smaller_of(share, most_joined);
}

int64_t rapt_recurrence_task_rows(const rapt_step_rows *r)
{
    int64_t most = 0;
    const int64_t count = count_tasks(r->batch);
    for (int64_t task = 0; task < count; task++) {
        const int64_t rows = first_row(r, rapt_smaller_of(task + most_joined, count)) - first_row(r, task);
        if (rows > most) most = rows;
    }
    return most;
}

typedef struct tasks {
    rapt_scratch scratch;
    int64_t joined; /* neighbours that are run as one */
    const rapt_step_rows *rows;
    rapt_recurrence_body *body;
    const void *run;
} tasks;

static void run_tasks(void *context, int64_t first, int64_t last)
{
    const tasks *t = context;
    char *scratch = rapt_scratch_borrow(&t->scratch);
    for (int64_t i = first; i < last; i += t->joined) {
        const int64_t row = first_row(t->rows, i), end = rapt_smaller_of(i + t->joined, last);
        t->body(t->run, row, first_row(t->rows, end) - row, scratch);
    }
    rapt_scratch_return(&t->scratch, scratch);
}

bool rapt_recurrence_run_tasks(const char *op, const rapt_step_rows *rows, const rapt_packed_matrix *weight,
                               int64_t cost, size_t scratch_bytes, rapt_recurrence_body *body, const void *run)
{
    const int64_t count = count_tasks(rows->batch), grain = rapt_grain(cost);
    tasks t = {.joined = count_joined(rows, weight), .rows = rows, .body = body, .run = run};
    if (!rapt_scratch_take(op, &t.scratch, count, scratch_bytes)) return false;
    rapt_parallel(count, grain > t.joined ? grain : t.joined, run_tasks, &t);
    rapt_scratch_give(&t.scratch);
    return true;
}

/* Row `row` of a step, of `width` elements. */
static char *step_at(const rapt_recurrence_sizes *s, const rapt_tensor *tensor, int64_t step, int64_t row,
                     int64_t width)
{
    return tensor ? tensor->data + (rapt_step_first_row(&s->steps, step) + row) * width * s->bytes : NULL;
}

/* The rows of a sequence that step t starts from: those of step t − 1, or the initial ones. */
static char *before(const rapt_recurrence_run *r, int state, int64_t step, int64_t row)
{
    if (step > 0) return step_at(r->s, r->states[state], step - 1, row, r->s->hidden);
    return r->initial[state] ? step_at(r->s, r->initial[state], 0, row, r->s->hidden) : (char *)r->zeros;
}

/* What the cell keeps of a step. */
static rapt_ahead kept_ahead(const rapt_recurrence_run *r, int64_t step, int64_t row, int64_t rows)
{
    const int64_t width = RAPT_RECURRENCE_KEPT * r->s->hidden;
    return rapt_ahead_at(step_at(r->s, r->kept, step, row, width), rows * width * r->s->bytes);
}

/* to = state Wᵀ + b; of no state there is only b */
static void project(const rapt_recurrence_run *r, int64_t rows, char *state, char *to, rapt_ahead next, char *scratch)
{
    const rapt_recurrence_sizes *s = r->s;
    const size_t bytes = (size_t)(s->width * s->bytes);
    if (state != r->zeros) {
        rapt_packed_matrix_multiply(&r->weight, rows, (rapt_rows){state, s->hidden},
                                    (rapt_rows){(char *)(uintptr_t)r->bias, 0}, (rapt_rows){to, s->width}, false, next,
                                    scratch);
        return;
    }
    for (int64_t row = 0; row < rows; row++, to += bytes)
        if (r->bias)
            memcpy(to, r->bias, bytes);
        else
            memset(to, 0, bytes);
}

static void forward_rows(const rapt_recurrence_run *r, int64_t row, int64_t rows, char *scratch)
{
    const rapt_recurrence_sizes *s = r->s;
    char *projected = scratch, *packing = projected + rows * s->width * s->bytes;
    for (int64_t t = 0; t < s->steps.count && (rows = rapt_step_rows_left(&s->steps, t, row, rows)) > 0; t++) {
        const rapt_cell_data data = {.from_input = step_at(s, r->from_input, t, row, s->width),
                                     .from_hidden = projected,
                                     .state = before(r, 0, t, row),
                                     .next_state = step_at(s, r->states[0], t, row, s->hidden),
                                     .cell = before(r, 1, t, row),
                                     .next_cell = step_at(s, r->states[1], t, row, s->hidden),
                                     .kept = step_at(s, r->kept, t, row, RAPT_RECURRENCE_KEPT * s->hidden)};
        project(r, rows, data.state, projected, kept_ahead(r, t, row, rows), packing);
        r->cell->forward[s->dtype](0, rows, s->hidden, &data);
    }
}

static void backward_rows(const rapt_recurrence_run *r, int64_t row, int64_t all_rows, char *scratch)
{
    const rapt_recurrence_sizes *s = r->s;
    for (int64_t t = s->steps.count - 1; t >= 0; t--) {
        const int64_t rows = rapt_step_rows_left(&s->steps, t, row, all_rows);
        if (rows <= 0) continue;
        const rapt_cell_data data = {.from_input = step_at(s, r->input_gradient, t, row, s->width),
                                     .from_hidden = step_at(s, r->hidden_gradient, t, row, s->width),
                                     .state = before(r, 0, t, row),
                                     .cell = before(r, 1, t, row),
                                     .next_cell = step_at(s, r->states[1], t, row, s->hidden),
                                     .kept = step_at(s, r->kept, t, row, RAPT_RECURRENCE_KEPT * s->hidden),
                                     .gradient = step_at(s, r->gradients[0], t, row, s->hidden),
                                     .cell_gradient = step_at(s, r->gradients[1], t, row, s->hidden),
                                     .carry = step_at(s, r->carry[0], 0, row, s->hidden),
                                     .cell_carry = step_at(s, r->carry[1], 0, row, s->hidden)};
        r->cell->backward[s->dtype](0, rows, s->hidden, &data);
        if (data.state == r->zeros) return; /* whose gradient nobody wants */
        rapt_packed_matrix_multiply(&r->weight, rows, (rapt_rows){data.from_hidden, s->width}, (rapt_rows){0},
                                    (rapt_rows){data.carry, s->hidden}, true,
                                    t > 0 ? kept_ahead(r, t - 1, row, rows) : (rapt_ahead){0}, scratch);
    }
}

static void run_rows(const void *run, int64_t row, int64_t rows, char *scratch)
{
    const rapt_recurrence_run *r = run;
    (r->input_gradient ? backward_rows : forward_rows)(r, row, rows, scratch);
}

bool rapt_recurrence_run_all(rapt_recurrence_run *r, const rapt_tensor *weight, int64_t k, int64_t n,
                             int64_t row_stride, int64_t column_stride)
{
    const rapt_recurrence_sizes *s = r->s;
    const int64_t rows = rapt_recurrence_task_rows(&s->steps);
    RAPT_SCOPE;
    const rapt_tensor *zeros = rapt_zeros(s->dtype, RAPT_SHAPE(rows, s->hidden));
    if (!zeros || !rapt_packed_matrix_make(r->cell->name, &r->weight, s->dtype, k, n, weight->data, row_stride,
                                           column_stride, s->steps.rows, rapt_step_rows_mean(&s->steps)))
        return false;
    r->zeros = zeros->data;
    const int64_t projected_rows = s->steps.rows - (r->initial[0] ? 0 : s->steps.batch);
    rapt_count_flops(2 * (double)projected_rows * (double)k * (double)n);
    const size_t projected = (size_t)(rows * s->width * s->bytes);
    const bool good =
        rapt_recurrence_run_tasks(r->cell->name, &s->steps, &r->weight, s->steps.count * rows * k * n / 64,
                                  projected + rapt_packed_matrix_scratch(&r->weight, rows), run_rows, r);
    rapt_packed_matrix_free(&r->weight);
    return good;
}
