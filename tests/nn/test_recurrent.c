/* GRU and LSTM: fused and made of ops, against loops in double. */
#include "modules.h"
#include "recurrent_reference.h"

#include <stdio.h>

/* A layer with the problem's weights, and its inputs as leaves. */
typedef struct run {
    rapt_recurrent *layer;
    rapt_tensor *leaf[most_pieces]; /* x, states, weights, as the problem lists them */
    rapt_tensor *output, *final_state, *final_cell;
} run;

static rapt_tensor *leaf(const problem *p, rapt_dtype dtype, int piece, int64_t a, int64_t b, int64_t c)
{
    return rapt_require_gradient(rapt_cast(doubles(RAPT_SHAPE(a, b, c), p->numbers + p->start[piece]), dtype));
}

/* The same elements with axes stored the other way round. */
static rapt_tensor *strided(rapt_tensor *x)
{
    rapt_tensor *other = rapt_transpose(rapt_contiguous(rapt_transpose(x, 0, 2)), 0, 2);
    cr_assert(rapt_count(x) == rapt_size(x, 2) || !rapt_is_contiguous(other));
    return other;
}

static run run_new(const problem *p, rapt_dtype dtype, bool plain)
{
    bool has_cell = p->gates == 4;
    run r = {0};
    r.layer = has_cell ? (rapt_recurrent *)rapt_lstm_new(p->in, p->hidden, p->layers, 0)
                       : (rapt_recurrent *)rapt_gru_new(p->in, p->hidden, p->layers, 0);
    cr_assert(r.layer && rapt_module_cast(&r.layer->module, dtype), "%s", rapt_error());
    r.layer->plain = plain;
    int piece = 0;
    r.leaf[piece++] = leaf(p, dtype, 0, p->steps, p->batch, p->in);
    for (int i = 0; i < (has_cell ? 2 : 1); i++, piece++)
        r.leaf[piece] = leaf(p, dtype, piece, p->layers, p->batch, p->hidden);
    for (; piece < p->pieces; piece++) {
        static const char *const names[] = {"weight_ih", "weight_hh", "bias_ih", "bias_hh"};
        int weight = piece - (has_cell ? 3 : 2);
        char name[32];
        snprintf(name, sizeof name, "%s_l%d", names[weight % 4], weight / 4);
        set_values(r.layer, name, p->numbers + p->start[piece]);
        r.leaf[piece] = rapt_module_find(&r.layer->module, name);
    }
    return r;
}

static void run_forward(run *r, const problem *p, bool with_strides)
{
    rapt_tensor *x = r->leaf[0], *state = p->given ? r->leaf[1] : NULL,
                *cell = p->given && p->gates == 4 ? r->leaf[2] : NULL;
    if (with_strides) {
        x = strided(x);
        state = state ? strided(state) : NULL;
        cell = cell ? strided(cell) : NULL;
    }
    r->output = p->gates == 4
                    ? rapt_lstm_forward((rapt_lstm *)r->layer, x, state, cell, &r->final_state, &r->final_cell)
                    : rapt_gru_forward((rapt_gru *)r->layer, x, state, &r->final_state);
    cr_assert_not_null(r->output, "%s", rapt_error());
}

/* All outputs as one vector, in the problem's order. */
static rapt_tensor *joined(const run *r)
{
    rapt_tensor *all[] = {r->output, r->final_state, r->final_cell}, *flat[3];
    int count = r->final_cell ? 3 : 2;
    for (int i = 0; i < count; i++) flat[i] = rapt_reshape(all[i], RAPT_SHAPE(-1));
    return rapt_concat(count, flat, 0);
}

static void run_backward(const run *r, const problem *p)
{
    double weights[most_outputs];
    for (int i = 0; i < p->outputs; i++) weights[i] = loss_weight(i);
    rapt_tensor *weight = rapt_cast(doubles(RAPT_SHAPE(p->outputs), weights), rapt_get_dtype(r->output));
    cr_assert(rapt_backward(rapt_sum(rapt_mul(joined(r), weight), RAPT_ALL_AXES, false)), "%s", rapt_error());
}

static void check_run(problem *p, rapt_dtype dtype, bool plain, bool with_strides, const double *outputs,
                      const double *gradients)
{
    RAPT_SCOPE;
    char text[200];
    snprintf(text, sizeof text, "%s %s %s, %d layers, T=%d, states %s%s", plain ? "plain" : "fused",
             p->gates == 4 ? "LSTM" : "GRU", rapt_dtype_name(dtype), p->layers, p->steps, p->given ? "given" : "NULL",
             with_strides ? ", strided" : "");
    bool is_float64 = dtype == RAPT_FLOAT64;
    run r = run_new(p, dtype, plain);
    run_forward(&r, p, with_strides);
    expect_shape(r.output, RAPT_SHAPE(p->steps, p->batch, p->hidden));
    expect_shape(r.final_state, RAPT_SHAPE(p->layers, p->batch, p->hidden));
    expect_values(text, joined(&r), p->outputs, outputs, is_float64 ? 1e-13 : 1e-6);
    run_backward(&r, p);
    for (int i = 0; i < p->pieces; i++) {
        rapt_tensor *gradient = rapt_gradient(r.leaf[i]);
        char what[250];
        snprintf(what, sizeof what, "%s: gradient of piece %d", text, i);
        bool is_state = i == 1 || (i == 2 && p->gates == 4);
        if (is_state && !p->given)
            cr_expect_null(gradient, "%s", what);
        else
            expect_values(what, gradient, p->start[i + 1] - p->start[i], gradients + p->start[i],
                          is_float64 ? 1e-9 : 2e-5);
    }
    rapt_module_free(&r.layer->module);
    expect_no_error();
}

