/* GRU and LSTM of one direction and of two on packed and on padded sequences give what each sequence gives alone. */
#include "modules.h"

#include <string.h>

enum { sequences = 5, all_rows = 19, longest = 7, in = 3, hidden = 4, layers = 2, most_inputs = 3 };
static const int64_t lengths[sequences] = {3, 1, 7, 3, 5};

/* A layer, what goes into it, and what came out: outputs and last states. */
typedef struct run {
    rapt_recurrent *layer;
    rapt_tensor *starts, *input[most_inputs]; /* rows, and the states or NULL */
    rapt_tensor *result[3];
} run;

static rapt_recurrent *layer_new(int gates, int directions)
{
    if (directions == 2)
        return gates == 4 ? (rapt_recurrent *)rapt_bidirectional_lstm_new(in, hidden, layers, 0)
                          : (rapt_recurrent *)rapt_bidirectional_gru_new(in, hidden, layers, 0);
    return gates == 4 ? (rapt_recurrent *)rapt_lstm_new(in, hidden, layers, 0)
                      : (rapt_recurrent *)rapt_gru_new(in, hidden, layers, 0);
}

static run run_new(int gates, int directions, bool plain, bool given)
{
    rapt_seed(1);
    run r = {.layer = layer_new(gates, directions)};
    cr_assert(r.layer && rapt_module_cast(&r.layer->module, RAPT_FLOAT64), "%s", rapt_error());
    r.layer->plain = plain;
    r.starts = rapt_packing_starts(rapt_from(RAPT_INT64, RAPT_SHAPE(sequences), lengths));
    r.input[0] = rapt_require_gradient(rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(all_rows, in)));
    for (int i = 1; given && i < gates - 1; i++)
        r.input[i] =
            rapt_require_gradient(rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(layers * directions, sequences, hidden)));
    return r;
}

static rapt_tensor *forward(run *r)
{
    rapt_tensor *const *x = r->input;
    return r->result[0] = r->layer->gates == 4
                              ? rapt_lstm_forward_packed((rapt_lstm *)r->layer, x[0], r->starts, x[1], x[2],
                                                         &r->result[1], &r->result[2])
                              : rapt_gru_forward_packed((rapt_gru *)r->layer, x[0], r->starts, x[1], &r->result[1]);
}

/* The same rows as a batch with NaN behind each sequence. */
static rapt_tensor *forward_padded(run *r)
{
    rapt_tensor *const *x = r->input, *lengths_of = rapt_from(RAPT_INT64, RAPT_SHAPE(sequences), lengths);
    rapt_tensor *batch = rapt_transpose(rapt_unpack(x[0], r->starts, longest + 2, (double)NAN), 0, 1);
    rapt_tensor *y = r->layer->gates == 4
                         ? rapt_lstm_forward_padded((rapt_lstm *)r->layer, batch, lengths_of, x[1], x[2], &r->result[1],
                                                    &r->result[2])
                         : rapt_gru_forward_padded((rapt_gru *)r->layer, batch, lengths_of, x[1], &r->result[1]);
    cr_assert(y, "%s", rapt_error());
    y = rapt_transpose(y, 0, 1);
    r->result[0] = rapt_pack(y, r->starts);
    cr_expect(same_bits(rapt_unpack(r->result[0], r->starts, longest + 2, 0), y), "zeros behind each sequence");
    return r->result[0];
}

/* Sequence by sequence, joined as forward gives them. */
static void forward_alone(run *r)
{
    rapt_tensor *parts[3][sequences], *x[most_inputs] = {0}, *y[3] = {0};
    const int count = r->layer->gates - 1;
    for (int64_t b = 0, first = 0; b < sequences; first += lengths[b++]) {
        x[0] = rapt_unsqueeze(rapt_slice(r->input[0], 0, first, first + lengths[b], 1), 1);
        for (int i = 1; i < count && r->input[1]; i++) x[i] = rapt_slice(r->input[i], 1, b, b + 1, 1);
        y[0] = count == 3 ? rapt_lstm_forward((rapt_lstm *)r->layer, x[0], x[1], x[2], &y[1], &y[2])
                          : rapt_gru_forward((rapt_gru *)r->layer, x[0], x[1], &y[1]);
        cr_assert(y[0], "%s", rapt_error());
        for (int i = 0; i < count; i++) parts[i][b] = i == 0 ? rapt_squeeze(y[i], 1) : y[i];
    }
    for (int i = 0; i < count; i++) r->result[i] = rapt_concat(sequences, parts[i], i == 0 ? 0 : 1);
}

