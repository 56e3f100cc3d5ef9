/* Where the rows of a recurrence's steps are, and what is summed over all of them. */
#include "step_rows.h"

#include <string.h>

#include "tensor/core.h"
#include "tensor/kernels.h"
#include "tensor/map.h"
#include "tensor/matmul.h"
#include "tensor/packing.h"

bool rapt_step_rows_read(const char *op, const rapt_tensor *sequence, const rapt_tensor *starts, rapt_step_rows *r)
{
    rapt_raw_packing packing;
    if (!starts) {
        *r = (rapt_step_rows){sequence->shape[0], sequence->shape[1], sequence->shape[0] * sequence->shape[1], NULL};
        return true;
    }
    if (!rapt_read_packing(op, starts, &packing) || !rapt_check_packed_rows(op, "rows", &packing, sequence->shape[0]))
        return false;
    *r = (rapt_step_rows){packing.sequences, packing.longest, packing.rows, packing.starts};
    for (int64_t t = 0; t < r->count; t++)
        if (rapt_packed_length(&packing, t) > (t > 0 ? rapt_packed_length(&packing, t - 1) : r->batch))
            return rapt_fail(RAPT_ERROR_VALUE, op, "step %lld has more rows than the one before", (long long)t);
    return true;
}

rapt_tensor *rapt_step_rows_new(const char *op, const rapt_step_rows *r, rapt_dtype dtype, int64_t width)
{
    return r->starts ? rapt_new(op, dtype, RAPT_SHAPE(r->rows, width))
                     : rapt_new(op, dtype, RAPT_SHAPE(r->count, r->batch, width));
}

int64_t rapt_step_first_row(const rapt_step_rows *r, int64_t step)
{
    return r->starts ? r->starts[step] : step * r->batch;
}

int64_t rapt_step_rows_mean(const rapt_step_rows *r)
{
    return r->count > 0 ? r->rows / r->count : 0;
}

int64_t rapt_step_rows_left(const rapt_step_rows *r, int64_t step, int64_t row, int64_t rows)
{
    if (step == r->count) return 0;
    const int64_t left = rapt_step_first_row(r, step + 1) - rapt_step_first_row(r, step) - row;
    return left < rows ? left : rows;
}

/* The states that all steps but the first start from, one behind the other. NULL after an error. */
static const char *states_before(const char *op, const rapt_step_rows *r, const rapt_state_projection *p)
{
    const int64_t others = r->rows - r->batch, row = p->hidden * (int64_t)rapt_dtype_size(p->dtype);
    if (others == (r->count - 1) * r->batch) return p->states;
    rapt_tensor *states = rapt_new(op, p->dtype, RAPT_SHAPE(others, p->hidden));
    for (int64_t t = 1; states && t < r->count; t++)
        memcpy(states->data + (rapt_step_first_row(r, t) - r->batch) * row,
               p->states + rapt_step_first_row(r, t - 1) * row, (size_t)(rapt_step_rows_left(r, t, 0, r->batch) * row));
    return states ? states->data : NULL;
}

/* Σ over steps (gradient of the projection)ᵀ · (state before the step), which of zeros is nothing: one product for all
 * but the first step, and one for that. What is added to comes last, when nothing can fail any more. */
rapt_tensor *rapt_state_projection_gradient(const char *op, const rapt_step_rows *r, const rapt_state_projection *p,
                                            rapt_tensor *so_far)
{
    const int64_t others = r->count > 0 ? r->rows - r->batch : 0, width = p->width, hidden = p->hidden;
    const char *first = r->count > 0 ? p->initial : NULL;
    rapt_tensor *gradient = first || !so_far ? rapt_new(op, p->dtype, RAPT_SHAPE(width, hidden)) : so_far;
    const char *before = others > 0 ? states_before(op, r, p) : NULL;
    if (!gradient || (others > 0 && !before)) return NULL;
    if (gradient != so_far && !rapt_gemm(op, p->dtype, width, hidden, first ? r->batch : 0, p->gradient, 1, width,
                                         first, hidden, 1, gradient->data, hidden, false))
        return NULL;
    rapt_tensor *sum = so_far && others > 0 ? so_far : gradient;
    if (others > 0 && !rapt_gemm(op, p->dtype, width, hidden, others,
                                 p->gradient + r->batch * width * (int64_t)rapt_dtype_size(p->dtype), 1, width, before,
                                 hidden, 1, sum->data, hidden, true))
        return NULL;
    if (!so_far || gradient == so_far) return gradient;
    rapt_map(rapt_kernel.elementwise.add[p->dtype], NULL, 1, 3, (const rapt_tensor *[]){so_far, so_far, gradient});
    return so_far;
}
