/* A hash of bytes: FNV-1a (Fowler, Noll, Vo). */
#ifndef EXAMPLES_HASH_H
#define EXAMPLES_HASH_H

#include <stddef.h>
#include <stdint.h>

/* What hash_bytes begins with; the hash of some bytes goes on with others behind them. */
#define HASH_BEGIN UINT64_C(0xCBF29CE484222325)

static inline uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++) hash = (hash ^ ((const unsigned char *)bytes)[i]) * UINT64_C(0x100000001B3);
    return hash;
}

#endif
