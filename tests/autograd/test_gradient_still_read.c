/* Vjps that ask for the last gradient and in which somebody reads it after that op all the same: what they give is what
 * they give with a gradient that nothing is written over. */
#include "modules.h"

#include <string.h>

/* The gradient, or the last one. */
typedef rapt_tensor *gradient_of(rapt_call *call, int output);
typedef bool readers(rapt_call *call, gradient_of *gradient);

static rapt_tensor *kept;

static bool one_input_has_it(rapt_call *call, gradient_of *gradient)
{
    return rapt_call_give(call, 0, rapt_call_gradient(call, 0)) && rapt_call_give(call, 1, rapt_neg(gradient(call, 0)));
}

static bool one_input_gets_it(rapt_call *call, gradient_of *gradient)
{
    rapt_tensor *g = gradient(call, 0);
    return rapt_call_give(call, 0, g) && rapt_call_give(call, 1, rapt_neg(g));
}

static bool one_input_gets_a_view(rapt_call *call, gradient_of *gradient)
{
    rapt_tensor *g = gradient(call, 0);
    return rapt_call_give(call, 0, rapt_reshape(g, rapt_rank(g), rapt_shape(g))) &&
           rapt_call_give(call, 1, rapt_neg(g));
}

static bool one_input_gets_it_detached(rapt_call *call, gradient_of *gradient)
{
    rapt_tensor *g = gradient(call, 0);
    return rapt_call_give(call, 0, rapt_detach(g)) && rapt_call_give(call, 1, rapt_neg(g));
}

static bool the_caller_keeps_it(rapt_call *call, gradient_of *gradient)
{
    rapt_tensor *g = gradient(call, 0);
    kept = rapt_retain(g);
    return rapt_call_give(call, 0, rapt_neg(g)) && rapt_call_give(call, 1, rapt_mul_scalar(kept, 3));
}

static rapt_tensor *less_its_first(rapt_tensor *g)
{
    return rapt_sub(g, rapt_expand(rapt_slice(g, 0, 0, 1, 1), rapt_rank(g), rapt_shape(g)));
}

static bool the_op_reads_a_view(rapt_call *call, gradient_of *gradient)
{
    return rapt_call_give(call, 0, less_its_first(gradient(call, 0))) &&
           rapt_call_give(call, 1, rapt_full_like(rapt_call_gradient(call, 0), 1));
}

static rapt_tensor *same_forward(rapt_call *call)
{
    return rapt_call_input(call, 0);
}

static const rapt_op same = {.name = "same", .forward = same_forward};

static bool an_op_returns_it(rapt_call *call, gradient_of *gradient)
{
    rapt_tensor *g = RAPT_APPLY(&same, NULL, gradient(call, 0));
    return rapt_call_give(call, 0, g) && rapt_call_give(call, 1, rapt_neg(g));
}

/* tanh x + x */
static rapt_tensor *twice_forward(rapt_call *call)
{
    rapt_tensor *x = rapt_call_input(call, 0);
    return rapt_add(rapt_tanh(x), x);
}

static const rapt_op twice = {.name = "twice", .forward = twice_forward};

static bool an_op_is_made_of_two(rapt_call *call, gradient_of *gradient)
{
    return rapt_call_give(call, 0, RAPT_APPLY(&twice, NULL, gradient(call, 0))) &&
           rapt_call_give(call, 1, rapt_full_like(rapt_call_gradient(call, 0), 1));
}

static rapt_tensor *recomputed(rapt_tensor *const *inputs, void *context)
{
    (void)context;
    return rapt_add(rapt_tanh(inputs[0]), inputs[0]);
}

static bool a_function_is_recomputed(rapt_call *call, gradient_of *gradient)
{
    rapt_tensor *g = gradient(call, 0);
    return rapt_call_give(call, 0, rapt_recompute(recomputed, 1, &g, NULL, NULL)) &&
           rapt_call_give(call, 1, rapt_full_like(g, 1));
}

