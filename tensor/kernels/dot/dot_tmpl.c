/* Fused dot-product attention for one element type, after Dao et al. 2022. T is the type, SIZE its bytes, EXP its
 * exponential for weights, and OF_TYPE(name) the name of another file's function for it. */
#include <math.h>
#include <string.h>

#include "attention_dropout.h"
#include "attention_normalizer.h"
#include "vector_width.h"

enum { largest_tile = 256 }; /* keys */

/* Keys of a tile come in multiples of two vectors, and of the rows that a product takes. */
#if RAPT_TILE_ROWS == 6
enum { tile_step = 3 * 2 * RAPT_VECTOR_BYTES / SIZE };
#else
enum { tile_step = 2 * RAPT_VECTOR_BYTES / SIZE };
#endif

static inline int64_t round_up(int64_t size, int64_t step)
{
    return (size + step - 1) / step * step;
}

/* The next `bytes` of scratch, on a cache line of their own; NULL while scratch is only measured. */
static void *next_in_scratch(char *scratch, size_t *end, int64_t bytes)
{
    void *place = scratch ? scratch + *end : NULL;
    *end += (size_t)round_up(bytes, 64);
    return place;
}

/* Row i of a piece. */
static inline rapt_score_row row_at(const rapt_dot_attention *call, const rapt_attention_piece *piece, int64_t i)
{
    const int64_t row = piece->first_row + i;
    if (call->groups == call->mask.heads) return (rapt_score_row){piece->item, piece->group, row};
    const int64_t heads = call->mask.heads / call->groups;
    return (rapt_score_row){piece->item, piece->group * heads + row / call->mask.queries, row % call->mask.queries};
}

/* Where a row stands among all rows. */
static inline int64_t row_number(const rapt_dot_attention *call, rapt_score_row row)
{
    return (row.item * call->mask.heads + row.head) * call->mask.queries + row.query;
}

/* Which head of its group, and so of its task, a row is of. */
static inline int64_t head_of_task(const rapt_dot_attention *call, rapt_score_row row)
{
    return row.head % (call->mask.heads / call->groups);
}

static inline T *row_of(const rapt_raw_rows *rows, int64_t item, int64_t head, int64_t place)
{
    return (T *)rows->data + item * rows->strides[0] + head * rows->strides[1] + place * rows->strides[2];
}

#include "tile_product.h"

#include "dot_prefetch_tmpl.c"
#include "dot_tile_tmpl.c"

#include "dot_normalize_tmpl.c"

#include "dot_backward_rows_tmpl.c"

#include "dot_backward_tmpl.c"
#include "dot_forward_tmpl.c"

#include "dot_in_place_tmpl.c"

#include "dot_decoding_tmpl.c"

#include "dot_decoding_backward_tmpl.c"

#include "dot_dispatch_tmpl.c"

void RAPT_AT_LEVEL(OF_TYPE(rapt_fill_dot))(rapt_kernels *kernels)
{
    kernels->dot[DTYPE] = (rapt_dot_kernels){
        .tile_rows = RAPT_TILE_ROWS,
        .forward_bytes = forward_scratch,
        .forward = dispatch_forward,
        .merge = merge,
        .weights = dispatch_weights,
        .backward_bytes = backward_scratch,
        .backward = dispatch_backward,
        .sum_parts = sum_parts,
    };
}