/* Σ y sin(y) of everything, so that each number has a gradient of its own. */
static rapt_tensor *loss_of(const run *r)
{
    rapt_tensor *loss = NULL;
    for (int i = 0; i < r->layer->gates - 1; i++) {
        rapt_tensor *y = r->result[i], *one = rapt_sum(rapt_mul(y, rapt_sin(y)), RAPT_ALL_AXES, false);
        loss = loss ? rapt_add(loss, one) : one;
    }
    return loss;
}

static void expect_near(const char *what, rapt_tensor *a, rapt_tensor *b)
{
    cr_assert(a && b, "%s: %s", what, rapt_error());
    cr_assert_eq(rapt_count(a), rapt_count(b), "%s", what);
    const double error = rapt_item(rapt_max(rapt_abs(rapt_sub(a, b)), RAPT_ALL_AXES, false));
    cr_expect(error <= 1e-13, "%s: %g", what, error);
}

static bool keep_gradient(const char *name, rapt_tensor *parameter, void *context)
{
    (void)name;
    rapt_tensor ***next = context;
    *(*next)++ = rapt_clone(rapt_gradient(parameter));
    return true;
}

enum { parameters = 4 * layers * 2, gradients = parameters + most_inputs };

static void differentiate(run *r, rapt_tensor **to)
{
    cr_assert(rapt_backward(loss_of(r)), "%s", rapt_error());
    for (int i = 0; i < most_inputs && r->input[i]; i++) {
        *to++ = rapt_clone(rapt_gradient(r->input[i]));
        rapt_clear_gradient(r->input[i]);
    }
    cr_assert(rapt_module_visit(&r->layer->module, RAPT_PARAMETERS, keep_gradient, &to));
    rapt_module_clear_gradients(&r->layer->module);
}

static void check(int gates, int directions, bool plain, bool given, bool padded)
{
    RAPT_SCOPE;
    rapt_tensor *got[gradients] = {0}, *expected[gradients] = {0};
    run r = run_new(gates, directions, plain, given), alone = r;
    cr_assert(padded ? forward_padded(&r) : forward(&r), "%s", rapt_error());
    expect_shape(r.result[0], RAPT_SHAPE(all_rows, directions * hidden));
    expect_shape(r.result[1], RAPT_SHAPE(layers * directions, sequences, hidden));
    forward_alone(&alone);
    for (int i = 0; i < gates - 1; i++) expect_near("result", r.result[i], alone.result[i]);
    differentiate(&r, got);
    differentiate(&alone, expected);
    for (int i = 0; i < gradients && expected[i]; i++) expect_near("gradient", got[i], expected[i]);
    rapt_module_free(&r.layer->module);
    expect_no_error();
}

Test(recurrent_packed, like_each_sequence_alone)
{
    for (int variant = 0; variant < 32; variant++)
        check(variant & 1 ? 4 : 3, variant & 8 ? 2 : 1, variant & 2, variant & 4, variant & 16);
}

static rapt_tensor *call(rapt_tensor *const *inputs, void *context)
{
    (void)inputs; /* the leaves of the run */
    run *r = context;
    return forward(r) ? loss_of(r) : NULL;
}

