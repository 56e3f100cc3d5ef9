/* SplitMix64. */
#include "splitmix.h"

uint64_t splitmix_next(struct splitmix *generator)
{
    uint64_t bits = generator->state += UINT64_C(0x9E3779B97F4A7C15);
    bits = (bits ^ (bits >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    bits = (bits ^ (bits >> 27)) * UINT64_C(0x94D049BB133111EB);
    return bits ^ (bits >> 31);
}

uint64_t splitmix_below(struct splitmix *generator, uint64_t bound)
{
    /* The 2^64 mod bound smallest values would make some remainders likelier than others: draw again. */
    uint64_t unfair = (0 - bound) % bound;
    uint64_t bits;
    do bits = splitmix_next(generator);
    while (bits < unfair);
    return bits % bound;
}
