/* Random fills and dropout. Element i takes its numbers from block state.offset + i / (elements a block) alone. */
#include <math.h>
#include <string.h>

#include "loop.h"
#include "philox_words.h"

enum { words_at_once = 1024 };

/* A kernel in pieces, whose words come first and stay in the nearest cache. An element needs words_each words; `make`
 * sets out[0] … out[each − 1] from as many times the words at `word`, and `prepare` makes constants of the options a
 * and b. An element that is left over goes through a copy. */
#define RANDOM_LOOP(function, T, words_each, each, prepare, make)                                                      \
    static void function##_steps(const uint32_t *words, int64_t steps, T *all, double a, double b)                     \
    {                                                                                                                  \
        (void)b;                                                                                                       \
        prepare;                                                                                                       \
        RAPT_SIMD for (int64_t i = 0; i < steps; i++)                                                                  \
        {                                                                                                              \
            const uint32_t *word = words + words_each * each * i;                                                      \
            T *out = all + each * i;                                                                                   \
            make;                                                                                                      \
        }                                                                                                              \
    }                                                                                                                  \
                                                                                                                       \
    static void function(rapt_random_state state, int64_t first, int64_t count, void *out, double a, double b)         \
    {                                                                                                                  \
        enum { at_once = words_at_once / words_each };                                                                 \
        uint32_t words[words_at_once];                                                                                 \
        for (int64_t start = 0; start < count; start += at_once) {                                                     \
            const int64_t rest = count - start, length = rest < at_once ? rest : at_once, steps = length / each;       \
            const uint64_t block = (uint64_t)((first + start) * words_each / 4);                                       \
            T *piece = (T *)out + start, last[each];                                                                   \
            rapt_philox_words(state.seed, state.offset + block, (length * words_each + 3) / 4, words);                 \
            function##_steps(words, steps, piece, a, b);                                                               \
            if (steps * each == length) continue;                                                                      \
            function##_steps(words + words_each * each * steps, 1, last, a, b);                                        \
            piece[length - 1] = last[0];                                                                               \
        }                                                                                                              \
    }

/* The sum may be rounded up to b, which is none of the numbers. */
#define SPAN(T, nextafter) const T low = (T)a, width = (T)(b - a), last = nextafter((T)b, low)

RANDOM_LOOP(uniform_float32, float, 1, 1, SPAN(float, nextafterf),
            const float x = low + width * rapt_philox_uniform_float(word[0]);
            out[0] = x < last ? x : last)
RANDOM_LOOP(uniform_float64, double, 2, 1, SPAN(double, nextafter),
            const double x = low + width * rapt_philox_uniform_double(word[0], word[1]);
            out[0] = x < last ? x : last)

#define BELL(T) const T mean = (T)a, deviation = (T)b

RANDOM_LOOP(normal_float32, float, 1, 2, BELL(float), {
    const struct rapt_philox_pair_float pair = rapt_philox_normal_float(word[0], word[1]);
    out[0] = mean + deviation * pair.first;
    out[1] = mean + deviation * pair.second;
})

RANDOM_LOOP(normal_float64, double, 2, 2, BELL(double), {
    struct rapt_philox_block block;
    memcpy(block.word, word, sizeof block.word);
    const struct rapt_philox_pair_double pair = rapt_philox_normal_double(block);
    out[0] = mean + deviation * pair.first;
    out[1] = mean + deviation * pair.second;
})

RANDOM_LOOP(bernoulli_uint8, uint8_t, 1, 1, const rapt_philox_chance one = rapt_philox_chance_of(a),
            out[0] = (uint8_t)rapt_philox_is_hit(word[0], one))

#define DROPOUT(function, T)                                                                                           \
    static void function(rapt_random_state state, int64_t first, int64_t count, void *out, const void *in,             \
                         double keep, double scale)                                                                    \
    {                                                                                                                  \
        uint32_t words[words_at_once];                                                                                 \
        const rapt_philox_chance one = rapt_philox_chance_of(keep);                                                    \
        const T factor = (T)scale;                                                                                     \
        for (int64_t start = 0, length; start < count; start += length) {                                              \
            const int64_t skipped = (first + start) % 4, rest = count - start, most = words_at_once - skipped;         \
            const uint32_t *word = words + skipped;                                                                    \
            const T *piece_in = (const T *)in + start;                                                                 \
            T *piece_out = (T *)out + start;                                                                           \
            length = rest < most ? rest : most;                                                                        \
            rapt_philox_words(state.seed, state.offset + (uint64_t)((first + start) / 4), (skipped + length + 3) / 4,  \
                              words);                                                                                  \
            RAPT_SIMD for (int64_t i = 0; i < length; i++)                                                             \
            {                                                                                                          \
                const T kept = piece_in[i] * factor;                                                                   \
                piece_out[i] = rapt_philox_is_hit(word[i], one) ? kept : 0;                                            \
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