Test(recurrent_packed, gradients)
{
    for (int variant = 0; variant < 10; variant++) {
        RAPT_SCOPE;
        run r = run_new(variant & 1 ? 4 : 3, variant & 8 ? 2 : 1, variant & 2, true);
        const rapt_gradcheck_options options = {.context = &r, .second_order = variant & 4};
        const rapt_gradcheck_result result =
            rapt_module_gradcheck(&r.layer->module, call, r.layer->gates - 1, r.input, &options);
        cr_expect(result.passed, "variant %d: %s", variant, result.message);
        rapt_module_free(&r.layer->module);
    }
    expect_no_error();
}

/* Enough sequences for several tasks. */
Test(recurrent_packed, same_bits_on_any_number_of_threads)
{
    enum { many = 45 };
    rapt_tensor *first[2] = {0};
    int64_t count[many];
    for (int b = 0; b < many; b++) count[b] = 1 + b * 7 % 11;
    RAPT_SCOPE;
    rapt_seed(1);
    rapt_gru *gru = rapt_gru_new(in, 20, layers, 0);
    rapt_tensor *starts = rapt_packing_starts(rapt_from(RAPT_INT64, RAPT_SHAPE(many), count));
    const int64_t rows = ((const int64_t *)rapt_data(starts))[many];
    rapt_tensor *x = rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(rows, in));
    for (int threads = 1; threads <= 4; threads++) {
        cr_assert(rapt_set_threads(threads));
        rapt_tensor *last, *y = rapt_gru_forward_packed(gru, x, starts, NULL, &last);
        cr_assert(y && rapt_backward(rapt_add(rapt_sum(rapt_mul(y, y), RAPT_ALL_AXES, false),
                                              rapt_sum(last, RAPT_ALL_AXES, false))),
                  "%s", rapt_error());
        rapt_tensor *now[] = {y, rapt_clone(rapt_gradient(gru->recurrent.layer[0].weight_hh))};
        for (int i = 0; i < 2; i++) {
            if (threads == 1) first[i] = now[i];
            cr_expect(!memcmp(rapt_data(now[i]), rapt_data(first[i]), (size_t)rapt_count(now[i]) * sizeof(float)),
                      "%d threads", threads);
        }
        rapt_module_clear_gradients(&gru->recurrent.module);
    }
    rapt_module_free(&gru->recurrent.module);
    expect_no_error();
}

