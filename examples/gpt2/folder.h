/* The folder of a published model. */
#ifndef GPT2_FOLDER_H
#define GPT2_FOLDER_H

#include <stddef.h>

#include "tensor/json.h"

/* All bytes of a file there, and a NUL behind them. The caller frees it. NULL after an error. */
char *folder_read(const char *folder, const char *name, size_t *size);

/* Records what is wrong with the JSON of that file, and returns false. */
bool folder_fail(const char *folder, const char *name, const rapt_json *json);

#endif
