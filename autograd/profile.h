/* What a profile holds, and the file that it may write. */
#ifndef RAPT_AUTOGRAD_PROFILE_H
#define RAPT_AUTOGRAD_PROFILE_H

#include <rapt/profile.h>

#include "observe.h"

/* All observations of one kind of one op in one module. */
typedef struct rapt_profile_row {
    rapt_doing doing;
    const char *name, *path; /* lasting; path NULL: in no module */
    int64_t calls;
    double seconds, bytes, flops;
} rapt_profile_row;

/* The rows that were measured, freed by the caller, and the times. NULL and an error when there is no memory. */
rapt_profile_row *rapt_profile_copy(int64_t *count, rapt_profile_times *times);

/* "forward", "backward", "walk", "step" */
const char *rapt_doing_name(rapt_doing doing);

/* A trace file. Pieces are written from a buffer of its own, so that a forked child writes nothing of it again. */
typedef struct rapt_profile_file {
    FILE *stream; /* NULL: there is none */
    char *buffer, *path;
    size_t used;
    int reason; /* errno of what failed first; 0: nothing did */
    int64_t events;
} rapt_profile_file;

/* False and an error when the file cannot be written or there is no memory. */
bool rapt_profile_file_open(rapt_profile_file *file, const char *path);

/* category: that of the event. Nanoseconds from the start of the profile; threads count from 1. */
void rapt_profile_file_add(rapt_profile_file *file, const rapt_observation *o, const char *category, int64_t begin,
                           int64_t duration, int thread, const rapt_shapes *shapes);

/* False and an error when something could not be written; a file that is still empty is then removed. */
bool rapt_profile_file_close(rapt_profile_file *file);

#endif
