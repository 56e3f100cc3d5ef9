/* What follows a measured value, such as the validation loss: early stopping, and learning rates that fall where the
 * value stays. */
#ifndef RAPT_WATCH_H
#define RAPT_WATCH_H

#include <rapt/base.h>

RAPT_BEGIN_DECLS

/* A value that is watched. Plain structs: fields of options that are 0 mean 0, and a state of zeros is a beginning;
 * it may be read, copied and put back, and checkpoints keep it. */
typedef struct rapt_watch {
    bool maximize;    /* higher is better */
    bool absolute;    /* the threshold is a difference, else a part of the best value's size */
    double threshold; /* by how much a value must be better than the best, 0 or more */
    int64_t patience; /* how many values in a row may be no better, 0 or more */
    /* State */
    double best;     /* of the values so far */
    int64_t values;  /* how many there were */
    int64_t best_at; /* the number of the best, from 1 on */
    int64_t waited;  /* how many were no better since */
} rapt_watch;

/* Takes the next value and says whether it is the best so far, as the first is unless it is NaN; NaN is never better.
 * False and an error for NULL and options out of range. */
RAPT_API bool rapt_watch_take(rapt_watch *watch, double value);

/* Early stopping: whether more than `patience` values in a row were no better. False and an error for NULL. */
RAPT_API bool rapt_watch_is_over(const rapt_watch *watch);

/* PyTorch's ReduceLROnPlateau (whose threshold is 10⁻⁴, and a part of the best value itself, so that of negative values
 * worse ones count as better): each time the watch is over the factor is cut, and waiting begins anew. */
typedef struct rapt_plateau {
    rapt_watch watch;
    double cut;        /* what the factor is multiplied with; 0 is 0.1 */
    double least;      /* the factor stays at or above it; at most 1 */
    int64_t cool_down; /* how many values after a cut may be no better and do not count */
    /* State */
    int64_t cuts;
    int64_t cooling; /* values of the cool-down that are left */
} rapt_plateau;

/* Takes the next value, and gives the factor to be multiplied with the learning rate: 1 at first. NaN and an error for
 * NULL and options out of range; the state is then as it was. */
RAPT_API double rapt_plateau_factor(rapt_plateau *plateau, double value);

RAPT_END_DECLS

#endif
