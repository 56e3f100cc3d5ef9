/* The logarithm of the Gaussian kernel as a scoring function: a(q, k) = −½ ‖q − k‖² / width². */
#include <float.h>
#include <math.h>

#include "attention/fused/fused.h"
#include "nn/fused_dot.h"
#include "nn/padding.h"
#include "squared_distance.h"

typedef struct gaussian {
    rapt_scoring scoring;
    rapt_divisor width;
} gaussian;

rapt_tensor *rapt_log_gaussian(rapt_tensor *queries, rapt_tensor *keys, const rapt_divisor *width)
{
    RAPT_SCOPE;
    rapt_dtype dtype = rapt_get_dtype(queries);
    rapt_tensor *number = rapt_divisor_tensor(width, dtype);
    const double least = dtype == RAPT_FLOAT64 ? -DBL_MAX : -(double)FLT_MAX; /* −∞ would make NaN of distance 0 */
    rapt_tensor *factor = rapt_div(rapt_scalar(dtype, -0.5), rapt_mul(number, number));
    factor = rapt_clamp(factor, least, (double)INFINITY);
    return rapt_keep(rapt_mul(rapt_squared_distance(queries, keys), factor));
}

static rapt_tensor *score(rapt_scoring *scoring, rapt_tensor *queries, rapt_tensor *keys)
{
    if (!rapt_check_pair(scoring, queries, RAPT_ANY_SIZE, keys, RAPT_SIZE_OF_QUERIES)) return NULL;
    return rapt_log_gaussian(queries, keys, &((gaussian *)scoring)->width);
}

/* y = x / width of queries or keys, as distances need them. The third input is a vector of all: see below. */
static rapt_tensor *forward(rapt_call *call)
{
    rapt_fused_save_inputs(call);
    return rapt_div(rapt_call_input(call, 0), rapt_call_input(call, 1));
}

/* dx = g / width, dwidth = −Σ g (x − common) / width²: Σ g over all queries and keys is 0, since no distance depends on
 * what they have in common, whose products with g would cost dwidth its digits. */
static bool vjp(rapt_call *call)
{
    rapt_tensor *g = rapt_call_gradient(call, 0), *width = rapt_call_saved(call, 1);
    if (rapt_call_wants(call, 0) && !rapt_call_give(call, 0, rapt_div(g, width))) return false;
    if (!rapt_call_wants(call, 1)) return true;
    rapt_tensor *less = rapt_sub(rapt_call_saved(call, 2), rapt_call_saved(call, 0)); /* common − x */
    rapt_tensor *sum = rapt_reshape(rapt_sum(rapt_mul(g, less), RAPT_ALL_AXES, false), RAPT_SHAPE(1));
    return rapt_call_give(call, 1, rapt_div(rapt_div(sum, width), width));
}

static const rapt_op scaling_op = {.name = "divide_by_width", .forward = forward, .vjp = vjp};

/* Of each item, one vector for all heads: (B, 1, size) or (B, 1, 1, size). */
static rapt_tensor *common_of(rapt_tensor *queries)
{
    rapt_tensor *common = rapt_common_vector(queries);
    return rapt_rank(queries) == 4 ? rapt_common_vector(rapt_transpose(common, 1, 2)) : common;
}

static rapt_tensor *attend(rapt_scoring *scoring, const rapt_attention_call *call)
{
    if (!rapt_check_sizes(scoring, call->queries, RAPT_ANY_SIZE, call->keys, RAPT_SIZE_OF_QUERIES)) return NULL;
    const rapt_divisor *divisor = &((gaussian *)scoring)->width;
    rapt_tensor *queries = call->queries, *keys = call->keys, *width = divisor->parameter;
    if (!width) {
        width = rapt_divisor_tensor(divisor, rapt_get_dtype(queries));
        return rapt_fused_gaussian(rapt_div(queries, width), rapt_div(keys, width), call);
    }
    rapt_tensor *common = common_of(queries);
    keys = rapt_hide_padding(keys, call->mask); /* 0 · NaN would reach its gradient */
    return rapt_fused_gaussian(RAPT_APPLY(&scaling_op, NULL, queries, width, common),
                               RAPT_APPLY(&scaling_op, NULL, keys, width, common), call);
}

static void describe(const rapt_module *module, char *text, size_t size)
{
    rapt_describe_divisor(&((const gaussian *)module)->width, "width", text, size);
}

static const rapt_module_class kind = {.name = "Gaussian", .describe = describe};

rapt_scoring *rapt_gaussian_scoring_new(double width, bool learns)
{
    gaussian *g = rapt_module_new(sizeof *g, &kind);
    if (!g) return NULL;
    g->scoring.score = score;
    g->scoring.attend = attend;
    g->width = rapt_add_divisor(&g->scoring.module, "width", width, learns);
    return rapt_module_finish(&g->scoring.module);
}
