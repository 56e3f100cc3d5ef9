/* Ops with a fused vjp and a definition: derivatives of any order, by the definition; and what the walk for gradients
 * leaves alone. */
#include <criterion/criterion.h>
#include <math.h>

#include <rapt.h>

#include "expect.h"

#include "tensor/memory.h"

static int64_t live_bytes(void)
{
    return rapt_memory_get_statistics().live_bytes;
}

static rapt_tensor *leaf(double value)
{
    return rapt_require_gradient(rapt_full(RAPT_FLOAT64, RAPT_SHAPE(3), value));
}

static rapt_tensor *random_leaf(void)
{
    return rapt_require_gradient(rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(3)));
}

static double first(const rapt_tensor *x)
{
    cr_assert(x, "%s", rapt_error());
    return rapt_at(x, (const int64_t[]){0, 0, 0});
}

static rapt_tensor *total(rapt_tensor *x)
{
    return rapt_sum(x, RAPT_ALL_AXES, false);
}

/* a = s x² y and b = x eʸ, whose vjp is a loop over numbers; z is not used but may be given. */
typedef struct pair_options {
    double scale;
} pair_options;

static int64_t vjp_count;

static rapt_tensor *pair_forward(rapt_call *call)
{
    const pair_options *o = rapt_call_options(call);
    rapt_tensor *x = rapt_call_input(call, 0), *y = rapt_call_input(call, 1);
    for (int i = 0; i < rapt_call_count(call); i++) rapt_call_save(call, rapt_call_input(call, i));
    rapt_call_save_constant(call, rapt_exp(y));
    rapt_call_set_output(call, 1, rapt_mul(x, rapt_exp(y)));
    return rapt_mul_scalar(rapt_mul(rapt_mul(x, x), y), o->scale);
}

static bool pair_vjp(rapt_call *call)
{
    const double scale = ((const pair_options *)rapt_call_options(call))->scale;
    rapt_tensor *x = rapt_call_saved(call, 0), *y = rapt_call_saved(call, 1), *e = rapt_call_saved(call, 3);
    const double *da = rapt_data(rapt_contiguous(rapt_call_gradient_or_zeros(call, 0))),
                 *db = rapt_data(rapt_contiguous(rapt_call_gradient_or_zeros(call, 1)));
    rapt_tensor *dx = rapt_empty_like(x), *dy = rapt_empty_like(y);
    vjp_count++;
    if (!dx || !dy || !da || !db) return false;
    for (int64_t i = 0; i < rapt_count(x); i++) {
        const double x_i = rapt_at(x, &i), y_i = rapt_at(y, &i), e_i = rapt_at(e, &i);
        ((double *)rapt_data_for_writing(dx))[i] = 2 * scale * x_i * y_i * da[i] + e_i * db[i];
        ((double *)rapt_data_for_writing(dy))[i] = scale * x_i * x_i * da[i] + x_i * e_i * db[i];
    }
    return rapt_call_give(call, 0, dx) && rapt_call_give(call, 1, dy);
}

static const rapt_op pair = {.name = "pair",
                             .forward = pair_forward,
                             .vjp = pair_vjp,
                             .definition = pair_forward,
                             .options_size = sizeof(pair_options),
                             .optional = 1U << 2,
                             .outputs = 2};

enum { product, exponential, both };

/* Of x and y, or of one tensor as both. */
static rapt_tensor *run_pair(rapt_tensor *x, rapt_tensor *y, int which)
{
    rapt_tensor *out[2], *in[] = {x, y, NULL};
    if (!rapt_apply_many(&pair, &(pair_options){1.5}, 3, in, out)) return NULL;
    return which == both ? rapt_add(out[0], rapt_mul(out[1], out[1])) : out[which];
}

static rapt_tensor *call_pair(rapt_tensor *const *inputs, void *which)
{
    return run_pair(inputs[0], inputs[1], *(const int *)which);
}

static rapt_tensor *call_of_one(rapt_tensor *const *inputs, void *which)
{
    rapt_tensor *x = rapt_mul(inputs[0], inputs[1]);
    return run_pair(x, x, *(const int *)which);
}

/* What is differentiated is made of the op's output and of its inputs again. */
static rapt_tensor *call_nested(rapt_tensor *const *inputs, void *which)
{
    rapt_tensor *once = run_pair(inputs[0], inputs[1], *(const int *)which);
    return rapt_add(run_pair(inputs[0], rapt_tanh(once), *(const int *)which), once);
}

Test(definition, gives_both_orders)
{
    rapt_gradcheck_function *const functions[] = {call_pair, call_of_one, call_nested};
    for (int which = 0; which <= both; which++)
        for (int i = 0; i < 3; i++)
            for (int order = 1; order <= 2; order++)
                for (int wanted = 1; wanted <= 2; wanted++) {
                    RAPT_SCOPE;
                    rapt_tensor *inputs[] = {random_leaf(), wanted == 2 ? random_leaf() : leaf(0.5)};
                    if (wanted == 1) inputs[1] = rapt_detach(inputs[1]);
                    const rapt_gradcheck_options options = {.context = &which, .second_order = order == 2};
                    const rapt_gradcheck_result r = rapt_gradcheck("pair", functions[i], 2, inputs, &options);
                    cr_expect(r.passed, "function %d, output %d: %s", i, which, r.message);
                    expect_no_error();
                }
}

