/* What a mask does to a piece of one row of scores, for all attention kernels. */
#ifndef RAPT_KERNELS_ATTENTION_MASK_H
#define RAPT_KERNELS_ATTENTION_MASK_H

#include <math.h>
#include <string.h>

#include "loop.h"
#include "tensor/mask_rule.h"

typedef struct rapt_key_range {
    int64_t first, last;
} rapt_key_range;

/* The keys that lengths and rules leave to a query. */
static inline rapt_key_range rapt_row_range(const rapt_raw_mask *mask, rapt_score_row row)
{
    if (!mask->ranges) return (rapt_key_range){0, mask->keys};
    const int64_t *range = mask->ranges + row.item * mask->range_item + 2 * row.query;
    return (rapt_key_range){range[0], range[1]};
}

static inline rapt_key_range rapt_intersect_ranges(rapt_key_range a, rapt_key_range b)
{
    const int64_t first = a.first > b.first ? a.first : b.first, last = a.last < b.last ? a.last : b.last;
    return (rapt_key_range){first, last > first ? last : first};
}

/* The smallest range around both; an empty one adds nothing. */
static inline rapt_key_range rapt_join_ranges(rapt_key_range a, rapt_key_range b)
{
    if (a.first >= a.last) return b;
    if (b.first >= b.last) return a;
    return (rapt_key_range){a.first < b.first ? a.first : b.first, a.last > b.last ? a.last : b.last};
}

static inline bool rapt_ranges_overlap(rapt_key_range a, rapt_key_range b)
{
    return a.first < b.last && b.first < a.last && a.first < a.last && b.first < b.last;
}

/* Does the mask do more to scores than cut them to ranges? */
static inline bool rapt_mask_has_tensors(const rapt_raw_mask *mask)
{
    return mask->seen.data || mask->bias.data || mask->relative_bias.data || mask->rule.answers;
}

/* Does it leave gaps between the keys that a row sees? */
static inline bool rapt_mask_has_holes(const rapt_raw_mask *mask)
{
    return mask->seen.data || mask->bias.data || mask->rule.answers;
}

/* The keys from `first` on, up to last, that are in one tile of the rule. */
static inline rapt_key_range rapt_rule_piece(int64_t first, int64_t last)
{
    const int64_t end = (first / rapt_rule_columns + 1) * rapt_rule_columns;
    return (rapt_key_range){first, end < last ? end : last};
}

/* Does the rule hide all these keys from the row, tile by tile? */
static inline bool rapt_rule_hides(const rapt_raw_mask *mask, rapt_score_row row, rapt_key_range keys)
{
    const uint8_t *answers = mask->rule.answers ? rapt_rule_answers(&mask->rule, row) : NULL;
    for (int64_t j = keys.first; j < keys.last; j = rapt_rule_piece(j, keys.last).last)
        if (!answers || answers[j / rapt_rule_columns] != RAPT_NONE_SEEN) return false;
    return true;
}

/* key − the place of the row's query, so far from the ends of int64 that a number of keys may be added. */
static inline int64_t rapt_relative_position(const rapt_raw_mask *mask, rapt_score_row row, int64_t key)
{
    enum { bits = 62 };
    const int64_t place = rapt_row_place(mask, row), most = (int64_t)1 << bits;
    return mask->first_key + key - (place < -most ? -most : place > most ? most : place);
}

static inline int64_t rapt_row_start(const rapt_raw_grid *grid, rapt_score_row row)
{
    return row.item * grid->strides[0] + row.head * grid->strides[1] + row.query * grid->strides[2];
}

/* Names that a kernel source may leave unused. */
#define RAPT_MASK_FUNCTION static inline __attribute__((unused))

