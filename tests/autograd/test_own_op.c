/* An op of several outputs that a user writes with <rapt.h> alone: this program is linked with the shared library. */
#include <criterion/criterion.h>
#include <math.h>

#include <rapt.h>

#include "own_ops.h"

/* r = √(x² + y²) and θ = atan2(y, x), computed by plain loops over float64. */
static rapt_tensor *polar_forward(rapt_call *call)
{
    rapt_tensor *x = rapt_call_input(call, 0), *y = rapt_call_input(call, 1);
    rapt_tensor *radius = rapt_empty_like(x), *angle = rapt_empty_like(x);
    if (!radius || !angle) return NULL;
    if (rapt_get_dtype(x) != RAPT_FLOAT64 || rapt_count(x) != rapt_count(y)) {
        rapt_fail(RAPT_ERROR_VALUE, rapt_call_op(call)->name, "x and y of float64 and of one size expected");
        return NULL;
    }
    const double *in_x = rapt_data(x), *in_y = rapt_data(y);
    double *out_radius = rapt_data_for_writing(radius), *out_angle = rapt_data_for_writing(angle);
    for (int64_t i = 0; i < rapt_count(x); i++) {
        out_radius[i] = hypot(in_x[i], in_y[i]);
        out_angle[i] = atan2(in_y[i], in_x[i]);
    }
    rapt_call_set_output(call, 1, angle);
    rapt_call_save(call, x);
    rapt_call_save(call, y);
    rapt_call_save(call, radius);
    return radius;
}

/* dx = x / r · dr − y / r² · dθ,   dy = y / r · dr + x / r² · dθ */
static bool polar_vjp(rapt_call *call)
{
    rapt_tensor *x = rapt_call_saved(call, 0), *y = rapt_call_saved(call, 1), *r = rapt_call_saved(call, 2);
    rapt_tensor *along = rapt_div(rapt_call_gradient_or_zeros(call, 0), r);
    rapt_tensor *around = rapt_div(rapt_call_gradient_or_zeros(call, 1), rapt_mul(r, r));
    return rapt_call_give(call, 0, rapt_sub(rapt_mul(along, x), rapt_mul(around, y))) &&
           rapt_call_give(call, 1, rapt_add(rapt_mul(along, y), rapt_mul(around, x)));
}

static const rapt_op polar = {.name = "polar", .forward = polar_forward, .vjp = polar_vjp, .outputs = 2};

/* x, x², … as many as the caller asks for: dx = Σ k x^(k − 1) dy_k */
static rapt_tensor *powers_forward(rapt_call *call)
{
    rapt_tensor *x = rapt_call_input(call, 0);
    for (int k = 1; k < rapt_call_output_count(call); k++) rapt_call_set_output(call, k, rapt_pow_scalar(x, k + 1));
    rapt_call_save(call, x);
    return rapt_clone(x);
}

static bool powers_vjp(rapt_call *call)
{
    rapt_tensor *x = rapt_call_saved(call, 0), *sum = rapt_zeros_like(x);
    for (int k = 0; k < rapt_call_output_count(call); k++) {
        rapt_tensor *g = rapt_call_gradient(call, k);
        if (g) sum = rapt_add(sum, rapt_mul(g, rapt_mul_scalar(rapt_pow_scalar(x, k), k + 1)));
    }
    return rapt_call_give(call, 0, sum);
}

static const rapt_op powers = {.name = "powers", .forward = powers_forward, .vjp = powers_vjp};

/* Ops of one kind, y = base^x, with one forward and one vjp: each begins a struct that says which it is. */
typedef struct exponential {
    rapt_op op;
    double base;
} exponential;

static rapt_tensor *exponential_forward(rapt_call *call)
{
    const exponential *e = (const exponential *)rapt_call_op(call);
    rapt_tensor *base = rapt_full(RAPT_FLOAT64, 0, NULL, e->base);
    rapt_tensor *y = rapt_pow(base, rapt_call_inputs(call)[0]);
    rapt_call_save(call, y);
    return y;
}

