/* How the products of a batch are cut into tasks, and what those share. */
#ifndef RAPT_TENSOR_MULTIPLY_H
#define RAPT_TENSOR_MULTIPLY_H

#include "products.h"
#include "tensor/scratch.h"

typedef struct rapt_multiplication {
    rapt_products all;
    const rapt_matmul_kernels *kernels;
    int64_t item, near; /* bytes of an element; columns of packed b that stay in the second-level cache */
    int64_t row_tiles, column_tiles;
    rapt_scratch scratch;

    /* of products that pack together: the panels of a slab, which is some blocks of k for some rows or columns */
    bool shares_a;   /* rather than b */
    int64_t threads; /* that compute it: chooses the order of tiles, and nothing else */
    char *slab;
    int64_t block_bytes, first_block, last_block; /* of the slab */
    int64_t tiles, whole_tiles, tile_panels;      /* the whole ones have so many panels, the last ones one */
    int64_t sums; /* where a thread's scratch memory has the sums of a tile; 0: they are in c */
} rapt_multiplication;

/* Products so large that tiles would pack the same numbers many times: all threads first pack the smaller of a and b,
 * and then all take tiles, which pack their shares of the larger one. False after an error (no memory). */
bool rapt_multiply_together(const char *op, const rapt_multiplication *work, int64_t count);

#endif
