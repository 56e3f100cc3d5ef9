/* Add and norm: what stands around every sublayer of a Transformer. */
#include <stdio.h>

#include "nn/entry.h"
#include "nn/options.h"
#include "tensor/core.h"
#include "tensor/random.h"
#include "transformer.h"

static void describe(const rapt_module *module, char *text, size_t size)
{
    const rapt_add_norm *a = (const rapt_add_norm *)module;
    snprintf(text, size, "%s, dropout %g", a->norm_first ? "norm first" : "norm last", a->dropout);
}

static const rapt_module_class kind = {.name = "AddNorm", .describe = describe};

static bool check_flags(int flags)
{
    return flags == RAPT_NO_BIAS || flags == RAPT_BIAS || flags == RAPT_RMS_NORM ||
           rapt_fail(RAPT_ERROR_VALUE, kind.name, "flags %d; RAPT_NO_BIAS, RAPT_BIAS or RAPT_RMS_NORM expected", flags);
}

rapt_add_norm *rapt_add_norm_new(int64_t size, int flags, double dropout)
{
    if (!rapt_check_size(kind.name, "size", size) || !check_flags(flags) ||
        !rapt_check_probability(kind.name, "dropout", dropout))
        return NULL;
    rapt_add_norm *a = rapt_module_new(sizeof *a, &kind);
    if (!a) return NULL;
    a->dropout = dropout;
    rapt_norm_add(&a->module, "", size, flags, &a->norm, &a->rms_norm);
    return rapt_module_finish(&a->module);
}

rapt_tensor *rapt_add_norm_input(rapt_add_norm *a, rapt_tensor *x)
{
    if (!a || !x) {
        rapt_fail(RAPT_ERROR_NULL, kind.name, "%s is NULL", a ? "the input" : "the layer");
        return NULL;
    }
    return a->norm_first ? rapt_norm_forward(a->norm, a->rms_norm, x) : x;
}

rapt_tensor *rapt_add_norm_forward(rapt_add_norm *a, rapt_tensor *x, rapt_tensor *y)
{
    RAPT_UNDO_DRAWS;
    RAPT_ENTER((rapt_module *)a);
    char text[2][128];
    if (!a || !x || !y) {
        rapt_fail(RAPT_ERROR_NULL, kind.name, "%s is NULL", !a ? "the layer" : x ? "the sublayer's result" : "x");
        return NULL;
    }
    if (!rapt_same_shape(x, y)) {
        rapt_fail(RAPT_ERROR_SHAPE, kind.name, "x is %s and the sublayer's result %s; one shape expected",
                  rapt_describe(x, text[0], sizeof text[0]), rapt_describe(y, text[1], sizeof text[1]));
        return NULL;
    }
    RAPT_SCOPE;
    if (a->module.training && a->dropout != 0) y = rapt_drop(y, a->dropout);
    rapt_tensor *sum = rapt_add(x, y);
    return rapt_keep(a->norm_first ? sum : rapt_norm_forward(a->norm, a->rms_norm, sum));
}
