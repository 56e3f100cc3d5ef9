/* Fused dot-product attention of this rank's queries and the keys of all ranks. */
#ifndef RAPT_NN_DOT_RING_H
#define RAPT_NN_DOT_RING_H

#include <rapt/ring.h>

#include "tensor/core.h"
#include "tensor/dot_attention.h"

/* (B, heads, rows, size) or (B, rows, size) as the kernels of dot-product attention read it. */
rapt_raw_rows rapt_raw_rows_of(const rapt_tensor *tensor);

/* This rank's rows: what such a call reads, and what it writes whole, or, where it says so, adds to. */
typedef struct rapt_dot_ring_rows {
    rapt_tensor *keys, *values;
    rapt_tensor *out, *statistics;              /* forward */
    rapt_tensor *d_queries, *d_keys, *d_values; /* backward */
} rapt_dot_ring_rows;

/* rapt_dot_attention_forward and _backward for such a call, whose own keys and values are not looked at. False on all
 * ranks after an error on one. */
bool rapt_dot_ring_forward(const char *op, rapt_ring *ring, const rapt_dot_attention *call,
                           const rapt_dot_ring_rows *rows);
bool rapt_dot_ring_backward(const char *op, rapt_ring *ring, const rapt_dot_attention *call,
                            const rapt_dot_ring_rows *rows);

#endif
