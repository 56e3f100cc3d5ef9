/* The check sum of zip files (and of PNG): CRC-32 of the reversed polynomial edb88320. */
#ifndef RAPT_TENSOR_CRC32_H
#define RAPT_TENSOR_CRC32_H

#include <rapt/base.h>

/* A sum so far, and the tables by which 8 bytes are added at once. */
typedef struct rapt_crc32 {
    uint32_t tables[8][256];
    uint32_t rest;
} rapt_crc32;

void rapt_crc32_begin(rapt_crc32 *sum);
void rapt_crc32_add(rapt_crc32 *sum, const void *data, size_t size);
uint32_t rapt_crc32_of(const rapt_crc32 *sum);

#endif
