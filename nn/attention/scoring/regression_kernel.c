/* Regression kernels as scoring functions: a(q, k) = κ(u) with u = ‖q − k‖ / width. */
#include <stdio.h>

#include "attention/zero_gradient.h"
#include "squared_distance.h"

typedef struct kernel_scoring {
    rapt_scoring scoring;
    rapt_regression_kernel kernel;
    rapt_divisor width;
} kernel_scoring;

/* u = ‖q − k‖ / width. Where a query is a key the root has no derivative; it counts as 0. */
static rapt_tensor *distance(rapt_tensor *queries, rapt_tensor *keys, const rapt_divisor *width)
{
    rapt_dtype dtype = rapt_get_dtype(queries);
    rapt_tensor *squares = rapt_squared_distance(queries, keys), *zero = rapt_scalar(dtype, 0);
    rapt_tensor *same = rapt_equal(squares, zero);
    rapt_tensor *root = rapt_sqrt(rapt_where(same, rapt_scalar(dtype, 1), squares));
    return rapt_div(rapt_where(same, zero, root), rapt_divisor_tensor(width, dtype));
}

/* exp(−u²/2) */
static rapt_tensor *gaussian(rapt_tensor *queries, rapt_tensor *keys, const rapt_divisor *width)
{
    return rapt_exp(rapt_log_gaussian(queries, keys, width));
}

/* max(0, 1 − u) */
static rapt_tensor *epanechnikov(rapt_tensor *queries, rapt_tensor *keys, const rapt_divisor *width)
{
    return rapt_relu(rapt_add_scalar(rapt_neg(distance(queries, keys, width)), 1));
}

/* 1 where u < 1, else 0 */
static rapt_tensor *boxcar_forward(rapt_call *call)
{
    rapt_tensor *queries = rapt_call_input(call, 0), *keys = rapt_call_input(call, 1);
    rapt_dtype dtype = rapt_get_dtype(queries);
    RAPT_SCOPE;
    rapt_tensor *inside = rapt_less(distance(queries, keys, rapt_call_options(call)), rapt_scalar(dtype, 1));
    return rapt_keep(rapt_cast(inside, dtype));
}

static const rapt_op boxcar_op = {.name = "boxcar",
                                  .forward = boxcar_forward,
                                  .vjp = rapt_give_zeros,
                                  .options_size = sizeof(rapt_divisor)};

static rapt_tensor *boxcar(rapt_tensor *queries, rapt_tensor *keys, const rapt_divisor *width)
{
    return RAPT_APPLY(&boxcar_op, width, queries, keys);
}

/* 1 */
static rapt_tensor *constant_forward(rapt_call *call)
{
    rapt_tensor *queries = rapt_call_input(call, 0), *keys = rapt_call_input(call, 1);
    int64_t shape[RAPT_MAX_RANK];
    int rank = rapt_score_shape("constant", queries, keys, shape);
    return rank < 0 ? NULL : rapt_ones(rapt_get_dtype(queries), rank, shape);
}

static const rapt_op constant_op = {.name = "constant", .forward = constant_forward, .vjp = rapt_give_zeros};

static rapt_tensor *constant(rapt_tensor *queries, rapt_tensor *keys, const rapt_divisor *width)
{
    (void)width;
    return RAPT_APPLY(&constant_op, NULL, queries, keys);
}

static const struct {
    const char *name;
    bool is_flat;
    rapt_tensor *(*function)(rapt_tensor *queries, rapt_tensor *keys, const rapt_divisor *width);
} kernels[] = {[RAPT_REGRESSION_KERNEL_GAUSSIAN] = {"Gaussian", false, gaussian},
               [RAPT_REGRESSION_KERNEL_BOXCAR] = {"boxcar", true, boxcar},
               [RAPT_REGRESSION_KERNEL_CONSTANT] = {"constant", true, constant},
               [RAPT_REGRESSION_KERNEL_EPANECHNIKOV] = {"Epanechnikov", false, epanechnikov}};

enum { kernel_count = sizeof kernels / sizeof *kernels };

static rapt_tensor *score(rapt_scoring *scoring, rapt_tensor *queries, rapt_tensor *keys)
{
    const kernel_scoring *k = (const kernel_scoring *)scoring;
    if (!rapt_check_pair(scoring, queries, RAPT_ANY_SIZE, keys, RAPT_SIZE_OF_QUERIES)) return NULL;
    RAPT_SCOPE;
    return rapt_keep(kernels[k->kernel].function(queries, keys, &k->width));
}

static void describe(const rapt_module *module, char *text, size_t size)
{
    const kernel_scoring *k = (const kernel_scoring *)module;
    char name[32];
    snprintf(name, sizeof name, "%s, width", kernels[k->kernel].name);
    rapt_describe_divisor(&k->width, name, text, size);
}

static const rapt_module_class kind = {.name = "RegressionKernel", .describe = describe};

rapt_scoring *rapt_regression_kernel_scoring_new(rapt_regression_kernel kernel, double width, bool learns)
{
    if ((int)kernel < 0 || (int)kernel >= kernel_count) {
        rapt_fail(RAPT_ERROR_VALUE, kind.name, "%d is no regression kernel", (int)kernel);
        return NULL;
    }
    if (learns && kernels[kernel].is_flat) {
        rapt_fail(RAPT_ERROR_VALUE, kind.name, "the gradient of a %s kernel is 0, so that its width cannot be learned",
                  kernels[kernel].name);
        return NULL;
    }
    kernel_scoring *k = rapt_module_new(sizeof *k, &kind);
    if (!k) return NULL;
    k->kernel = kernel;
    k->scoring.score = score;
    k->width = rapt_add_divisor(&k->scoring.module, "width", width, learns);
    return rapt_module_finish(&k->scoring.module);
}
