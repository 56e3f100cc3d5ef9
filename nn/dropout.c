/* Dropout: random zeros in training, nothing in evaluation. */
#include <stdio.h>

#include <rapt/layers.h>

#include "nn/entry.h"
#include "tensor/core.h"

static rapt_tensor *forward(rapt_module *module, rapt_tensor *x)
{
    double probability = ((rapt_dropout *)module)->probability;
    return module->training && probability != 0 ? rapt_drop(x, probability) : x;
}

static void describe(const rapt_module *module, char *text, size_t size)
{
    snprintf(text, size, "%g", ((const rapt_dropout *)module)->probability);
}

static const rapt_module_class kind = {.name = "Dropout", .forward = forward, .describe = describe};

rapt_dropout *rapt_dropout_new(double probability)
{
    if (!rapt_check_probability("Dropout", "probability", probability)) return NULL;
    rapt_dropout *dropout = rapt_module_new(sizeof *dropout, &kind);
    if (!dropout) return NULL;
    dropout->probability = probability;
    return rapt_module_finish(&dropout->module);
}

rapt_tensor *rapt_dropout_forward(rapt_dropout *dropout, rapt_tensor *x)
{
    return rapt_layer_forward(kind.name, (rapt_module *)dropout, x);
}
