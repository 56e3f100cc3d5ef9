/* Scores kept below a cap: cap · tanh(score / cap). */
#include <stdio.h>

#include "modifications.h"
#include "nn/options.h"
#include "tensor/core.h"

typedef struct soft_cap {
    rapt_score_modification modification;
    double cap;
} soft_cap;

static rapt_tensor *by_ops(const void *options, rapt_tensor *scores, rapt_tensor *const *captured, rapt_tensor *queries,
                           rapt_tensor *keys)
{
    const double cap = *(const double *)options;
    (void)captured, (void)queries, (void)keys;
    return rapt_mul_scalar(rapt_tanh(rapt_mul_scalar(scores, 1 / cap)), cap);
}

static void describe(const rapt_module *module, char *text, size_t size)
{
    snprintf(text, size, "cap %g", ((const soft_cap *)module)->cap);
}

static const rapt_module_class kind = {.name = "SoftCap", .describe = describe};

rapt_score_modification *rapt_soft_cap_new(double cap)
{
    if (!rapt_check_above_0(kind.name, "cap", cap)) return NULL;
    soft_cap *m = rapt_module_new(sizeof *m, &kind);
    if (!m) return NULL;
    m->cap = cap;
    m->modification.reads_new = true;
    m->modification.options = &m->cap;
    m->modification.options_size = sizeof m->cap;
    m->modification.by_ops = by_ops;
    RAPT_SET_FUNCTIONS(&m->modification, soft_cap);
    return rapt_module_finish(&m->modification.module);
}
