/* The cosine as a scoring function: a(q, k) = cos(q, k) / temperature. */
#include "nn/fused_dot.h"
#include "scoring.h"

typedef struct cosine {
    rapt_scoring scoring;
    rapt_divisor temperature;
} cosine;

/* x / ‖x‖ along the last axis; 0, with gradient 0, for a zero vector. Brought to a largest component of ±1 first, since
 * the square of a small number may be 0 and that of a large one infinite. */
static rapt_tensor *unit(rapt_tensor *x)
{
    RAPT_SCOPE;
    if (rapt_size(x, -1) == 0) return rapt_keep(x);
    rapt_dtype dtype = rapt_get_dtype(x);
    rapt_tensor *zero = rapt_scalar(dtype, 0), *one = rapt_scalar(dtype, 1);
    rapt_tensor *largest = rapt_max(rapt_abs(rapt_detach(x)), RAPT_AXES(-1), true);
    rapt_tensor *is_zero = rapt_equal(largest, zero);
    rapt_tensor *scaled = rapt_div(x, rapt_where(is_zero, one, largest));
    rapt_tensor *squares = rapt_sum(rapt_mul(scaled, scaled), RAPT_AXES(-1), true);
    rapt_tensor *length = rapt_sqrt(rapt_where(is_zero, one, squares));
    return rapt_keep(rapt_where(is_zero, zero, rapt_div(scaled, length)));
}

static rapt_tensor *prepare(rapt_scoring *scoring, rapt_tensor *keys)
{
    return rapt_check_vectors(scoring, "keys", keys, RAPT_ANY_SIZE) ? unit(keys) : NULL;
}

/* q / ‖q‖ / temperature */
static rapt_tensor *over_temperature(rapt_scoring *scoring, rapt_tensor *queries)
{
    return rapt_div(unit(queries), rapt_divisor_tensor(&((cosine *)scoring)->temperature, rapt_get_dtype(queries)));
}

static rapt_tensor *score(rapt_scoring *scoring, rapt_tensor *queries, rapt_tensor *unit_keys)
{
    if (!rapt_check_pair(scoring, queries, RAPT_ANY_SIZE, unit_keys, RAPT_SIZE_OF_QUERIES)) return NULL;
    RAPT_SCOPE;
    return rapt_keep(rapt_matmul(over_temperature(scoring, queries), rapt_transpose(unit_keys, -2, -1)));
}

static rapt_tensor *attend(rapt_scoring *scoring, const rapt_attention_call *call)
{
    if (!rapt_check_sizes(scoring, call->queries, RAPT_ANY_SIZE, call->keys, RAPT_SIZE_OF_QUERIES)) return NULL;
    return rapt_fused_dot(over_temperature(scoring, call->queries), call->keys, 1, call);
}

static void describe(const rapt_module *module, char *text, size_t size)
{
    rapt_describe_divisor(&((const cosine *)module)->temperature, "temperature", text, size);
}

static const rapt_module_class kind = {.name = "Cosine", .describe = describe};

rapt_scoring *rapt_cosine_scoring_new(double temperature, bool learns)
{
    cosine *c = rapt_module_new(sizeof *c, &kind);
    if (!c) return NULL;
    c->scoring.prepare = prepare;
    c->scoring.score = score;
    c->scoring.attend = attend;
    c->temperature = rapt_add_divisor(&c->scoring.module, "temperature", temperature, learns);
    return rapt_module_finish(&c->scoring.module);
}
