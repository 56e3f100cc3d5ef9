/* GPT-2 from the files in which it is published. */
#ifndef GPT2_MODEL_H
#define GPT2_MODEL_H

#include <rapt.h>

/* Reads config.json. False after an error: what is not there, or says of a model that rapt_gpt is not. */
bool config_read(const char *folder, rapt_gpt_config *config);

/* The model with the weights of model.safetensors, or of the shards of model.safetensors.index.json, ready to write.
 * Free it with rapt_module_free. NULL after an error: also where a tensor is missing, or one that the model has not is
 * there. */
rapt_gpt *model_load(const char *folder, const rapt_gpt_config *config);

#endif