#define RAPT_ATTENTION_MASK(T, dtype)                                                                                  \
    /* Of scores of the keys of a range: −∞ where the rule hides one. */                                           \
    RAPT_MASK_FUNCTION void rapt_row_rule_##dtype(const rapt_raw_mask *mask, rapt_score_row row, rapt_key_range range, \
                                                  T *restrict scores)                                                  \
    {                                                                                                                  \
        for (rapt_key_range piece = rapt_rule_piece(range.first, range.last); piece.first < piece.last;                \
             piece = rapt_rule_piece(piece.last, range.last)) {                                                        \
            uint8_t seen[rapt_rule_columns];                                                                           \
            if (rapt_rule_row(mask, row, piece.first, piece.last, seen) == RAPT_ALL_SEEN) continue;                    \
            T *of_piece = scores + (piece.first - range.first);                                                        \
            RAPT_SIMD for (int64_t j = 0; j < piece.last - piece.first; j++) of_piece[j] =                             \
                seen[j] ? of_piece[j] : -(T)INFINITY;                                                                  \
        }                                                                                                              \
    }                                                                                                                  \
                                                                                                                       \
    /* Scores of the keys [keys.first, keys.last), the first at scores[0]: adds the biases, −∞ where not seen. */  \
    RAPT_MASK_FUNCTION void rapt_row_mask_##dtype(const rapt_raw_mask *mask, rapt_score_row row, rapt_key_range keys,  \
                                                  T *restrict scores)                                                  \
    {                                                                                                                  \
        const T lowest = -(T)INFINITY;                                                                                 \
        const rapt_key_range range = rapt_intersect_ranges(keys, rapt_row_range(mask, row));                           \
        const int64_t first = range.first - keys.first, last = range.last - keys.first, end = keys.last - keys.first;  \
        for (int64_t j = 0; j < (first < end ? first : end); j++) scores[j] = lowest;                                  \
        for (int64_t j = last; j < end; j++) scores[j] = lowest;                                                       \
        if (first >= last) return;                                                                                     \
        if (mask->relative_bias.data) {                                                                                \
            const T *table = (const T *)mask->relative_bias.data + rapt_row_start(&mask->relative_bias, row);          \
            const int64_t step = mask->relative_bias.strides[3], reach = mask->reach;                                  \
            const int64_t position = rapt_relative_position(mask, row, range.first);                                   \
            for (int64_t j = first; j < last; j++) {                                                                   \
                const int64_t from_first = position + (j - first);                                                     \
                const int64_t clamped = from_first < -reach ? -reach : from_first > reach ? reach : from_first;        \
                scores[j] += table[(reach + clamped) * step];                                                          \
            }                                                                                                          \
        }                                                                                                              \
        if (mask->bias.data) {                                                                                         \
            const int64_t step = mask->bias.strides[3];                                                                \
            const T *bias = (const T *)mask->bias.data + rapt_row_start(&mask->bias, row) + keys.first * step;         \
            if (step == 1)                                                                                             \
                RAPT_SIMD for (int64_t j = first; j < last; j++) scores[j] =                                           \
                    bias[j] == lowest ? lowest : scores[j] + bias[j];                                                  \
            else                                                                                                       \
                for (int64_t j = first; j < last; j++)                                                                 \
                    scores[j] = bias[j * step] == lowest ? lowest : scores[j] + bias[j * step];                        \
        }                                                                                                              \
        if (mask->seen.data) {                                                                                         \
            const int64_t step = mask->seen.strides[3];                                                                \
            const uint8_t *seen =                                                                                      \
                (const uint8_t *)mask->seen.data + rapt_row_start(&mask->seen, row) + keys.first * step;               \
            if (step == 1)                                                                                             \
                RAPT_SIMD for (int64_t j = first; j < last; j++) scores[j] = seen[j] ? scores[j] : lowest;             \
            else                                                                                                       \
                for (int64_t j = first; j < last; j++) scores[j] = seen[j * step] ? scores[j] : lowest;                \
        }                                                                                                              \
        if (mask->rule.answers) rapt_row_rule_##dtype(mask, row, range, scores + first);                               \
    }                                                                                                                  \
                                                                                                                       \
    /* seen_keys[j − keys.first] |= 1 where the row sees key j. */                                                   \
    RAPT_MASK_FUNCTION void rapt_row_seen_##dtype(const rapt_raw_mask *mask, rapt_score_row row, rapt_key_range keys,  \
                                                  uint8_t *restrict seen_keys)                                         \
    {                                                                                                                  \
        const rapt_key_range range = rapt_intersect_ranges(keys, rapt_row_range(mask, row));                           \
        const int64_t first = range.first - keys.first, last = range.last - keys.first;                                \
        const int64_t seen_step = mask->seen.strides[3], bias_step = mask->bias.strides[3];                            \
        const uint8_t *seen = (const uint8_t *)mask->seen.data;                                                        \
        const T *bias = mask->bias.data;                                                                               \
        if (seen) seen += rapt_row_start(&mask->seen, row) + keys.first * seen_step;                                   \
        if (bias) bias += rapt_row_start(&mask->bias, row) + keys.first * bias_step;                                   \
        if (mask->rule.answers) {                                                                                      \
            for (rapt_key_range piece = rapt_rule_piece(range.first, range.last); piece.first < piece.last;            \
                 piece = rapt_rule_piece(piece.last, range.last)) {                                                    \
                uint8_t of_rule[rapt_rule_columns], *into = seen_keys + (piece.first - keys.first);                    \
                const int64_t at = piece.first - keys.first, count = piece.last - piece.first;                         \
                if (!memchr(into, 0, (size_t)count)) continue;                                                         \
                rapt_rule_row(mask, row, piece.first, piece.last, of_rule);                                            \
                for (int64_t j = 0; j < count; j++)                                                                    \
                    into[j] |= of_rule[j] && (!seen || seen[(at + j) * seen_step]) &&                                  \
                               (!bias || bias[(at + j) * bias_step] != -(T)INFINITY);                                  \
            }                                                                                                          \
        } else if (!bias && !seen)                                                                                     \
            for (int64_t j = first; j < last; j++) seen_keys[j] = 1;                                                   \
        else if (!bias && seen_step == 1)                                                                              \
            RAPT_SIMD for (int64_t j = first; j < last; j++) seen_keys[j] |= seen[j] != 0;                             \
        else                                                                                                           \
            for (int64_t j = first; j < last; j++)                                                                     \
                seen_keys[j] |= (!seen || seen[j * seen_step]) && (!bias || bias[j * bias_step] != -(T)INFINITY);      \
    }

RAPT_ATTENTION_MASK(float, float32)
RAPT_ATTENTION_MASK(double, float64)

#endif
