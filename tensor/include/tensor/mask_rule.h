/* A mask's rule of one's own, asked: once for all tiles when it is made ready, and then where some of a tile is
 * seen. */
#ifndef RAPT_TENSOR_MASK_RULE_H
#define RAPT_TENSOR_MASK_RULE_H

#include <stdbool.h>

#include "tensor/raw_mask.h"

/* The answers for the tiles of a row. */
static inline const uint8_t *rapt_rule_answers(const rapt_raw_rule *rule, rapt_score_row row)
{
    return rule->answers + row.item * rule->strides[0] + row.head * rule->strides[1] +
           row.query / rapt_rule_rows * rule->strides[2];
}

/* Which of the keys [first, last) of one tile the rule shows to a row; gives its answer for the tile. */
rapt_tile_seen rapt_rule_row(const rapt_raw_mask *mask, rapt_score_row row, int64_t first, int64_t last, uint8_t *seen);

/* What a rule says of all tiles, and the ranges that are left of the mask's. */
typedef struct rapt_rule_findings {
    int64_t items, heads; /* that it is asked for: the batch (sequences, where packed) or 1, and heads or 1 */
    uint8_t *answers;     /* (items, heads, tiles of queries, tiles of keys), of the longest sequence, */
    int64_t *ranges;      /* and (items, heads, queries, 2): the smallest range that holds all that a query sees */
    uint8_t *whole;       /* (items, heads, tiles of queries): are all keys in these ranges seen? */
} rapt_rule_findings;

/* Fills in what the pointers point to; the rule's own answers are not read. */
void rapt_rule_ask(const rapt_raw_mask *mask, const rapt_rule_findings *findings);

/* So many neighbouring queries are looked at together for keys that they see. */
enum { rapt_seeing_rows = 64 };

/* The three below do not look at biases, whose −∞ is in the mask's bytes too. seeing (rows) |= 1 for those queries of a
 * head, from `row` on and no more than rapt_seeing_rows, that see a key; of a mask that is no packed batch. */
void rapt_mask_find_seeing(const rapt_raw_mask *mask, rapt_score_row row, int64_t rows, uint8_t *seeing);

/* seen (keys of the item or sequence) |= 1 for those that a query of one of the heads [first_head, last_head) sees. */
void rapt_mask_find_seen(const rapt_raw_mask *mask, int64_t item, int64_t first_head, int64_t last_head, uint8_t *seen);

/* seen (items, heads, queries, keys), dense: all that a mask that is not packed says. items and heads: as
 * many as differ. */
void rapt_mask_write_seen(const rapt_raw_mask *mask, int64_t items, int64_t heads, uint8_t *seen);

#endif
