/* Weights in files, with the bytes that their tokens stand for and the shape of their model. */
#ifndef GPT_WEIGHTS_H
#define GPT_WEIGHTS_H

#include "text.h"

/* False after a sentence on stderr, also where an error handler is set: the disk may be full by now, but the text is
 * still to come. */
bool weights_save(const rapt_gpt *gpt, const struct text *text, const char *path);

/* False after a sentence on stderr, if they are of a text that has other bytes, where the same token would stand for
 * another one, or of another model. Errors are told as any other's. Files that do not say of which they are, are
 * believed. */
bool weights_load(rapt_gpt *gpt, const struct text *text, const char *path);

#endif
