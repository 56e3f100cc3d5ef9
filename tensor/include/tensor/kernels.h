/* The kernels: loops over raw numbers, compiled once for each instruction-set level and chosen at start-up. */
#ifndef RAPT_TENSOR_KERNELS_H
#define RAPT_TENSOR_KERNELS_H

#include <rapt/random.h>

#include "tensor/kernel_additive.h"
#include "tensor/kernel_columns.h"
#include "tensor/kernel_dot.h"
#include "tensor/kernel_matmul.h"
#include "tensor/kernel_modification.h"
#include "tensor/kernel_sort.h"

/* A loop over `count` items. data[0] is the output, the others the inputs; strides are in bytes, one for each of
 * data. */
typedef void rapt_loop(int64_t count, char *const *data, const int64_t *strides, const void *options);

/* A loop for each dtype; NULL where the family does not have it. */
typedef rapt_loop *rapt_loops[RAPT_DTYPE_COUNT];

/* The names in each family: one line here, one formula in the kernel source. */
#define RAPT_BINARY_KERNELS(X)                                                                                         \
    X(add)                                                                                                             \
    X(sub)                                                                                                             \
    X(mul)                                                                                                             \
    X(div)                                                                                                             \
    X(pow)                                                                                                             \
    X(maximum)                                                                                                         \
    X(minimum)
#define RAPT_COMPARE_KERNELS(X)                                                                                        \
    X(equal)                                                                                                           \
    X(not_equal)                                                                                                       \
    X(less)                                                                                                            \
    X(less_equal)                                                                                                      \
    X(greater)                                                                                                         \
    X(greater_equal)

typedef struct rapt_elementwise_kernels {
#define X(name) rapt_loops name;
    RAPT_BINARY_KERNELS(X)
    RAPT_COMPARE_KERNELS(X)
#undef X
    rapt_loops cast[RAPT_DTYPE_COUNT]; /* cast[to][from] */
    rapt_loops fill;                   /* options: one element */
    rapt_loops share;                  /* what a gets of the gradient of the larger of a and b: 0, ½ or 1 */
    rapt_loops logical_and, logical_or, logical_not;
    rapt_loops where;      /* out = a (one byte) ? b : c; by the dtype of b and c */
    rapt_loops scale;      /* out = a · factor; options: a double */
    rapt_loops shift;      /* out = a + number; options: a double */
    rapt_loops add_scaled; /* out = a + factor · b; options: a double */
} rapt_elementwise_kernels;

/* Folds `count` elements, `stride` bytes apart, into each of `outputs` accumulators; output_stride bytes lie between
 * the first elements of neighbouring outputs. Accumulators and centers (NULL where the fold has none) are double for
 * floating dtypes, int64 for the others. */
typedef void rapt_fold_loop(int64_t outputs, int64_t output_stride, int64_t count, int64_t stride, const char *in,
                            void *accumulators, const void *centers);

typedef struct rapt_fold {
    rapt_fold_loop *rows[RAPT_DTYPE_COUNT];    /* output by output */
    rapt_fold_loop *columns[RAPT_DTYPE_COUNT]; /* all outputs at once */
    double number;                             /* what an accumulator starts from, floating dtypes */
    int64_t integer;                           /* and the others */
} rapt_fold;

typedef struct rapt_reduce_kernels {
    rapt_fold sum, product, max, min;
    rapt_fold squares;      /* of the distance to the center */
    rapt_fold exponentials; /* of the difference to the center */
} rapt_reduce_kernels;

/* The elements [first, first + count) of a fill, dense; first is a multiple of 4 and out points at that element. a
 * and b are for uniform the lower and upper end, for normal the mean and deviation, for bernoulli a is the chance of
 * a 1. */
typedef void rapt_random_loop(rapt_random_state state, int64_t first, int64_t count, void *out, double a, double b);

/* The same for out = in · scale with the chance `keep`, else 0, and for any first. The mask is bernoulli's. */
typedef void rapt_dropout_loop(rapt_random_state state, int64_t first, int64_t count, void *out, const void *in,
                               double keep, double scale);

/* What becomes of a product's elements: y = function(c), and dropout, where it is not NULL, of y. c and y are the first
 * elements of dense tensors of one shape, or one tensor, and the product's c is a part of that. */
typedef struct rapt_epilogue {
    rapt_loop *function;
    const char *c;
    char *y;
    rapt_dropout_loop *dropout;
    rapt_random_state state;
    double keep, scale;
} rapt_epilogue;

typedef struct rapt_random_kernels {
    rapt_random_loop *uniform[2], *normal[2]; /* float32, float64 */
    rapt_dropout_loop *dropout[2];
    rapt_random_loop *bernoulli; /* uint8 */
} rapt_random_kernels;