/* Every combination of layers, steps, states, dtype, way of computing and strides. */
static void check_all(int gates)
{
    for (int variant = 0; variant < 8; variant++) {
        problem p = {.gates = gates,
                     .layers = variant & 1 ? 3 : 1,
                     .steps = variant & 2 ? 4 : 1,
                     .batch = 2,
                     .in = 3,
                     .hidden = 5};
        p.given = variant & 4;
        problem_lay_out(&p);
        cr_assert(p.start[p.pieces] <= most_numbers && p.outputs <= most_outputs);
        static double outputs[most_outputs], gradients[most_numbers];
        reference_forward(&p, outputs);
        reference_gradients(&p, gradients);
        for (int way = 0; way < 8; way++)
            check_run(&p, way & 1 ? RAPT_FLOAT32 : RAPT_FLOAT64, way & 2, way & 4, outputs, gradients);
    }
}

Test(recurrent, gru_like_the_loop_in_double)
{
    check_all(3);
}

Test(recurrent, lstm_like_the_loop_in_double)
{
    check_all(4);
}

/* Two units, by hand: all weights 0 but W_in; r = z = ½, n = tanh(x), h' = ½ n + ½ h. */
Test(recurrent, gru_by_hand)
{
    RAPT_SCOPE;
    rapt_gru *gru = rapt_gru_new(1, 1, 1, 0);
    expect_parameter(gru, "weight_ih_l0", RAPT_SHAPE(3, 1));
    expect_parameter(gru, "weight_hh_l0", RAPT_SHAPE(3, 1));
    expect_parameter(gru, "bias_ih_l0", RAPT_SHAPE(3));
    expect_parameter(gru, "bias_hh_l0", RAPT_SHAPE(3));
    cr_expect(rapt_module_cast(&gru->recurrent.module, RAPT_FLOAT64));
    set_values(gru, "weight_ih_l0", (double[]){0, 0, 1});
    set_values(gru, "weight_hh_l0", (double[]){0, 0, 0});
    set_values(gru, "bias_ih_l0", (double[]){0, 0, 0});
    set_values(gru, "bias_hh_l0", (double[]){0, 0, 4}); /* inside the reset gate: n = tanh(x + ½·4) */
    rapt_tensor *x = doubles(RAPT_SHAPE(2, 1, 1), (double[]){-2, -1}), *final;
    const double second = tanh(1) / 2;
    expect_values("outputs", rapt_gru_forward(gru, x, NULL, &final), 2, (double[]){0, second}, 1e-15);
    expect_values("final", final, 1, &second, 1e-15);
    rapt_module_free(&gru->recurrent.module);
    expect_no_error();
}

Test(recurrent, weights_start_uniform)
{
    rapt_seed(3);
    rapt_gru *gru = rapt_gru_new(50, 64, 2, 0);
    rapt_lstm *lstm = rapt_lstm_new(50, 64, 1, 0);
    expect_uniform(gru->recurrent.layer[0].weight_ih, 0.125);
    expect_uniform(gru->recurrent.layer[1].weight_hh, 0.125);
    expect_uniform(lstm->recurrent.layer[0].weight_hh, 0.125);
    expect_parameter(lstm, "weight_ih_l0", RAPT_SHAPE(256, 50));
    expect_parameter(gru, "weight_ih_l1", RAPT_SHAPE(192, 64));
    cr_expect_eq(rapt_module_parameter_count(&gru->recurrent.module), 192 * (50 + 64 + 2) + 192 * (64 + 64 + 2));
    cr_expect_eq(rapt_module_parameter_count(&lstm->recurrent.module), 256 * (50 + 64 + 2));
    rapt_module_free(&gru->recurrent.module);
    rapt_module_free(&lstm->recurrent.module);
}

typedef struct subject {
    const problem *p;
    run *r;
} subject;

static rapt_tensor *call(rapt_tensor *const *inputs, void *context)
{
    (void)inputs; /* the leaves of the run */
    const subject *s = context;
    run_forward(s->r, s->p, false);
    return joined(s->r);
}