static bool exponential_vjp(rapt_call *call)
{
    const exponential *e = (const exponential *)rapt_call_op(call);
    rapt_tensor *slope = rapt_mul_scalar(rapt_call_saved(call, 0), log(e->base));
    return rapt_call_give(call, 0, rapt_mul(rapt_call_gradient(call, 0), slope));
}

static const exponential exponentials[] = {
    {{.name = "power_of_two", .forward = exponential_forward, .vjp = exponential_vjp}, 2},
    {{.name = "power_of_ten", .forward = exponential_forward, .vjp = exponential_vjp}, 10},
};

Test(own_op, every_output_has_its_values)
{
    RAPT_SCOPE;
    rapt_tensor *in[] = {doubles(3, (double[]){3, 0, -1}), doubles(3, (double[]){4, 2, 0})}, *out[2];
    cr_assert(rapt_apply_many(&polar, NULL, 2, in, out), "%s", rapt_error());
    cr_expect(at(out[0], 0) == 5 && at(out[0], 1) == 2 && at(out[0], 2) == 1);
    cr_expect_float_eq(at(out[1], 0), 0.9272952180016122, 1e-15);
    cr_expect_float_eq(at(out[1], 1), acos(-1) / 2, 1e-15);
    cr_expect_float_eq(at(out[1], 2), acos(-1), 1e-15);
    for (int k = 0; k < 2; k++) cr_expect(rapt_requires_gradient(out[k]));
}

Test(own_op, gradients_arrive_from_each_output)
{
    const double x = 3, y = 4, by_x[] = {0.6, -0.16}, by_y[] = {0.8, 0.12};
    for (int k = 0; k < 2; k++) {
        RAPT_SCOPE;
        rapt_tensor *in[] = {doubles(1, &x), doubles(1, &y)}, *out[2];
        cr_assert(rapt_apply_many(&polar, NULL, 2, in, out), "%s", rapt_error());
        cr_assert(rapt_backward(out[k]), "%s", rapt_error());
        cr_expect_float_eq(at(rapt_gradient(in[0]), 0), by_x[k], 1e-15);
        cr_expect_float_eq(at(rapt_gradient(in[1]), 0), by_y[k], 1e-15);
    }
}

static rapt_tensor *of_polar(rapt_tensor *const *inputs, void *context)
{
    rapt_tensor *out[2];
    const int *used = context;
    if (!rapt_apply_many(&polar, NULL, 2, inputs, out)) return NULL;
    return *used < 2 ? out[*used] : rapt_mul(rapt_exp(out[0]), rapt_sin(out[1]));
}

Test(own_op, derivatives_of_both_orders_are_right)
{
    for (int used = 0; used < 3; used++)
        for (int order = 1; order <= 2; order++) {
            RAPT_SCOPE;
            rapt_tensor *in[] = {doubles(4, (double[]){0.5, 1.5, -1, -0.25}), doubles(4, (double[]){1, -2, 0.5, -1})};
            rapt_gradcheck_options options = {.context = &used, .second_order = order == 2};
            rapt_gradcheck_result check = rapt_gradcheck("polar", of_polar, 2, in, &options);
            cr_expect(check.passed, "output %d, order %d: %s", used, order, check.message);
            cr_expect(check.checked > 0);
        }
}

static bool hand_on(rapt_tensor *const *inputs, rapt_tensor **outputs, void *context)
{
    (void)context;
    outputs[0] = rapt_mul(inputs[0], inputs[0]);
    outputs[1] = inputs[0];
    return outputs[0] != NULL;
}

