/* The kernels: loops over raw numbers, compiled once for each instruction-set level and chosen at start-up. */
#ifndef RAPT_TENSOR_KERNELS_H
#define RAPT_TENSOR_KERNELS_H

#include <rapt/random.h>

/* A loop over `count` items. data[0] is the output, the others the inputs; strides are in bytes, one for each of data. */
typedef void rapt_loop(int64_t count, char *const *data, const int64_t *strides, const void *options);

/* A loop for each dtype; NULL where the family does not have it. */
typedef rapt_loop *rapt_loops[RAPT_DTYPE_COUNT];

/* The names in each family: one line here, one formula in the kernel source. */
#define RAPT_BINARY_KERNELS(X) X(add) X(sub) X(mul) X(div) X(pow) X(maximum) X(minimum)
#define RAPT_COMPARE_KERNELS(X) X(equal) X(not_equal) X(less) X(less_equal) X(greater) X(greater_equal)

typedef struct rapt_elementwise_kernels {
#define X(name) rapt_loops name;
    RAPT_BINARY_KERNELS(X)
    RAPT_COMPARE_KERNELS(X)
#undef X
    rapt_loops cast[RAPT_DTYPE_COUNT]; /* cast[to][from] */
    rapt_loops fill;                   /* options: one element */
    rapt_loops scale;                  /* out = a · factor; options: a double */
    rapt_loops add_scaled;             /* out = a + factor · b; options: a double */
} rapt_elementwise_kernels;

/* The elements [first, first + count) of a fill, dense; first is a multiple of 4 and out (and in) point at that element.
 * What a and b are: uniform: lower and upper end; normal: mean and deviation; bernoulli: the chance of a 1; dropout: the
 * chance to be kept and the factor of what is kept, out = in · b or 0. */
typedef void rapt_random_loop(rapt_random_state state, int64_t first, int64_t count, void *out, const void *in, double a,
                              double b);

typedef struct rapt_random_kernels {
    rapt_random_loop *uniform[2], *normal[2], *dropout[2]; /* float32, float64 */
    rapt_random_loop *bernoulli;                           /* uint8 */
} rapt_random_kernels;

typedef struct rapt_kernels {
    const char *level;
    rapt_elementwise_kernels elementwise;
    rapt_random_kernels random;
} rapt_kernels;

/* The table of the level in use; filled before main. */
extern rapt_kernels rapt_kernel;

/* Each kernel source fills its family for the level it is compiled for. RAPT_LEVEL is the level's suffix. */
#define RAPT_LEVEL_JOIN_(name, level) name##_##level
#define RAPT_LEVEL_JOIN(name, level) RAPT_LEVEL_JOIN_(name, level)
#define RAPT_AT_LEVEL(name) RAPT_LEVEL_JOIN(name, RAPT_LEVEL)

#define RAPT_KERNEL_FAMILIES(X) X(elementwise) X(random)

#ifdef RAPT_LEVEL
#define X(family) void RAPT_AT_LEVEL(rapt_fill_##family)(rapt_kernels * kernels);
RAPT_KERNEL_FAMILIES(X)
#undef X
#endif

#endif
