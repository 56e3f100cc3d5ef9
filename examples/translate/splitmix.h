/* SplitMix64 (Steele, Lea and Flood 2014): the small generator that splits data, the same on every machine. */
#ifndef TRANSLATE_SPLITMIX_H
#define TRANSLATE_SPLITMIX_H

#include <stdint.h>

/* Any value is a good state to start from: the seed itself. */
struct splitmix {
    uint64_t state;
};

/* The next 64 random bits. */
uint64_t splitmix_next(struct splitmix *generator);

/* A uniform number in [0, bound), without bias. bound must not be 0. */
uint64_t splitmix_below(struct splitmix *generator, uint64_t bound);

#endif