/* The gradients of b = x eˣ² by x up to order 4, against exact ones. */
Test(definition, gives_higher_orders)
{
    RAPT_SCOPE;
    const double x = 0.3, e = exp(x);
    const double expected[] = {x * e, (1 + x) * e, (2 + x) * e, (3 + x) * e, (4 + x) * e};
    rapt_tensor *input = leaf(x), *value = run_pair(input, input, exponential);
    for (int order = 0; order < 5; order++) {
        cr_expect_float_eq(first(value), expected[order], 1e-13, "order %d: %.17g", order, first(value));
        rapt_tensor *root = total(value);
        if (order < 4)
            cr_assert(rapt_gradients(1, &root, NULL, 1, &input, &value, RAPT_CREATE_GRAPH), "%s", rapt_error());
    }
}

Test(definition, the_first_gradient_is_the_vjps_own)
{
    RAPT_SCOPE;
    rapt_tensor *in[] = {random_leaf(), random_leaf()}, *root = total(run_pair(in[0], in[1], both)), *d[2], *graph[2];
    cr_assert(rapt_gradients(1, &root, NULL, 2, in, d, RAPT_RETAIN_GRAPH));
    vjp_count = 0;
    cr_assert(rapt_gradients(1, &root, NULL, 2, in, graph, RAPT_CREATE_GRAPH));
    cr_expect_eq(vjp_count, 1);
    for (int i = 0; i < 2; i++) {
        cr_expect(!rapt_requires_gradient(d[i]) && rapt_requires_gradient(graph[i]));
        cr_expect(memcmp(rapt_data(d[i]), rapt_data(graph[i]), 3 * sizeof(double)) == 0);
    }
}

/* backward that creates a graph, then one that frees it. */
Test(definition, backward_through_a_gradient)
{
    RAPT_SCOPE;
    rapt_tensor *x = leaf(0.5), *y = leaf(2);
    rapt_tensor *root = total(run_pair(x, y, product));
    cr_assert(rapt_backward_from(1, &root, NULL, RAPT_CREATE_GRAPH), "%s", rapt_error());
    rapt_tensor *slope = rapt_gradient(x); /* 3 x y */
    rapt_retain(slope);
    rapt_clear_gradient(x);
    rapt_clear_gradient(y);
    cr_assert(rapt_backward(total(rapt_mul(slope, slope))), "%s", rapt_error());
    cr_expect_float_eq(first(rapt_gradient(x)), 2 * 3 * 3 * 0.5 * 2 * 2, 1e-13);
    cr_expect_float_eq(first(rapt_gradient(y)), 2 * 3 * 3 * 0.5 * 0.5 * 2, 1e-13);
    rapt_release(slope);
    expect_no_error();
}

/* --- mistakes --- */

static rapt_tensor *forgetful_forward(rapt_call *call)
{
    rapt_call_save(call, rapt_call_input(call, 1));
    return rapt_mul(rapt_call_input(call, 0), rapt_call_input(call, 1));
}

static bool any_vjp(rapt_call *call)
{
    return rapt_call_give(call, 0, rapt_clone(rapt_call_gradient(call, 0)));
}

static const rapt_op forgetful = {.name = "forgetful",
                                  .forward = forgetful_forward,
                                  .vjp = any_vjp,
                                  .definition = forgetful_forward};

static rapt_tensor *copy_forward(rapt_call *call)
{
    rapt_call_save(call, rapt_call_input(call, 0));
    return rapt_clone(rapt_call_input(call, 0));
}

static rapt_tensor *short_definition(rapt_call *call)
{
    return rapt_slice(rapt_call_input(call, 0), 0, 0, 2, 1);
}

static rapt_tensor *no_definition(rapt_call *call)
{
    (void)call;
    return NULL;
}

static rapt_tensor *forgotten_definition(rapt_call *call)
{
    rapt_call_set_output(call, 1, rapt_call_input(call, 0));
    return rapt_call_input(call, 0);
}

