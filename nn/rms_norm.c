/* RMSNorm: the last axis divided by its root mean square, then scaled. */
#include <stdio.h>

#include <rapt/layers.h>

#include "nn/entry.h"
#include "nn/options.h"

static rapt_tensor *forward(rapt_module *module, rapt_tensor *x)
{
    rapt_rms_norm *rms_norm = (rapt_rms_norm *)module;
    return rapt_rms_normalize(x, rms_norm->weight, rms_norm->epsilon);
}

static void describe(const rapt_module *module, char *text, size_t size)
{
    snprintf(text, size, "%lld", (long long)rapt_count(((const rapt_rms_norm *)module)->weight));
}

static const rapt_module_class kind = {.name = "RMSNorm", .forward = forward, .describe = describe};

rapt_rms_norm *rapt_rms_norm_new(int64_t size)
{
    if (!rapt_check_size(kind.name, "size", size)) return NULL;
    RAPT_SCOPE;
    rapt_rms_norm *rms_norm = rapt_module_new(sizeof *rms_norm, &kind);
    if (!rms_norm) return NULL;
    rms_norm->epsilon = 1e-6;
    rms_norm->weight =
        rapt_module_add_parameter(&rms_norm->module, "weight", rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(size)));
    return rapt_module_finish(&rms_norm->module);
}

rapt_tensor *rapt_rms_norm_forward(rapt_rms_norm *rms_norm, rapt_tensor *x)
{
    return rapt_layer_forward(kind.name, (rapt_module *)rms_norm, x);
}
