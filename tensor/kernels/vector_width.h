/* How wide the vectors of an instruction-set level are, for kernels that are written with them. */
#ifndef RAPT_KERNELS_VECTOR_WIDTH_H
#define RAPT_KERNELS_VECTOR_WIDTH_H

#if defined __AVX512F__
#define RAPT_VECTOR_BYTES 64
#elif defined __AVX__
#define RAPT_VECTOR_BYTES 32
#else
#define RAPT_VECTOR_BYTES 16
#endif

/* Rows that are summed side by side against two vectors of columns: as many as the registers hold. Of 32 registers,
 * eight rows leave half unused, but already keep both multiply-add pipes busy and divide the usual sizes. */
#if defined __AVX512F__
#define RAPT_TILE_ROWS 8
#elif defined __AVX__
#define RAPT_TILE_ROWS 6
#else
#define RAPT_TILE_ROWS 4
#endif

#endif
