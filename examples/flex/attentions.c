/* Six attentions of the literature in a few lines each: changes of scores, rules of masks, normalisers. */
#include "attentions.h"

#include <math.h>

/* --- changes of scores, by functions over a tile --- */

/* A modification with the numbers that it learns, (1, 1, count), if any. */
typedef struct change {
    rapt_score_modification modification; /* first: a change is a modification, which is a module */
    rapt_tensor *numbers;
} change;

static bool capture(rapt_score_modification *modification, rapt_dtype dtype, rapt_tensor **captured)
{
    (void)dtype;
    captured[0] = ((change *)modification)->numbers;
    return true;
}

static change *change_new(rapt_score_function *forward, rapt_score_function *backward, int64_t count)
{
    static const rapt_module_class kind = {.name = "Change"};
    change *c = rapt_module_new(sizeof *c, &kind);
    if (!c) return NULL;
    c->modification.float32 = (rapt_score_functions){forward, backward};
    if (count > 0) {
        c->modification.captured_count = 1;
        c->modification.capture = capture;
        c->numbers = rapt_module_add_parameter(&c->modification.module, "numbers",
                                               rapt_zeros(RAPT_FLOAT32, RAPT_SHAPE(1, 1, count)));
    }
    return rapt_module_finish(&c->modification.module);
}

/* For each score of a tile: its query i, its key j, and its place in the tile. A change that does not ask for i and j
 * says so, (void)i, to compilers that warn of what is not used. */
#define FOR_TILE(tile)                                                                                                 \
    for (int64_t row = 0; row < (tile)->rows; row++)                                                                   \
        for (int64_t c = 0, i = (tile)->queries[row], j = (tile)->first_key, at = row * (tile)->stride;                \
             c < (tile)->columns; c++, j++, at++)

/* cap · tanh(score / cap), with the slope 1 − (new / cap)² */
static const float cap = CAP;

static void soft_cap(const rapt_score_tile *tile)
{
    float *scores = tile->scores;
    FOR_TILE(tile) scores[at] = cap * tanhf(scores[at] / cap), (void)i, (void)j;
}

static void differentiate_soft_cap(const rapt_score_tile *tile)
{
    const float *changed = tile->new_scores;
    float *gradient = tile->gradient;
    FOR_TILE(tile) gradient[at] *= 1 - changed[at] / cap * (changed[at] / cap), (void)i, (void)j;
}

/* score + numbers[number_of(j − i)] */
typedef int64_t number_of_position(int64_t position);

static void add_numbers(const rapt_score_tile *tile)
{
    number_of_position *number_of = *(number_of_position *const *)tile->options;
    const float *numbers = tile->captured[0];
    float *scores = tile->scores;
    FOR_TILE(tile) scores[at] += numbers[number_of(j - i)];
}

static void differentiate_numbers(const rapt_score_tile *tile)
{
    number_of_position *number_of = *(number_of_position *const *)tile->options;
    const float *gradient = tile->gradient;
    double *numbers = tile->captured_gradients[0];
    if (numbers) FOR_TILE(tile) numbers[number_of(j - i)] += (double)gradient[at];
}

static void modify_by_numbers(rapt_attention *attention, number_of_position *const *number_of, int64_t count)
{
    change *c = change_new(add_numbers, differentiate_numbers, count);
    if (!c) return;
    c->modification.options = number_of;
    c->modification.options_size = sizeof *number_of;
    rapt_attention_modify(attention, "change", &c->modification);
}

/* --- the six --- */

void use_soft_cap(rapt_attention *attention, rapt_mask *mask)
{
    (void)mask;
    change *c = change_new(soft_cap, differentiate_soft_cap, 0);
    if (!c) return;
    c->modification.reads_new = true;
    rapt_attention_modify(attention, "change", &c->modification);
}

enum { NEAREST = 8, BUCKETS = 10 };

static int64_t bucket(int64_t position)
{
    if (position > -NEAREST) return position < 0 ? -position : 0;
    return position > -2 * NEAREST ? NEAREST : NEAREST + 1;
}

void use_t5(rapt_attention *attention, rapt_mask *mask)
{
    static number_of_position *const number_of = bucket;
    (void)mask;
    modify_by_numbers(attention, &number_of, BUCKETS);
}

int64_t prefix_of(int64_t item)
{
    return 8 + item % 9;
}

void use_prefix(rapt_attention *attention, rapt_mask *mask)
{
    (void)attention;
    int64_t prefixes[BATCH];
    for (int64_t b = 0; b < BATCH; b++) prefixes[b] = prefix_of(b);
    mask->prefix_lengths = rapt_from(RAPT_INT64, RAPT_SHAPE(BATCH), prefixes);
}

void use_sink(rapt_attention *attention, rapt_mask *mask)
{
    (void)mask;
    rapt_attention_learn_sinks(attention, 1);
}

static int64_t within_reach(int64_t position)
{
    return REACH + (position < -REACH ? -REACH : position > REACH ? REACH : position);
}

void use_relative_bias(rapt_attention *attention, rapt_mask *mask)
{
    static number_of_position *const number_of = within_reach;
    (void)mask;
    modify_by_numbers(attention, &number_of, POSITIONS);
}

void use_sigmoid(rapt_attention *attention, rapt_mask *mask)
{
    (void)mask;
    attention->normalizer = rapt_masked_sigmoid;
    attention->sigmoid_bias = -log(LENGTH);
}
