/* Learning-rate schedules: a factor for each step, from 0 on. */
#ifndef RAPT_SCHEDULE_H
#define RAPT_SCHEDULE_H

#include <rapt/optimizer.h>

RAPT_BEGIN_DECLS

typedef enum rapt_schedule_kind {
    RAPT_SCHEDULE_CONSTANT, /* 1 */
    RAPT_SCHEDULE_STEP,     /* factor ^ ⌊(t − warm-up) / period⌋ */
    RAPT_SCHEDULE_COSINE, /* from 1 to final: final + (1 − final)·(1 + cos(π·(t − warm-up) / (total − warm-up))) / 2 */
    RAPT_SCHEDULE_INVERSE_SQUARE_ROOT, /* √(warm-up / t) (Vaswani et al. 2017, scaled to peak at 1) */
} rapt_schedule_kind;

typedef struct rapt_schedule {
    rapt_schedule_kind kind;
    int64_t warm_up; /* steps in which the factor rises linearly: (t + 1) / warm_up; 0: none */
    int64_t period;  /* STEP */
    double factor;   /* STEP; 0 is 0.1, RAPT_ZERO a true zero */
    int64_t total;   /* COSINE: the step at which `final` is reached and kept */
    double final;    /* COSINE */
} rapt_schedule;

/* The factor at step t ≥ 0, to be multiplied with the learning rate; NaN and an error for NULL, a negative t or
 * numbers out of range (STEP wants a period, COSINE a total above the warm-up, INVERSE_SQUARE_ROOT a warm-up). */
RAPT_API double rapt_schedule_factor(const rapt_schedule *schedule, int64_t step);

RAPT_END_DECLS

#endif
