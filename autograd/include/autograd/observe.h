/* Observation: who looks at each op that runs and at each vjp, and where in the modules it goes on. While nobody does,
 * it costs one branch. */
#ifndef RAPT_AUTOGRAD_OBSERVE_H
#define RAPT_AUTOGRAD_OBSERVE_H

#include <stdatomic.h>

#include <rapt/graph.h>

#include "tensor/module_place.h"
#include "tensor/thread.h"

enum { RAPT_HUNTS = 1, RAPT_TRACES = 2, RAPT_PROFILES = 4, RAPT_SUMMARIZES = 8 };

/* Who observes, in all threads: some of these. */
extern atomic_uint rapt_observers;

static inline unsigned rapt_observed(void)
{
    const unsigned observers = atomic_load_explicit(&rapt_observers, memory_order_relaxed);
    return __builtin_expect(observers != 0, 0) ? observers : 0;
}

/* Begins or ends to observe; returns whether it did so before. */
bool rapt_set_observer(unsigned observer, bool observes);

/* Nanoseconds since some moment. */
int64_t rapt_profile_clock(void);

/* A profile's file shows the module around the ops of its forward, which is over. */
void rapt_profile_add_module(const rapt_module_place *place);

/* Where a summary of this thread wants dtypes and shapes of the outputs of the last op that ran, in text of so many
 * bytes; NULL: nowhere. */
extern RAPT_THREAD_LOCAL char *rapt_last_outputs;
#define RAPT_LAST_OUTPUTS_SIZE 2048

/* The text as one that stays; NULL, without an error, when there is no memory for it. */
const char *rapt_lasting_text(const char *text);

/* What an observation is about. */
typedef enum rapt_doing {
    RAPT_DOING_FORWARD,  /* an op that another op's functions have not called: what these call is their business */
    RAPT_DOING_BACKWARD, /* a vjp */
    RAPT_DOING_WALK,     /* a walk through a graph, but for its vjps */
    RAPT_DOING_STEP,     /* an optimizer's work */
    RAPT_DOINGS
} rapt_doing;

/* One of them while it goes on. */
typedef struct rapt_observation rapt_observation;
struct rapt_observation {
    unsigned observers; /* 0: nobody looks, and nothing else is set */
    rapt_doing doing;
    const char *name;         /* of the op */
    const char *path;         /* of the module, or NULL */
    rapt_observation *around; /* in this thread */
    const char *op_around;    /* rapt_running_op before a vjp */
    double *flops_around;
    double flops;               /* of products, of all that goes on inside without an observation of its own */
    double bytes;               /* that its tensors have */
    int64_t begin, end, inside; /* nanoseconds; inside: of observations inside, and what observing them took */
    uint64_t profile;           /* the number of the profile that it is part of */
};

void rapt_region_begin_now(rapt_observation *region, unsigned observers, rapt_doing doing, const char *name);
void rapt_region_end_now(rapt_observation *region);

static inline void rapt_region_end(rapt_observation *region)
{
    if (__builtin_expect(region->observers != 0, 0)) rapt_region_end_now(region);
}

/* `RAPT_REGION(RAPT_DOING_STEP, name);` at the top of a block: profiles show it until the block is left. */
#define RAPT_REGION(doing, name)                                                                                       \
    rapt_observation rapt_region __attribute__((cleanup(rapt_region_end)));                                            \
    rapt_region.observers = rapt_observed();                                                                           \
    if (rapt_region.observers) rapt_region_begin_now(&rapt_region, rapt_region.observers, (doing), (name))

#endif
