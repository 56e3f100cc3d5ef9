/* Files hold numbers with the lowest byte first; memory holds them in the machine's order. */
#ifndef RAPT_TENSOR_BYTE_ORDER_H
#define RAPT_TENSOR_BYTE_ORDER_H

#include <rapt/tensor.h>

#define RAPT_IS_LITTLE_ENDIAN (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__)

/* Turns the bytes of each element of a contiguous tensor around. */
void rapt_swap_bytes(const rapt_tensor *tensor);

/* The tensor, contiguous, with the bytes that its elements have in a file. NULL after an error, and of NULL. */
const rapt_tensor *rapt_as_in_file(const rapt_tensor *tensor);

#endif
