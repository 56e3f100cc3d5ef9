/* IDX files, as MNIST's pictures and labels are: a big-endian header, then bytes. */
#ifndef EXAMPLES_IDX_H
#define EXAMPLES_IDX_H

#include <stdint.h>

/* The bytes of a file with `rank` sizes, 1 to 3, none of them 0. The caller frees them. NULL after a sentence on
   stderr, "program: …", for what cannot be read, is not such a file, or not whole. */
unsigned char *idx_read(const char *program, const char *path, int rank, int64_t *sizes);

#endif
