/* The logarithm of the Gaussian kernel as a scoring function: a(q, k) = −½ ‖q − k‖² / width². */
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
    rapt_tensor *factor = rapt_div(rapt_scalar(dtype, -0.5), rapt_mul(number, number));
    return rapt_keep(rapt_mul(rapt_squared_distance(queries, keys), factor));
}

static rapt_tensor *score(rapt_scoring *scoring, rapt_tensor *queries, rapt_tensor *keys)
{
    if (!rapt_check_pair(scoring, queries, RAPT_ANY_SIZE, keys, RAPT_SIZE_OF_QUERIES)) return NULL;
    return rapt_log_gaussian(queries, keys, &((gaussian *)scoring)->width);
}

static rapt_tensor *attend(rapt_scoring *scoring, const rapt_attention_call *call)
{
    if (!rapt_check_sizes(scoring, call->queries, RAPT_ANY_SIZE, call->keys, RAPT_SIZE_OF_QUERIES)) return NULL;
    const rapt_divisor *divisor = &((gaussian *)scoring)->width;
    rapt_tensor *width = rapt_divisor_tensor(divisor, rapt_get_dtype(call->queries)), *keys = call->keys;
    if (divisor->parameter) keys = rapt_hide_padding(keys, call->mask); /* 0 · NaN would reach its gradient */
    return rapt_fused_gaussian(rapt_div(call->queries, width), rapt_div(keys, width), call);
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
