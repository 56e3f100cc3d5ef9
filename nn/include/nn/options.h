/* What constructors check of their sizes and options: false after an error under the name of the layer. */
#ifndef RAPT_NN_OPTIONS_H
#define RAPT_NN_OPTIONS_H

#include <rapt/multi_head.h>

/* 0 or more? */
bool rapt_check_size(const char *layer, const char *what, int64_t size);

/* RAPT_BIAS or RAPT_NO_BIAS? */
bool rapt_check_flags(const char *layer, int flags);

/* A finite number above 0, in float32 too? One that is 0 or infinite there makes NaN. */
bool rapt_check_above_0(const char *layer, const char *what, double number);

bool rapt_check_names(const char *layer, rapt_parameter_names names);

/* A factor alone, or with 0 ≤ low_turns < high_turns in a context; or all 0? */
bool rapt_check_rotary_scaling(const char *layer, const rapt_rotary_scaling *scaling);

#endif
