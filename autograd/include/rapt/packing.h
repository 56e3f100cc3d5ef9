/* Batches of sequences of different lengths without padding: rows behind one another. */
#ifndef RAPT_PACKING_H
#define RAPT_PACKING_H

#include <rapt/op.h>

RAPT_BEGIN_DECLS

/* A packing is a tensor of starts, int64 or int32 (B + 1): sequence b has the rows starts[b] … starts[b + 1] − 1, so
 * the first start is 0 and the last the number of rows. What works row by row (embedding, linear layers, norms,
 * dropout, activations, losses) runs on the rows as they are; attention takes the starts in its mask, and positions
 * are a tensor. Starts that are none are an error; NULL gives NULL. */

/* Of lengths (B), int64 or int32, 0 or more. */
RAPT_API rapt_tensor *rapt_packing_starts(rapt_tensor *lengths);

/* int64 (rows): the place of each row in its sequence, from 0 on. */
RAPT_API rapt_tensor *rapt_packing_positions(rapt_tensor *starts);

/* (B, T, …) → (rows, …): the first places of each sequence; no other place is read. Any dtype. */
RAPT_API rapt_tensor *rapt_pack(rapt_tensor *x, rapt_tensor *starts);

/* (rows, …) → (B, length, …), the value in the places behind a sequence. length 0: that of the longest. */
RAPT_API rapt_tensor *rapt_unpack(rapt_tensor *rows, rapt_tensor *starts, int64_t length, double value);

/* A list of 1 or more sequences (T, …), of different T → (rows, …), and their starts in *starts; NULL both after an
 * error. */
RAPT_API rapt_tensor *rapt_pack_sequences(int count, rapt_tensor *const *sequences, rapt_tensor **starts);

RAPT_END_DECLS

#endif
