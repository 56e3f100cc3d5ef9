/* Vjps that add to the gradient of an input in place: when they may, and that nobody but the sum sees it. */
#include "modules.h"

#include <string.h>

static rapt_tensor *total(rapt_tensor *x)
{
    return rapt_sum(x, RAPT_ALL_AXES, false);
}

static rapt_tensor *leaf(double value)
{
    return rapt_require_gradient(rapt_full(RAPT_FLOAT64, RAPT_SHAPE(3), value));
}

static void expect_all(const char *what, rapt_tensor *x, double expected)
{
    expect_values(what, x, 3, (const double[]){expected, expected, expected}, 1e-12);
}

/* factor · (the sum of its inputs); adds to what gradients there are so far, and counts them */
typedef struct options {
    double factor;
    bool fails, gives;
} options;

static int handed_out;

static rapt_tensor *adding_forward(rapt_call *call)
{
    const options *o = rapt_call_options(call);
    rapt_tensor *sum = rapt_mul_scalar(rapt_call_input(call, 0), o->factor);
    for (int i = 1; i < rapt_call_count(call); i++)
        sum = rapt_add(sum, rapt_mul_scalar(rapt_call_input(call, i), o->factor));
    return sum;
}

static bool adding_vjp(rapt_call *call)
{
    const options *o = rapt_call_options(call);
    rapt_tensor *g = rapt_mul_scalar(rapt_call_gradient(call, 0), o->factor);
    for (int i = 0; i < rapt_call_count(call); i++) {
        rapt_tensor *sum = rapt_call_gradient_so_far(call, i);
        handed_out += sum != NULL;
        if (sum ? !rapt_add_in_place(sum, g, 1) : !rapt_call_give(call, i, rapt_clone(g))) return false;
        if (sum && o->gives && !rapt_call_give(call, i, sum)) return false;
        if (sum && o->fails) return rapt_fail(RAPT_ERROR_VALUE, "adding", "half-way");
    }
    return true;
}

static const rapt_op adding = {.name = "adding",
                               .forward = adding_forward,
                               .vjp = adding_vjp,
                               .options_size = sizeof(options)};

static rapt_tensor *times(double factor, rapt_tensor *x)
{
    return RAPT_APPLY(&adding, &(options){.factor = factor}, x);
}

/* (2 + 3 + 5) x, each product by an op of its own */
static rapt_tensor *ten_times(rapt_tensor *x)
{
    handed_out = 0;
    return total(rapt_add(rapt_add(times(2, x), times(3, x)), times(5, x)));
}

Test(gradient_so_far, all_but_the_first_add_to_it)
{
    RAPT_SCOPE;
    rapt_tensor *x = leaf(1), *y = rapt_exp(x);
    cr_assert(rapt_backward(ten_times(y)), "%s", rapt_error());
    expect_all("of an op's result", rapt_gradient(x), 10 * exp(1));
    cr_expect_eq(handed_out, 2);
    for (int walk = 1; walk <= 2; walk++) {
        rapt_clear_gradient(x);
        cr_assert(rapt_backward(ten_times(x)), "%s", rapt_error());
        expect_all("of a leaf", rapt_gradient(x), 10);
        cr_expect_eq(handed_out, 2);
    }
    cr_assert(rapt_backward(ten_times(x)), "%s", rapt_error());
    expect_all("that had a gradient", rapt_gradient(x), 20);
}

Test(gradient_so_far, is_gone_after_a_walk)
{
    RAPT_SCOPE;
    rapt_tensor *x = leaf(1), *y = rapt_exp(x), *root = ten_times(y), *captured[2];
    for (int walk = 0; walk < 2; walk++)
        cr_assert(rapt_gradients(1, &root, NULL, 1, &y, &captured[walk], RAPT_RETAIN_GRAPH), "%s", rapt_error());
    for (int walk = 1; walk <= 2; walk++) {
        cr_assert(rapt_backward_from(1, &root, NULL, RAPT_RETAIN_GRAPH), "%s", rapt_error());
        expect_all("leaf", rapt_gradient(x), walk * 10 * exp(1));
    }
    for (int walk = 0; walk < 2; walk++) expect_all("what was captured", captured[walk], 10);
}

