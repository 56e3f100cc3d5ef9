/* What the ops that reduce axes share: their options, accumulators and result, and the way back for gradients. */
#ifndef RAPT_OPS_REDUCTION_H
#define RAPT_OPS_REDUCTION_H

#include <rapt/op.h>

#include "tensor/reduce.h"

/* The options of every op that reduces axes. */
typedef struct rapt_reduction_options {
    int axis_count; /* 0: all axes */
    int axes[RAPT_MAX_RANK];
    bool keep;
    double number; /* correction of var and std, order of norm */
} rapt_reduction_options;

/* Applies such an op. */
rapt_tensor *rapt_reduction_apply(const rapt_op *op, rapt_tensor *x, int axis_count, const int *axes, bool keep,
                                  double number);

enum { rapt_local_accumulators = 16 };

/* A reduction under way, in forward. Every fold has a set of accumulators of its own. */
typedef struct rapt_folding {
    const char *op;
    const rapt_tensor *x;
    const rapt_reduction_options *options;
    rapt_reduction_shape shape;
    int folds;
    bool failed;
    rapt_accumulator *results[2];
    size_t capacity[2];
    rapt_accumulator local[2][rapt_local_accumulators]; /* for small results */
} rapt_folding;

/* False after an error: bad axes, or a tensor that is not floating where `floating` asks for one. */
bool rapt_folding_begin(rapt_folding *r, rapt_call *call, bool floating);

/* Folds x; the results, or NULL after an error. At most two folds a reduction. combine as in rapt_reduce. */
rapt_accumulator *rapt_folding_run(rapt_folding *r, const rapt_fold *fold, const rapt_fold *combine,
                                   const rapt_accumulator *centers);

/* The op's output, converted from the results; gives the accumulators back. NULL when a fold failed. */
rapt_tensor *rapt_folding_end(rapt_folding *r, rapt_dtype dtype, const rapt_accumulator *results);

/* In vjp. A tensor shaped as the op's output, shaped so that it broadcasts to the input. */
rapt_tensor *rapt_reduction_unfold(rapt_call *call, rapt_tensor *tensor);

/* x less its mean along the axes. Made of recorded ops. */
rapt_tensor *rapt_center(rapt_tensor *x, int axis_count, const int *axes);

/* How many elements went into one result. */
int64_t rapt_reduction_folded(const rapt_call *call);

#endif
