/* Products with Jacobians and Hessians of whole models as they are: against differences, and by what they must be. */
#include "modules.h"

#include <rapt/runtime.h>
#include <rapt/transformer.h>

enum { batch = 2, length = 4, vocabulary = 9, most_inputs = 80 };

/* A model, what it is differentiated by, and a direction for each of these. */
typedef struct problem {
    rapt_module *module;
    rapt_tensor *tokens, *targets;
    rapt_tensor *(*run)(const struct problem *p);
    int count;
    rapt_tensor *inputs[most_inputs], *directions[2][most_inputs];
} problem;

static rapt_tensor *run_gpt(const problem *p)
{
    return rapt_gpt_forward((rapt_gpt *)p->module, p->tokens, NULL);
}

static rapt_tensor *run_gru(const problem *p)
{
    rapt_tensor *embedded = rapt_one_hot(p->tokens, vocabulary, RAPT_FLOAT64);
    return rapt_gru_forward((rapt_gru *)p->module, embedded, NULL, NULL);
}

static rapt_tensor *run_decoder(const problem *p)
{
    rapt_bahdanau_decoder *decoder = (rapt_bahdanau_decoder *)p->module;
    rapt_tensor *memory =
        rapt_sin(rapt_reshape(rapt_arange(RAPT_FLOAT64, 0, 5 * batch * 4, 1), RAPT_SHAPE(5, batch, 4)));
    rapt_bahdanau_state state =
        rapt_bahdanau_decoder_start(decoder, memory, rapt_slice(memory, 0, 0, 2, 1), lengths_of(3, 5));
    return rapt_bahdanau_decoder_forward(decoder, p->tokens, &state, NULL);
}

static bool add(const char *name, rapt_tensor *tensor, void *context)
{
    (void)name;
    problem *p = context;
    cr_assert_lt(p->count, most_inputs);
    for (int i = 0; i < 2; i++)
        p->directions[i][p->count] = rapt_randn(RAPT_FLOAT64, rapt_rank(tensor), rapt_shape(tensor));
    p->inputs[p->count++] = tensor;
    return true;
}

enum { gpt, gru, decoder, problems };

static problem new_problem(int which)
{
    problem p = {.tokens = rapt_randint(0, vocabulary, RAPT_SHAPE(batch, length)),
                 .targets = rapt_randint(0, vocabulary, RAPT_SHAPE(batch, length))};
    rapt_seed(3);
    if (which == gpt) {
        p.module = &rapt_gpt_new(&(rapt_gpt_config){.vocabulary = vocabulary,
                                                    .context = length,
                                                    .hidden = 8,
                                                    .layers = 2,
                                                    .heads = 2,
                                                    .bias = true})
                        ->module;
        p.run = run_gpt;
    } else if (which == gru) {
        p.module = &rapt_gru_new(vocabulary, 5, 2, 0)->recurrent.module;
        p.run = run_gru;
    } else {
        p.module = &rapt_bahdanau_decoder_new(
                        &(rapt_bahdanau_config){.vocabulary = vocabulary, .embedding = 3, .hidden = 4, .layers = 2})
                        ->module;
        p.run = run_decoder;
    }
    in_float64(p.module);
    draw_parameters(p.module);
    rapt_module_visit(p.module, RAPT_PARAMETERS, add, &p);
    return p;
}

static void move(const problem *p, double distance)
{
    for (int i = 0; i < p->count; i++) cr_assert(rapt_add_in_place(p->inputs[i], p->directions[0][i], distance));
}

/* (f(−2h) − 8 f(−h) + 8 f(h) − f(2h)) / 12h */
static rapt_tensor *difference(const problem *p)
{
    RAPT_NO_GRADIENT;
    static const double places[] = {-2, -1, 1, 2}, weights[] = {1, -8, 8, -1};
    const double step = 1e-5;
    rapt_tensor *sum = NULL;
    for (int i = 0; i < 4; i++) {
        move(p, places[i] * step);
        rapt_tensor *part = rapt_mul_scalar(p->run(p), weights[i] / (12 * step));
        sum = sum ? rapt_add(sum, part) : part;
        move(p, -places[i] * step);
    }
    return sum;
}

