/* The weighted sum of the values, where a weight of 0 takes nothing, be the value NaN or infinite. */
#include "weighted_sum.h"

#include <math.h>
#include <string.h>

#include "tensor/core.h"

/* The matrices of a product that has infinite or undefined elements. */
typedef struct matrices {
    int64_t count, queries, keys, size;
    const void *weights, *values;
    void *out;
} matrices;

/* replace: the values, with 0 for those that are not finite. add_rows: to the product of weights and replaced values
 * each w · v with a v that is not finite, where w is not 0. */
#define REPAIR(T, dtype)                                                                                               \
    static void replace_##dtype(int64_t count, const void *values, void *replaced)                                     \
    {                                                                                                                  \
        const T *in = values;                                                                                          \
        T *out = replaced;                                                                                             \
        for (int64_t i = 0; i < count; i++) out[i] = isfinite(in[i]) ? in[i] : 0;                                      \
    }                                                                                                                  \
                                                                                                                       \
    static void add_row_##dtype(const matrices *m, int64_t matrix, int64_t key)                                        \
    {                                                                                                                  \
        const T *value = (const T *)m->values + (matrix * m->keys + key) * m->size;                                    \
        for (int64_t query = 0; query < m->queries; query++) {                                                         \
            const T weight = ((const T *)m->weights)[(matrix * m->queries + query) * m->keys + key];                   \
            T *out = (T *)m->out + (matrix * m->queries + query) * m->size;                                            \
            for (int64_t i = 0; weight != 0 && i < m->size; i++)                                                       \
                if (!isfinite(value[i])) out[i] += weight * value[i];                                                  \
        }                                                                                                              \
    }                                                                                                                  \
                                                                                                                       \
    static void add_rows_##dtype(const matrices *m)                                                                    \
    {                                                                                                                  \
        const T *value = m->values;                                                                                    \
        for (int64_t row = 0; row < m->count * m->keys; row++, value += m->size) {                                     \
            bool finite = true;                                                                                        \
            for (int64_t i = 0; i < m->size; i++) finite = finite && isfinite(value[i]);                               \
            if (!finite) add_row_##dtype(m, row / m->keys, row % m->keys);                                             \
        }                                                                                                              \
    }

REPAIR(float, float32)
REPAIR(double, float64)

/* The product again, with the values that are not finite taken apart. */
static rapt_tensor *repair(rapt_tensor *weights, rapt_tensor *values)
{
    const rapt_tensor *w = rapt_as_contiguous(weights), *v = rapt_as_contiguous(values);
    rapt_tensor *finite = rapt_empty_like(values);
    if (!w || !v || !finite) return NULL;
    bool is_float32 = values->dtype == RAPT_FLOAT32;
    (is_float32 ? replace_float32 : replace_float64)(v->count, v->data, finite->data);
    rapt_tensor *out = rapt_matmul(weights, finite);
    if (!out) return NULL;
    matrices m = {1, w->shape[w->rank - 2], w->shape[w->rank - 1], v->shape[v->rank - 1], w->data, v->data, out->data};
    for (int axis = 0; axis < v->rank - 2; axis++) m.count *= v->shape[axis];
    (is_float32 ? add_rows_float32 : add_rows_float64)(&m);
    return out;
}

static bool check(const char *op, const rapt_tensor *a, const rapt_tensor *b, int axis)
{
    char text_a[RAPT_SHAPE_TEXT], text_b[RAPT_SHAPE_TEXT];
    bool fits = a->rank == b->rank && a->rank >= 2 && a->shape[a->rank - 1] == b->shape[b->rank + axis] &&
                memcmp(a->shape, b->shape, (size_t)(a->rank - 2) * sizeof *a->shape) == 0;
    return fits || rapt_fail(RAPT_ERROR_SHAPE, op, "matrices %s and %s do not fit",
                             rapt_shape_text(a->rank, a->shape, text_a), rapt_shape_text(b->rank, b->shape, text_b));
}

static const rapt_op weighted_sum, weights_gradient;

/* out = Σ w v over the keys with w ≠ 0: dw = g vᵀ, dv = Σ wᵀ g over the queries with w ≠ 0 */
static rapt_tensor *forward(rapt_call *call)
{
    rapt_tensor *weights = rapt_call_input(call, 0), *values = rapt_call_input(call, 1);
    if (!check("weighted_sum", weights, values, -2)) return NULL;
    RAPT_SCOPE;
    rapt_tensor *out = rapt_matmul(weights, values), *sum = rapt_sum(out, RAPT_ALL_AXES, false);
    if (!sum) return NULL;
    /* the sum is finite only if every element is */
    if (!isfinite(rapt_item(sum))) out = repair(weights, values);
    rapt_call_save(call, rapt_call_wants(call, 1) ? weights : NULL);
    rapt_call_save(call, rapt_call_wants(call, 0) ? values : NULL);
    return rapt_keep(out);
}

static bool vjp(rapt_call *call)
{
    rapt_tensor *g = rapt_call_gradient(call, 0);
    if (rapt_call_wants(call, 0) &&
        !rapt_call_give(call, 0, RAPT_APPLY(&weights_gradient, NULL, g, rapt_call_saved(call, 1))))
        return false;
    if (!rapt_call_wants(call, 1)) return true;
    rapt_tensor *transposed = rapt_transpose(rapt_call_saved(call, 0), -1, -2);
    return rapt_call_give(call, 1, RAPT_APPLY(&weighted_sum, NULL, transposed, g));
}

static const rapt_op weighted_sum = {.name = "weighted_sum", .forward = forward, .vjp = vjp};

/* dw = g vᵀ; its derivative has zeros where weights are 0, whatever v is there: dg = Σ u v, dv = Σ uᵀ g with u ≠
 * 0 */
static rapt_tensor *gradient_forward(rapt_call *call)
{
    rapt_tensor *g = rapt_call_input(call, 0), *values = rapt_call_input(call, 1);
    if (!check("weighted_sum_backward", g, values, -1)) return NULL;
    RAPT_SCOPE;
    rapt_call_save(call, rapt_call_wants(call, 1) ? g : NULL);
    rapt_call_save(call, rapt_call_wants(call, 0) ? values : NULL);
    return rapt_keep(rapt_matmul(g, rapt_transpose(values, -1, -2)));
}

static bool gradient_vjp(rapt_call *call)
{
    rapt_tensor *u = rapt_call_gradient(call, 0);
    if (rapt_call_wants(call, 0) &&
        !rapt_call_give(call, 0, RAPT_APPLY(&weighted_sum, NULL, u, rapt_call_saved(call, 1))))
        return false;
    if (!rapt_call_wants(call, 1)) return true;
    rapt_tensor *transposed = rapt_transpose(u, -1, -2);
    return rapt_call_give(call, 1, RAPT_APPLY(&weighted_sum, NULL, transposed, rapt_call_saved(call, 0)));
}

static const rapt_op weights_gradient = {.name = "weighted_sum_backward",
                                         .forward = gradient_forward,
                                         .vjp = gradient_vjp};

rapt_tensor *rapt_weighted_sum(rapt_tensor *weights, rapt_tensor *values)
{
    return RAPT_APPLY(&weighted_sum, NULL, weights, values);
}
