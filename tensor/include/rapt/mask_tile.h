/* A tile of attention scores, as the functions of a mask of one's own are asked about it. */
#ifndef RAPT_MASK_TILE_H
#define RAPT_MASK_TILE_H

#include <rapt/base.h>

RAPT_BEGIN_DECLS

/* So many numbers and tensors a rule has. */
#define RAPT_MASK_NUMBERS 6
#define RAPT_MASK_CAPTURED 2

/* Some queries of one head (rows) and neighbouring keys (columns). */
typedef struct rapt_mask_tile {
    int64_t item, head;                  /* of the batch; of packed sequences item is the sequence */
    int64_t rows, columns;               /* 1 or more of each */
    const int64_t *queries;              /* (rows): the place of each row's query among the keys */
    int64_t lowest_query, highest_query; /* of these places */
    int64_t first_key, last_key;         /* column c is key first_key + c; last_key is the last of them */
    const int64_t *numbers;              /* the rule's */
    const void *const *captured;         /* of each captured tensor: all its elements, dense */
} rapt_mask_tile;

/* How much of a tile is seen. */
typedef enum rapt_tile_seen {
    RAPT_SOME_SEEN, /* ask for each place */
    RAPT_NONE_SEEN,
    RAPT_ALL_SEEN,
} rapt_tile_seen;

/* Several threads call these at once, again and again: they write nothing but the bytes, and give the same answer to
 * the same question. What of a whole tile is seen: */
typedef rapt_tile_seen rapt_mask_judge(const rapt_mask_tile *tile);
/* And which places: seen (rows, columns), dense; 0 hides. */
typedef void rapt_mask_see(const rapt_mask_tile *tile, uint8_t *seen);

RAPT_END_DECLS

#endif