/* The loops of functions.def (name_backward, the fused gradient, takes the gradient and what is saved), and those
 * of powers, of relu before dropout, and of clamp, leaky_relu and elu. */
#define RAPT_OTHER_UNARY_KERNELS(X)                                                                                    \
    X(square)                                                                                                          \
    X(cube)                                                                                                            \
    X(reciprocal)                                                                                                      \
    X(power)                                                                                                           \
    X(clamp)                                                                                                           \
    X(clamp_backward)                                                                                                  \
    X(scaled_relu_backward)                                                                                            \
    X(leaky_relu)                                                                                                      \
    X(leaky_relu_backward)                                                                                             \
    X(elu)                                                                                                             \
    X(elu_backward)

typedef struct rapt_unary_kernels {
#define FUNCTION(name, ...) rapt_loops name;
#define FUSED(name, ...) rapt_loops name, name##_backward;
#define FUSED_STEPS(name, ...) rapt_loops name, name##_backward;
#define STEPS(name, ...) rapt_loops name;
#define WAVE FUNCTION
#include "tensor/functions.def"
#define X(name) rapt_loops name;
    RAPT_OTHER_UNARY_KERNELS(X) /* options: a double; of clamp two, low and high */
#undef X
    rapt_loops weight; /* float64: exp((x − largest) · scale), 0 if that is below e^−708; options: these two */
} rapt_unary_kernels;

/* One step of a recurrent cell: the first row of each dense matrix of the batch. Backward reads kept, state, cell and
 * next_cell, and writes its results to from_input and from_hidden. */
typedef struct rapt_cell_data {
    char *from_input, *from_hidden; /* (rows, gates · hidden): the projections that a step adds up */
    char *state, *next_state;       /* (rows, hidden) */
    char *cell, *next_cell;         /* LSTM */
    char *kept;                     /* (rows, 4 · hidden): what backward needs of forward */
    char *gradient, *cell_gradient; /* of next_state and next_cell from outside the recurrence, */
    char *carry, *cell_carry;       /* and from the step after; in goes next_state's, out comes state's */
} rapt_cell_data;

typedef void rapt_cell_loop(int64_t first, int64_t last, int64_t hidden, const rapt_cell_data *data);

typedef struct rapt_recurrent_kernels {
    rapt_cell_loop *gru_forward[2], *gru_backward[2]; /* float32, float64 */
    rapt_cell_loop *lstm_forward[2], *lstm_backward[2];
} rapt_recurrent_kernels;

/* Row by row; data: out, x, and a table's row of `pairs` cosines and then as many sines. */
typedef struct rapt_rotate_options {
    int64_t pairs; /* in a row */
    bool halves;   /* pair (j, j + pairs) instead of (2j, 2j + 1) */
    bool back;     /* turn by the negative angles */
} rapt_rotate_options;

typedef struct rapt_rotate_kernels {
    rapt_loops rotate;
} rapt_rotate_kernels;

#define RAPT_DISTANCE_TILE 32

/* Squared distances of `rows` dense vectors and of keys, which stand in columns: (size, keys padded to a multiple of
 * the tile with any numbers). out is (rows, keys). */
typedef void rapt_distance_loop(int64_t rows, int64_t keys, int64_t size, const void *queries,
                                const void *transposed_keys, void *out);

typedef struct rapt_distance_kernels {
    rapt_distance_loop *squared[2]; /* float32, float64 */
} rapt_distance_kernels;

/* Loops along one axis, for one place of the other axes an item. */
typedef struct rapt_scan_options {
    int64_t count, out_stride, in_stride; /* of that axis; strides in bytes */
    int64_t factor_stride;                /* of recurrence */
    bool reverse;                         /* from the last to the first */
} rapt_scan_options;

typedef struct rapt_scan_kernels {
    rapt_loops argmax, argmin;  /* out: the int64 index of the first largest or smallest */
    rapt_loops cumsum, cumprod; /* integers to int64 */
    rapt_loops recurrence;      /* out, in, factor: out = in + factor · the out before */
} rapt_scan_kernels;

/* What of a row takes part in a masked softmax; the rest is not read and becomes 0. */
typedef struct rapt_masked_row {
    int64_t n;         /* the length of a row */
    bool has_ranges;   /* only [first, last), the two int64 at ranges */
    bool has_seen;     /* only where seen, a byte for each element, is true */
    bool seen_repeats; /* seen is one byte for the whole row */
} rapt_masked_row;

/* `width` rows side by side, up to so many: their elements, n of each, lie `stride` elements apart in all three. */
enum { rapt_rows_side_by_side = 64 };
typedef void rapt_side_by_side_loop(int64_t n, int64_t width, int64_t stride, const void *a, const void *b, void *out);

