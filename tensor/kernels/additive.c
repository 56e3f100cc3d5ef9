/* Additive attention, w tanh(a + b) and all that follows, without a (queries × keys × hidden) tensor. */
#include <math.h>
#include <string.h>

#include "attention_mask.h"
#include "row.h"
#include "vector_math.h"
#include "vector_width.h"

/* Queries and keys whose scores are summed side by side, and vectors of columns of a product: what registers hold. */
#if defined __AVX512F__
#include <immintrin.h>
enum { score_rows = 4, score_columns = 4, product_columns = 4 };
#else
enum { score_rows = 2, score_columns = 4, product_columns = 2 };
#endif

#define LOW_OF_16(x) __builtin_shufflevector(x, x, 0, 1, 2, 3, 4, 5, 6, 7)
#define HIGH_OF_16(x) __builtin_shufflevector(x, x, 8, 9, 10, 11, 12, 13, 14, 15)
#define LOW_OF_8(x) __builtin_shufflevector(x, x, 0, 1, 2, 3)
#define HIGH_OF_8(x) __builtin_shufflevector(x, x, 4, 5, 6, 7)
#define LOW_OF_4(x) __builtin_shufflevector(x, x, 0, 1)
#define HIGH_OF_4(x) __builtin_shufflevector(x, x, 2, 3)

static int64_t lesser(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* The smallest range of keys, within the piece's, that holds all that its queries see. */
static rapt_key_range piece_range(const rapt_additive *a, const rapt_additive_piece *piece)
{
    rapt_key_range all = {piece->first_key, piece->first_key};
    for (int64_t i = piece->first_query; i < piece->last_query; i++)
        all = rapt_join_ranges(all, rapt_row_range(&a->mask, (rapt_kernel_row){piece->item, piece->head, i}));
    return rapt_meet(all, (rapt_key_range){piece->first_key, piece->last_key});
}

#define T float
#define SIZE 4
#define TYPED(name) name##_float32
#define EXP rapt_math_expf
#define TANH rapt_math_tanhf
#define FABS fabsf
#define COPYSIGN copysignf
enum { exponential_lanes_float32 = 16 };
#include "additive_vector.h"

/* w − 1 / x */
static inline __attribute__((always_inline)) vector_float32 minus_reciprocal_float32(vector_float32 w, vector_float32 x)
{
#if defined __AVX512F__
    /* an approximation r to 14 bits, and Newton's step to r (2 − x r) */
    const vector_float32 r = (vector_float32)_mm512_rcp14_ps((__m512)x);
    return w - r * (2 - x * r);
#else
    return w - 1 / x;
#endif
}

#include "additive_scores.h"

#include "additive_products.h"

#include "additive_forward.h"

#include "additive_single.h"

#include "additive_backward.h"

#undef T
#undef SIZE
#undef TYPED
#undef EXP
#undef TANH
#undef FABS
#undef COPYSIGN
#define T double
#define SIZE 8
#define TYPED(name) name##_float64
#define EXP exp
#define TANH tanh
#define FABS fabs
#define COPYSIGN copysign
enum { exponential_lanes_float64 = 1 };
#include "additive_vector.h"

static inline __attribute__((always_inline)) vector_float64 minus_reciprocal_float64(vector_float64 w, vector_float64 x)
{
    return w - 1 / x;
}

#include "additive_scores.h"

#include "additive_products.h"

#include "additive_forward.h"

#include "additive_single.h"

#include "additive_backward.h"

#define BOTH(name)                                                                                                     \
    {                                                                                                                  \
        [RAPT_FLOAT32] = name##_float32, [RAPT_FLOAT64] = name##_float64                                               \
    }

void RAPT_AT_LEVEL(rapt_fill_additive)(rapt_kernels *kernels)
{
    kernels->additive = (rapt_additive_kernels){
        .constants = BOTH(constants),
        .powers = BOTH(powers),
        .forward = BOTH(forward),
        .combine = BOTH(combine),
        .scores_backward = BOTH(scores_backward),
        .hidden_backward = BOTH(hidden_backward),
        .values_backward = BOTH(values_backward),
    };
}