/* A function that is run again hands on its input, which is the second output of an op: d(θ² + 3 θ) */
Test(own_op, an_output_that_a_recomputed_function_hands_on)
{
    RAPT_SCOPE;
    rapt_tensor *in[] = {doubles(1, (double[]){3}), doubles(1, (double[]){4})}, *polars[2], *out[2];
    cr_assert(rapt_apply_many(&polar, NULL, 2, in, polars), "%s", rapt_error());
    cr_assert(rapt_recompute_many(hand_on, 1, &polars[1], 2, out, NULL, NULL), "%s", rapt_error());
    cr_assert(rapt_backward(rapt_add(out[0], rapt_mul_scalar(out[1], 3))), "%s", rapt_error());
    const double by_angle = 2 * at(polars[1], 0) + 3;
    cr_expect_float_eq(at(rapt_gradient(in[0]), 0), by_angle * -0.16, 1e-14);
    cr_expect_float_eq(at(rapt_gradient(in[1]), 0), by_angle * 0.12, 1e-14);
}

static rapt_tensor *of_powers(rapt_tensor *const *inputs, void *context)
{
    rapt_tensor *out[4];
    const int *count = context;
    if (!rapt_apply_counted(&powers, NULL, 1, inputs, *count, out)) return NULL;
    return rapt_concat(*count, out, 0);
}

Test(own_op, the_caller_chooses_how_many_outputs_there_are)
{
    for (int count = 1; count <= 4; count++) {
        RAPT_SCOPE;
        rapt_tensor *x = doubles(2, (double[]){2, -3}), *out[4] = {0};
        cr_assert(rapt_apply_counted(&powers, NULL, 1, &x, count, out), "%s", rapt_error());
        for (int k = 0; k < 4; k++) cr_expect(k < count ? at(out[k], 1) == pow(-3, k + 1) : !out[k]);
        cr_assert(rapt_backward(total(out[count - 1])), "%s", rapt_error());
        cr_expect_eq(at(rapt_gradient(x), 0), count * pow(2, count - 1));
        for (int order = 1; order <= 2; order++) {
            rapt_gradcheck_options options = {.context = &count, .second_order = order == 2};
            rapt_gradcheck_result check = rapt_gradcheck("powers", of_powers, 1, &x, &options);
            cr_expect(check.passed, "%d outputs, order %d: %s", count, order, check.message);
        }
    }
}

static rapt_tensor *of_exponential(rapt_tensor *const *inputs, void *context)
{
    return rapt_apply(context, NULL, 1, inputs);
}

Test(own_op, ops_of_one_kind_share_their_functions)
{
    for (int k = 0; k < 2; k++) {
        RAPT_SCOPE;
        rapt_tensor *x = doubles(2, (double[]){3, -1});
        rapt_tensor *y = RAPT_APPLY(&exponentials[k].op, NULL, x);
        cr_expect_float_eq(at(y, 0), k ? 1000 : 8, 1e-12);
        for (int order = 1; order <= 2; order++) {
            rapt_gradcheck_options options = {.context = (void *)&exponentials[k].op, .second_order = order == 2};
            rapt_gradcheck_result check = rapt_gradcheck("exponential", of_exponential, 1, &x, &options);
            cr_expect(check.passed, "op %d, order %d: %s", k, order, check.message);
        }
    }
}

Test(own_op, failures_name_the_op_and_give_no_outputs)
{
    RAPT_SCOPE;
    rapt_tensor *x = doubles(2, (double[]){1, 2}), *y = doubles(3, (double[]){1, 2, 3}), *in[] = {x, y},
                *out[2] = {x, x};
    cr_expect_not(rapt_apply_many(&polar, NULL, 2, in, out));
    expect_error(RAPT_ERROR_VALUE, "polar: x and y of float64 and of one size expected");
    cr_expect(!out[0] && !out[1], "what a failed call leaves behind");
    out[0] = out[1] = x;
    cr_expect_not(rapt_apply_counted(NULL, NULL, 1, &x, 2, out));
    expect_error(RAPT_ERROR_NULL, "apply: the op is NULL");
    cr_expect(!out[0] && !out[1], "what a failed call leaves behind");
    cr_expect_not(rapt_apply_counted(&powers, NULL, 1, &x, 0, out));
    expect_error(RAPT_ERROR_VALUE, "powers: 0 outputs; 1 or more expected");
    cr_expect_not(rapt_apply_counted(&powers, NULL, 1, &x, 2, NULL));
    expect_error(RAPT_ERROR_NULL, "powers: the list of outputs is NULL");
    cr_expect_null(rapt_apply(&polar, NULL, 2, (rapt_tensor *[]){x, x}));
    expect_error(RAPT_ERROR_VALUE, "polar: it has 2 outputs: rapt_apply_many gives them");
}

