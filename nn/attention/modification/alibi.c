/* ALiBi as a modification of scores: what lies farther from the query scores less, in each head by another slope. */
#include <stdio.h>

#include "modifications.h"
#include "nn/alibi.h"
#include "tensor/core.h"

typedef struct alibi {
    rapt_score_modification modification;
    int64_t heads;
} alibi;

static bool capture(rapt_score_modification *modification, rapt_dtype dtype, rapt_tensor **captured)
{
    const int64_t heads = ((const alibi *)modification)->heads;
    rapt_tensor *slopes = rapt_new(modification->module.kind->name, RAPT_FLOAT64, RAPT_SHAPE(1, heads, 1, 1));
    if (!slopes) return false;
    for (int64_t head = 0; head < heads; head++) ((double *)(void *)slopes->data)[head] = rapt_alibi_slope(head, heads);
    captured[0] = rapt_cast(slopes, dtype);
    return captured[0] != NULL;
}

static rapt_tensor *by_ops(const void *options, rapt_tensor *scores, rapt_tensor *const *captured, rapt_tensor *queries,
                           rapt_tensor *keys)
{
    (void)options;
    rapt_tensor *distances = rapt_abs(rapt_relative_places(queries, keys, rapt_get_dtype(scores)));
    return rapt_sub(scores, rapt_mul(captured[0], distances));
}

static void describe(const rapt_module *module, char *text, size_t size)
{
    snprintf(text, size, "%lld heads", (long long)((const alibi *)module)->heads);
}

static const rapt_module_class kind = {.name = "ALiBiModification", .describe = describe};

rapt_score_modification *rapt_alibi_modification_new(int64_t heads)
{
    if (!rapt_check_modified_heads(kind.name, heads)) return NULL;
    alibi *m = rapt_module_new(sizeof *m, &kind);
    if (!m) return NULL;
    m->heads = heads;
    m->modification.captured_count = 1;
    m->modification.capture = capture;
    m->modification.by_ops = by_ops;
    RAPT_SET_FUNCTIONS(&m->modification, alibi);
    return rapt_module_finish(&m->modification.module);
}
