/* Folding the elements along some axes of a strided tensor into one accumulator for each element of the result. */
#ifndef RAPT_TENSOR_REDUCE_H
#define RAPT_TENSOR_REDUCE_H

#include "tensor/core.h"
#include "tensor/kernels.h"

/* Floating tensors are folded in double, the others in int64. */
typedef union rapt_accumulator {
    double number;
    int64_t integer;
} rapt_accumulator;

/* Which axes go. The shapes are those of the result without the reduced axes, and with them as size 1. */
typedef struct rapt_reduction_shape {
    bool reduced[RAPT_MAX_RANK];
    int64_t folded; /* elements that go into one result */
    int64_t count;  /* results */
    int rank;
    int64_t shape[RAPT_MAX_RANK];
    int64_t kept_shape[RAPT_MAX_RANK];
} rapt_reduction_shape;

/* Axes as the public reductions take them: axis_count 0 means all. False and an error for one that is bad or twice
 * there. */
bool rapt_check_axes(const char *op, const rapt_tensor *tensor, int axis_count, const int *axes,
                     rapt_reduction_shape *result);

/* Folds the tensor into results[0 … count − 1], row-major. centers holds a number for each result, for the folds
 * that use one, else NULL. combine is the fold for partial results. The order depends on shape and strides alone. */
bool rapt_reduce(const char *op, const rapt_fold *fold, const rapt_fold *combine, const rapt_tensor *tensor,
                 const rapt_reduction_shape *shape, const rapt_accumulator *centers, rapt_accumulator *results);

/* results[0 … count − 1], converted, into a contiguous tensor of that many elements. from: float64 or int64. */
void rapt_store_accumulators(rapt_tensor *output, rapt_dtype from, const rapt_accumulator *results);

/* Changes floating results, unless they are NULL, by a loop of float64 over them and perhaps others, which lie `stride`
 * bytes apart, 0 where it is one number for all. */
void rapt_change_accumulators(rapt_loop *loop, int64_t count, rapt_accumulator *results, const double *other,
                              int64_t stride);

#endif
