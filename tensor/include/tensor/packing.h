/* Packings as the library's own folders read them: sequences of different lengths, behind one another. */
#ifndef RAPT_TENSOR_PACKING_H
#define RAPT_TENSOR_PACKING_H

#include "tensor/core.h"

/* Sequence b has the rows starts[b] … starts[b + 1] − 1. */
typedef struct rapt_raw_packing {
    const int64_t *starts; /* sequences + 1 of them, from 0 on, none below the one before */
    int64_t sequences, rows, longest;
} rapt_raw_packing;

/* Reads starts, int64 or int32 (B + 1). False and an error (under the op's name) if they are none. What a copy needs
 * belongs to the innermost scope. */
bool rapt_read_packing(const char *op, const rapt_tensor *starts, rapt_raw_packing *packing);

/* False and an error when there are not so many rows; what: how to call them. */
bool rapt_check_packed_rows(const char *op, const char *what, const rapt_raw_packing *packing, int64_t rows);

/* The first sequence without rows, or −1. */
int64_t rapt_find_empty_sequence(const rapt_raw_packing *packing);

static inline int64_t rapt_packed_length(const rapt_raw_packing *packing, int64_t sequence)
{
    return packing->starts[sequence + 1] - packing->starts[sequence];
}

#endif
