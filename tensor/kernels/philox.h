// Philox4x32-10, the counter-based generator behind every random tensor, and what is made from its words.
// Salmon, Moraes, Dror, Shaw: Parallel Random Numbers: As Easy as 1, 2, 3 (2011).
#ifndef RAPT_TENSOR_KERNELS_PHILOX_H
#define RAPT_TENSOR_KERNELS_PHILOX_H

#include <math.h>
#include <stdint.h>

#include "vector_math.h"

// Four words depend on seed, stream and block alone, so any thread can make any block: the numbers do not depend on how
// the work is split. Loops over blocks vectorise, except where rapt_philox_normal_double calls libm.
struct rapt_philox_block {
    uint32_t word[4];
};

struct rapt_philox_pair_float {
    float first, second;
};

struct rapt_philox_pair_double {
    double first, second;
};

RAPT_MATH_INLINE struct rapt_philox_block rapt_philox_round(struct rapt_philox_block in, uint64_t seed, uint32_t round)
{
    uint32_t key0 = (uint32_t)seed + round * 0x9e3779b9u;
    uint32_t key1 = (uint32_t)(seed >> 32) + round * 0xbb67ae85u;
    uint64_t product0 = (uint64_t)0xd2511f53u * in.word[0];
    uint64_t product1 = (uint64_t)0xcd9e8d57u * in.word[2];
    struct rapt_philox_block out;
    out.word[0] = (uint32_t)(product1 >> 32) ^ in.word[1] ^ key0;
    out.word[1] = (uint32_t)product1;
    out.word[2] = (uint32_t)(product0 >> 32) ^ in.word[3] ^ key1;
    out.word[3] = (uint32_t)product0;
    return out;
}

// Block number `index` of a stream; the counter is index (low words) and stream (high words), the key is the seed.
RAPT_MATH_INLINE struct rapt_philox_block rapt_philox(uint64_t seed, uint64_t stream, uint64_t index)
{
    struct rapt_philox_block block;
    block.word[0] = (uint32_t)index;
    block.word[1] = (uint32_t)(index >> 32);
    block.word[2] = (uint32_t)stream;
    block.word[3] = (uint32_t)(stream >> 32);
    // written out: compilers vectorise a loop over blocks only when no loop is left inside
    block = rapt_philox_round(block, seed, 0);
    block = rapt_philox_round(block, seed, 1);
    block = rapt_philox_round(block, seed, 2);
    block = rapt_philox_round(block, seed, 3);
    block = rapt_philox_round(block, seed, 4);
    block = rapt_philox_round(block, seed, 5);
    block = rapt_philox_round(block, seed, 6);
    block = rapt_philox_round(block, seed, 7);
    block = rapt_philox_round(block, seed, 8);
    return rapt_philox_round(block, seed, 9);
}

// Uniform in [0, 1), a multiple of 2^-24.
RAPT_MATH_INLINE float rapt_philox_uniform_float(uint32_t word)
{
    return (float)(int32_t)(word >> 8) * 0x1p-24f;
}

// Uniform in [0, 1), a multiple of 2^-53.
RAPT_MATH_INLINE double rapt_philox_uniform_double(uint32_t high, uint32_t low)
{
    return (double)(int32_t)(high >> 5) * 0x1p-27 + (double)(int32_t)(low >> 6) * 0x1p-53;
}

// A chance as integers: a word is a hit when it is below chance * 2^32.
typedef struct rapt_philox_chance {
    uint32_t last; // the highest word that is a hit
    uint32_t any;  // 0 when no word is
} rapt_philox_chance;

RAPT_MATH_INLINE rapt_philox_chance rapt_philox_chance_of(double probability)
{
    uint64_t hits = (uint64_t)ceil(probability * 0x1p32);
    rapt_philox_chance chance;
    chance.last = (uint32_t)(hits - (hits > 0));
    chance.any = hits > 0;
    return chance;
}

RAPT_MATH_INLINE uint32_t rapt_philox_is_hit(uint32_t word, rapt_philox_chance chance)
{
    return (uint32_t)(word <= chance.last) & chance.any;
}

// Box and Muller (1958): sqrt(-2 log u) (cos t, sin t) with u uniform in (0, 1] and t in [0, 2 pi).
// All 32 bits of each word count, so that |normal| reaches 6.7.
RAPT_MATH_INLINE struct rapt_philox_pair_float rapt_philox_normal_float(uint32_t length_word, uint32_t angle_word)
{
    float radius = sqrtf(-2.0f * rapt_math_logf(((float)length_word + 0.5f) * 0x1p-32f));
    // t = quadrant * pi/2 + remainder * (pi/2) / 2^30 with remainder in [-2^29, 2^29)
    int32_t remainder = (int32_t)(angle_word << 2) >> 2;
    uint32_t quadrant = (angle_word - (uint32_t)remainder) >> 30;
    float angle = (float)remainder * 0x1.921fb6p-30f;
    struct rapt_philox_pair_float pair;
    pair.first = radius * rapt_math_sin_quadrant(angle, quadrant + 1u);
    pair.second = radius * rapt_math_sin_quadrant(angle, quadrant);
    return pair;
}

// The same in double, from one whole block.
RAPT_MATH_INLINE struct rapt_philox_pair_double rapt_philox_normal_double(struct rapt_philox_block block)
{
    double u = 1.0 - rapt_philox_uniform_double(block.word[0], block.word[1]);
    double angle = 0x1.921fb54442d18p+2 * rapt_philox_uniform_double(block.word[2], block.word[3]);
    double radius = sqrt(-2.0 * log(u));
    struct rapt_philox_pair_double pair;
    pair.first = radius * cos(angle);
    pair.second = radius * sin(angle);
    return pair;
}

#endif
