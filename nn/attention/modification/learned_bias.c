/* A learned number of the head and the clamped relative position, added to the score. */
#include <stdio.h>

#include "modifications.h"
#include "nn/alibi.h"
#include "tensor/core.h"

typedef struct learned_bias {
    rapt_score_modification modification;
    int64_t reach;
    rapt_tensor *weight; /* (heads, 2·reach + 1) */
} learned_bias;

static bool capture(rapt_score_modification *modification, rapt_dtype dtype, rapt_tensor **captured)
{
    (void)dtype;
    captured[0] = rapt_unsqueeze(((learned_bias *)modification)->weight, 0);
    return captured[0] != NULL;
}

static rapt_tensor *by_ops(const void *options, rapt_tensor *scores, rapt_tensor *const *captured, rapt_tensor *queries,
                           rapt_tensor *keys)
{
    const double reach = (double)*(const int64_t *)options;
    rapt_tensor *position = rapt_clamp(rapt_relative_places(queries, keys, RAPT_FLOAT64), -reach, reach);
    position = rapt_add_scalar(position, reach);
    return position ? rapt_add(scores, rapt_look_up_biases(captured[0], rapt_cast(position, RAPT_INT64))) : NULL;
}

static void describe(const rapt_module *module, char *text, size_t size)
{
    const learned_bias *m = (const learned_bias *)module;
    snprintf(text, size, "%lld heads, reach %lld", (long long)rapt_size(m->weight, 0), (long long)m->reach);
}

static const rapt_module_class kind = {.name = "LearnedBias", .describe = describe};

rapt_score_modification *rapt_learned_bias_new(int64_t heads, int64_t reach)
{
    if (!rapt_check_modified_heads(kind.name, heads) || !rapt_check_reach(kind.name, reach)) return NULL;
    RAPT_SCOPE;
    learned_bias *m = rapt_module_new(sizeof *m, &kind);
    if (!m) return NULL;
    m->weight = rapt_module_add_parameter(&m->modification.module, "weight",
                                          rapt_zeros(RAPT_FLOAT32, RAPT_SHAPE(heads, 2 * reach + 1)));
    m->reach = reach;
    m->modification.options = &m->reach;
    m->modification.options_size = sizeof m->reach;
    m->modification.captured_count = 1;
    m->modification.capture = capture;
    m->modification.by_ops = by_ops;
    RAPT_SET_FUNCTIONS(&m->modification, learned_bias);
    return rapt_module_finish(&m->modification.module);
}