static double dot(int count, rapt_tensor *const *a, rapt_tensor *const *b)
{
    double sum = 0;
    for (int i = 0; i < count; i++)
        if (a[i] && b[i]) sum += rapt_item(rapt_sum(rapt_mul(a[i], b[i]), RAPT_ALL_AXES, false));
    return sum;
}

static double largest_of(rapt_tensor *x)
{
    return rapt_item(rapt_max(rapt_abs(rapt_detach(x)), RAPT_ALL_AXES, false));
}

Test(model_derivatives, jvp_is_what_differences_and_gradients_give)
{
    for (int which = 0; which < problems; which++) {
        RAPT_SCOPE;
        problem p = new_problem(which);
        rapt_tensor *y = p.run(&p), *change, *expected = difference(&p), *gradients[most_inputs];
        y = p.run(&p);
        cr_assert(rapt_jvp(1, &y, p.count, p.inputs, p.directions[0], &change, 0), "%s", rapt_error());
        const double error = largest_of(rapt_sub(change, expected)) / largest_of(expected);
        cr_expect_lt(error, 1e-9, "model %d: %g from the differences", which, error);
        /* <u, J t> = <Jᵀ u, t> */
        rapt_tensor *u = rapt_randn(RAPT_FLOAT64, rapt_rank(y), rapt_shape(y));
        cr_assert(rapt_gradients(1, &y, &u, p.count, p.inputs, gradients, 0), "%s", rapt_error());
        const double a = dot(1, &u, &change), b = dot(p.count, gradients, p.directions[0]);
        cr_expect_float_eq(a, b, 1e-12 * (1 + fabs(a)), "model %d: %.17g and %.17g", which, a, b);
        rapt_module_free(p.module);
    }
    expect_no_error();
}

Test(model_derivatives, the_hessian_is_symmetric_on_any_number_of_threads)
{
    for (int which = 0; which < problems; which++) {
        RAPT_SCOPE;
        problem p = new_problem(which);
        double first = NAN;
        for (int threads = 1; threads <= 4; threads++) {
            cr_assert(rapt_set_threads(threads));
            rapt_tensor *y = p.run(&p), *root = rapt_mean(rapt_mul(y, y), RAPT_ALL_AXES, false);
            rapt_tensor *products[2][most_inputs];
            for (int i = 0; i < 2; i++)
                cr_assert(rapt_hvp(root, p.count, p.inputs, p.directions[i], products[i], 0), "%s", rapt_error());
            const double a = dot(p.count, p.directions[1], products[0]), b = dot(p.count, p.directions[0], products[1]);
            cr_expect_float_eq(a, b, 1e-9 * (1 + fabs(a)), "model %d: %.17g and %.17g", which, a, b);
            if (threads == 1) first = a;
            cr_expect_eq(a, first, "model %d: %d threads have other bits", which, threads);
        }
        rapt_module_free(p.module);
    }
    expect_no_error();
}

/* Gradients with a graph are those without one, up to rounding (sums that grow in place are rounded otherwise). */
Test(model_derivatives, gradients_with_a_graph_are_those_without)
{
    for (int which = 0; which < problems; which++) {
        RAPT_SCOPE;
        problem p = new_problem(which);
        rapt_tensor *y = p.run(&p), *root = rapt_sum(rapt_mul(y, y), RAPT_ALL_AXES, false);
        rapt_tensor *without[most_inputs], *with[most_inputs];
        cr_assert(rapt_gradients(1, &root, NULL, p.count, p.inputs, without, RAPT_RETAIN_GRAPH));
        cr_assert(rapt_gradients(1, &root, NULL, p.count, p.inputs, with, RAPT_CREATE_GRAPH));
        for (int i = 0; i < p.count; i++)
            if (without[i]) expect_values("gradient", with[i], rapt_count(with[i]), values_of(without[i]), 1e-13);
        rapt_module_free(p.module);
    }
    expect_no_error();
}