Test(gradient_so_far, what_others_see_is_not_handed_out)
{
    RAPT_SCOPE;
    rapt_tensor *x = leaf(1), *g = rapt_ones(RAPT_FLOAT64, RAPT_SHAPE(3)), *y = rapt_exp(x), *captured[2];
    /* the gradient of `late`, which is captured, goes on to y as it is; then that of `early` is added */
    rapt_tensor *early = times(4, y), *late = rapt_add(y, rapt_zeros(RAPT_FLOAT64, 0, NULL));
    rapt_tensor *roots[] = {late, early}, *gradients[] = {g, g}, *inputs[] = {late, y};
    handed_out = 0;
    cr_assert(rapt_gradients(2, roots, gradients, 2, inputs, captured, 0), "%s", rapt_error());
    cr_expect_eq(handed_out, 0);
    expect_all("the caller's", g, 1);
    expect_all("captured on the way", captured[0], 1);
    expect_all("sum", captured[1], 5);
}

Test(gradient_so_far, inputs_that_are_one_tensor)
{
    RAPT_SCOPE;
    rapt_tensor *x = leaf(1);
    handed_out = 0;
    rapt_tensor *twice = RAPT_APPLY(&adding, &(options){.factor = 3}, x, x, rapt_detach(x));
    cr_assert(rapt_backward(total(rapt_add(twice, times(2, x)))), "%s", rapt_error());
    expect_all("2 + 3 + 3", rapt_gradient(x), 8);
    cr_expect_eq(handed_out, 1, "to the first input alone");
}

Test(gradient_so_far, none_where_gradients_have_a_graph)
{
    RAPT_SCOPE;
    rapt_tensor *x = leaf(1), *root = ten_times(rapt_mul(x, x)), *first, *second;
    cr_assert(rapt_gradients(1, &root, NULL, 1, &x, &first, RAPT_CREATE_GRAPH), "%s", rapt_error());
    cr_expect_eq(handed_out, 0);
    expect_all("first", first, 20);
    root = total(first);
    cr_assert(rapt_gradients(1, &root, NULL, 1, &x, &second, 0), "%s", rapt_error());
    expect_all("second", second, 20);
}

Test(gradient_so_far, a_failure_half_way_leaves_nothing_behind)
{
    RAPT_SCOPE;
    rapt_tensor *x = leaf(1), *y = rapt_exp(x), *result;
    rapt_tensor *failing = RAPT_APPLY(&adding, (&(options){.factor = 3, .fails = true}), y);
    rapt_tensor *whole = ten_times(y), *root = total(rapt_add(whole, failing));
    cr_expect_not(rapt_backward_from(1, &root, NULL, RAPT_RETAIN_GRAPH));
    expect_error(RAPT_ERROR_VALUE, "half-way");
    cr_expect_null(rapt_gradient(x));
    cr_expect_not(rapt_gradients(1, &root, NULL, 1, &y, &result, RAPT_RETAIN_GRAPH) || result);
    cr_assert(rapt_backward(whole), "%s", rapt_error());
    expect_all("afterwards", rapt_gradient(x), 10 * exp(1));
}

Test(gradient_so_far, giving_it_is_an_error)
{
    RAPT_SCOPE;
    rapt_tensor *x = leaf(1), *giving = RAPT_APPLY(&adding, (&(options){.factor = 3, .gives = true}), x);
    cr_expect_not(rapt_backward(total(rapt_add(giving, times(2, x)))));
    expect_error(RAPT_ERROR_GRAPH, "adding: its vjp gave the gradient so far of input 0");
}

/* Parts of a tensor that overlap, and are used in any order. */
Test(gradient_so_far, parts)
{
    RAPT_SCOPE;
    rapt_tensor *x = rapt_require_gradient(rapt_zeros(RAPT_FLOAT64, RAPT_SHAPE(2, 5)));
    rapt_tensor *parts[] = {
        rapt_slice(x, 1, 0, 3, 1),                       /* columns 0, 1, 2 */
        rapt_slice(x, -1, -4, 5, 2),                     /* 1, 3 */
        rapt_slice(x, 1, 4, 5, INT64_MAX),               /* 4 */
        rapt_slice(x, 0, 2, 2, 1),                       /* nothing */
        rapt_select(x, -2, -1),                          /* row 1 */
        rapt_unsqueeze(rapt_select(x, 1, 2), 1),         /* column 2 */
        rapt_transpose(rapt_slice(x, 0, 1, 2, 1), 0, 1), /* row 1 */
    };
    rapt_tensor *root = NULL;
    for (int i = 0; i < (int)(sizeof parts / sizeof *parts); i++) {
        rapt_tensor *part = total(rapt_mul_scalar(parts[i], pow(10, i)));
        root = root ? rapt_add(root, part) : part;
    }
    cr_assert(rapt_backward(root), "%s", rapt_error());
    const double expected[] = {1,       11,      100001,  10,      100, /* */
                               1010001, 1010011, 1110001, 1010010, 1010100};
    expect_values("parts", rapt_gradient(x), 10, expected, 0);
}