/* x, and where its largest element is: an output that is not floating. */
static rapt_tensor *ranked_forward(rapt_call *call)
{
    rapt_tensor *x = rapt_call_input(call, 0);
    rapt_call_set_output(call, 1, rapt_argmax(x, 0, false));
    return rapt_clone(x);
}

static bool asks_for_all_vjp(rapt_call *call)
{
    rapt_tensor *unused = rapt_call_gradient_or_zeros(call, 1);
    return rapt_call_give(call, 0, rapt_add(rapt_call_gradient(call, 0), unused));
}

static bool asks_beyond_vjp(rapt_call *call)
{
    return rapt_call_give(call, 0, rapt_call_gradient_or_zeros(call, 2));
}

static bool asks_for_inputs_vjp(rapt_call *call)
{
    return rapt_call_give(call, 0, rapt_call_inputs(call) ? rapt_call_gradient(call, 0) : NULL);
}

static rapt_tensor *asks_early_forward(rapt_call *call)
{
    return rapt_call_gradient_or_zeros(call, 0);
}

static rapt_tensor *asks_early_so_far_forward(rapt_call *call)
{
    rapt_tensor *y = rapt_neg(rapt_call_input(call, 0));
    return rapt_call_gradient_so_far(call, 0) ? NULL : y;
}

Test(own_op, what_a_vjp_or_a_forward_lacks_is_named)
{
    RAPT_SCOPE;
    static const rapt_op ranked = {.name = "ranked", .forward = ranked_forward, .vjp = asks_for_all_vjp, .outputs = 2};
    static const rapt_op beyond = {.name = "beyond", .forward = ranked_forward, .vjp = asks_beyond_vjp, .outputs = 2};
    static const rapt_op curious = {.name = "curious",
                                    .forward = ranked_forward,
                                    .vjp = asks_for_inputs_vjp,
                                    .outputs = 2};
    static const rapt_op early = {.name = "early", .forward = asks_early_forward};
    static const rapt_op early_sum = {.name = "early_sum", .forward = asks_early_so_far_forward};
    rapt_tensor *x = doubles(2, (double[]){1, 2}), *out[2];
    cr_assert(rapt_apply_many(&ranked, NULL, 1, &x, out), "%s", rapt_error());
    cr_expect_not(rapt_requires_gradient(out[1]));
    cr_expect_not(rapt_backward(total(out[0])));
    expect_error(RAPT_ERROR_DTYPE, "ranked: its vjp asked for the gradient of output 1, which is int64");
    cr_assert(rapt_apply_many(&beyond, NULL, 1, &x, out), "%s", rapt_error());
    cr_expect_not(rapt_backward(total(out[0])));
    expect_error(RAPT_ERROR_VALUE, "beyond: the gradient of output 2 asked for in its vjp; there are 2");
    cr_assert(rapt_apply_many(&curious, NULL, 1, &x, out), "%s", rapt_error());
    cr_expect_not(rapt_backward(total(out[0])));
    expect_error(RAPT_ERROR_GRAPH, "curious: its vjp asked for the inputs, which only forward has");
    cr_expect_null(RAPT_APPLY(&early, NULL, x));
    expect_error(RAPT_ERROR_GRAPH, "early: its forward asked for a gradient, which only a vjp has");
    cr_expect_null(RAPT_APPLY(&early_sum, NULL, x));
    expect_error(RAPT_ERROR_GRAPH, "early_sum: its forward asked for a gradient, which only a vjp has");
    cr_expect_null(rapt_gradient(x));
}

