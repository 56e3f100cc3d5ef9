/* Conv1d and Conv2d: windows of sequences and of images through one linear map. */
#include <math.h>
#include <stdio.h>

#include <rapt/layers.h>

#include "autograd/checks.h"
#include "nn/entry.h"
#include "nn/options.h"

static rapt_tensor *forward_1d(rapt_module *module, rapt_tensor *x)
{
    const rapt_convolution_layer *c = (const rapt_convolution_layer *)module;
    return rapt_conv1d(x, c->weight, c->bias, &c->options);
}

static rapt_tensor *forward_2d(rapt_module *module, rapt_tensor *x)
{
    const rapt_convolution_layer *c = (const rapt_convolution_layer *)module;
    return rapt_conv2d(x, c->weight, c->bias, &c->options);
}

static void describe(const rapt_module *module, char *text, size_t size)
{
    const rapt_convolution_layer *c = (const rapt_convolution_layer *)module;
    const int rank = rapt_rank(c->weight);
    char columns[32] = "";
    if (rank == 4) snprintf(columns, sizeof columns, " x %lld", (long long)rapt_size(c->weight, 3));
    snprintf(text, size, "%lld -> %lld, %lld%s%s", (long long)(rapt_size(c->weight, 1) * c->options.groups),
             (long long)rapt_size(c->weight, 0), (long long)rapt_size(c->weight, 2), columns, c->bias ? ", bias" : "");
}

static const rapt_module_class kind_1d = {.name = "Conv1d", .forward = forward_1d, .describe = describe};
static const rapt_module_class kind_2d = {.name = "Conv2d", .forward = forward_2d, .describe = describe};

/* shape: of the weight, with all input channels. */
static rapt_convolution_layer *layer_new(const rapt_module_class *kind, int rank, int64_t *shape,
                                         const rapt_convolution *options, int flags)
{
    static const char *const sizes[] = {"output channels", "input channels"};
    const rapt_convolution o = options ? *options : (rapt_convolution){0};
    for (int axis = 0; axis < 2; axis++)
        if (!rapt_check_size(kind->name, sizes[axis], shape[axis])) return NULL;
    for (int k = 0; k < rank - 2; k++)
        if (!rapt_check_window(kind->name, shape[k + 2], rapt_or_one(o.stride[k]), o.padding[k],
                               rapt_or_one(o.dilation[k])))
            return NULL;
    if (!rapt_check_flags(kind->name, flags)) return NULL;
    RAPT_SCOPE;
    rapt_convolution_layer *c = rapt_module_new(sizeof *c, kind);
    if (!c) return NULL;
    c->options = o;
    const int64_t groups = c->options.groups = rapt_or_one(o.groups);
    if (groups < 1 || shape[0] % groups || shape[1] % groups)
        c->module.failed =
            !rapt_fail(RAPT_ERROR_VALUE, kind->name, "%lld to %lld channels in %lld groups; multiples of it expected",
                       (long long)shape[1], (long long)shape[0], (long long)groups);
    else
        shape[1] /= groups;
    double fan_in = 1;
    for (int axis = 1; axis < rank; axis++) fan_in *= (double)shape[axis];
    const double bound = fan_in > 0 ? 1 / sqrt(fan_in) : 0;
    if (!c->module.failed)
        c->weight = rapt_module_add_parameter(&c->module, "weight", rapt_new_uniform(rank, shape, bound));
    if (!c->module.failed && (flags & RAPT_BIAS))
        c->bias = rapt_module_add_parameter(&c->module, "bias", rapt_new_uniform(RAPT_SHAPE(shape[0]), bound));
    return rapt_module_finish(&c->module);
}

rapt_convolution_layer *rapt_conv1d_layer_new(int64_t in, int64_t out, int64_t size, const rapt_convolution *options,
                                              int flags)
{
    return layer_new(&kind_1d, 3, (int64_t[]){out, in, size}, options, flags);
}

rapt_convolution_layer *rapt_conv2d_layer_new(int64_t in, int64_t out, const int64_t size[2],
                                              const rapt_convolution *options, int flags)
{
    if (size) return layer_new(&kind_2d, 4, (int64_t[]){out, in, size[0], size[1]}, options, flags);
    rapt_fail(RAPT_ERROR_NULL, kind_2d.name, "size is NULL");
    return NULL;
}

rapt_tensor *rapt_convolution_layer_forward(rapt_convolution_layer *layer, rapt_tensor *x)
{
    return rapt_layer_forward("Convolution", (rapt_module *)layer, x);
}