/* Row by row, dense rows; options: an int64, the length of a row. y is the function's value, g the gradient. */
typedef struct rapt_softmax_kernels {
    rapt_loops softmax, log_softmax;                   /* out, x */
    rapt_loops softmax_backward, log_softmax_backward; /* out, g, y */
    rapt_loops masked_softmax;                         /* out, x, ranges, seen; options: a rapt_masked_row */
    rapt_loops masked_softmax_backward;                /* out, g, y, ranges, seen */
    rapt_side_by_side_loop *softmax_side_by_side[2], *log_softmax_side_by_side[2]; /* float32, float64: x, NULL */
    rapt_side_by_side_loop *softmax_backward_side_by_side[2], *log_softmax_backward_side_by_side[2]; /* g, y */
} rapt_softmax_kernels;

/* The same of weights that may be 0: out, x. */
typedef struct rapt_sparse_softmax_kernels {
    rapt_loops sparsemax, entmax15;
} rapt_sparse_softmax_kernels;

/* Normalises dense rows of n elements; weight and bias may be NULL. mean and scale take a number for each row; where
 * mean is NULL the rows are not centered. */
typedef void rapt_normalize_loop(int64_t rows, int64_t n, double epsilon, const void *x, const void *weight,
                                 const void *bias, double *mean, double *scale, void *out);

/* dx, and unless dweight is NULL adds to dweight and dbias (n each), given the gradient g of out. */
typedef void rapt_normalize_backward_loop(int64_t rows, int64_t n, const void *g, const void *x, const void *weight,
                                          const double *mean, const double *scale, void *dx, void *dweight,
                                          void *dbias);

typedef struct rapt_normalize_kernels {
    rapt_normalize_loop *forward[2]; /* float32, float64 */
    rapt_normalize_backward_loop *backward[2];
} rapt_normalize_kernels;

/* Cross-entropy of dense rows of logits. A row whose target is negative is left out: loss 0, gradient 0. smoothing
 * is ε. statistics are two numbers for each row: the largest logit, and the sum of all exponentials relative to it;
 * they may be NULL. */
typedef void rapt_cross_entropy_loop(int64_t rows, int64_t classes, double smoothing, const void *logits,
                                     const int64_t *targets, void *losses, void *statistics);

/* dx = g (softmax(x) − smoothed one-hot); g_step is 1 where every row has a g, 0 where one g is for all. At once with
 * the losses, where dx may be the logits, or later. exponentials: room for a row where dx is written past the caches,
 * or NULL. */
typedef void rapt_cross_entropy_gradient_loop(int64_t rows, int64_t classes, double smoothing, const void *logits,
                                              const int64_t *targets, const void *g, int64_t g_step, void *losses,
                                              void *exponentials, void *dx);
typedef void rapt_cross_entropy_backward_loop(int64_t rows, int64_t classes, double smoothing, const void *logits,
                                              const int64_t *targets, const void *statistics, const void *g,
                                              int64_t g_step, void *dx);

typedef struct rapt_loss_kernels {
    rapt_cross_entropy_loop *cross_entropy[2]; /* float32, float64 */
    rapt_cross_entropy_gradient_loop *cross_entropy_gradient[2];
    rapt_cross_entropy_backward_loop *cross_entropy_backward[2];
    rapt_loops bce_with_logits, kl_div; /* out, input, target */
    rapt_loops mse, huber;              /* the same; options of huber: delta */
    rapt_loops square_slope;            /* out, g, input, target; options: delta, or ∞ for mse, and a factor */
} rapt_loss_kernels;

/* The numbers in an optimizer's formula, for one step of one parameter. share is what the new gradient counts. */
typedef struct rapt_sgd_numbers {
    double rate, decay, momentum, share;
    bool nesterov;
} rapt_sgd_numbers;

typedef struct rapt_adam_numbers {
    double decay; /* of p, goes into the gradient */
    double keep;  /* what stays of p before the step */
    double share1, beta2, share2;
    double rate;       /* η / (1 − β₁ᵗ) */
    double correction; /* 1 / √(1 − β₂ᵗ) */
    double epsilon;
} rapt_adam_numbers;

typedef struct rapt_rmsprop_numbers {
    double rate, decay, alpha, share, epsilon, momentum;
} rapt_rmsprop_numbers;

typedef struct rapt_adagrad_numbers {
    double rate, decay, epsilon;
} rapt_adagrad_numbers;

typedef struct rapt_lion_numbers {
    double keep; /* what stays of p before the step */
    double rate, share1, share2;
} rapt_lion_numbers;

typedef struct rapt_move_numbers {
    double keep, rate;
} rapt_move_numbers;

typedef struct rapt_average_numbers {
    double share;
} rapt_average_numbers;