/* Rows, columns and elements chosen by indices, some of them twice. */
Test(gradient_so_far, what_indices_choose)
{
    RAPT_SCOPE;
    rapt_tensor *x = rapt_require_gradient(rapt_zeros(RAPT_FLOAT64, RAPT_SHAPE(2, 3)));
    rapt_tensor *rows = rapt_from(RAPT_INT64, RAPT_SHAPE(3), (const int64_t[]){1, 0, 1}),
                *columns = rapt_from(RAPT_INT64, RAPT_SHAPE(3), (const int64_t[]){2, 0, 2}),
                *elements = rapt_from(RAPT_INT64, RAPT_SHAPE(2, 1), (const int64_t[]){2, 1});
    rapt_tensor *chosen[] = {rapt_embed(x, rows), rapt_index_select(x, -1, columns), rapt_gather(x, 1, elements),
                             rapt_embed(x, rows), rapt_index_select(x, 0, rows)};
    rapt_tensor *root = NULL;
    for (int i = 0; i < (int)(sizeof chosen / sizeof *chosen); i++) {
        rapt_tensor *part = total(rapt_mul_scalar(chosen[i], pow(10, i)));
        root = root ? rapt_add(root, part) : part;
    }
    cr_assert(rapt_backward(root), "%s", rapt_error());
    expect_values("chosen", rapt_gradient(x), 6, (const double[]){11011, 11001, 11121, 22012, 22102, 22022}, 0);
}

enum { table_steps = 200, rows_of_step = 5 };

/* In each step some rows of the table, one of them twice, times random numbers. */
static rapt_tensor *gradient_of_steps(rapt_tensor *table, rapt_tensor *indices[table_steps],
                                      rapt_tensor *g[table_steps])
{
    const int64_t rows = rapt_size(table, 0), size = rapt_size(table, 1);
    rapt_tensor *sum = rapt_scalar(RAPT_FLOAT32, 0);
    for (int t = 0; t < table_steps; t++) {
        indices[t] = rapt_randint(0, rows, RAPT_SHAPE(rows_of_step));
        rapt_copy(rapt_slice(indices[t], 0, 0, 1, 1), rapt_slice(indices[t], 0, 2, 3, 1));
        g[t] = rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(rows_of_step, size));
        sum = rapt_add(sum, total(rapt_mul(rapt_embed(table, indices[t]), g[t])));
    }
    cr_assert(rapt_backward(sum), "%s", rapt_error());
    return rapt_gradient(table);
}

/* The later steps come first, in a table of few rows and one of many, each step of which adds to the rows it chose. */
Test(gradient_so_far, few_rows_of_a_table)
{
    static const int64_t rows[] = {40, 100000};
    for (int i = 0; i < 2; i++) {
        RAPT_SCOPE;
        rapt_seed(1);
        rapt_tensor *table = rapt_require_gradient(rapt_zeros(RAPT_FLOAT32, RAPT_SHAPE(rows[i], 7)));
        rapt_tensor *indices[table_steps], *g[table_steps], *expected = rapt_detach(rapt_zeros_like(table));
        const rapt_tensor *gradient = gradient_of_steps(table, indices, g);
        for (int t = table_steps - 1; t >= 0; t--) {
            RAPT_SCOPE;
            rapt_tensor *each = rapt_expand(rapt_unsqueeze(indices[t], 1), RAPT_SHAPE(rows_of_step, 7));
            cr_assert(rapt_copy(expected, rapt_scatter_add(expected, 0, each, g[t])), "%s", rapt_error());
        }
        cr_expect(memcmp(rapt_data(gradient), rapt_data(expected), (size_t)rows[i] * 7 * sizeof(float)) == 0);
    }
}

enum { steps = 4, batch = 3, in = 5, hidden = 6 };

static void expect_same(const char *what, rapt_tensor *const *a, rapt_tensor *const *b, int count)
{
    for (int i = 0; i < count; i++) expect_values(what, a[i], rapt_count(b[i]), values_of(b[i]), 1e-12);
}

/* x (steps, batch, in) at once, or a step at a time with the same weight. */
static void run_products(bool affine, rapt_tensor *x, rapt_tensor *weight, bool by_steps, rapt_tensor **gradients)
{
    rapt_tensor *parts[steps] = {x}, *inputs[] = {x, weight};
    for (int t = 0; by_steps && t < steps; t++) parts[t] = rapt_slice(x, 0, t, t + 1, 1);
    for (int t = 0; t < (by_steps ? steps : 1); t++)
        parts[t] = affine ? rapt_affine(parts[t], weight, NULL) : rapt_matmul(parts[t], rapt_transpose(weight, 0, 1));
    rapt_tensor *y = by_steps ? rapt_concat(steps, parts, 0) : parts[0], *root = total(rapt_mul(y, y));
    cr_assert(rapt_gradients(1, &root, NULL, 2, inputs, gradients, 0), "%s", rapt_error());
}

