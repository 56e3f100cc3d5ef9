/* Random fills and dropout. Element i takes its numbers from block state.offset + i / (elements a block) alone. */
#include <string.h>

#include "loop.h"
#include "philox.h"

/* A kernel that fills whole blocks in a loop that compilers vectorise; the elements of a last, partial block go through
 * a copy. `prepare` makes constants of the options a and b; `make` sets out[0] … out[per_block − 1] from `words`. */
#define RANDOM_LOOP(function, T, per_block, prepare, make)                                                             \
    static void function##_blocks(uint64_t seed, uint64_t index, int64_t blocks, T *all, double a, double b)           \
    {                                                                                                                  \
        (void)b;                                                                                                       \
        prepare;                                                                                                       \
        RAPT_SIMD for (int64_t i = 0; i < blocks; i++)                                                                 \
        {                                                                                                              \
            const struct rapt_philox_block words = rapt_philox(seed, 0, index + (uint64_t)i);                          \
            T *out = all + per_block * i;                                                                              \
            make;                                                                                                      \
        }                                                                                                              \
    }                                                                                                                  \
                                                                                                                       \
    static void function(rapt_random_state state, int64_t first, int64_t count, void *out, double a, double b)         \
    {                                                                                                                  \
        const uint64_t index = state.offset + (uint64_t)(first / per_block);                                           \
        const int64_t blocks = count / per_block, done = blocks * per_block;                                           \
        function##_blocks(state.seed, index, blocks, out, a, b);                                                       \
        if (done == count) return;                                                                                     \
        T last[per_block];                                                                                             \
        function##_blocks(state.seed, index + (uint64_t)blocks, 1, last, a, b);                                        \
        memcpy((T *)out + done, last, (size_t)(count - done) * sizeof(T));                                             \
    }

/* out[j] from each of the four words, written out: a loop inside would keep gcc from vectorising the one around it. */
#define EACH_WORD(make) (out[0] = make(0), out[1] = make(1), out[2] = make(2), out[3] = make(3))

#define SPAN(T) const T low = (T)a, width = (T)(b - a)

#define UNIFORM_WORD(j) low + width *rapt_philox_uniform_float(words.word[j])
RANDOM_LOOP(uniform_float32, float, 4, SPAN(float), EACH_WORD(UNIFORM_WORD))

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

#define HIT_WORD(j) (uint8_t) rapt_philox_is_hit(words.word[j], one)
RANDOM_LOOP(bernoulli_uint8, uint8_t, 4, const rapt_philox_chance one = rapt_philox_chance_of(a), EACH_WORD(HIT_WORD))

/* In two passes over pieces that stay in the nearest cache: the mask, then the product. */
enum { mask_size = 4096 };

#define DROPOUT(function, T)                                                                                           \
    static void function(rapt_random_state state, int64_t first, int64_t count, void *out, const void *in,             \
                         double keep, double scale)                                                                    \
    {                                                                                                                  \
        uint8_t mask[mask_size];                                                                                       \
        const T factor = (T)scale;                                                                                     \
        for (int64_t start = 0; start < count; start += mask_size) {                                                   \
            const int64_t length = count - start < mask_size ? count - start : mask_size;                              \
            const T *piece_in = (const T *)in + start;                                                                 \
            T *piece_out = (T *)out + start;                                                                           \
            bernoulli_uint8(state, first + start, length, mask, keep, 0);                                              \
            RAPT_SIMD for (int64_t i = 0; i < length; i++)                                                             \
            {                                                                                                          \
                const T kept = piece_in[i] * factor;                                                                   \
                piece_out[i] = mask[i] ? kept : 0;                                                                     \
            }                                                                                                          \
        }                                                                                                              \
    }

DROPOUT(dropout_float32, float)
DROPOUT(dropout_float64, double)

void RAPT_AT_LEVEL(rapt_fill_random)(rapt_kernels *kernels)
{
    kernels->random = (rapt_random_kernels){
        .uniform = {RAPT_FLOATING_ROW(uniform)},
        .normal = {RAPT_FLOATING_ROW(normal)},
        .dropout = {RAPT_FLOATING_ROW(dropout)},
        .bernoulli = bernoulli_uint8,
    };
}
