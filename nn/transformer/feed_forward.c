/* The position-wise feed-forward network: the same two layers at every position. */
#include <stdio.h>

#include <rapt/transformer.h>

static rapt_activation_function *const activations[] = {
    [RAPT_FEED_FORWARD_RELU] = rapt_relu,
    [RAPT_FEED_FORWARD_GELU] = rapt_gelu,
    [RAPT_FEED_FORWARD_SWIGLU] = rapt_silu,
};
enum { activation_count = sizeof activations / sizeof *activations };

static rapt_tensor *forward(rapt_module *module, rapt_tensor *x)
{
    rapt_feed_forward *f = (rapt_feed_forward *)module;
    RAPT_SCOPE;
    rapt_tensor *inner = activations[f->kind](rapt_linear_forward(f->linear1, x));
    if (f->linear3) inner = rapt_mul(inner, rapt_linear_forward(f->linear3, x));
    if (module->training && f->dropout > 0) inner = rapt_drop(inner, f->dropout);
    return rapt_keep(rapt_linear_forward(f->linear2, inner));
}

static void describe(const rapt_module *module, char *text, size_t size)
{
    static const char *const names[] = {"ReLU", "GELU", "SwiGLU"};
    const rapt_feed_forward *f = (const rapt_feed_forward *)module;
    snprintf(text, size, "%s, dropout %g", names[f->kind], f->dropout);
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
    else if ((unsigned)c->kind >= activation_count)
        rapt_fail(RAPT_ERROR_VALUE, kind.name, "kind %d is none of rapt_feed_forward_kind", (int)c->kind);
    else if (!(c->dropout >= 0 && c->dropout <= 1))
        rapt_fail(RAPT_ERROR_VALUE, kind.name, "dropout %g; 0 to 1 expected", c->dropout);
    else
        good = true;
    rapt_feed_forward *f = good ? rapt_module_new(sizeof *f, &kind) : NULL;
    if (!f) return NULL;
    const char *const *name = names[c->names == RAPT_NAMES_GPT2];
    f->kind = c->kind;
    f->dropout = c->dropout;
    f->linear1 = add(f, name[0], c->in, c->inner, c->bias);
    f->linear2 = add(f, name[1], c->inner, c->out, c->bias);
    if (c->kind == RAPT_FEED_FORWARD_SWIGLU) f->linear3 = add(f, name[2], c->in, c->inner, c->bias);
    return rapt_module_finish(&f->module);
}

rapt_tensor *rapt_feed_forward_forward(rapt_feed_forward *feed_forward, rapt_tensor *x)
{
    return rapt_module_forward(feed_forward ? &feed_forward->module : NULL, x);
}
