/* Calls of fused dot-product attention, and what comes of them. */
#ifndef RAPT_TESTS_FUSED_DOT_H
#define RAPT_TESTS_FUSED_DOT_H

#include "modules.h"

/* Inputs of one call, leaves in a dtype. */
typedef struct subject {
    rapt_attention *attention;
    rapt_tensor *queries, *keys, *values;
    rapt_mask mask;
} subject;

static inline rapt_tensor *leaf(rapt_dtype dtype, int rank, const int64_t *shape)
{
    return rapt_require_gradient(rapt_randn(dtype, rank, shape));
}

static inline subject new_subject(rapt_dtype dtype, int64_t heads, int64_t groups, int64_t queries, int64_t keys,
                                  int64_t size)
{
    const int64_t batch = 2;
    rapt_seed(3);
    subject s = {.attention = rapt_dot_product_attention_new(0)};
    s.queries = leaf(dtype, RAPT_SHAPE(batch, heads, queries, size));
    s.keys = leaf(dtype, RAPT_SHAPE(batch, groups, keys, size));
    s.values = leaf(dtype, RAPT_SHAPE(batch, groups, keys, size));
    cr_assert(s.attention && s.values, "%s", rapt_error());
    return s;
}

static inline rapt_tensor *pool(const subject *s)
{
    return rapt_attention_forward(s->attention, s->queries, s->keys, s->values, &s->mask);
}

/* Pooled values and the gradients of queries, keys and values. */
typedef struct outcome {
    rapt_tensor *tensors[4];
} outcome;

static inline outcome differentiate(const subject *s)
{
    outcome o = {{pool(s)}};
    cr_assert_not_null(o.tensors[0], "%s", rapt_error());
    rapt_seed(8);
    rapt_tensor *from = rapt_randn(rapt_get_dtype(o.tensors[0]), rapt_rank(o.tensors[0]), rapt_shape(o.tensors[0]));
    rapt_tensor *inputs[] = {s->queries, s->keys, s->values};
    cr_assert(rapt_gradients(1, o.tensors, &from, 3, inputs, o.tensors + 1, 0), "%s", rapt_error());
    for (int i = 0; i < 4; i++) o.tensors[i] = rapt_contiguous(o.tensors[i]);
    return o;
}

static inline void expect_same_bits(const char *what, const outcome *a, const outcome *b)
{
    for (int i = 0; i < 4; i++)
        cr_expect(same_bits(a->tensors[i], b->tensors[i]), "%s: result %d has other bits", what, i);
}

static inline double largest_of(rapt_tensor *x)
{
    return rapt_item(rapt_max(rapt_abs(x), RAPT_ALL_AXES, false));
}

static inline void expect_near(const char *what, const outcome *a, const outcome *b, double tolerance)
{
    for (int i = 0; i < 4; i++) {
        const double largest = largest_of(a->tensors[i]);
        double error = largest_of(rapt_sub(a->tensors[i], b->tensors[i])) / (largest > 0 ? largest : 1);
        cr_expect(error <= tolerance, "%s: result %d is off by %g of the largest", what, i, error);
    }
}

#endif
