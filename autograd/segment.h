/* What a node of rapt_recompute holds: a function, and all that its second run needs. */
#ifndef RAPT_AUTOGRAD_SEGMENT_H
#define RAPT_AUTOGRAD_SEGMENT_H

#include <rapt/recompute.h>

#include "autograd/observe.h"
#include "node.h"

/* A storage that must not change before the second run. */
typedef struct rapt_kept_storage {
    rapt_tensor *tensor; /* a share of a tensor that looks at it; NULL: whatever becomes of it */
    uint64_t version;
} rapt_kept_storage;

/* What the second run needs to be the first once more. */
typedef struct rapt_segment {
    rapt_recompute_function *function; /* one of these is NULL */
    rapt_recompute_many_function *many;
    void *context;
    void (*free_context)(void *context);
    int input_count, output_count;
    rapt_tensor *inputs[RAPT_MAX_SAVED]; /* a share of each */
    rapt_random_state random;
    rapt_module_place place;
    uint64_t digest; /* of the outputs */
    /* Of the inputs, and of what else the function's graph saved and had not made itself. */
    rapt_kept_storage *kept;
    int64_t kept_count;
    size_t kept_bytes, capacity; /* the allocator's */
} rapt_segment;

/* How many the thread has recorded. */
uint64_t rapt_count_segments(void);

/* Calls the function. False after an error, and where an output is missing. */
bool rapt_segment_run(const rapt_segment *segment, rapt_tensor *const *inputs, rapt_tensor **outputs);

/* A number that other outputs hardly have, too. False after an error. */
bool rapt_segment_digest(const rapt_segment *segment, rapt_tensor *const *outputs, uint64_t *digest);

/* The vjp of the node, whose options are a pointer to the segment. */
bool rapt_segment_vjp(rapt_call *call);

#endif
