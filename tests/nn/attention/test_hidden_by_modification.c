/* A key whose score a modification makes −∞ is hidden from its queries in every way: fused, step by step and in second
 * derivatives neither what lies there nor a modification behind it makes a gradient NaN. */
#include <criterion/criterion.h>
#include <math.h>

#include <rapt/nn.h>

#include "../../expect.h"
#include "../../integers.h"

enum { queries = 3 };
enum way { fused, plain, with_graph, way_count };
static const char *const names[] = {"fused", "plain", "with a graph"};

/* Keys up to the query's own, and the first one, are seen. */
static rapt_attention *attention_with_prefix(int way)
{
    rapt_attention *attention = rapt_dot_product_attention_new(0);
    rapt_score_modification *prefix = rapt_prefix_modification_new(int64_of(1, (int64_t[]){1}));
    cr_assert(attention && prefix && rapt_attention_modify(attention, "prefix", prefix), "%s", rapt_error());
    attention->plain = way == plain;
    return attention;
}

/* Of the sum of squares of the queries' rows that do not see the last key, by each input. */
static void differentiate(rapt_attention *attention, int way, int count, rapt_tensor **inputs, rapt_tensor **gradients)
{
    rapt_tensor *out = rapt_attention_forward(attention, inputs[0], inputs[1], inputs[2], NULL);
    rapt_tensor *rows = rapt_slice(out, 1, 0, queries - 1, 1);
    rapt_tensor *loss = rapt_sum(rapt_mul(rows, rows), RAPT_ALL_AXES, false);
    cr_assert(rapt_gradients(1, &loss, NULL, count, inputs, gradients, way == with_graph ? RAPT_CREATE_GRAPH : 0),
              "%s: %s", names[way], rapt_error());
}

static void draw(rapt_tensor *inputs[3])
{
    rapt_seed(3);
    for (int i = 0; i < 3; i++)
        inputs[i] = rapt_require_gradient(rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(1, queries, i < 2 ? 2 : 1)));
}

static void expect_alike(const char *what, int way, rapt_tensor *gradient, rapt_tensor *expected)
{
    for (int64_t i = 0; i < rapt_count(expected); i++) {
        const double is = rapt_at(rapt_reshape(gradient, RAPT_SHAPE(-1)), &i);
        const double wanted = rapt_at(rapt_reshape(expected, RAPT_SHAPE(-1)), &i);
        cr_expect(fabs(is - wanted) <= 1e-12, "%s, %s [%lld]: %g, not %g", names[way], what, (long long)i, is, wanted);
    }
}

Test(hidden_by_modification, a_temperature_behind_it_has_a_gradient)
{
    RAPT_SCOPE;
    rapt_tensor *expected = NULL;
    for (int way = fused; way < way_count; way++) {
        rapt_attention *attention = attention_with_prefix(way);
        rapt_score_modification *temperature = rapt_head_temperature_new(1);
        cr_assert(rapt_attention_modify(attention, "temperature", temperature), "%s", rapt_error());
        cr_assert(rapt_module_cast(&attention->module, RAPT_FLOAT64), "%s", rapt_error());
        rapt_tensor *inputs[4], *gradients[4], *second[4];
        draw(inputs);
        inputs[3] = rapt_module_find(&temperature->module, "temperature");
        differentiate(attention, way, 4, inputs, gradients);
        cr_expect(isfinite(rapt_item(gradients[3])) && rapt_item(gradients[3]) != 0, "%s: %g", names[way],
                  rapt_item(gradients[3]));
        if (way == fused) expected = gradients[3];
        expect_alike("temperature", way, gradients[3], expected);
        if (way == with_graph) {
            rapt_tensor *squares = rapt_sum(rapt_mul(gradients[0], gradients[0]), RAPT_ALL_AXES, false);
            cr_assert(rapt_gradients(1, &squares, NULL, 4, inputs, second, 0), "%s", rapt_error());
            cr_expect(isfinite(rapt_item(second[3])), "%g", rapt_item(second[3]));
        }
        rapt_module_free(&attention->module);
    }
}

Test(hidden_by_modification, a_value_there_that_is_not_a_number_reaches_no_gradient)
{
    RAPT_SCOPE;
    rapt_tensor *expected = NULL;
    for (int way = fused; way < way_count; way++) {
        rapt_attention *attention = attention_with_prefix(way);
        rapt_tensor *inputs[3], *gradients[3], *second[3];
        draw(inputs);
        cr_assert(rapt_fill(rapt_slice(rapt_detach(inputs[2]), 1, queries - 1, queries, 1), NAN));
        differentiate(attention, way, 3, inputs, gradients);
        rapt_tensor *seeing = rapt_slice(gradients[0], 1, 0, queries - 1, 1);
        if (way == fused) expected = seeing;
        expect_alike("a query", way, seeing, expected);
        if (way == with_graph) {
            rapt_tensor *squares = rapt_sum(rapt_mul(seeing, seeing), RAPT_ALL_AXES, false);
            cr_assert(rapt_gradients(1, &squares, NULL, 3, inputs, second, 0), "%s", rapt_error());
            cr_expect(isfinite(rapt_at(second[0], (int64_t[]){0, 1, 0})));
        }
        rapt_module_free(&attention->module);
    }
}
