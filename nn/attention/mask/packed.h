/* Attention of packed sequences by way of the padded batch. */
#ifndef RAPT_NN_PACKED_H
#define RAPT_NN_PACKED_H

#include "nn/pooling.h"

/* The same call for the padded batch, whose queries behind a sequence see nothing. False after an error. */
bool rapt_unpack_pooling(const char *op, const rapt_pooling *packed, rapt_pooling *padded);

/* What it gave, packed again: (B, heads, Q, v) → (1, heads, rows, v), or without the axis of heads. */
rapt_tensor *rapt_pack_pooled(const rapt_mask *mask, rapt_tensor *pooled);

#endif
