/* T5's relative positions in buckets, with a learned number for each head and bucket. */
#include <math.h>
#include <stdio.h>

#include "modifications.h"
#include "tensor/core.h"

typedef struct bucketed_bias {
    rapt_score_modification modification;
    rapt_bucket_options options;
    rapt_tensor *weight; /* (buckets, heads) */
    rapt_tensor *least;  /* int64 (1, 1, side): the smallest distance of each bucket of a side */
} bucketed_bias;

/* The bucket of a distance, in float32 as T5 has it: a position each, then by the logarithm. */
static int64_t bucket_of(int64_t distance, int64_t side, int64_t max_distance)
{
    const int64_t exact = side / 2;
    if (distance < exact) return distance;
    const float share = logf((float)distance / (float)exact) / (float)log((double)max_distance / (double)exact);
    const int64_t bucket = exact + (int64_t)(share * (float)(side - exact));
    return bucket < side ? bucket : side - 1;
}

/* The smallest distance of which the bucket is that one or a later one; max_distance is in the last. */
static int64_t least_distance(int64_t bucket, int64_t side, int64_t max_distance)
{
    int64_t low = 0, high = max_distance;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (bucket_of(middle, side, max_distance) < bucket)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The table (1, heads, buckets). */
static bool capture(rapt_score_modification *modification, rapt_dtype dtype, rapt_tensor **captured)
{
    bucketed_bias *m = (bucketed_bias *)modification;
    (void)dtype;
    captured[0] = rapt_unsqueeze(rapt_transpose(m->weight, 0, 1), 0);
    captured[1] = m->least;
    return captured[0] != NULL;
}

/* bucket of |j − i|: how many of the side begin at it or nearer, less one */
static rapt_tensor *by_ops(const void *options, rapt_tensor *scores, rapt_tensor *const *captured, rapt_tensor *queries,
                           rapt_tensor *keys)
{
    const rapt_bucket_options *o = options;
    const int64_t side = o->side;
    rapt_tensor *relative = rapt_sub(keys, queries), *zero = rapt_scalar(RAPT_INT64, 0);
    rapt_tensor *behind = rapt_greater(relative, zero);
    rapt_tensor *distance = rapt_unsqueeze(rapt_where(behind, relative, rapt_sub(zero, relative)), -1);
    rapt_tensor *begun = rapt_less_equal(rapt_reshape(captured[1], RAPT_SHAPE(side)), distance);
    rapt_tensor *bucket =
        rapt_sub(rapt_sum(rapt_cast(begun, RAPT_INT64), RAPT_AXES(-1), false), rapt_scalar(RAPT_INT64, 1));
    bucket = o->bidirectional ? rapt_where(behind, rapt_add(bucket, rapt_scalar(RAPT_INT64, (double)side)), bucket)
                              : rapt_where(behind, zero, bucket);
    return rapt_add(scores, rapt_look_up_biases(captured[0], bucket));
}

static void describe(const rapt_module *module, char *text, size_t size)
{
    const bucketed_bias *m = (const bucketed_bias *)module;
    snprintf(text, size, "%lld heads, %lld buckets%s", (long long)rapt_size(m->weight, 1),
             (long long)rapt_size(m->weight, 0), m->options.bidirectional ? ", bidirectional" : "");
}

static void destroy(rapt_module *module)
{
    rapt_release(((bucketed_bias *)module)->least);
}

static const rapt_module_class kind = {.name = "BucketedBias", .describe = describe, .destroy = destroy};

static bool check(int64_t heads, int64_t buckets, int64_t max_distance, bool bidirectional)
{
    const int64_t side = bidirectional ? buckets / 2 : buckets;
    if (!rapt_check_modified_heads(kind.name, heads)) return false;
    if (side > INT32_MAX)
        return rapt_fail(RAPT_ERROR_VALUE, kind.name, "%lld buckets; at most %d on a side expected", (long long)buckets,
                         INT32_MAX);
    if (side < 2 || (bidirectional && buckets % 2 != 0))
        return rapt_fail(RAPT_ERROR_VALUE, kind.name, "%lld buckets; 2 or more%s expected", (long long)buckets,
                         bidirectional ? " for each of two sides" : "");
    return max_distance > side / 2 ||
           rapt_fail(RAPT_ERROR_VALUE, kind.name,
                     "max_distance %lld; more than the %lld positions with a bucket each expected",
                     (long long)max_distance, (long long)(side / 2));
}

rapt_score_modification *rapt_bucketed_bias_new(int64_t heads, int64_t buckets, int64_t max_distance,
                                                bool bidirectional)
{
    if (!check(heads, buckets, max_distance, bidirectional)) return NULL;
    RAPT_SCOPE;
    bucketed_bias *m = rapt_module_new(sizeof *m, &kind);
    const int64_t side = bidirectional ? buckets / 2 : buckets;
    rapt_tensor *least = m ? rapt_new(kind.name, RAPT_INT64, RAPT_SHAPE(1, 1, side)) : NULL;
    if (!m) return NULL;
    for (int64_t b = 0; least && b < side; b++)
        ((int64_t *)(void *)least->data)[b] = least_distance(b, side, max_distance);
    m->least = least ? rapt_retain(least) : NULL;
    m->modification.module.failed = !least;
    m->weight = rapt_module_add_parameter(&m->modification.module, "weight",
                                          rapt_zeros(RAPT_FLOAT32, RAPT_SHAPE(buckets, heads)));
    m->options = (rapt_bucket_options){.side = side, .bidirectional = bidirectional};
    m->modification.options = &m->options;
    m->modification.options_size = sizeof m->options;
    m->modification.captured_count = 2;
    m->modification.capture = capture;
    m->modification.by_ops = by_ops;
    RAPT_SET_FUNCTIONS(&m->modification, bucketed_bias);
    return rapt_module_finish(&m->modification.module);
}
