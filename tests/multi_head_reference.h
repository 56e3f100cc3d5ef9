/* Multi-head attention as a loop over doubles, written from its definition, for scaled dot products. */
#ifndef RAPT_TESTS_MULTI_HEAD_REFERENCE_H
#define RAPT_TESTS_MULTI_HEAD_REFERENCE_H

#include <stdlib.h>

#include "modules.h"

typedef rapt_multi_head_attention_config config;

static inline rapt_multi_head_attention *multi_head(const config *c, rapt_dtype dtype)
{
    rapt_multi_head_attention *m = rapt_multi_head_attention_new(c);
    cr_assert(m && rapt_module_cast(&m->module, dtype), "%s", rapt_error());
    return m;
}

/* The layer and its inputs. Weights and biases are drawn anew, so that biases are not zeros. */
typedef struct problem {
    rapt_multi_head_attention *m;
    rapt_tensor *queries, *keys, *values; /* float64 */
    /* What query i of head h of item b may see of key j, and what is added to its score; NULL: all, nothing. */
    bool (*sees)(int64_t b, int64_t h, int64_t i, int64_t j);
    double (*bias)(int64_t b, int64_t h, int64_t i, int64_t j);
} problem;

static inline bool append_parameter(const char *name, rapt_tensor *tensor, void *context)
{
    (void)name;
    rapt_tensor ***next = context;
    *(*next)++ = tensor;
    return true;
}

/* Writes the parameters, in the layer's order, from *next on, which then stands behind them. */
static inline void append_parameters(rapt_multi_head_attention *m, rapt_tensor ***next)
{
    cr_assert(rapt_module_visit(&m->module, RAPT_PARAMETERS, append_parameter, next));
}

static inline double dot(int64_t count, const double *a, const double *b)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++) sum += a[i] * b[i];
    return sum;
}

/* Part 0, 1, 2 (queries, keys, values): W x + b for each vector, (B·T, rows of the part); to be freed. */
static inline double *project_reference(const rapt_multi_head_attention *m, int part, rapt_tensor *x)
{
    rapt_tensor *const separate[] = {m->q_proj_weight, m->k_proj_weight, m->v_proj_weight};
    const int64_t rows[] = {m->heads * m->head_size, m->groups * m->head_size, m->groups * m->value_size};
    const int64_t first = (part > 0 ? rows[0] : 0) + (part > 1 ? rows[1] : 0), in = rapt_size(x, 2);
    const double *weight = values_of(m->in_proj_weight ? m->in_proj_weight : separate[part]), *from = values_of(x);
    const double *bias = m->in_proj_bias ? values_of(m->in_proj_bias) + first : NULL;
    if (m->in_proj_weight) weight += first * in;
    const int64_t vectors = rapt_size(x, 0) * rapt_size(x, 1);
    double *projected = calloc((size_t)(vectors * rows[part] + 1), sizeof *projected);
    for (int64_t v = 0; v < vectors; v++)
        for (int64_t r = 0; r < rows[part]; r++)
            projected[v * rows[part] + r] = dot(in, from + v * in, weight + r * in) + (bias ? bias[r] : 0);
    return projected;
}

/* Softmax of one row of scores, 0 where `seen` is false; all 0 if it is nowhere true. */
static inline void softmax_reference(int64_t count, double *row, const bool *seen)
{
    double largest = -INFINITY, sum = 0;
    for (int64_t j = 0; j < count; j++) largest = seen[j] ? fmax(largest, row[j]) : largest;
    for (int64_t j = 0; j < count; j++) sum += row[j] = seen[j] ? exp(row[j] - largest) : 0;
    for (int64_t j = 0; j < count; j++) row[j] = sum > 0 ? row[j] / sum : 0;
}

/* The output (B, Q, output size) and, if weights is not NULL, (B, heads, Q, K) there; the output is to be freed. */
static inline double *attend_reference(const problem *p, double *weights)
{
    const rapt_multi_head_attention *m = p->m;
    const int64_t batch = rapt_size(p->queries, 0), n_q = rapt_size(p->queries, 1), n_k = rapt_size(p->keys, 1);
    const int64_t size = m->head_size, value = m->value_size, out = m->out_proj->out, joined = m->heads * value;
    double *q = project_reference(m, 0, p->queries), *k = project_reference(m, 1, p->keys),
           *v = project_reference(m, 2, p->values);
    double *row = calloc((size_t)n_k + 1, sizeof *row), *heads = calloc((size_t)joined, sizeof *heads);
    bool *seen = calloc((size_t)n_k + 1, sizeof *seen);
    double *result = calloc((size_t)(batch * n_q * out) + 1, sizeof *result);
    const double *w_o = values_of(m->out_proj->weight), *b_o = m->out_proj->bias ? values_of(m->out_proj->bias) : NULL;
    const double *head_mask = m->head_mask ? values_of(m->head_mask) : NULL;
    for (int64_t b = 0; b < batch; b++)
        for (int64_t i = 0; i < n_q; i++) {
            for (int64_t h = 0; h < m->heads; h++) {
                const int64_t group = h * m->groups / m->heads;
                for (int64_t j = 0; j < n_k; j++) {
                    seen[j] = !p->sees || p->sees(b, h, i, j);
                    row[j] = dot(size, q + ((b * n_q + i) * m->heads + h) * size,
                                 k + ((b * n_k + j) * m->groups + group) * size) /
                             sqrt((double)size);
                    row[j] += p->bias ? p->bias(b, h, i, j) : 0;
                }
                softmax_reference(n_k, row, seen);
                if (weights) memcpy(weights + ((b * m->heads + h) * n_q + i) * n_k, row, (size_t)n_k * sizeof *row);
                for (int64_t c = 0; c < value; c++) {
                    heads[h * value + c] = 0;
                    for (int64_t j = 0; j < n_k; j++)
                        heads[h * value + c] += row[j] * v[((b * n_k + j) * m->groups + group) * value + c];
                    if (head_mask) heads[h * value + c] *= head_mask[h];
                }
            }
            for (int64_t o = 0; o < out; o++)
                result[(b * n_q + i) * out + o] = dot(joined, heads, w_o + o * joined) + (b_o ? b_o[o] : 0);
        }
    free(q), free(k), free(v), free(row), free(heads), free(seen);
    return result;
}

/* The layer's output is that of the definition. */
static inline void expect_definition(const char *what, const problem *p, const rapt_mask *mask)
{
    double *expected = attend_reference(p, NULL);
    rapt_tensor *y = rapt_multi_head_attention_forward(p->m, p->queries, p->keys, p->values, mask, NULL);
    cr_assert_not_null(y, "%s: %s", what, rapt_error());
    expect_shape(y, RAPT_SHAPE(rapt_size(p->queries, 0), rapt_size(p->queries, 1), p->m->out_proj->out));
    expect_values(what, y, rapt_count(y), expected, 1e-12);
    free(expected);
}

#endif
