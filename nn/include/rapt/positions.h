/* Where a token stands: sinusoidal, learned and rotary positions, ALiBi, and learned relative biases. */
#ifndef RAPT_POSITIONS_H
#define RAPT_POSITIONS_H

#include <rapt/layers.h>

RAPT_BEGIN_DECLS

/* (length, size): sin(i / 10000^(2j/size)) in column 2j, cos in column 2j + 1 (Vaswani et al. 2017); any size ≥ 1;
 * angles in float64. Rows are the positions offset … offset + length − 1. */
RAPT_API rapt_tensor *rapt_sinusoidal(rapt_dtype dtype, int64_t offset, int64_t length, int64_t size);

/* x (…, T, size) + sinusoidal positions offset … offset + T − 1, then dropout. No parameters; nothing is saved. */
typedef struct rapt_sinusoidal_positions {
    rapt_module module;
    int64_t size;
    double dropout;
    rapt_tensor *table; /* grows with the longest sequence seen */
} rapt_sinusoidal_positions;

/* Row 0 of x stands at the offset. */
RAPT_API rapt_sinusoidal_positions *rapt_sinusoidal_positions_new(int64_t size, double dropout);
RAPT_API rapt_tensor *rapt_sinusoidal_positions_forward(rapt_sinusoidal_positions *positions, rapt_tensor *x,
                                                        int64_t offset);

/* The same where the place of each row is an element of `places`, integers (T) or of any shape that broadcasts to x's
 * without the last axis: (T) for all, (B, T) for each item, or rapt_packing_positions for packed rows. */
RAPT_API rapt_tensor *rapt_sinusoidal_positions_forward_at(rapt_sinusoidal_positions *positions, rapt_tensor *x,
                                                           rapt_tensor *places);

/* x (…, T, size) + learned rows, then dropout; parameter weight (count, size), from N(0, 1) as an embedding's; a
 * position past the last or below 0 is an error. */
typedef struct rapt_learned_positions {
    rapt_module module;
    rapt_tensor *weight;
    double dropout;
} rapt_learned_positions;

/* Row 0 of x stands at the offset. */
RAPT_API rapt_learned_positions *rapt_learned_positions_new(int64_t count, int64_t size, double dropout);
RAPT_API rapt_tensor *rapt_learned_positions_forward(rapt_learned_positions *positions, rapt_tensor *x, int64_t offset);
/* At places as above. */
RAPT_API rapt_tensor *rapt_learned_positions_forward_at(rapt_learned_positions *positions, rapt_tensor *x,
                                                        rapt_tensor *places);

/* Turns the pair (2j, 2j + 1), or with `halves` the pair (j, j + size / 2), of each vector at position i by the angle
 * i / base^(2j/size) (Su et al. 2021), computed in float64. x (…, T, size), size even; row 0 is at position offset. Its
 * gradient is the turn back. rapt_rotary keeps the sines and cosines between calls. */
RAPT_API rapt_tensor *rapt_rotate(rapt_tensor *x, int64_t offset, double base, bool halves);

/* Angles for longer contexts than a model was trained with, as LLaMA 3.1's report and weights have them: a pair that
 * turns less often than `low_turns` times in `context` positions is turned by 1 / factor of its angle, one that turns
 * more often than `high_turns` times as it was, and one between by 1 − s + s / factor of it, where s falls from 1 to 0.
 * With a context of 0 all angles are divided by the factor (position interpolation, Chen et al. 2023). All 0: they are
 * as they were. */
typedef struct rapt_rotary_scaling {
    double factor, low_turns, high_turns;
    int64_t context;
} rapt_rotary_scaling;

/* Turns as rapt_rotate does, with a table of the angles met so far. No parameters. */
typedef struct rapt_rotary {
    rapt_module module;
    double base;        /* 10000 */
    bool halves;        /* the pairing of GPT-NeoX and LLaMA's weights as Hugging Face has them; false: the paper's */
    rapt_tensor *table; /* sines and cosines of the positions seen so far */
    rapt_rotary_scaling scaling; /* none */
} rapt_rotary;

/* With base 10000 and the paper's pairs, until the fields are set otherwise; row 0 of x stands at the offset. */
RAPT_API rapt_rotary *rapt_rotary_new(void);
RAPT_API rapt_tensor *rapt_rotary_forward(rapt_rotary *rotary, rapt_tensor *x, int64_t offset);
/* At places as above; for x (B, heads, T, size) that are each item's own they are (B, 1, T). */
RAPT_API rapt_tensor *rapt_rotary_forward_at(rapt_rotary *rotary, rapt_tensor *x, rapt_tensor *places);

/* −slope · |j − i|, slopes 2^(−8h/heads) as Press et al. 2021 give them (other counts than powers of 2 take every
 * second of the next power's): a relative_bias (heads, 1, 2·reach + 1) for a mask. No parameters. */
typedef struct rapt_alibi {
    rapt_module module;
    int64_t heads;
} rapt_alibi;

/* For so many heads; forward gives the table for relative positions up to ±reach. */
RAPT_API rapt_alibi *rapt_alibi_new(int64_t heads);
RAPT_API rapt_tensor *rapt_alibi_forward(rapt_alibi *alibi, rapt_dtype dtype, int64_t reach);

/* A learned number for each head and relative position; parameter weight (heads, 2·reach + 1), zeros at first;
 * forward gives the relative_bias (heads, 1, 2·reach + 1). Shaw's relative positions are rapt_relative_scoring_new. */
typedef struct rapt_relative_bias {
    rapt_module module;
    rapt_tensor *weight;
} rapt_relative_bias;

/* For so many heads, and relative positions up to ±reach. */
RAPT_API rapt_relative_bias *rapt_relative_bias_new(int64_t heads, int64_t reach);
RAPT_API rapt_tensor *rapt_relative_bias_forward(rapt_relative_bias *bias);

RAPT_END_DECLS

#endif
