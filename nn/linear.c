/* Linear: y = x Wᵀ + b. */
#include <math.h>
#include <stdio.h>

#include <rapt/layers.h>

#include "nn/entry.h"
#include "nn/options.h"

static rapt_tensor *forward(rapt_module *module, rapt_tensor *x)
{
    rapt_linear *linear = (rapt_linear *)module;
    return rapt_affine(x, linear->weight, linear->bias);
}

static void describe(const rapt_module *module, char *text, size_t size)
{
    const rapt_linear *linear = (const rapt_linear *)module;
    snprintf(text, size, "%lld -> %lld%s", (long long)linear->in, (long long)linear->out, linear->bias ? ", bias" : "");
}

static const rapt_module_class kind = {.name = "Linear", .forward = forward, .describe = describe};

rapt_linear *rapt_linear_new(int64_t in, int64_t out, int flags)
{
    if (!rapt_check_size(kind.name, "input size", in) || !rapt_check_size(kind.name, "output size", out) ||
        !rapt_check_flags(kind.name, flags))
        return NULL;
    RAPT_SCOPE;
    rapt_linear *linear = rapt_module_new(sizeof *linear, &kind);
    if (!linear) return NULL;
    linear->in = in;
    linear->out = out;
    double bound = in > 0 ? 1 / sqrt((double)in) : 0;
    linear->weight = rapt_module_add_parameter(&linear->module, "weight", rapt_new_uniform(RAPT_SHAPE(out, in), bound));
    if (flags & RAPT_BIAS)
        linear->bias = rapt_module_add_parameter(&linear->module, "bias", rapt_new_uniform(RAPT_SHAPE(out), bound));
    return rapt_module_finish(&linear->module);
}

rapt_tensor *rapt_linear_forward(rapt_linear *linear, rapt_tensor *x)
{
    return rapt_layer_forward(kind.name, (rapt_module *)linear, x);
}