/* Operands: the parameter (changed), its gradient (read), and the optimizer's state (changed). Options: the numbers. */
typedef struct rapt_optimizer_kernels {
    rapt_loops sgd;
    rapt_loops sgd_momentum;  /* state: velocity */
    rapt_loops adam;          /* state: first and second moment */
    rapt_loops rmsprop[2][2]; /* [centered][momentum]; state: second moment, mean if centered, velocity if momentum */
    rapt_loops adagrad;       /* state: sum of squares */
    rapt_loops lion;          /* state: mean */
    rapt_loops move;          /* no state: p = keep·p − rate·g */
    rapt_loops average;       /* of p, and of g in the gradient's place: p += share·(g − p) */
} rapt_optimizer_kernels;

/* The rows `first` to `last` of out (…, size) become, or grow by, the sum of those rows of g that `order` names from
 * starts[row] on to starts[row + 1]. is_large: zeros are written past the caches. */
typedef void rapt_add_rows_loop(int64_t first, int64_t last, int64_t size, const int64_t *starts, const int64_t *order,
                                const void *g, void *out, bool accumulate, bool is_large);

/* to[i][j] = from[j][i] for i < rows, j < columns: rows of `from` and of `to` are dense and lie so many bytes apart. */
typedef void rapt_transpose_loop(int64_t rows, int64_t columns, const char *from, int64_t from_stride, char *to,
                                 int64_t to_stride);

/* data: out, in, indices (int64); options: an int64, the bytes from the place of one index to that of the next. */
typedef struct rapt_index_kernels {
    rapt_loops gather;               /* out = in at the index */
    rapt_loops scatter;              /* out at the index = in */
    rapt_loops scatter_add;          /* out at the index += in */
    rapt_add_rows_loop *add_rows[2]; /* float32, float64 */
} rapt_index_kernels;

typedef struct rapt_kernels {
    const char *level;
    rapt_elementwise_kernels elementwise;
    rapt_unary_kernels unary;
    rapt_reduce_kernels reduce;
    rapt_scan_kernels scan;
    rapt_sort_kernels sort;
    rapt_index_kernels index;
    rapt_softmax_kernels softmax;
    rapt_sparse_softmax_kernels sparse_softmax;
    rapt_normalize_kernels normalize;
    rapt_loss_kernels loss;
    rapt_random_kernels random;
    rapt_recurrent_kernels recurrent;
    rapt_optimizer_kernels optimizer;
    rapt_rotate_kernels rotate;
    rapt_columns_kernels columns;
    rapt_pool_kernels pool;
    rapt_distance_kernels distance;
    rapt_additive_kernels additive[2]; /* float32, float64 */
    rapt_dot_kernels dot[2];
    rapt_modification_kernels modification[2];
    rapt_matmul_kernels matmul[2];
    const rapt_matmul_kernels *limbs;  /* of float32, for large products; NULL: the same */
    rapt_transpose_loop *transpose[2]; /* of numbers of 4 and of 8 bytes */
} rapt_kernels;

/* The table of the level in use; filled before main. */
extern rapt_kernels rapt_kernel;

/* Each kernel source fills its family for the level it is compiled for. RAPT_LEVEL is the level's suffix. */
#define RAPT_LEVEL_JOIN_(name, level) name##_##level
#define RAPT_LEVEL_JOIN(name, level) RAPT_LEVEL_JOIN_(name, level)
#define RAPT_AT_LEVEL(name) RAPT_LEVEL_JOIN(name, RAPT_LEVEL)

#define RAPT_KERNEL_FAMILIES(X)                                                                                        \
    X(elementwise)                                                                                                     \
    X(unary)                                                                                                           \
    X(reduce)                                                                                                          \
    X(random)                                                                                                          \
    X(recurrent)                                                                                                       \
    X(optimizer)                                                                                                       \
    X(rotate)                                                                                                          \
    X(columns)                                                                                                         \
    X(pool)                                                                                                            \
    X(additive_float32)                                                                                                \
    X(additive_float64)                                                                                                \
    X(dot_float32)                                                                                                     \
    X(dot_float64)                                                                                                     \
    X(modification_float32)                                                                                            \
    X(modification_float64)                                                                                            \
    X(distance)                                                                                                        \
    X(scan)                                                                                                            \
    X(sort)                                                                                                            \
    X(softmax)                                                                                                         \
    X(sparse_softmax)                                                                                                  \
    X(normalize)                                                                                                       \
    X(loss)                                                                                                            \
    X(index)                                                                                                           \
    X(matmul_float32)                                                                                                  \
    X(matmul_float64)                                                                                                  \
    X(transpose_4)                                                                                                     \
    X(transpose_8)

#ifdef RAPT_LEVEL
#define X(family) void RAPT_AT_LEVEL(rapt_fill_##family)(rapt_kernels * kernels);
RAPT_KERNEL_FAMILIES(X)
#undef X
#endif

#endif
