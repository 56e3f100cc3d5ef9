/* The position-wise feed-forward network: the same two layers at every position. */
#include <stdio.h>

#include <rapt/transformer.h>

#include "nn/entry.h"
#include "nn/options.h"
#include "tensor/core.h"

static const struct {
    const char *name;
    rapt_activation activation;
    bool is_gated; /* the activation's result is multiplied by a third layer's */
} kinds[] = {
    [RAPT_FEED_FORWARD_RELU] = {"ReLU", RAPT_ACTIVATION_RELU, .is_gated = false},
    [RAPT_FEED_FORWARD_GELU] = {"GELU", RAPT_ACTIVATION_GELU, .is_gated = false},
    [RAPT_FEED_FORWARD_SWIGLU] = {"SwiGLU", RAPT_ACTIVATION_SILU, .is_gated = true},
    [RAPT_FEED_FORWARD_GELU_TANH] = {"GELU by tanh", RAPT_ACTIVATION_GELU_TANH, .is_gated = false},
};
enum { kind_count = sizeof kinds / sizeof *kinds };

static bool check_kind(rapt_feed_forward_kind number)
{
    return (unsigned)number < kind_count ||
           rapt_fail(RAPT_ERROR_VALUE, "FeedForward", "kind %d is none of rapt_feed_forward_kind", (int)number);
}

static rapt_tensor *forward(rapt_module *module, rapt_tensor *x)
{
    rapt_feed_forward *f = (rapt_feed_forward *)module;
    if (!check_kind(f->kind)) return NULL; /* it may have been set by hand */
    RAPT_SCOPE;
    const double dropout = module->training ? f->dropout : 0;
    rapt_tensor *inner = rapt_affine_activation(x, f->linear1->weight, f->linear1->bias, kinds[f->kind].activation,
                                                f->linear3 ? 0 : dropout);
    if (f->linear3) inner = rapt_mul(inner, rapt_linear_forward(f->linear3, x));
    if (f->linear3 && dropout != 0) inner = rapt_drop(inner, dropout);
    return rapt_keep(rapt_linear_forward(f->linear2, inner));
}

static void describe(const rapt_module *module, char *text, size_t size)
{
    const rapt_feed_forward *f = (const rapt_feed_forward *)module;
    if ((unsigned)f->kind < kind_count)
        snprintf(text, size, "%s, dropout %g", kinds[f->kind].name, f->dropout);
    else
        snprintf(text, size, "kind %d, dropout %g", (int)f->kind, f->dropout);
}

static const rapt_module_class kind = {.name = "FeedForward", .forward = forward, .describe = describe};

static rapt_linear *add(rapt_feed_forward *f, const char *name, int64_t in, int64_t out, bool bias)
{
    rapt_linear *linear = rapt_linear_new(in, out, bias ? RAPT_BIAS : RAPT_NO_BIAS);
    return rapt_module_add_child(&f->module, name, (rapt_module *)linear);
}

rapt_feed_forward *rapt_feed_forward_new(const rapt_feed_forward_config *c)
{
    static const char *const names[][3] =
        {[RAPT_NAMES_PYTORCH] = {"linear1", "linear2", "linear3"}, [RAPT_NAMES_GPT2] = {"c_fc", "c_proj", "c_gated"}};
    bool good = false;
    if (!c)
        rapt_fail(RAPT_ERROR_NULL, kind.name, "the configuration is NULL");
    else
        good = check_kind(c->kind) && rapt_check_size(kind.name, "input size", c->in) &&
               rapt_check_size(kind.name, "inner size", c->inner) &&
               rapt_check_size(kind.name, "output size", c->out) && rapt_check_names(kind.name, c->names) &&
               rapt_check_probability(kind.name, "dropout", c->dropout);
    rapt_feed_forward *f = good ? rapt_module_new(sizeof *f, &kind) : NULL;
    if (!f) return NULL;
    const char *const *name = names[c->names];
    f->kind = c->kind;
    f->dropout = c->dropout;
    f->linear1 = add(f, name[0], c->in, c->inner, c->bias);
    f->linear2 = add(f, name[1], c->inner, c->out, c->bias);
    if (kinds[c->kind].is_gated) f->linear3 = add(f, name[2], c->in, c->inner, c->bias);
    return rapt_module_finish(&f->module);
}

rapt_tensor *rapt_feed_forward_forward(rapt_feed_forward *feed_forward, rapt_tensor *x)
{
    return rapt_layer_forward(kind.name, (rapt_module *)feed_forward, x);
}
