/* Fused additive attention for one element type, w tanh(a + b) and all that follows, without a (queries × keys ×
 * hidden) tensor. T is the type, SIZE its bytes, EXP, TANH, FABS and COPYSIGN the functions for it, and OF_TYPE(name)
 * the name of another file's function for it. */
#include <math.h>
#include <string.h>

#include "attention_dropout.h"
#include "attention_normalizer.h"
#include "double_math.h"
#include "row.h"

/* Queries and keys whose scores are summed side by side, and vectors of columns of a product: what registers hold. */
#if defined __AVX512F__
#include <immintrin.h>
enum { score_rows = 4, score_columns = 4, product_columns = 4 };
#else
enum { score_rows = 2, score_columns = 4, product_columns = 2 };
#endif

/* Where the queries of a head begin in dense tensors of their rows, and the keys of a group. */
static inline int64_t first_query_of(const rapt_additive_attention *call, int64_t item, int64_t head)
{
    return (item * call->mask.heads + head) * (call->mask.queries + call->mask.other_queries);
}

static inline int64_t first_key_of(const rapt_additive_attention *call, int64_t item, int64_t group)
{
    return (item * call->groups + group) * (call->mask.keys + call->mask.other_keys);
}

/* The smallest range of keys, within the piece's, that holds all that its queries see. */
static rapt_key_range piece_range(const rapt_additive_attention *call, const rapt_attention_piece *piece)
{
    rapt_key_range all = {piece->first_key, piece->first_key};
    for (int64_t i = piece->first_row; i < piece->last_row; i++)
        all = rapt_join_ranges(all, rapt_row_range(&call->mask, (rapt_score_row){piece->item, piece->group, i}));
    return rapt_intersect_ranges(all, (rapt_key_range){piece->first_key, piece->last_key});
}

#include "transpose_tmpl.c"

#include "vector_part_tmpl.c"

#include "register_tile_tmpl.c"

#include "additive_vector_tmpl.c"

#include "additive_scores_tmpl.c"

#include "additive_products_tmpl.c"

#include "additive_forward_tmpl.c"

#include "additive_single_query_tmpl.c"

#include "additive_backward_tmpl.c"

void RAPT_AT_LEVEL(OF_TYPE(rapt_fill_additive))(rapt_kernels *kernels)
{
    kernels->additive[DTYPE] = (rapt_additive_kernels){
        .constants = constants,
        .powers = powers,
        .forward = forward,
        .merge = merge,
        .scores_backward = scores_backward,
        .hidden_backward = hidden_backward,
        .values_backward = values_backward,
    };
}