Test(recurrent_packed, errors)
{
    RAPT_SCOPE;
    run r = run_new(3, 1, false, false);
    rapt_gru *gru = (rapt_gru *)r.layer;
    rapt_tensor *starts = rapt_from(RAPT_INT64, RAPT_SHAPE(3), (int64_t[]){0, all_rows, all_rows}), *last;
    cr_expect_null(rapt_gru_forward_packed(gru, r.input[0], starts, NULL, &last));
    expect_error(RAPT_ERROR_VALUE, "sequence 1 has no rows");
    cr_expect_null(rapt_gru_forward_packed(gru, r.input[0], NULL, NULL, &last));
    expect_error(RAPT_ERROR_NULL, "starts");
    cr_expect_null(rapt_gru_forward_packed(gru, NULL, r.starts, NULL, &last));
    expect_error(RAPT_ERROR_NULL, "the input is NULL");
    cr_expect_null(rapt_gru_forward_packed(NULL, r.input[0], r.starts, NULL, &last));
    expect_error(RAPT_ERROR_NULL, "the layer is NULL");
    cr_expect_null(rapt_gru_forward_packed(gru, rapt_slice(r.input[0], 0, 1, 9, 1), r.starts, NULL, &last));
    expect_error(RAPT_ERROR_SHAPE, "8 rows");
    cr_expect_null(rapt_gru_forward_packed(gru, rapt_zeros(RAPT_FLOAT64, RAPT_SHAPE(0, in)),
                                           rapt_zeros(RAPT_INT64, RAPT_SHAPE(1)), NULL, &last));
    expect_error(RAPT_ERROR_VALUE, "no sequences");
    rapt_tensor *state = rapt_zeros(RAPT_FLOAT64, RAPT_SHAPE(layers, 2, hidden));
    cr_expect_null(rapt_gru_forward_packed(gru, r.input[0], r.starts, state, &last));
    expect_error(RAPT_ERROR_SHAPE, "state [2, 5, 4] expected");
    rapt_tensor *x = rapt_zeros(RAPT_FLOAT64, RAPT_SHAPE(4, 2, in));
    cr_expect_null(
        rapt_gru_forward_padded(gru, x, rapt_from(RAPT_INT64, RAPT_SHAPE(2), (int64_t[]){3, 0}), NULL, &last));
    expect_error(RAPT_ERROR_VALUE, "GRU: length 1 is 0; 1 to 4 expected");
    cr_expect_null(
        rapt_gru_forward_padded(gru, x, rapt_from(RAPT_INT64, RAPT_SHAPE(2), (int64_t[]){3, 5}), NULL, &last));
    expect_error(RAPT_ERROR_VALUE, "GRU: length 1 is 5; 1 to 4 expected");
    cr_expect_null(
        rapt_gru_forward_padded(gru, x, rapt_from(RAPT_INT64, RAPT_SHAPE(2), (int64_t[]){-1, 4}), NULL, &last));
    expect_error(RAPT_ERROR_VALUE, "GRU: length 0 is -1; 1 to 4 expected");
    cr_expect_null(rapt_gru_forward_padded(gru, x,
                                           rapt_from(RAPT_INT64, RAPT_SHAPE(2), (int64_t[]){INT64_MAX, INT64_MAX}),
                                           NULL, &last));
    expect_error(RAPT_ERROR_VALUE, "GRU: length 0 is 9223372036854775807; 1 to 4 expected");
    cr_expect_null(rapt_gru_forward_padded(gru, x, rapt_ones(RAPT_INT64, RAPT_SHAPE(3)), NULL, &last));
    expect_error(RAPT_ERROR_SHAPE, "GRU: lengths (2) of int64 or int32 expected, not int64 [3]");
    cr_expect_null(rapt_gru_forward_padded(gru, x, rapt_ones(RAPT_INT64, RAPT_SHAPE(2, 1)), NULL, &last));
    expect_error(RAPT_ERROR_SHAPE, "GRU: lengths (2) of int64 or int32 expected, not int64 [2, 1]");
    cr_expect_null(rapt_gru_forward_padded(gru, x, rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(2)), NULL, &last));
    expect_error(RAPT_ERROR_DTYPE, "GRU: lengths (2) of int64 or int32 expected, not float32 [2]");
    cr_expect_null(rapt_gru_forward_padded(gru, x, NULL, NULL, &last));
    expect_error(RAPT_ERROR_NULL, "GRU: the lengths are NULL");
    cr_expect_null(rapt_gru_forward_padded(gru, NULL, rapt_ones(RAPT_INT64, RAPT_SHAPE(3)), NULL, &last));
    expect_error(RAPT_ERROR_NULL, "GRU: the input is NULL");
    rapt_module_free(&r.layer->module);
}

/* The allocator fails at every place of forward and backward in turn: an error, never a crash or a leak. */
Test(recurrent_packed, no_memory)
{
    const int64_t before = live_bytes();
    for (int variant = 0; variant < 4; variant++) {
        RAPT_SCOPE;
        run r = run_new(variant & 1 ? 4 : 3, variant & 2 ? 1 : 2, variant & 2, true);
        bool done = false;
        for (int64_t failures = 0; !done; failures++) {
            RAPT_SCOPE;
            rapt_memory_fail_after(failures);
            done = forward(&r) && rapt_backward(loss_of(&r));
            rapt_memory_fail_after(-1);
            if (!done) expect_error(RAPT_ERROR_MEMORY, "no memory");
            rapt_module_clear_gradients(&r.layer->module);
            for (int i = 0; i < most_inputs && r.input[i]; i++) rapt_clear_gradient(r.input[i]);
            cr_assert_lt(failures, 10000);
        }
        rapt_module_free(&r.layer->module);
    }
    cr_expect_eq(live_bytes(), before);
    expect_no_error();
}
