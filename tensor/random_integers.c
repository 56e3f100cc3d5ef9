/* Random integers without bias, and random orders. */
#include <rapt/random.h>

#include "kernels/philox.h"
#include "tensor/core.h"
#include "tensor/parallel.h"
#include "tensor/random.h"

/* The upper half of a product of 128 bits, which not every machine can hold. */
static uint64_t high_half(uint64_t a, uint64_t b)
{
    const uint64_t low = (a & UINT32_MAX) * (b & UINT32_MAX), upper = (a >> 32) * (b & UINT32_MAX);
    const uint64_t lower = (a & UINT32_MAX) * (b >> 32), high = (a >> 32) * (b >> 32);
    const uint64_t middle = (low >> 32) + (lower & UINT32_MAX) + upper;
    return high + (lower >> 32) + (middle >> 32);
}

/* Number `index` of a fill, uniform in [0, range): 64 random bits times range, of which the high half counts. The
 * few bits that would favour some results are thrown away, and the same block of the next stream is tried. Lemire:
 * Fast Random Integer Generation in an Interval (2019). */
static uint64_t bounded(rapt_random_state state, int64_t index, uint64_t range)
{
    for (uint64_t stream = 0;; stream++) {
        const struct rapt_philox_block block = rapt_philox(state.seed, stream, state.offset + (uint64_t)index / 2);
        const uint32_t *words = block.word + index % 2 * 2;
        const uint64_t bits = (uint64_t)words[0] << 32 | words[1];
        const uint64_t low_half = bits * range;
        if (low_half >= range || low_half >= (0 - range) % range) return high_half(bits, range);
    }
}

typedef struct integers {
    rapt_random_state state;
    int64_t low;
    uint64_t range;
    int64_t *out;
} integers;

static void fill_integers(void *context, int64_t first, int64_t last)
{
    const integers *job = context;
    for (int64_t i = first; i < last; i++)
        job->out[i] = (int64_t)((uint64_t)job->low + bounded(job->state, i, job->range));
}

rapt_tensor *rapt_randint(int64_t low, int64_t high, int rank, const int64_t *shape)
{
    if (low >= high) {
        rapt_fail(RAPT_ERROR_VALUE, "randint", "low %lld is not below high %lld", (long long)low, (long long)high);
        return NULL;
    }
    rapt_tensor *tensor = rapt_new("randint", RAPT_INT64, rank, shape);
    if (!tensor) return NULL;
    integers job = {.state = rapt_random_reserve_pairs(tensor->count),
                    .low = low,
                    .range = (uint64_t)high - (uint64_t)low,
                    .out = (int64_t *)(void *)tensor->data};
    rapt_parallel(tensor->count, rapt_grain(16), fill_integers, &job);
    return tensor;
}

/* Fisher and Yates, from the inside out: number i goes to a random place among the first i + 1. */
rapt_tensor *rapt_randperm(int64_t count)
{
    rapt_tensor *tensor = rapt_new("randperm", RAPT_INT64, 1, &count);
    if (!tensor) return NULL;
    const rapt_random_state state = rapt_random_reserve_pairs(count);
    int64_t *order = (int64_t *)(void *)tensor->data;
    for (int64_t i = 0; i < count; i++) {
        const uint64_t place = bounded(state, i, (uint64_t)i + 1);
        order[i] = order[place];
        order[place] = i;
    }
    return tensor;
}
