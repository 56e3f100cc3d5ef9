/* Fused additive attention of this rank's queries and the keys of all ranks. */
#ifndef RAPT_NN_ADDITIVE_RING_H
#define RAPT_NN_ADDITIVE_RING_H

#include <rapt/ring.h>

#include "tensor/additive_attention.h"
#include "tensor/core.h"

/* This rank's rows: what such a call reads, and what it writes whole, or, where it says so, adds to. */
typedef struct rapt_additive_ring_rows {
    rapt_tensor *keys, *values, *weight;        /* keys are projected */
    rapt_tensor *out, *statistics;              /* forward */
    rapt_tensor *d_queries, *d_keys, *d_values; /* backward; */
    rapt_tensor *d_weights;                     /* (batch · groups, hidden), of the weights: of each item and group */
} rapt_additive_ring_rows;

/* rapt_additive_attention_forward and _backward for such a call, which has no keys and values. False on all ranks after
 * an error on one. */
bool rapt_additive_ring_forward(const char *op, rapt_ring *ring, const rapt_additive_attention *call,
                                const rapt_additive_output *output, const rapt_additive_ring_rows *rows);
bool rapt_additive_ring_backward(const char *op, rapt_ring *ring, const rapt_additive_attention *call,
                                 const rapt_additive_gradient *gradient, const rapt_additive_ring_rows *rows);

#endif