static const struct {
    const char *name;
    readers *vjp;
} cases[] = {{"one input has it", one_input_has_it},
             {"one input gets it", one_input_gets_it},
             {"one input gets a view", one_input_gets_a_view},
             {"one input gets it detached", one_input_gets_it_detached},
             {"the caller keeps it", the_caller_keeps_it},
             {"the op reads a view", the_op_reads_a_view},
             {"an op returns it", an_op_returns_it},
             {"an op is made of two", an_op_is_made_of_two},
             {"a function is recomputed", a_function_is_recomputed}};

typedef struct options {
    readers *vjp;
    gradient_of *gradient;
} options;

static rapt_tensor *pair_forward(rapt_call *call)
{
    return rapt_add(rapt_call_input(call, 0), rapt_call_input(call, 1));
}

static bool pair_vjp(rapt_call *call)
{
    const options *o = rapt_call_options(call);
    return o->vjp(call, o->gradient);
}

static const rapt_op pair = {.name = "pair", .forward = pair_forward, .vjp = pair_vjp, .options_size = sizeof(options)};

/* The gradients of both inputs, and what was kept, all where numbers are the gradient. */
static void run(readers *vjp, gradient_of *gradient, rapt_tensor *numbers, rapt_tensor *found[3])
{
    const options o = {vjp, gradient};
    rapt_tensor *a = rapt_require_gradient(rapt_ones_like(numbers)),
                *b = rapt_require_gradient(rapt_ones_like(numbers));
    rapt_tensor *y = RAPT_APPLY(&pair, &o, a, b);
    kept = NULL;
    cr_assert(rapt_backward(rapt_sum(rapt_mul(y, numbers), RAPT_ALL_AXES, false)), "%s", rapt_error());
    found[0] = rapt_gradient(a);
    found[1] = rapt_gradient(b);
    found[2] = kept ? kept : numbers;
}

static void expect_same_bits(const char *name, readers *vjp, int64_t count)
{
    RAPT_SCOPE;
    rapt_tensor *numbers = rapt_randn(RAPT_FLOAT64, 1, &count), *there[3], *elsewhere[3];
    run(vjp, rapt_call_last_gradient, numbers, there);
    rapt_tensor *share = kept;
    run(vjp, rapt_call_gradient, numbers, elsewhere);
    for (int k = 0; k < 3; k++)
        cr_expect(memcmp(rapt_data(there[k]), rapt_data(elsewhere[k]), (size_t)count * sizeof(double)) == 0,
                  "%s: gradient %d of %lld numbers", name, k, (long long)count);
    rapt_release(share);
    rapt_release(kept);
}

/* Long ones are written in tasks, of which the first writes what the others read. */
Test(gradient_still_read, by_somebody)
{
    for (int i = 0; i < (int)(sizeof cases / sizeof *cases); i++) {
        expect_same_bits(cases[i].name, cases[i].vjp, 3);
        expect_same_bits(cases[i].name, cases[i].vjp, 100000);
    }
    expect_no_error();
}

/* --- gradients that are asked for --- */

Test(gradient_still_read, results_are_tensors_of_their_own)
{
    RAPT_SCOPE;
    rapt_tensor *a = rapt_require_gradient(rapt_full(RAPT_FLOAT64, RAPT_SHAPE(3), 1)),
                *b = rapt_require_gradient(rapt_ones_like(a));
    rapt_tensor *y = rapt_add(a, b), *given = rapt_full_like(y, 7), *inputs[] = {a, b, a}, *results[3];
    cr_assert(rapt_gradients(1, &y, &given, 3, inputs, results, 0), "%s", rapt_error());
    cr_assert(rapt_scale_in_place(results[0], 2));
    expect_values("changed", results[0], 3, (const double[]){14, 14, 14}, 0);
    expect_values("of the other input", results[1], 3, (const double[]){7, 7, 7}, 0);
    cr_expect(results[2] == results[0]);
    expect_values("given", given, 3, (const double[]){7, 7, 7}, 0);
    y = rapt_add_scalar(a, 1);
    cr_assert(rapt_gradients(1, &y, &a, 1, &a, results, 0), "%s", rapt_error());
    cr_assert(rapt_scale_in_place(results[0], 10));
    expect_values("a leaf that was given", a, 3, (const double[]){1, 1, 1}, 0);
    expect_no_error();
}
