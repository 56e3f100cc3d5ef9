/* The words of many blocks of Philox at once. Compilers find no good way to vectorise the products of 32 by 32 bits in
 * rapt_philox, to which this is equal bit for bit: each lane of 64 bits holds a word, and what stands above it. */
#ifndef RAPT_KERNELS_PHILOX_WORDS_H
#define RAPT_KERNELS_PHILOX_WORDS_H

#include <string.h>

#include "philox.h"

#if defined __AVX512F__
#include <immintrin.h>
enum { philox_lanes = 8 };
#define PHILOX_ZIP_LOW(a, b) __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11)
#define PHILOX_ZIP_HIGH(a, b) __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15)
#define PHILOX_PRODUCT(a, b) (rapt_philox_lanes) _mm512_mul_epu32((__m512i)(a), (__m512i)(b))
#elif defined __AVX2__
#include <immintrin.h>
enum { philox_lanes = 4 };
#define PHILOX_ZIP_LOW(a, b) __builtin_shufflevector(a, b, 0, 4, 1, 5)
#define PHILOX_ZIP_HIGH(a, b) __builtin_shufflevector(a, b, 2, 6, 3, 7)
#define PHILOX_PRODUCT(a, b) (rapt_philox_lanes) _mm256_mul_epu32((__m256i)(a), (__m256i)(b))
#else
enum { philox_lanes = 2 };
#define PHILOX_ZIP_LOW(a, b) __builtin_shufflevector(a, b, 0, 2)
#define PHILOX_ZIP_HIGH(a, b) __builtin_shufflevector(a, b, 1, 3)
#if defined __SSE2__
#include <emmintrin.h>
#define PHILOX_PRODUCT(a, b) (rapt_philox_lanes) _mm_mul_epu32((__m128i)(a), (__m128i)(b))
#else
#define PHILOX_PRODUCT(a, b) (((a)&UINT32_MAX) * (b))
#endif
#endif

typedef uint64_t rapt_philox_lanes __attribute__((vector_size(8 * philox_lanes)));

/* Only the low half of a lane counts, and of a product's operands only that is read. */
typedef struct rapt_philox_vectors {
    rapt_philox_lanes word[4];
} rapt_philox_vectors;

RAPT_MATH_INLINE rapt_philox_vectors rapt_philox_round_of_lanes(rapt_philox_vectors in, uint64_t seed, uint32_t round)
{
    const rapt_philox_lanes zero = {0};
    const uint32_t key0 = (uint32_t)seed + round * 0x9e3779b9u, key1 = (uint32_t)(seed >> 32) + round * 0xbb67ae85u;
    const rapt_philox_lanes product0 = PHILOX_PRODUCT(in.word[0], zero + 0xd2511f53u);
    const rapt_philox_lanes product1 = PHILOX_PRODUCT(in.word[2], zero + 0xcd9e8d57u);
    rapt_philox_vectors out;
    out.word[0] = (product1 >> 32) ^ in.word[1] ^ (zero + key0);
    out.word[1] = product1;
    out.word[2] = (product0 >> 32) ^ in.word[3] ^ (zero + key1);
    out.word[3] = product0;
    return out;
}

/* Lanes that are in memory the word of a and behind it that of b. */
RAPT_MATH_INLINE rapt_philox_lanes rapt_philox_pair(rapt_philox_lanes a, rapt_philox_lanes b)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    return (a & UINT32_MAX) | b << 32;
#else
    return a << 32 | (b & UINT32_MAX);
#endif
}

/* The four words of each of philox_lanes blocks, one block after the other. */
RAPT_MATH_INLINE void rapt_philox_some(uint64_t seed, rapt_philox_lanes index, uint32_t *words)
{
    const rapt_philox_lanes zero = {0};
    rapt_philox_vectors v = {{index, index >> 32, zero, zero}};
#pragma GCC unroll 10
    for (uint32_t round = 0; round < 10; round++) v = rapt_philox_round_of_lanes(v, seed, round);
    const rapt_philox_lanes first = rapt_philox_pair(v.word[0], v.word[1]);
    const rapt_philox_lanes second = rapt_philox_pair(v.word[2], v.word[3]);
    const rapt_philox_lanes ordered[2] = {PHILOX_ZIP_LOW(first, second), PHILOX_ZIP_HIGH(first, second)};
    memcpy(words, ordered, sizeof ordered);
}

/* The words of the blocks [index, index + blocks) of stream 0, four each. */
static inline __attribute__((unused)) void rapt_philox_words(uint64_t seed, uint64_t index, int64_t blocks,
                                                             uint32_t *words)
{
    rapt_philox_lanes lanes;
    for (int lane = 0; lane < philox_lanes; lane++) lanes[lane] = index + (uint64_t)lane;
    int64_t done = 0;
    for (; done + philox_lanes <= blocks; done += philox_lanes, lanes += philox_lanes)
        rapt_philox_some(seed, lanes, words + 4 * done);
    if (done == blocks) return;
    uint32_t last[4 * philox_lanes];
    rapt_philox_some(seed, lanes, last);
    memcpy(words + 4 * done, last, (size_t)(4 * (blocks - done)) * sizeof *words);
}

#endif
