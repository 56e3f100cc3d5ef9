/* What a data-parallel step costs: docs/ranks.md has the formulas. */
#ifndef RAPT_TESTS_MPI_COST_MODEL_H
#define RAPT_TESTS_MPI_COST_MODEL_H

#include <stdbool.h>

enum { cost_ring, cost_tree, cost_schemes };

/* Times in seconds, sizes in bytes; of one rank. */
typedef struct cost_input {
    int ranks, scheme;
    double latency;                 /* of a message */
    double bandwidth;               /* a second, in and out at once */
    double forward, backward;       /* of its part of the batch */
    double update;                  /* of all parameters by the optimizer */
    double handling;                /* of a byte of gradients by the processor, beside what a step alone does */
    double parameters, activations; /* bytes */
    double state;                   /* bytes of the optimizer for a byte of parameters: 2 for Adam */
    double bucket;                  /* the least bytes that travel together */
    double last;                    /* bytes of what is complete only when backward ends, as a tied embedding is */
    bool overlaps, sharded, shards_gradients;
    double latency_of_copies, bandwidth_of_copies; /* where the processor itself moves what travels; 0: it does not */
} cost_input;

typedef struct cost_output {
    double step, communication; /* of which some is hidden behind backward */
    double exposed;             /* what is not hidden */
    double memory;
} cost_output;

/* The time of summing so many bytes over all ranks and giving the sum to all. */
double cost_of_sum(const cost_input *in, double bytes);

cost_output cost_predict(const cost_input *in);

/* A causal sequence that is cut over ranks: keys and values go round while each rank attends to what it has. */
typedef struct cost_sequence {
    int ranks;
    double tokens, hidden, layers, parameters; /* numbers of them */
    double rate;                               /* floating-point operations a second of one rank */
    double latency, bandwidth;
} cost_sequence;

/* A training step; *computing gets the part that would be left with an endless network. */
double cost_of_sequence(const cost_sequence *in, double *computing);

#endif