Test(definition, mistakes_are_named)
{
    RAPT_SCOPE;
    rapt_tensor *x = leaf(2), *y;
    cr_expect_null(RAPT_APPLY(&forgetful, NULL, x, x));
    expect_error(RAPT_ERROR_GRAPH, "forgetful: it has a definition, so that its forward must save its inputs first");
    static const struct {
        rapt_tensor *(*definition)(rapt_call *call);
        const char *part;
    } cases[] = {
        {short_definition, "copy: its definition gave float64 [2] as output 0, which is float64 [3]"},
        {no_definition, "copy: its definition failed without a reason"},
        {forgotten_definition, "copy: output 1 asked for in its forward; there are 1"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const rapt_op copy = {.name = "copy",
                              .forward = copy_forward,
                              .vjp = any_vjp,
                              .definition = cases[i].definition};
        rapt_tensor *root = total(rapt_mul(x, RAPT_APPLY(&copy, NULL, x))), *again;
        cr_assert(rapt_gradients(1, &root, NULL, 1, &x, &y, RAPT_CREATE_GRAPH), "%s", rapt_error());
        y = total(y);
        cr_expect_not(rapt_gradients(1, &y, NULL, 1, &x, &again, 0));
        cr_expect(rapt_error() && strstr(rapt_error(), cases[i].part), "%s", rapt_error());
        rapt_clear_error();
    }
}

static rapt_tensor *double_definition(rapt_call *call)
{
    return rapt_mul_scalar(rapt_call_input(call, 0), 2);
}

static rapt_tensor *call_double(rapt_tensor *const *inputs, void *context)
{
    (void)context;
    static const rapt_op copy = {.name = "copy",
                                 .forward = copy_forward,
                                 .vjp = any_vjp,
                                 .definition = double_definition};
    return rapt_mul(RAPT_APPLY(&copy, NULL, inputs[0]), inputs[0]);
}

Test(definition, gradcheck_of_first_order_finds_one_of_another_function)
{
    RAPT_SCOPE;
    rapt_tensor *x = leaf(2);
    cr_expect_not(rapt_gradcheck("copy", call_double, 1, &x, NULL).passed);
    expect_error(RAPT_ERROR_GRAPH, "copy: the derivative of its gradient is that of another function");
}

Test(definition, an_input_changed_in_place_is_an_error)
{
    RAPT_SCOPE;
    rapt_tensor *x = leaf(2), *y = leaf(1), *root = total(run_pair(x, y, product)), *slope, *again;
    cr_assert(rapt_gradients(1, &root, NULL, 1, &x, &slope, RAPT_CREATE_GRAPH));
    cr_assert(rapt_fill(y, 3));
    root = total(slope);
    cr_expect_not(rapt_gradients(1, &root, NULL, 1, &x, &again, 0));
    expect_error(RAPT_ERROR_GRAPH, "changed in place");
}

Test(definition, without_memory)
{
    const int64_t before = live_bytes();
    int64_t failures = 0;
    for (bool done = false; !done; failures++) {
        {
            RAPT_SCOPE;
            rapt_tensor *in[] = {leaf(0.5), leaf(2)}, *d[2] = {0}, *dd[2], *ddd[2];
            rapt_memory_fail_after(failures);
            rapt_tensor *root = total(call_nested(in, &(int){both}));
            done = root && rapt_gradients(1, &root, NULL, 2, in, d, RAPT_CREATE_GRAPH) && (root = total(d[0])) &&
                   rapt_gradients(1, &root, NULL, 2, in, dd, RAPT_CREATE_GRAPH) && (root = total(dd[1])) &&
                   rapt_gradients(1, &root, NULL, 2, in, ddd, 0);
            rapt_memory_fail_after(-1);
            if (!done) expect_error(RAPT_ERROR_MEMORY, "no memory");
        }
        cr_assert_eq(live_bytes(), before, "bytes leak after failure %lld", (long long)failures);
    }
    expect_no_error();
    cr_expect_gt(failures, 300);
}

/* --- what gradients are not asked of --- */

/* Neither the op behind the input nor the one beside it is differentiated, and both can be afterwards. */
Test(definition, gradients_do_not_go_behind_the_inputs)
{
    RAPT_SCOPE;
    rapt_tensor *x = leaf(0.5), *y = leaf(2), *behind = run_pair(x, y, product), *beside = run_pair(y, x, product);
    rapt_tensor *middle = rapt_require_gradient(rapt_detach(leaf(3))), *sum = rapt_add(behind, beside);
    rapt_tensor *root = total(rapt_mul(rapt_mul(sum, middle), middle)), *inputs[] = {middle, sum}, *results[2];
    vjp_count = 0;
    cr_assert(rapt_gradients(1, &root, NULL, 1, inputs, results, RAPT_RETAIN_GRAPH), "%s", rapt_error());
    cr_expect_eq(vjp_count, 0);
    cr_expect_float_eq(first(results[0]), 2 * 3 * first(sum), 1e-13);
    cr_assert(rapt_gradients(1, &root, NULL, 2, inputs, results, 0), "%s", rapt_error());
    cr_expect_eq(vjp_count, 0);
    cr_expect_float_eq(first(results[1]), 9, 1e-13);
    root = total(sum);
    cr_expect(rapt_backward(root), "what is behind the inputs is whole: %s", rapt_error());
    cr_expect_eq(vjp_count, 2);
    rapt_tensor *nothing = leaf(1);
    root = total(rapt_exp(x));
    cr_assert(rapt_gradients(1, &root, NULL, 1, &nothing, results, 0));
    cr_expect_null(results[0]);
    cr_expect_null(rapt_gradient(middle));
    expect_no_error();
}
