/* Scores divided by a learned temperature of their head. */
#include <math.h>
#include <stdio.h>

#include "modifications.h"

typedef struct head_temperature {
    rapt_score_modification modification;
    rapt_tensor *temperature; /* (heads) */
} head_temperature;

static bool capture(rapt_score_modification *modification, rapt_dtype dtype, rapt_tensor **captured)
{
    (void)dtype;
    return rapt_capture_by_head(((head_temperature *)modification)->temperature, captured);
}

static rapt_tensor *by_ops(const void *options, rapt_tensor *scores, rapt_tensor *const *captured, rapt_tensor *queries,
                           rapt_tensor *keys)
{
    (void)options, (void)queries, (void)keys;
    /* a score of −∞ by another modification stays so, and gives the temperature no gradient */
    rapt_tensor *lowest = rapt_scalar(rapt_get_dtype(scores), -(double)INFINITY);
    rapt_tensor *hidden = rapt_equal(scores, lowest);
    return rapt_where(hidden, lowest, rapt_div(rapt_masked_fill(scores, hidden, 0), captured[0]));
}

static void describe(const rapt_module *module, char *text, size_t size)
{
    snprintf(text, size, "%lld heads", (long long)rapt_size(((const head_temperature *)module)->temperature, 0));
}

static const rapt_module_class kind = {.name = "HeadTemperature", .describe = describe};

rapt_score_modification *rapt_head_temperature_new(int64_t heads)
{
    if (!rapt_check_modified_heads(kind.name, heads)) return NULL;
    RAPT_SCOPE;
    head_temperature *m = rapt_module_new(sizeof *m, &kind);
    if (!m) return NULL;
    m->temperature =
        rapt_module_add_parameter(&m->modification.module, "temperature", rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(heads)));
    m->modification.reads_old = true;
    m->modification.captured_count = 1;
    m->modification.capture = capture;
    m->modification.by_ops = by_ops;
    RAPT_SET_FUNCTIONS(&m->modification, head_temperature);
    return rapt_module_finish(&m->modification.module);
}
