/* Random choices for tests that try many cases, the same for a seed everywhere. */
#ifndef RAPT_TESTS_DRAW_H
#define RAPT_TESTS_DRAW_H

#include <stdbool.h>
#include <stdint.h>

/* A source of random numbers that is the same everywhere (Steele et al. 2014). */
static inline uint64_t draw(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

static inline int64_t draw_below(uint64_t *state, int64_t bound)
{
    return (int64_t)(draw(state) % (uint64_t)bound);
}

static inline bool draw_chance(uint64_t *state, int percent)
{
    return draw_below(state, 100) < percent;
}

/* Between −2 and 2. */
static inline double draw_number(uint64_t *state)
{
    return (double)(draw(state) >> 11) * 0x1p-51 - 2;
}

#endif