Test(gradient_so_far, a_weight_of_many_steps)
{
    for (int affine = 0; affine < 2; affine++) {
        RAPT_SCOPE;
        rapt_tensor *x = rapt_require_gradient(rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(steps, batch, in))),
                    *weight = rapt_require_gradient(rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(hidden, in))), *whole[2],
                    *parts[2];
        run_products(affine, x, weight, false, whole);
        run_products(affine, x, weight, true, parts);
        expect_same(affine ? "affine" : "matmul", parts, whole, 2);
    }
}

/* The last state is the next step's first. */
static rapt_tensor *run_recurrent(rapt_recurrent *r, rapt_tensor *x, rapt_tensor **state, rapt_tensor **cell)
{
    return r->gates == 3 ? rapt_gru_forward((rapt_gru *)r, x, *state, state)
                         : rapt_lstm_forward((rapt_lstm *)r, x, *state, *cell, state, cell);
}

Test(gradient_so_far, a_recurrent_layer_step_by_step)
{
    for (int gates = 3; gates <= 4; gates++) {
        RAPT_SCOPE;
        rapt_recurrent *r =
            gates == 3 ? &rapt_gru_new(in, hidden, 2, 0)->recurrent : &rapt_lstm_new(in, hidden, 2, 0)->recurrent;
        cr_assert(rapt_module_cast(&r->module, RAPT_FLOAT64));
        rapt_tensor *parameters[8];
        for (int i = 0; i < 8; i++) {
            const struct rapt_recurrent_layer *l = &r->layer[i / 4];
            parameters[i] = (rapt_tensor *[]){l->weight_ih, l->weight_hh, l->bias_ih, l->bias_hh}[i % 4];
        }
        rapt_tensor *x = rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(steps, batch, in)), *gradients[2][8];
        for (int by_steps = 0; by_steps < 2; by_steps++) {
            rapt_tensor *parts[steps] = {x}, *state = NULL, *cell = NULL;
            for (int t = 0; t < (by_steps ? steps : 1); t++)
                parts[t] = run_recurrent(r, by_steps ? rapt_slice(x, 0, t, t + 1, 1) : x, &state, &cell);
            rapt_tensor *y = by_steps ? rapt_concat(steps, parts, 0) : parts[0], *root = total(rapt_mul(y, y));
            cr_assert(rapt_gradients(1, &root, NULL, 8, parameters, gradients[by_steps], 0), "%s", rapt_error());
        }
        expect_same(gates == 3 ? "GRU" : "LSTM", gradients[1], gradients[0], 8);
        rapt_module_free(&r->module);
    }
}

static bool giving_vjp(rapt_call *call)
{
    rapt_tensor *g = rapt_call_gradient(call, 0);
    for (int i = 0; i < rapt_call_count(call); i++)
        if (!rapt_call_give(call, i, g)) return false;
    return true;
}

/* The sum of its inputs, which all get the very gradient of the output. */
static const rapt_op giving = {.name = "giving",
                               .forward = adding_forward,
                               .vjp = giving_vjp,
                               .options_size = sizeof(options)};

/* Each sum begins with a share of one tensor, and nobody adds to what others see. */
Test(gradient_so_far, one_gradient_for_all_of_many_inputs)
{
    const int64_t before = live_bytes();
    for (int count = 2; count <= 20; count += 3) {
        RAPT_SCOPE;
        rapt_tensor *leaves[20], *inputs[20];
        for (int i = 0; i < count; i++) leaves[i] = leaf(i);
        for (int i = 0; i < count; i++) inputs[i] = rapt_mul_scalar(leaves[i / 2], 1 + i % 2); /* most of them twice */
        rapt_tensor *y = rapt_apply(&giving, &(options){.factor = 1}, count, inputs);
        rapt_tensor *both = rapt_add(y, rapt_apply(&giving, &(options){.factor = 1}, count, leaves));
        cr_assert(rapt_backward(total(both)), "%s", rapt_error());
        for (int i = 0; i < count; i++) {
            const bool first = 2 * i < count, second = 2 * i + 1 < count;
            expect_all("gradient", rapt_gradient(leaves[i]), 1 + first + 2 * second);
        }
    }
    cr_expect_eq(live_bytes(), before);
    expect_no_error();
}
