/* A relative bias with a row for each query of a packed batch: fused and step by step are one. */
#include <criterion/criterion.h>

#include <rapt/nn.h>

#include "../../expect.h"
#include "../../integers.h"

enum { rows = 9, size = 4, reach = 2, input_count = 4 }; /* queries, keys, values, bias */

static double difference(rapt_tensor *a, rapt_tensor *b)
{
    cr_assert(a && b, "%s", rapt_error());
    return rapt_item(rapt_max(rapt_abs(rapt_sub(a, b)), RAPT_ALL_AXES, false));
}

/* Gives the output, and the gradients of all inputs. */
static rapt_tensor *run(rapt_attention *attention, rapt_mask mask, rapt_tensor *const *inputs, rapt_tensor **gradients)
{
    rapt_tensor *leaves[input_count];
    for (int i = 0; i < input_count; i++) leaves[i] = rapt_require_gradient(rapt_clone(inputs[i]));
    mask.relative_bias = leaves[3];
    rapt_tensor *out = rapt_attention_forward(attention, leaves[0], leaves[1], leaves[2], &mask);
    cr_assert(out, "%s: %s", attention->scoring->module.kind->name, rapt_error());
    cr_assert(rapt_backward(rapt_sum(rapt_mul(out, rapt_sin(out)), RAPT_ALL_AXES, false)), "%s", rapt_error());
    for (int i = 0; i < input_count; i++) gradients[i] = rapt_gradient(leaves[i]);
    return out;
}

static void compare(rapt_scoring *scoring, int64_t heads)
{
    RAPT_SCOPE;
    static const int64_t lengths[] = {3, 0, 5, 1};
    rapt_seed(11);
    rapt_attention *attention = rapt_attention_new(scoring, 0);
    cr_assert(attention && rapt_module_cast(&attention->module, RAPT_FLOAT64), "%s", rapt_error());
    const rapt_mask mask = {.starts = rapt_packing_starts(int64_of(4, lengths)), .causal = true};
    const int64_t shape[] = {heads, rows, size}, bias_shape[] = {heads, rows, 2 * reach + 1};
    const int rank = heads > 0 ? 3 : 2;
    rapt_tensor *in[input_count], *gradients[3][input_count], *out[3];
    for (int i = 0; i < 3; i++) in[i] = rapt_randn(RAPT_FLOAT64, rank, shape + 3 - rank);
    in[3] = rapt_randn(RAPT_FLOAT64, rank, bias_shape + 3 - rank);
    for (int way = 0; way < 3; way++) {
        attention->keep_weights = way == 1;
        attention->plain = way == 2;
        out[way] = run(attention, mask, in, gradients[way]);
        cr_expect_lt(difference(out[way], out[0]), 1e-13);
        for (int i = 0; i < input_count; i++)
            cr_expect_lt(difference(gradients[way][i], gradients[0][i]), 1e-12, "%s, %d heads, way %d: gradient %d",
                         scoring->module.kind->name, (int)heads, way, i);
    }
    rapt_module_free(&attention->module);
}

Test(packed_bias, fused_with_weights_and_step_by_step)
{
    for (int64_t heads = 0; heads < 3; heads++) {
        compare(rapt_scaled_dot_product_scoring_new(), heads);
        compare(rapt_relative_scoring_new(size, 0, 1), heads);
        compare(rapt_relative_scoring_new(size, 0, 3), heads);
        compare(rapt_additive_scoring_new(size, size, 5), heads);
        compare(rapt_cosine_scoring_new(0.5, false), heads);
    }
    expect_no_error();
}
