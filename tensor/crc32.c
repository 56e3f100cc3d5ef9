/* CRC-32, eight bytes at a time: the sum of a byte that so many zero bytes follow is a table's entry, and sums add. */
#include "crc32.h"

void rapt_crc32_begin(rapt_crc32 *sum)
{
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t rest = byte;
        for (int bit = 0; bit < 8; bit++) rest = rest >> 1 ^ (rest & 1 ? UINT32_C(0xedb88320) : 0);
        sum->tables[0][byte] = rest;
    }
    for (int zeros = 1; zeros < 8; zeros++)
        for (int byte = 0; byte < 256; byte++) {
            const uint32_t before = sum->tables[zeros - 1][byte];
            sum->tables[zeros][byte] = before >> 8 ^ sum->tables[0][before & 255];
        }
    sum->rest = UINT32_MAX;
}

void rapt_crc32_add(rapt_crc32 *sum, const void *data, size_t size)
{
    const uint8_t *bytes = data;
    uint32_t rest = sum->rest;
    for (; size >= 8; size -= 8, bytes += 8) {
        uint32_t next = 0;
        for (int i = 0; i < 4; i++) next ^= sum->tables[7 - i][(bytes[i] ^ rest >> 8 * i) & 255];
        for (int i = 4; i < 8; i++) next ^= sum->tables[7 - i][bytes[i]];
        rest = next;
    }
    for (; size > 0; size--, bytes++) rest = rest >> 8 ^ sum->tables[0][(*bytes ^ rest) & 255];
    sum->rest = rest;
}

uint32_t rapt_crc32_of(const rapt_crc32 *sum)
{
    return ~sum->rest;
}
