/* Continuing a text. */
#ifndef GPT_SAMPLE_H
#define GPT_SAMPLE_H

#include "options.h"

/* Prints the prompt of the options and what the model makes of it. */
void sample_print(rapt_gpt *gpt, const struct text *text, const struct options *options);

/* How many of 100 made-up sentences the model ends as they must end. */
int sample_count_right_ends(rapt_gpt *gpt, const struct text *text);

#endif
