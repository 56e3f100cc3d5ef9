/* The common part of the ops that reduce axes. */
#include "reduction.h"

#include <string.h>

#include <rapt/ops.h>

#include "tensor/memory.h"

rapt_tensor *rapt_reduction_apply(const rapt_op *op, rapt_tensor *x, int axis_count, const int *axes, bool keep,
                                  double number)
{
    rapt_reduction_options options;
    memset(&options, 0, sizeof options);
    options.axis_count = axis_count;
    options.keep = keep;
    options.number = number;
    if (axis_count > 0 && !axes) {
        rapt_fail_null(op->name, "axes");
        return NULL;
    }
    for (int i = 0; i < axis_count && i < RAPT_MAX_RANK; i++) options.axes[i] = axes[i];
    return rapt_apply(op, &options, 1, &x);
}

bool rapt_folding_begin(rapt_folding *r, rapt_call *call, bool floating)
{
    r->op = rapt_call_op(call)->name;
    r->x = rapt_call_input(call, 0);
    r->options = rapt_call_options(call);
    r->folds = 0;
    r->failed = false;
    if (floating && !rapt_check_floating(r->op, r->x)) return false;
    return rapt_check_axes(r->op, r->x, r->options->axis_count, r->options->axes, &r->shape);
}

rapt_accumulator *rapt_folding_run(rapt_folding *r, const rapt_fold *fold, const rapt_fold *combine,
                                   const rapt_accumulator *centers)
{
    int set = r->folds++;
    r->results[set] = r->local[set];
    r->capacity[set] = 0;
    if (r->shape.count > rapt_local_accumulators) {
        size_t bytes;
        if (__builtin_mul_overflow((size_t)r->shape.count, sizeof(rapt_accumulator), &bytes)) bytes = PTRDIFF_MAX;
        r->results[set] = rapt_block_take(r->op, bytes, &r->capacity[set]);
    }
    if (!r->results[set] || !rapt_reduce(r->op, fold, combine, r->x, &r->shape, centers, r->results[set])) {
        r->failed = true;
        return NULL;
    }
    return r->results[set];
}

rapt_tensor *rapt_folding_end(rapt_folding *r, rapt_dtype dtype, const rapt_accumulator *results)
{
    rapt_tensor *output = NULL;
    if (!r->failed)
        output = r->options->keep ? rapt_new(r->op, dtype, r->x->rank, r->shape.kept_shape)
                                  : rapt_new(r->op, dtype, r->shape.rank, r->shape.shape);
    if (output) rapt_store_accumulators(output, rapt_is_floating(r->x) ? RAPT_FLOAT64 : RAPT_INT64, results);
    for (int set = 0; set < r->folds; set++)
        if (r->capacity[set]) rapt_block_give(r->results[set], r->capacity[set]);
    return output;
}

static bool is_folded(const rapt_reduction_options *options, int axis, int rank)
{
    bool folded = options->axis_count == 0;
    for (int i = 0; i < options->axis_count; i++) folded |= options->axes[i] == axis || options->axes[i] + rank == axis;
    return folded;
}

rapt_tensor *rapt_reduction_unfold(rapt_call *call, rapt_tensor *tensor)
{
    const rapt_reduction_options *options = rapt_call_options(call);
    int rank;
    const int64_t *shape = rapt_call_input_shape(call, 0, &rank);
    if (options->keep || !shape || !tensor || tensor->rank == 0) return tensor;
    int64_t kept_shape[RAPT_MAX_RANK];
    for (int axis = 0; axis < rank; axis++) kept_shape[axis] = is_folded(options, axis, rank) ? 1 : shape[axis];
    return rapt_reshape(tensor, rank, kept_shape);
}

int64_t rapt_reduction_folded(const rapt_call *call)
{
    int rank;
    const int64_t *shape = rapt_call_input_shape(call, 0, &rank);
    int64_t folded = 1;
    for (int axis = 0; shape && axis < rank; axis++)
        folded *= is_folded(rapt_call_options(call), axis, rank) ? shape[axis] : 1;
    return folded;
}
