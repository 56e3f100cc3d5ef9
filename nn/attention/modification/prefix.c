/* Prefix language models: a query sees what comes before it, and the whole prefix of its item. */
#include <math.h>

#include "modifications.h"
#include "tensor/core.h"

typedef struct prefix {
    rapt_score_modification modification;
    rapt_tensor *prefixes; /* int64 (B) */
} prefix;

static bool capture(rapt_score_modification *modification, rapt_dtype dtype, rapt_tensor **captured)
{
    rapt_tensor *prefixes = ((prefix *)modification)->prefixes;
    (void)dtype;
    captured[0] = rapt_reshape(prefixes, RAPT_SHAPE(rapt_size(prefixes, 0), 1, 1, 1));
    return captured[0] != NULL;
}

static rapt_tensor *by_ops(const void *options, rapt_tensor *scores, rapt_tensor *const *captured, rapt_tensor *queries,
                           rapt_tensor *keys)
{
    (void)options;
    rapt_tensor *seen = rapt_logical_or(rapt_less_equal(keys, queries), rapt_less(keys, captured[0]));
    return rapt_where(seen, scores, rapt_scalar(rapt_get_dtype(scores), -(double)INFINITY));
}

static void destroy(rapt_module *module)
{
    rapt_release(((prefix *)module)->prefixes);
}

static const rapt_module_class kind = {.name = "Prefix", .destroy = destroy};

rapt_score_modification *rapt_prefix_modification_new(rapt_tensor *prefixes)
{
    char text[128];
    if (!prefixes || prefixes->dtype != RAPT_INT64 || prefixes->rank != 1) {
        rapt_fail(prefixes ? RAPT_ERROR_SHAPE : RAPT_ERROR_NULL, kind.name, "prefixes int64 (B) expected, not %s",
                  prefixes ? rapt_describe(prefixes, text, sizeof text) : "NULL");
        return NULL;
    }
    prefix *m = rapt_module_new(sizeof *m, &kind);
    if (!m) return NULL;
    m->prefixes = rapt_retain(prefixes);
    m->modification.captured_count = 1;
    m->modification.capture = capture;
    m->modification.by_ops = by_ops;
    RAPT_SET_FUNCTIONS(&m->modification, prefix);
    return rapt_module_finish(&m->modification.module);
}