Test(own_op, a_leaf_can_own_its_gradient)
{
    RAPT_SCOPE;
    rapt_tensor *x = doubles(2, (double[]){1, 2});
    cr_expect(rapt_own_gradient(x), "one without a gradient: nothing to do");
    cr_expect_null(rapt_gradient(x));
    cr_assert(rapt_backward_from(1, (rapt_tensor *[]){total(rapt_mul(x, rapt_mul(x, x)))}, NULL, RAPT_CREATE_GRAPH));
    rapt_tensor *shared = rapt_retain(rapt_gradient(x));
    cr_expect(rapt_requires_gradient(shared), "it is part of a graph");
    cr_assert(rapt_own_gradient(x), "%s", rapt_error());
    cr_expect(rapt_gradient(x) != shared && !rapt_requires_gradient(rapt_gradient(x)));
    cr_assert(rapt_fill(rapt_gradient(x), 7), "%s", rapt_error());
    cr_expect(at(shared, 0) == 3 && at(shared, 1) == 12, "others see what they saw");
    const rapt_tensor *owned = rapt_gradient(x);
    cr_expect(rapt_own_gradient(x) && rapt_gradient(x) == owned, "its own already");
    rapt_release(shared);
    cr_expect_not(rapt_own_gradient(NULL));
    expect_error(RAPT_ERROR_NULL, "own_gradient: leaf is NULL");
}

/* x and x³, in a scope of its own. */
static rapt_tensor *scoped_forward(rapt_call *call)
{
    RAPT_SCOPE;
    rapt_tensor *x = rapt_call_input(call, 0), *square = rapt_mul(x, x);
    rapt_call_save(call, x);
    {
        RAPT_SCOPE;
        rapt_call_set_output(call, 1, rapt_mul(x, square));
        rapt_exp(x);
    }
    return rapt_keep(rapt_clone(x));
}

/* dx = dy + 3 x² dy₁. */
static bool scoped_vjp(rapt_call *call)
{
    RAPT_SCOPE;
    rapt_tensor *x = rapt_call_saved(call, 0), *g = rapt_call_gradient_or_zeros(call, 1);
    RAPT_SCOPE;
    rapt_tensor *of_cube = rapt_mul(rapt_mul_scalar(g, 3), rapt_mul(x, x));
    rapt_tensor *sum = rapt_add(rapt_call_gradient_or_zeros(call, 0), of_cube);
    rapt_exp(x);
    return rapt_call_give(call, 0, sum) && rapt_exp(sum);
}

static const rapt_op scoped = {.name = "scoped", .forward = scoped_forward, .vjp = scoped_vjp, .outputs = 2};

static rapt_tensor *of_scoped(rapt_tensor *const *inputs, void *context)
{
    rapt_tensor *y[2];
    (void)context;
    return rapt_apply_many(&scoped, NULL, 1, inputs, y) ? rapt_add(total(rapt_mul(y[0], y[1])), total(y[1])) : NULL;
}

Test(own_op, outputs_and_gradients_outlive_the_scopes_they_are_made_in)
{
    const int64_t before = rapt_memory_get_statistics().live_bytes;
    {
        RAPT_SCOPE;
        rapt_tensor *x = doubles(3, (double[]){2, 0.5, -1}), *y[2];
        cr_assert(rapt_apply_many(&scoped, NULL, 1, &x, y), "%s", rapt_error());
        cr_expect(at(y[0], 0) == 2 && at(y[1], 0) == 8 && at(y[1], 2) == -1);
        cr_assert(rapt_backward(rapt_add(total(y[0]), total(y[1]))), "%s", rapt_error());
        cr_expect(at(rapt_gradient(x), 0) == 13 && at(rapt_gradient(x), 1) == 1.75 && at(rapt_gradient(x), 2) == 4);
        rapt_gradcheck_options options = {.second_order = true};
        rapt_gradcheck_result check = rapt_gradcheck("scoped", of_scoped, 1, &x, &options);
        cr_expect(check.passed, "%s", check.message);
    }
    cr_expect_eq(rapt_memory_get_statistics().live_bytes, before);
    expect_no_error();
}
