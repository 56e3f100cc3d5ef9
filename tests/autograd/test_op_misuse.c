/* Ops of one's own that are written wrongly: never a wrong number, always a sentence that says what to do. */
#include <criterion/criterion.h>
#include <math.h>

#include <rapt.h>

#include "expect.h"

static rapt_tensor *leaf(double value)
{
    return rapt_require_gradient(rapt_full(RAPT_FLOAT64, RAPT_SHAPE(3), value));
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

/* --- what forward saves, for y = x³ with dy = 3 x² dx --- */

enum { saves_input, saves_square, saves_constant, saves_contiguous, saves_transposed, ways };

static rapt_tensor *cube_forward(rapt_call *call)
{
    rapt_tensor *x = rapt_call_input(call, 0), *square = rapt_mul(x, x);
    switch (*(const int *)rapt_call_options(call)) {
    case saves_square:
        rapt_call_save(call, square);
        break;
    case saves_constant:
        rapt_call_save_constant(call, square);
        break;
    case saves_contiguous:
        rapt_call_save(call, rapt_contiguous(x));
        break;
    case saves_transposed:
        rapt_call_save(call, rapt_reshape(x, RAPT_SHAPE(3, 1)));
        break;
    default:
        rapt_call_save(call, x);
    }
    return rapt_mul(square, x);
}

static bool cube_vjp(rapt_call *call)
{
    const int way = *(const int *)rapt_call_options(call);
    rapt_tensor *g = rapt_call_gradient(call, 0), *saved = rapt_call_saved(call, 0);
    const bool is_square = way == saves_square || way == saves_constant;
    if (way == saves_transposed) saved = rapt_reshape(saved, RAPT_SHAPE(3));
    return rapt_call_give(call, 0, rapt_mul(g, rapt_mul_scalar(is_square ? saved : rapt_mul(saved, saved), 3)));
}

static const rapt_op cube = {.name = "cube", .forward = cube_forward, .vjp = cube_vjp, .options_size = sizeof(int)};

static rapt_tensor *call_cube(rapt_tensor *const *inputs, void *way)
{
    return RAPT_APPLY(&cube, way, inputs[0]);
}

Test(op_misuse, a_second_derivative_is_right_or_an_error)
{
    for (int way = 0; way < ways; way++) {
        RAPT_SCOPE;
        rapt_tensor *x = leaf(3), *y = total(RAPT_APPLY(&cube, &way, x)), *slope, *curve;
        cr_assert(rapt_gradients(1, &y, NULL, 1, &x, &slope, RAPT_RETAIN_GRAPH));
        cr_expect_eq(first(slope), 27);
        if (way == saves_input) {
            cr_assert(rapt_gradients(1, &y, NULL, 1, &x, &slope, RAPT_CREATE_GRAPH));
            slope = total(slope);
            cr_assert(rapt_gradients(1, &slope, NULL, 1, &x, &curve, 0));
            cr_expect_eq(first(curve), 18);
        } else if (way != saves_constant) {
            cr_expect_not(rapt_gradients(1, &y, NULL, 1, &x, &slope, RAPT_CREATE_GRAPH));
            expect_error(RAPT_ERROR_GRAPH, "cube: no second derivative: saved tensor 0, float64 [3");
        }
    }
}

Test(op_misuse, gradcheck_of_first_order_finds_what_is_lost_in_the_second)
{
    for (int way = 0; way < ways; way++) {
        RAPT_SCOPE;
        rapt_tensor *x = leaf(3);
        rapt_gradcheck_options options = {.context = &way};
        rapt_gradcheck_result check = rapt_gradcheck("cube", call_cube, 1, &x, &options);
        const bool is_good = way == saves_input || way == saves_constant;
        cr_expect_eq(check.passed, is_good, "way %d: %s", way, check.message);
        if (!is_good) expect_error(RAPT_ERROR_GRAPH, "is neither an input nor an output");
        expect_no_error();
    }
}

/* --- a vjp that loops over numbers itself --- */

static rapt_tensor *square_forward(rapt_call *call)
{
    rapt_tensor *x = rapt_call_input(call, 0);
    rapt_call_save(call, x);
    return rapt_mul(x, x);
}

static bool raw_vjp(rapt_call *call)
{
    const rapt_tensor *g = rapt_contiguous(rapt_call_gradient(call, 0)), *x = rapt_call_saved(call, 0);
    rapt_tensor *dx = rapt_empty_like(x);
    double *out = rapt_data_for_writing(dx);
    for (int64_t i = 0; i < rapt_count(x); i++)
        out[i] = 2 * ((const double *)rapt_data(g))[i] * ((const double *)rapt_data(x))[i];
    return rapt_call_give(call, 0, dx);
}

static const rapt_op raw = {.name = "raw", .forward = square_forward, .vjp = raw_vjp},
                     honest = {.name = "honest",
                               .forward = square_forward,
                               .vjp = raw_vjp,
                               .no_second_gradient = "its vjp is plain C; rapt_mul has one"};

static rapt_tensor *call_op(rapt_tensor *const *inputs, void *op)
{
    return rapt_apply(op, NULL, 1, inputs);
}

Test(op_misuse, gradcheck_finds_a_vjp_that_is_not_recorded)
{
    RAPT_SCOPE;
    rapt_tensor *x = leaf(3), *y = total(RAPT_APPLY(&honest, NULL, x)), *slope;
    rapt_gradcheck_options options = {.context = (void *)(uintptr_t)&raw};
    cr_expect_not(rapt_gradcheck("raw", call_op, 1, &x, &options).passed);
    expect_error(RAPT_ERROR_GRAPH, "raw: its vjp did not make the gradient of input 0 of recorded ops");
    options.context = (void *)(uintptr_t)&honest;
    cr_expect(rapt_gradcheck("honest", call_op, 1, &x, &options).passed);
    expect_no_error();
    cr_expect_not(rapt_gradients(1, &y, NULL, 1, &x, &slope, RAPT_CREATE_GRAPH));
    expect_error(RAPT_ERROR_UNSUPPORTED, "honest: has no second derivative; its vjp is plain C; rapt_mul has one");
}

/* --- calls of the wrong kind --- */

enum {
    gives_twice,
    gives_beyond,
    reads_beyond,
    reads_gradient_beyond,
    wants_beyond,
    shape_beyond,
    so_far_beyond,
    asks_for_input,
    asks_for_inputs,
    saves,
    sets,
    mistakes
};

static rapt_tensor *copy_forward(rapt_call *call)
{
    return rapt_clone(rapt_call_input(call, 0));
}

static bool mistaken_vjp(rapt_call *call)
{
    rapt_tensor *g = rapt_call_gradient(call, 0);
    int rank;
    switch (*(const int *)rapt_call_options(call)) {
    case gives_twice:
        return rapt_call_give(call, 0, g) && rapt_call_give(call, 0, g);
    case gives_beyond:
        return rapt_call_give(call, 1, g);
    case reads_beyond:
        rapt_call_saved(call, -1);
        break;
    case reads_gradient_beyond:
        rapt_call_gradient(call, 1);
        break;
    case wants_beyond:
        rapt_call_wants(call, 1);
        break;
    case shape_beyond:
        rapt_call_input_shape(call, -1, &rank);
        break;
    case so_far_beyond:
        rapt_call_gradient_so_far(call, 2);
        break;
    case asks_for_input:
        rapt_call_input(call, 0);
        break;
    case asks_for_inputs:
        rapt_call_inputs(call);
        break;
    case saves:
        rapt_call_save(call, g);
        break;
    default:
        rapt_call_set_output(call, 0, g);
    }
    return rapt_call_give(call, 0, g);
}

static const rapt_op mistaken = {.name = "mistaken",
                                 .forward = copy_forward,
                                 .vjp = mistaken_vjp,
                                 .options_size = sizeof(int)};

Test(op_misuse, wrong_indices_and_wrong_times_are_errors)
{
    static const char *const parts[mistakes] = {
        "mistaken: its vjp gave input 0 a gradient twice",
        "mistaken: input 1 asked for in its vjp; there are 1",
        "mistaken: saved tensor -1 asked for in its vjp; there are 0",
        "mistaken: the gradient of output 1 asked for in its vjp; there are 1",
        "mistaken: input 1 asked for in its vjp; there are 1",
        "mistaken: input -1 asked for in its vjp; there are 1",
        "mistaken: the gradient so far of input 2 asked for in its vjp; there are 1",
        "mistaken: its vjp asked for input 0, which only forward has",
        "mistaken: its vjp asked for the inputs, which only forward has",
        "mistaken: its vjp saved a tensor",
        "mistaken: its vjp set output 0",
    };
    for (int kind = 0; kind < mistakes; kind++) {
        RAPT_SCOPE;
        rapt_tensor *x = leaf(2);
        cr_expect_not(rapt_backward(total(RAPT_APPLY(&mistaken, &kind, x))), "kind %d", kind);
        cr_expect(rapt_error() && strstr(rapt_error(), parts[kind]), "%s", rapt_error());
        cr_expect_null(rapt_gradient(x));
        rapt_clear_error();
    }
}

/* Each asks for what is not there, and then gives a result as if that were nothing. */
static rapt_tensor *curious_forward(rapt_call *call)
{
    rapt_call_saved(call, 0);
    return rapt_clone(rapt_call_input(call, 0));
}

static rapt_tensor *wanting_forward(rapt_call *call)
{
    return rapt_clone(rapt_call_input(call, rapt_call_wants(call, 3) ? 1 : 0));
}

static rapt_tensor *reading_forward(rapt_call *call)
{
    rapt_tensor *second = rapt_call_input(call, 1);
    return rapt_clone(second ? second : rapt_call_input(call, 0));
}

static rapt_tensor *one_of_two_forward(rapt_call *call)
{
    return rapt_clone(rapt_call_input(call, 0));
}

Test(op_misuse, what_is_no_op_is_an_error)
{
    RAPT_SCOPE;
    static const rapt_op empty = {.name = "empty"}, copy = {.name = "copy", .forward = copy_forward},
                         curious = {.name = "curious", .forward = curious_forward},
                         wanting = {.name = "wanting", .forward = wanting_forward},
                         reading = {.name = "reading", .forward = reading_forward},
                         nameless = {.forward = curious_forward},
                         silent = {.name = "silent", .forward = one_of_two_forward, .outputs = 2};
    rapt_tensor *x = leaf(1), *outputs[2];
    cr_expect_null(rapt_apply(NULL, NULL, 1, &x));
    expect_error(RAPT_ERROR_NULL, "apply: the op is NULL");
    cr_expect_null(rapt_apply(&empty, NULL, 1, &x));
    expect_error(RAPT_ERROR_NULL, "empty: the op's forward is NULL");
    cr_expect_null(rapt_apply(&nameless, NULL, 1, &x));
    expect_error(RAPT_ERROR_NULL, "apply: the op's name is NULL");
    cr_expect_null(rapt_apply(&copy, NULL, 1, NULL));
    expect_error(RAPT_ERROR_NULL, "copy: the list of inputs is NULL");
    cr_expect_null(rapt_apply(&copy, NULL, -1, &x));
    expect_error(RAPT_ERROR_VALUE, "copy: -1 inputs");
    cr_expect_not(rapt_apply_many(NULL, NULL, 1, &x, outputs));
    expect_error(RAPT_ERROR_NULL, "apply: the op is NULL");
    cr_expect_not(rapt_apply_many(&copy, NULL, 1, &x, NULL));
    expect_error(RAPT_ERROR_NULL, "copy: the list of outputs is NULL");
    cr_expect_null(rapt_apply(&copy, NULL, 0, NULL));
    expect_error(RAPT_ERROR_VALUE, "copy: input 0 asked for in its forward; there are 0");
    cr_expect_null(rapt_apply(&curious, NULL, 1, &x));
    expect_error(RAPT_ERROR_GRAPH, "curious: its forward asked for saved tensor 0");
    cr_expect_null(rapt_apply(&wanting, NULL, 1, &x));
    expect_error(RAPT_ERROR_VALUE, "wanting: input 3 asked for in its forward; there are 1");
    cr_expect_null(rapt_apply(&reading, NULL, 1, &x));
    expect_error(RAPT_ERROR_VALUE, "reading: input 1 asked for in its forward; there are 1");
    cr_expect_not(rapt_apply_many(&silent, NULL, 1, &x, outputs));
    expect_error(RAPT_ERROR_NULL, "silent: its forward set no output 1");
    cr_expect_null(rapt_apply(&cube, NULL, 1, &x));
    expect_error(RAPT_ERROR_NULL, "cube: it has options of 4 bytes, and NULL was given");
}
