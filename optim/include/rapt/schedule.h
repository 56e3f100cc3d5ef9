/* Learning-rate schedules: a factor for each step, from 0 on. */
#ifndef RAPT_SCHEDULE_H
#define RAPT_SCHEDULE_H

#include <rapt/optimizer.h>

RAPT_BEGIN_DECLS

/* The course of the factor; t is the step. */
typedef enum rapt_schedule_kind {
    RAPT_SCHEDULE_CONSTANT, /* 1 */
    RAPT_SCHEDULE_STEP,     /* factor ^ ⌊(t − warm-up) / period⌋ */
    RAPT_SCHEDULE_COSINE, /* from 1 to final: final + (1 − final)·(1 + cos(π·(t − warm-up) / (total − warm-up))) / 2 */
    RAPT_SCHEDULE_INVERSE_SQUARE_ROOT, /* √(warm-up / t) (Vaswani et al. 2017, scaled to peak at 1) */
    RAPT_SCHEDULE_LINEAR, /* from start to final in equal parts: PyTorch's LinearLR, and its decay after a warm-up */
    /* From start up to 1 and down to final, which is reached at step total − 1: PyTorch's OneCycleLR as a part of its
     * max_lr (Smith & Topin 2018); 1 is reached at step warm_up − 1. */
    RAPT_SCHEDULE_ONE_CYCLE,
    RAPT_SCHEDULE_WARM_UP_STABLE_DECAY, /* 1, and in the last steps before total down to final (Hu et al. 2024) */
} rapt_schedule_kind;

/* How a factor goes from one number to another. */
typedef enum rapt_schedule_curve {
    RAPT_CURVE_DEFAULT, /* the cosine for ONE_CYCLE, the line for WARM_UP_STABLE_DECAY */
    RAPT_CURVE_LINEAR,
    RAPT_CURVE_COSINE,                /* half a period */
    RAPT_CURVE_ONE_MINUS_SQUARE_ROOT, /* as 1 − √x (Hägele et al. 2024) */
} rapt_schedule_curve;

/* A course with its numbers; each says which kinds read it. */
typedef struct rapt_schedule {
    rapt_schedule_kind kind;
    /* Steps in which the factor rises linearly: (t + 1) / warm_up; 0: none. ONE_CYCLE: the steps of its rise; 0: three
     * tenths of the total. */
    int64_t warm_up;
    int64_t period;            /* STEP */
    double factor;             /* STEP; 0 is 0.1, RAPT_ZERO a true zero */
    int64_t total;             /* the step at which `final` is reached and kept, where there is one */
    double final;              /* 0, and of ONE_CYCLE start / 10⁴; RAPT_ZERO is a true zero */
    double start;              /* LINEAR: 0 is 1; ONE_CYCLE: 0 is 1/25; RAPT_ZERO is a true zero */
    int64_t decay;             /* WARM_UP_STABLE_DECAY: the steps before total in which the factor falls */
    rapt_schedule_curve curve; /* ONE_CYCLE, WARM_UP_STABLE_DECAY */
} rapt_schedule;

/* The factor at step t ≥ 0, to be multiplied with the learning rate; NaN and an error for NULL, a negative t or
 * numbers out of range (STEP wants a period, COSINE and LINEAR a total above the warm-up, INVERSE_SQUARE_ROOT a
 * warm-up, ONE_CYCLE a warm-up from 2 to below its total, WARM_UP_STABLE_DECAY a decay from 1 to total − warm-up). */
RAPT_API double rapt_schedule_factor(const rapt_schedule *schedule, int64_t step);

/* Schedules one after another: schedules[0] to before step milestones[0], then schedules[1], which counts its steps
 * from there, and so on; count schedules and count − 1 rising milestones (PyTorch's SequentialLR; those that act at
 * once are multiplied). NaN and an error as above, of any of the schedules; NULL or count below 1 are one, too. */
RAPT_API double rapt_schedule_chain_factor(int count, const rapt_schedule *schedules, const int64_t *milestones,
                                           int64_t step);

RAPT_END_DECLS

#endif
