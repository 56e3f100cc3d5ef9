/* What a mask does to a piece of one row of scores, for all attention kernels. */
#ifndef RAPT_KERNELS_ATTENTION_MASK_H
#define RAPT_KERNELS_ATTENTION_MASK_H

#include <math.h>
#include <string.h>

#include "loop.h"
#include "philox_words.h"
#include "tensor/raw_mask.h"

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
    return mask->seen.data || mask->bias.data || mask->relative_bias.data;
}

static inline int64_t rapt_row_start(const rapt_raw_grid *grid, rapt_score_row row)
{
    return row.item * grid->strides[0] + row.head * grid->strides[1] + row.query * grid->strides[2];
}

/* Names that a kernel source may leave unused. */
#define RAPT_MASK_FUNCTION static inline __attribute__((unused))

/* kept[j − keys.first] = 1 where dropout leaves the weight of key j, else 0. */
RAPT_MASK_FUNCTION void rapt_row_dropout(const rapt_raw_mask *mask, rapt_score_row row, rapt_key_range keys,
                                         uint8_t *kept)
{
    enum { blocks_at_once = 64 };
    const rapt_philox_chance chance = rapt_philox_chance_of(mask->keep);
    const int64_t queries = mask->queries + mask->more_queries, all_keys = mask->keys + mask->more_keys;
    const int64_t start = mask->first_draw + ((row.item * mask->heads + row.head) * queries + row.query) * all_keys;
    for (int64_t j = keys.first; j < keys.last;) {
        uint32_t words[4 * blocks_at_once];
        uint8_t hits[4 * blocks_at_once];
        const int64_t skipped = (start + j) & 3;
        const uint64_t block = mask->random.offset + (uint64_t)((start + j) / 4);
        const int64_t wanted = (skipped + keys.last - j + 3) / 4,
                      blocks = wanted < blocks_at_once ? wanted : blocks_at_once;
        rapt_philox_words(mask->random.seed, block, blocks, words);
        RAPT_SIMD for (int64_t i = 0; i < 4 * blocks; i++) hits[i] = (uint8_t)rapt_philox_is_hit(words[i], chance);
        const int64_t made = 4 * blocks - skipped, left = keys.last - j, count = made < left ? made : left;
        memcpy(kept + (j - keys.first), hits + skipped, (size_t)count);
        j += count;
    }
}

#define RAPT_ATTENTION_MASK(T, dtype)                                                                                  \
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
            const int64_t position = range.first - row.query - mask->offset;                                           \
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
        if (!bias && !seen)                                                                                            \
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
