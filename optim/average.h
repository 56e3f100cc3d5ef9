/* Loading averages in two steps: reading, which may fail, and taking, which cannot. */
#ifndef RAPT_OPTIM_AVERAGE_H
#define RAPT_OPTIM_AVERAGE_H

#include <rapt/average.h>

typedef struct rapt_average_image {
    int64_t updates;
    rapt_archive *values; /* to be freed, in either case */
} rapt_average_image;

/* False after an error. */
bool rapt_average_read(const rapt_average *average, const char *prefix, const rapt_archive *archive,
                       rapt_average_image *image);
void rapt_average_take(rapt_average *average, rapt_average_image *image);

#endif
