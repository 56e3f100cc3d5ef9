/* gradcheck walks as training does, where vjps work in place: what is right only when everything is held by others and
 * comes alone is found. */
#include <math.h>

#include "own_ops.h"

#define OP(kind, ...)                                                                                                  \
    static const rapt_op kind = {.name = #kind, .forward = kind##_forward, .vjp = kind##_vjp, __VA_ARGS__}

/* y = a b, whose gradient is read again after its last use. */
static rapt_tensor *last_forward(rapt_call *call)
{
    rapt_call_save(call, rapt_call_input(call, 0));
    rapt_call_save(call, rapt_call_input(call, 1));
    return rapt_mul(rapt_call_input(call, 0), rapt_call_input(call, 1));
}

static bool last_vjp(rapt_call *call)
{
    rapt_tensor *gradient = rapt_call_last_gradient(call, 0);
    return rapt_call_give(call, 0, rapt_mul(gradient, rapt_call_saved(call, 1))) &&
           rapt_call_give(call, 1, rapt_mul(gradient, rapt_call_saved(call, 0)));
}

OP(last);

/* y = exp a: what was saved is taken and doubled, and the half of both is read, 2 y − y where there are two. */
static rapt_tensor *taken_forward(rapt_call *call)
{
    rapt_tensor *y = rapt_exp(rapt_call_input(call, 0));
    rapt_call_save_constant(call, rapt_clone(y));
    return y;
}

static bool taken_vjp(rapt_call *call)
{
    rapt_tensor *saved = rapt_call_saved(call, 0), *twice = rapt_call_take_saved(call, 0);
    return twice && rapt_scale_in_place(twice, 2) &&
           rapt_call_give(call, 0, rapt_mul(rapt_call_gradient(call, 0), rapt_sub(twice, saved)));
}

OP(taken, .no_second_gradient = "it works in place");

/* y = 3 a, of which the gradient that is added to another is a third. */
static rapt_tensor *so_far_forward(rapt_call *call)
{
    return rapt_mul_scalar(rapt_call_input(call, 0), 3);
}

static bool so_far_vjp(rapt_call *call)
{
    rapt_tensor *gradient = rapt_call_gradient(call, 0), *so_far = rapt_call_gradient_so_far(call, 0);
    return so_far ? rapt_add_in_place(so_far, gradient, 1) : rapt_call_give(call, 0, rapt_mul_scalar(gradient, 3));
}

OP(so_far);

/* y = 2 Σ a: the gradient, which others may read, is doubled in its place. */
static rapt_tensor *doubled_forward(rapt_call *call)
{
    return rapt_mul_scalar(total(rapt_call_input(call, 0)), 2);
}

static bool doubled_vjp(rapt_call *call)
{
    rapt_tensor *gradient = rapt_call_gradient(call, 0);
    int rank;
    const int64_t *shape = rapt_call_input_shape(call, 0, &rank);
    return rapt_scale_in_place(gradient, 2) && rapt_call_give(call, 0, rapt_expand(gradient, rank, shape));
}

OP(doubled, .no_second_gradient = "it works in place");

static rapt_tensor *call_op(rapt_tensor *const *inputs, void *context)
{
    return rapt_apply(context, NULL, context == &last ? 2 : 1, inputs);
}

static void expect_found(const rapt_op *op, const char *element)
{
    for (int project = 0; project < 2; project++) {
        RAPT_SCOPE;
        rapt_tensor *inputs[] = {doubles(2, (double[]){1, 2}), doubles(2, (double[]){0.5, 3})};
        const rapt_gradcheck_options options = {.context = (void *)(uintptr_t)op, .random_projection = project};
        const rapt_gradcheck_result r = rapt_gradcheck(op->name, call_op, op == &last ? 2 : 1, inputs, &options);
        cr_expect_not(r.passed, "%s", op->name);
        cr_expect(r.message[0] && strstr(r.message, element) && strstr(r.message, "as in training"), "%s", r.message);
        expect_error(RAPT_ERROR_GRAPH, "backward gives something else");
        for (int i = 0; i < 2; i++) cr_expect_null(rapt_gradient(inputs[i]));
    }
}

Test(gradcheck_in_place, a_gradient_that_is_read_after_its_last_use_is_found)
{
    expect_found(&last, "input 1[");
}

Test(gradcheck_in_place, a_saved_tensor_that_is_read_after_it_was_taken_is_found)
{
    expect_found(&taken, "input 0[");
}

Test(gradcheck_in_place, what_is_wrongly_added_to_the_gradient_so_far_is_found)
{
    expect_found(&so_far, "input 0[");
}

Test(gradcheck_in_place, a_gradient_that_is_changed_is_found)
{
    expect_found(&doubled, "input 0[");
}

/* a · b for leaves that have been used, b behind a graph that the function did not record. */
static rapt_tensor *times_recorded(rapt_tensor *const *inputs, void *context)
{
    return rapt_mul(rapt_mul(inputs[0], inputs[0]), context);
}

Test(gradcheck_in_place, what_was_recorded_before_stays)
{
    RAPT_SCOPE;
    rapt_tensor *a = doubles(2, (double[]){1, 2}), *b = doubles(2, (double[]){0.5, 3}), *before = rapt_exp(a);
    const rapt_gradcheck_options options = {.context = rapt_mul(b, b)};
    const rapt_gradcheck_result r = rapt_gradcheck("times", times_recorded, 1, &a, &options);
    cr_expect(r.passed, "%s", r.message);
    cr_expect(rapt_backward(total(options.context)), "%s", rapt_error());
    cr_expect_eq(at(rapt_gradient(b), 1), 6);
    cr_expect(rapt_backward(total(before)), "%s", rapt_error());
    cr_expect_float_eq(at(rapt_gradient(a), 1), exp(2), 1e-12);
    expect_no_error();
}

/* A graph of it is good until the next call. */
static rapt_tensor *times_state(rapt_tensor *const *inputs, void *context)
{
    return rapt_fill(context, 3) ? rapt_mul(inputs[0], context) : NULL;
}

Test(gradcheck_in_place, a_function_that_overwrites_what_its_last_graph_needs_passes)
{
    RAPT_SCOPE;
    rapt_tensor *a = doubles(2, (double[]){1, 2});
    const rapt_gradcheck_options options = {.context = rapt_zeros(RAPT_FLOAT64, RAPT_SHAPE(2))};
    const rapt_gradcheck_result r = rapt_gradcheck("times_state", times_state, 1, &a, &options);
    cr_expect(r.passed, "%s", r.message);
    expect_no_error();
}
