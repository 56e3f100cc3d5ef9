/* Attention across ranks: where keys are, how they go round, and what a mask means there. */
#ifndef RAPT_NN_RING_H
#define RAPT_NN_RING_H

#include <rapt/ring.h>

#include "nn/mask.h"

/* Neighbouring keys of one rank: the place of the first, how many, and which of the rank's rows the first is. */
typedef struct rapt_ring_run {
    int64_t first, count, row;
} rapt_ring_run;

/* One of the two blocks of a rank. */
rapt_ring_run rapt_ring_block(const rapt_ring *ring, int rank, int half);

/* How many keys the longest block of all has. */
int64_t rapt_ring_longest_block(const rapt_ring *ring);

/* rapt_resolve_mask for this rank's queries and the keys of all ranks, of which it has `own` ones; fills in where the
 * queries stand. False after an error. */
bool rapt_ring_resolve_mask(const char *op, rapt_ring *ring, rapt_mask *mask, rapt_dtype dtype, int64_t batch,
                            int64_t heads, int64_t queries, int64_t own, rapt_resolved_mask *resolved);

/* Calls the ring's `agree`, and counts. */
bool rapt_ring_agree(rapt_ring *ring, const char *op, bool good, const char *text);

/* The same, where a backward pass ends. */
bool rapt_ring_end_backward(void *ring, const char *op, bool good);

/* A rank whose call gave nothing and was not at any of its meetings tells the others: before: ring->meetings when it
 * began. ring NULL: nothing. */
void rapt_ring_tell(rapt_ring *ring, const char *op, bool failed, int64_t before);

/* A call that goes across ranks more than once, and computes between. */
typedef struct rapt_ring_call {
    rapt_ring *ring;  /* NULL: it does not */
    int64_t failures; /* the ring's, when it began */
} rapt_ring_call;

rapt_ring_call rapt_ring_begin(rapt_ring *ring);

/* The call's result, or NULL on all ranks where one has none: the others must not wait for it. */
rapt_tensor *rapt_ring_end(const rapt_ring_call *call, const char *op, rapt_tensor *result);

/* Some neighbouring keys and their values, (B, groups, last − first, size) or without groups, and the sums of their
 * gradients so far, which are to be added to; NULL in forward. */
typedef struct rapt_ring_visit {
    int64_t first, last;
    rapt_tensor *keys, *values, *d_keys, *d_values;
} rapt_ring_visit;

/* The way of all keys and values past this rank, a piece at a time. */
typedef struct rapt_ring_walk {
    rapt_ring *ring;
    const char *op;
    rapt_tensor *keys, *values;     /* this rank's */
    rapt_tensor *d_keys, *d_values; /* their gradients, to be written; NULL: forward */
    bool adds_keys, adds_values;    /* or added to */
    bool (*visit)(void *context, const rapt_ring_visit *visit);
    bool (*finish)(void *context); /* in the end; NULL: nothing is left to do */
    void *context;
    int64_t width;         /* elements of a key and its value, of all items and groups */
    int64_t piece;         /* keys of each block that travel together */
    rapt_tensor *pairs[2]; /* keys and values of the piece that is here, and of the one that comes */
    rapt_tensor *sums[3];  /* gradients: of the piece here from other ranks, and by turns from this one */
} rapt_ring_walk;

/* For ops that go round. */
#define rapt_no_second_gradient_of_ring                                                                                \
    "attention across ranks has first derivatives only; on one rank it has those of any order"

/* Makes room. False after an error. */
bool rapt_ring_prepare(rapt_ring_walk *walk);

/* Meets the other ranks, who must be well and make the same call, and visits all keys; false on all ranks after an
 * error on one. `good`: is this one well? */
bool rapt_ring_go(rapt_ring_walk *walk, bool good);

#endif
