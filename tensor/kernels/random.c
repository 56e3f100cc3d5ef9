/* Random fills and dropout. Element i takes its numbers from block state.offset + i / (elements a block) alone. */
#include <string.h>

#include "loop.h"
#include "philox.h"

/* Chances as integers: a 32-bit word is a hit when it is below chance · 2^32. */
typedef struct chance {
    uint32_t last; /* the highest word that is a hit */
    uint32_t any;  /* 0 when no word is */
} chance;

static chance chance_of(double probability)
{
    const uint64_t hits = (uint64_t)ceil(probability * 0x1p32);
    return (chance){.last = (uint32_t)(hits - (hits > 0)), .any = hits > 0};
}

static inline uint32_t is_hit(uint32_t word, chance chance)
{
    return (word <= chance.last) & chance.any;
}

/* A kernel that fills whole blocks in a loop that compilers vectorise; the elements of a last, partial block go through
 * a copy. `prepare` makes constants of the options a and b; `make` sets out[0] … out[per_block − 1] from `words`. */
#define RANDOM_LOOP(function, T, per_block, prepare, make)                                                             \
    static void function##_blocks(uint64_t seed, uint64_t index, int64_t blocks, T *all_out, const T *all_in,          \
                                  double a, double b)                                                                  \
    {                                                                                                                  \
        (void)all_in, (void)b;                                                                                         \
        prepare;                                                                                                       \
        RAPT_SIMD for (int64_t i = 0; i < blocks; i++)                                                                 \
        {                                                                                                              \
            const struct rapt_philox_block words = rapt_philox(seed, 0, index + (uint64_t)i);                          \
            T *out = all_out + per_block * i;                                                                          \
            make;                                                                                                      \
        }                                                                                                              \
    }                                                                                                                  \
                                                                                                                       \
    static void function(rapt_random_state state, int64_t first, int64_t count, void *out, const void *in, double a,   \
                         double b)                                                                                     \
    {                                                                                                                  \
        const uint64_t index = state.offset + (uint64_t)(first / per_block);                                           \
        const int64_t blocks = count / per_block, done = blocks * per_block;                                           \
        const size_t rest = (size_t)(count - done) * sizeof(T);                                                        \
        function##_blocks(state.seed, index, blocks, out, in, a, b);                                                   \
        if (rest == 0) return;                                                                                         \
        T last_out[per_block], last_in[per_block] = {0};                                                               \
        if (in) memcpy(last_in, (const T *)in + done, rest);                                                           \
        function##_blocks(state.seed, index + (uint64_t)blocks, 1, last_out, last_in, a, b);                           \
        memcpy((T *)out + done, last_out, rest);                                                                       \
    }

/* The same for each of a block's four words: out[j] from word. */
#define EACH_WORD(make)                                                                                                \
    for (int j = 0; j < 4; j++) {                                                                                      \
        const uint32_t word = words.word[j];                                                                           \
        make;                                                                                                          \
    }

#define SPAN(T) const T low = (T)a, width = (T)(b - a)

RANDOM_LOOP(uniform_float32, float, 4, SPAN(float), EACH_WORD(out[j] = low + width * rapt_philox_uniform_float(word)))

RANDOM_LOOP(uniform_float64, double, 2, SPAN(double), {
    out[0] = low + width * rapt_philox_uniform_double(words.word[0], words.word[1]);
    out[1] = low + width * rapt_philox_uniform_double(words.word[2], words.word[3]);
})

#define BELL(T) const T mean = (T)a, deviation = (T)b

RANDOM_LOOP(normal_float32, float, 4, BELL(float), {
    const struct rapt_philox_pair_float one = rapt_philox_normal_float(words.word[0], words.word[1]);
    const struct rapt_philox_pair_float two = rapt_philox_normal_float(words.word[2], words.word[3]);
    out[0] = mean + deviation * one.first;
    out[1] = mean + deviation * one.second;
    out[2] = mean + deviation * two.first;
    out[3] = mean + deviation * two.second;
})

RANDOM_LOOP(normal_float64, double, 2, BELL(double), {
    const struct rapt_philox_pair_double pair = rapt_philox_normal_double(words);
    out[0] = mean + deviation * pair.first;
    out[1] = mean + deviation * pair.second;
})

RANDOM_LOOP(bernoulli_uint8, uint8_t, 4, const chance one = chance_of(a), EACH_WORD(out[j] = (uint8_t)is_hit(word, one)))

#define DROPOUT(function, T)                                                                                           \
    RANDOM_LOOP(                                                                                                       \
        function, T, 4, const chance keep = chance_of(a); const T scale = (T)b,                                        \
        const T *in = all_in + 4 * i; EACH_WORD(const T kept = in[j] * scale; out[j] = is_hit(word, keep) ? kept : 0))

DROPOUT(dropout_float32, float)
DROPOUT(dropout_float64, double)

void RAPT_AT_LEVEL(rapt_fill_random)(rapt_kernels *kernels)
{
    kernels->random = (rapt_random_kernels){
        .uniform = {[RAPT_FLOAT32] = uniform_float32, [RAPT_FLOAT64] = uniform_float64},
        .normal = {[RAPT_FLOAT32] = normal_float32, [RAPT_FLOAT64] = normal_float64},
        .dropout = {[RAPT_FLOAT32] = dropout_float32, [RAPT_FLOAT64] = dropout_float64},
        .bernoulli = bernoulli_uint8,
    };
}
