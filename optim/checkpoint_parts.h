/* What a checkpoint may have beside module and optimizer: averages, where the data stands, values that are watched. */
#ifndef RAPT_OPTIM_CHECKPOINT_PARTS_H
#define RAPT_OPTIM_CHECKPOINT_PARTS_H

#include <rapt/checkpoint.h>

#include "average.h"

/* What was read of them. */
typedef struct rapt_checkpoint_parts {
    rapt_average_image average;
    rapt_loader_state loader;
    rapt_watch watch;
    rapt_plateau plateau;
} rapt_checkpoint_parts;

/* False after an error. */
bool rapt_checkpoint_add_parts(const char *op, const rapt_checkpoint *checkpoint, rapt_archive *archive);

/* False after an error; in either case rapt_checkpoint_free_parts has to follow. */
bool rapt_checkpoint_read_parts(const rapt_checkpoint *checkpoint, const rapt_archive *archive,
                                rapt_checkpoint_parts *parts);

/* Puts what was read into the caller's objects, which cannot fail. */
void rapt_checkpoint_take_parts(const rapt_checkpoint *checkpoint, rapt_checkpoint_parts *parts);
void rapt_checkpoint_free_parts(rapt_checkpoint_parts *parts);

#endif