static void check_gradients(int gates, bool plain, bool second_order)
{
    RAPT_SCOPE;
    problem p = {.gates = gates, .layers = 2, .steps = 2, .batch = 2, .in = 2, .hidden = 2, .given = true};
    problem_lay_out(&p);
    run r = run_new(&p, RAPT_FLOAT64, plain);
    subject s = {&p, &r};
    rapt_gradcheck_options options = {.context = &s, .second_order = second_order};
    rapt_gradcheck_result result = rapt_gradcheck(plain ? "plain" : "fused", call, p.pieces, r.leaf, &options);
    cr_expect(result.passed, "%d gates: %s", gates, result.message);
    cr_expect_geq(result.checked, (int64_t)p.start[p.pieces] * (second_order ? 1 : p.outputs));
    rapt_module_free(&r.layer->module);
}

Test(recurrent, gradcheck)
{
    for (int gates = 3; gates <= 4; gates++) {
        check_gradients(gates, false, false);
        check_gradients(gates, true, false);
        check_gradients(gates, true, true);
        check_gradients(gates, false, true);
    }
    expect_no_error();
}

/* The gradient of the final state alone: nothing depends on the sequence, or (LSTM) only on the cell. */
Test(recurrent, final_states_alone)
{
    for (int way = 0; way < 4; way++) {
        RAPT_SCOPE;
        problem p = {.gates = 4, .layers = 2, .steps = 3, .batch = 2, .in = 2, .hidden = 3, .given = true};
        problem_lay_out(&p);
        rapt_tensor *gradients[2];
        for (int plain = 0; plain < 2; plain++) {
            run r = run_new(&p, RAPT_FLOAT64, plain);
            run_forward(&r, &p, false);
            rapt_tensor *final = way & 1 ? r.final_cell : r.final_state;
            cr_expect(rapt_backward(rapt_sum(way & 2 ? rapt_select(final, 0, 0) : final, RAPT_ALL_AXES, false)), "%s",
                      rapt_error());
            gradients[plain] = rapt_clone(rapt_gradient(r.leaf[0]));
            rapt_module_free(&r.layer->module);
        }
        expect_values("gradient of x", gradients[0], rapt_count(gradients[1]), values_of(gradients[1]), 1e-13);
    }
    expect_no_error();
}

Test(recurrent, dropout_only_between_layers_and_only_in_training)
{
    RAPT_SCOPE;
    problem p = {.gates = 3, .layers = 2, .steps = 4, .batch = 2, .in = 3, .hidden = 5};
    problem_lay_out(&p);
    for (int plain = 0; plain < 2; plain++) {
        run r = run_new(&p, RAPT_FLOAT64, plain);
        run_forward(&r, &p, false);
        rapt_tensor *without = joined(&r), *first = rapt_contiguous(rapt_select(r.final_state, 0, 0));
        r.layer->dropout = 0.5;
        run_forward(&r, &p, false);
        cr_expect_not(same_bits(without, joined(&r)));
        cr_expect(same_bits(first, rapt_contiguous(rapt_select(r.final_state, 0, 0))),
                  "the first layer comes before it");
        const double *outputs = values_of(r.output);
        for (int i = 0; i < p.steps * p.batch * p.hidden; i++)
            cr_expect_neq(outputs[i], 0, "what comes out is not dropped");
        rapt_module_train(&r.layer->module, false);
        run_forward(&r, &p, false);
        cr_expect(same_bits(without, joined(&r)));
        rapt_module_free(&r.layer->module);
    }
    expect_no_error();
}

/* Output and all gradients at one to four threads. */
Test(recurrent, threads_do_not_change_a_bit)
{
    for (int gates = 3; gates <= 4; gates++) {
        RAPT_SCOPE;
        rapt_tensor *expected[6];
        rapt_seed(5);
        rapt_recurrent *layer =
            gates == 3 ? (rapt_recurrent *)rapt_gru_new(40, 72, 1, 0) : (rapt_recurrent *)rapt_lstm_new(40, 72, 1, 0);
        rapt_tensor *x = rapt_require_gradient(rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(3, 131, 40)));
        rapt_tensor *leaves[] = {x, layer->layer[0].weight_ih, layer->layer[0].weight_hh, layer->layer[0].bias_ih,
                                 layer->layer[0].bias_hh};
        for (int threads = 1; threads <= 4; threads++) {
            cr_assert(rapt_set_threads(threads));
            rapt_tensor *y = gates == 3 ? rapt_gru_forward((rapt_gru *)layer, x, NULL, NULL)
                                        : rapt_lstm_forward((rapt_lstm *)layer, x, NULL, NULL, NULL, NULL);
            rapt_tensor *results[6] = {y};
            rapt_tensor *root = rapt_sum(rapt_mul(y, y), RAPT_ALL_AXES, false);
            cr_assert(rapt_gradients(1, &root, NULL, 5, leaves, results + 1, 0), "%s", rapt_error());
            for (int i = 0; i < 6 && threads == 1; i++) expected[i] = rapt_contiguous(results[i]);
            for (int i = 0; i < 6; i++)
                cr_expect(same_bits(expected[i], rapt_contiguous(results[i])), "%d gates, %d threads, result %d", gates,
                          threads, i);
        }
        rapt_module_free(&layer->module);
    }
    expect_no_error();
}
