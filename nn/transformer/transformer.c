/* The Transformer: an encoder, and a decoder over what it gives. */
#include <rapt/initialize.h>
#include <rapt/transformer.h>

#include "nn/entry.h"
#include "tensor/random.h"

static const rapt_module_class kind = {.name = "Transformer"};

static bool init_matrix(const char *name, rapt_tensor *parameter, void *context)
{
    (void)name, (void)context;
    return rapt_rank(parameter) < 2 || rapt_init_xavier_uniform(parameter, 1);
}

rapt_transformer *rapt_transformer_new(const rapt_transformer_config *config)
{
    rapt_transformer *transformer = rapt_module_new(sizeof *transformer, &kind);
    if (!transformer) return NULL;
    rapt_module *module = &transformer->module;
    transformer->encoder =
        rapt_module_add_child(module, "encoder", (rapt_module *)rapt_transformer_encoder_new(config));
    if (transformer->encoder)
        transformer->decoder =
            rapt_module_add_child(module, "decoder", (rapt_module *)rapt_transformer_decoder_new(config));
    if (!module->failed && !rapt_module_visit(module, RAPT_PARAMETERS, init_matrix, NULL)) module->failed = true;
    return rapt_module_finish(module);
}

rapt_tensor *rapt_transformer_forward(rapt_transformer *transformer, rapt_tensor *source, rapt_tensor *target,
                                      const rapt_mask *source_mask, const rapt_mask *target_mask,
                                      const rapt_mask *memory_mask)
{
    RAPT_UNDO_DRAWS;
    RAPT_ENTER((rapt_module *)transformer);
    if (!transformer || !source || !target) {
        rapt_fail(RAPT_ERROR_NULL, kind.name, "the %s is NULL",
                  !transformer ? "Transformer"
                  : source     ? "target"
                               : "source");
        return NULL;
    }
    RAPT_SCOPE;
    rapt_tensor *memory = rapt_transformer_encoder_forward(transformer->encoder, source, source_mask, NULL);
    if (!memory) return NULL;
    return rapt_keep(
        rapt_transformer_decoder_forward(transformer->decoder, target, memory, target_mask, memory_mask, NULL));
}
