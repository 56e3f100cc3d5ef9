/* Muon and Adafactor: what they keep for matrices, steps that run out of memory, edges. Their trajectories are compared
 * with PyTorch's in tests/parity. */
#include "optimizing.h"

#include <math.h>

#include "tensor/memory.h"

enum { muon, adafactor, kinds };

static rapt_optimizer *optimizer_of(int kind)
{
    return kind == muon ? rapt_muon_new(NULL, NULL) : rapt_adafactor_new(NULL, NULL);
}

static rapt_tensor *add_parameter(rapt_optimizer *optimizer, const char *name, rapt_tensor *values)
{
    rapt_tensor *p = rapt_require_gradient(values);
    cr_assert(rapt_optimizer_add(optimizer, name, p), "%s", rapt_error());
    return p;
}

/* The shape of that state in the optimizer's archive, "" when it is not there. */
static const char *shape_of(const rapt_optimizer *optimizer, const char *name)
{
    static char text[64];
    rapt_archive *archive = rapt_archive_new();
    cr_assert(rapt_optimizer_to_archive(optimizer, NULL, archive), "%s", rapt_error());
    const rapt_tensor *state = rapt_archive_find(archive, name);
    *text = '\0';
    if (state) rapt_describe(state, text, sizeof text);
    rapt_archive_free(archive);
    return text;
}

Test(matrix_optimizers, states)
{
    RAPT_SCOPE;
    rapt_optimizer *m = optimizer_of(muon), *a = optimizer_of(adafactor), *both[] = {m, a};
    for (int i = 0; i < kinds; i++) {
        give_gradient_of(add_parameter(both[i], "w", rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(3, 2))), 1);
        give_gradient_of(add_parameter(both[i], "b", rapt_ones(RAPT_FLOAT64, RAPT_SHAPE(3))), 1);
        give_gradient_of(add_parameter(both[i], "t", rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(4, 3, 2))), 1);
        cr_assert(rapt_optimizer_step(both[i]), "%s", rapt_error());
    }
    cr_expect_str_eq(shape_of(m, "w.momentum_buffer"), "float32 [3, 2]");
    cr_expect_str_eq(shape_of(m, "w.exp_avg"), "");
    cr_expect_str_eq(shape_of(m, "b.exp_avg_sq"), "float64 [3]");
    cr_expect_str_eq(shape_of(m, "t.momentum_buffer"), "");
    cr_expect_str_eq(shape_of(a, "w.row_var"), "float32 [3, 1]");
    cr_expect_str_eq(shape_of(a, "w.col_var"), "float32 [1, 2]");
    cr_expect_str_eq(shape_of(a, "w.variance"), "");
    cr_expect_str_eq(shape_of(a, "b.variance"), "float64 [3]");
    cr_expect_str_eq(shape_of(a, "t.col_var"), "float32 [4, 1, 2]");
    for (int i = 0; i < kinds; i++) rapt_optimizer_free(both[i]);
    expect_no_error();
}

/* The gradient of singular values 8, 4 and 1 becomes a step with all near 1 and of the same directions. The iteration
 * is said to end between 0.7 and 1.2. */
Test(matrix_optimizers, muon_steps_by_nearly_orthogonal_matrices)
{
    RAPT_SCOPE;
    const double gradient[] = {8, 0, 0, 0, 0, -4, 0, 0, 0, 0, 1, 0};
    for (int tall = 0; tall < 2; tall++) {
        rapt_tensor *g = rapt_from(RAPT_FLOAT64, RAPT_SHAPE(3, 4), gradient);
        if (tall) g = rapt_transpose(g, 0, 1);
        const double scale = tall ? sqrt(4. / 3) : 1;
        rapt_optimizer *optimizer =
            rapt_muon_new(NULL, &(rapt_muon_config){.learning_rate = 0.5, .weight_decay = RAPT_ZERO});
        rapt_tensor *p = add_parameter(optimizer, "p", rapt_zeros(RAPT_FLOAT64, rapt_rank(g), rapt_shape(g)));
        give_gradient(p, g);
        cr_assert(rapt_optimizer_step(optimizer), "%s", rapt_error());
        for (int64_t i = 0; i < 3; i++)
            for (int64_t j = 0; j < 4; j++) {
                const double moved = rapt_at(p, tall ? (int64_t[]){j, i} : (int64_t[]){i, j}) / (-0.5 * scale);
                if (i != j)
                    cr_expect_eq(moved, 0);
                else
                    cr_expect(fabs(moved) > 0.68 && fabs(moved) < 1.2 && moved * gradient[5 * i] > 0, "%d: %g", (int)i,
                              moved);
            }
        rapt_optimizer_free(optimizer);
    }
    expect_no_error();
}

Test(matrix_optimizers, muon_leaves_to_adamw_what_it_is_told)
{
    RAPT_SCOPE;
    rapt_optimizer *m =
        rapt_muon_new(NULL, &(rapt_muon_config){.learning_rate = 0.02,
                                                .adamw = {.learning_rate = 0.004, .weight_decay = 0.1}});
    rapt_tensor *embedding = add_parameter(m, "embedding.weight", rapt_ones(RAPT_FLOAT64, RAPT_SHAPE(2, 2)));
    rapt_tensor *bias = add_parameter(m, "bias", rapt_ones(RAPT_FLOAT64, RAPT_SHAPE(2)));
    cr_expect_not(rapt_muon_by_adamw(m, "head*"));
    expect_error(RAPT_ERROR_VALUE, "matches 'head*'");
    cr_expect_not(rapt_muon_by_adamw(m, NULL));
    expect_error(RAPT_ERROR_NULL, "pattern is NULL");
    cr_expect_not(rapt_muon_by_adamw(NULL, "*"));
    expect_error(RAPT_ERROR_NULL, "optimizer is NULL");
    cr_expect(rapt_muon_by_adamw(m, "embedding*"), "%s", rapt_error());
    cr_expect(rapt_optimizer_group(m, "bias", &(rapt_group_config){.learning_rate = 0.5}));
    cr_expect(rapt_optimizer_set_learning_rate(m, 0.01));
    give_gradient_of(embedding, 3);
    give_gradient_of(bias, 3);
    cr_assert(rapt_optimizer_step(m), "%s", rapt_error());
    /* Adam's first step is as long as its learning rate, and weights decay by a tenth of it. */
    cr_expect_float_eq(rapt_at(embedding, (int64_t[]){1, 1}), 1 - 0.0002 - 0.002, 1e-9);
    cr_expect_float_eq(element(bias, 0), 1 - 0.025 - 0.25, 1e-8);
    cr_expect_str_eq(shape_of(m, "embedding.weight.exp_avg"), "float64 [2, 2]");
    cr_expect_not(rapt_muon_by_adamw(m, "bias"));
    expect_error(RAPT_ERROR_VALUE, "before the first");
    rapt_optimizer *other = rapt_adam_new(NULL, NULL);
    cr_expect_not(rapt_muon_by_adamw(other, "*"));
    expect_error(RAPT_ERROR_VALUE, "the optimizer is Adam");
    rapt_optimizer_free(other);
    rapt_optimizer_free(m);
}

Test(matrix_optimizers, zero_and_empty_gradients)
{
    for (int kind = 0; kind < kinds; kind++) {
        RAPT_SCOPE;
        rapt_optimizer *optimizer = optimizer_of(kind);
        rapt_tensor *zero = add_parameter(optimizer, "zero", rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(3, 2)));
        rapt_tensor *no_rows = add_parameter(optimizer, "no_rows", rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(0, 2)));
        rapt_tensor *no_columns = add_parameter(optimizer, "no_columns", rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(2, 0)));
        rapt_tensor *nothing = add_parameter(optimizer, "nothing", rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(0)));
        for (int step = 0; step < 3; step++) {
            give_gradient_of(zero, 0);
            give_gradient_of(no_rows, 0);
            give_gradient_of(no_columns, 0);
            give_gradient_of(nothing, 0);
            cr_assert(rapt_optimizer_step(optimizer), "%s", rapt_error());
        }
        const double expected = kind == muon ? pow(1 - 0.001 * 0.1, 3) : 1;
        cr_expect_float_eq(rapt_at(zero, (int64_t[]){2, 1}), expected, 1e-6);
        rapt_optimizer_free(optimizer);
        expect_no_error();
    }
}

/* Rows of a table that no index reaches stay as they are, whatever ε is: float32 may have neither it nor its square. */
Test(matrix_optimizers, no_gradient_no_step_with_a_small_epsilon)
{
    static const double epsilons[] = {0, 1e-19, 1e-30, 1e-40, 1e-50, 1e-200, RAPT_ZERO};
    static const double gradient[] = {3, -4, 0, 0, 1, 2};
    for (int dtype = RAPT_FLOAT32; dtype <= RAPT_FLOAT64; dtype++)
        for (int kind = 0; kind < kinds; kind++)
            for (size_t k = 0; k < sizeof epsilons / sizeof *epsilons; k++) {
                RAPT_SCOPE;
                rapt_optimizer *optimizer =
                    kind == muon
                        ? rapt_muon_new(NULL, &(rapt_muon_config){.epsilon = epsilons[k], .weight_decay = RAPT_ZERO})
                        : rapt_adafactor_new(NULL, &(rapt_adafactor_config){.epsilon1 = epsilons[k]});
                rapt_tensor *table = rapt_ones((rapt_dtype)dtype, RAPT_SHAPE(3, 2));
                rapt_tensor *unused = rapt_ones((rapt_dtype)dtype, RAPT_SHAPE(2, 2));
                add_parameter(optimizer, "table", table);
                add_parameter(optimizer, "unused", unused);
                for (int step = 0; step < 2; step++) {
                    give_gradient(table,
                                  rapt_cast(rapt_from(RAPT_FLOAT64, RAPT_SHAPE(3, 2), gradient), (rapt_dtype)dtype));
                    give_gradient_of(unused, 0);
                    cr_assert(rapt_optimizer_step(optimizer), "%s", rapt_error());
                }
                const double moved = rapt_at(table, (int64_t[]){0, 0}), kept = rapt_at(table, (int64_t[]){1, 1});
                cr_expect(moved > 0 && moved < 1, "kind %d, epsilon %g: %g", kind, epsilons[k], moved);
                cr_expect_eq(kept, 1, "kind %d, epsilon %g: %g", kind, epsilons[k], kept);
                cr_expect_eq(rapt_at(unused, (int64_t[]){1, 0}), 1);
                rapt_optimizer_free(optimizer);
            }
    expect_no_error();
}

/* Where g² is no float32 any more, g is small beside the others, and so is its step; the others step by the learning
 * rate times 1, their size. */
Test(matrix_optimizers, adafactor_of_gradients_without_squares)
{
    RAPT_SCOPE;
    const double values[] = {1, 1}, gradient[] = {1, 1e-25};
    rapt_tensor *p = parameter_from(RAPT_FLOAT32, 2, values);
    rapt_optimizer *optimizer = rapt_adafactor_new(NULL, &(rapt_adafactor_config){.epsilon1 = 1e-30});
    rapt_optimizer_add(optimizer, "p", p);
    give_gradient(p, rapt_cast(rapt_from(RAPT_FLOAT64, RAPT_SHAPE(2), gradient), RAPT_FLOAT32));
    cr_assert(rapt_optimizer_step(optimizer), "%s", rapt_error());
    cr_expect_float_eq(element(p, 0), 0.99, 1e-6);
    cr_expect_eq(element(p, 1), 1);
    rapt_optimizer_free(optimizer);
}

/* The step's length is what it is clipped by, the parameter's what it is multiplied by. */
Test(matrix_optimizers, adafactor_refuses_what_has_no_length)
{
    const double values[][2] = {{1, 2}, {(double)NAN, 2}, {1, 2}}, gradients[][2] = {{1, (double)NAN}, {1, 1}, {1, 1}};
    for (int i = 0; i < 3; i++) {
        RAPT_SCOPE;
        rapt_optimizer *optimizer = optimizer_of(adafactor);
        rapt_tensor *good = add_number(optimizer, "good", 1), *p = parameter_from(RAPT_FLOAT32, 2, values[i]);
        rapt_optimizer_add(optimizer, "p", p);
        give_gradient_of(good, 1);
        give_gradient(p, rapt_cast(rapt_from(RAPT_FLOAT64, RAPT_SHAPE(2), gradients[i]), RAPT_FLOAT32));
        const bool is_good = i == 2;
        cr_expect_eq(rapt_optimizer_step(optimizer), is_good);
        if (!is_good) expect_error(RAPT_ERROR_VALUE, "Adafactor: the root mean square of 'p' is ");
        cr_expect_eq(element(good, 0) == 1, !is_good);
        cr_expect_eq(element(p, 1) == 2, !is_good);
        rapt_optimizer_free(optimizer);
    }
    expect_no_error();
}

/* What a step of Muon needs, in copies of the matrix: five, and room for panels of products; it was sixteen or more. */
Test(matrix_optimizers, muon_needs_few_copies)
{
    static const int64_t sizes[][2] = {{600, 600}, {300, 1200}, {1200, 300}};
    cr_assert(rapt_set_threads(1)); /* each has panels of its own */
    for (int i = 0; i < 3; i++) {
        RAPT_SCOPE;
        rapt_optimizer *optimizer = optimizer_of(muon);
        rapt_tensor *p = add_parameter(optimizer, "p", rapt_randn(RAPT_FLOAT32, 2, sizes[i]));
        double copies = 0;
        for (int step = 0; step < 2; step++) {
            give_gradient(p, rapt_randn_like(p));
            const int64_t before = rapt_memory_get_statistics().live_bytes;
            rapt_memory_reset_peak();
            cr_assert(rapt_optimizer_step(optimizer), "%s", rapt_error());
            copies = (double)(rapt_memory_get_statistics().peak_bytes - before) / (600 * 600 * sizeof(float));
        }
        cr_expect_leq(copies, 8, "%lld by %lld: %g", (long long)sizes[i][0], (long long)sizes[i][1], copies);
        rapt_optimizer_free(optimizer);
    }
    expect_no_error();
}

Test(matrix_optimizers, out_of_memory_changes_nothing)
{
    for (int kind = 0; kind < kinds; kind++) {
        RAPT_SCOPE;
        rapt_optimizer *optimizer = optimizer_of(kind);
        rapt_tensor *p[] = {add_parameter(optimizer, "a", rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(4, 5))),
                            add_parameter(optimizer, "b", rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(6, 3)))};
        rapt_tensor *gradient[] = {rapt_randn_like(p[0]), rapt_randn_like(p[1])};
        for (int i = 0; i < 2; i++) give_gradient(p[i], gradient[i]);
        int failures = 0;
        for (;; failures++) {
            rapt_memory_fail_after(failures);
            const bool good = rapt_optimizer_step(optimizer);
            rapt_memory_fail_after(-1);
            if (good) break;
            expect_error(RAPT_ERROR_MEMORY, "no memory");
            for (int i = 0; i < 2; i++) {
                cr_expect_eq(rapt_at(p[i], (int64_t[]){3, 2}), 1);
                cr_expect(same_bits(rapt_gradient(p[i]), gradient[i]));
            }
            cr_expect_eq(rapt_optimizer_get_steps(optimizer), 0);
        }
        cr_expect_gt(failures, 10);
        for (int i = 0; i < 2; i++) cr_expect_neq(rapt_at(p[i], (int64_t[]){3, 2}), 1);
        rapt_optimizer_free(optimizer);
        expect_no_error();
    }
}

/* Ten steps of a matrix and a turned one, which are left in results. */
static void train(int kind, int threads, rapt_tensor *results[2])
{
    cr_assert(rapt_set_threads(threads));
    rapt_seed(7);
    rapt_optimizer *optimizer = optimizer_of(kind);
    rapt_tensor *p[] = {rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(301, 203)),
                        rapt_transpose(rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(217, 141)), 0, 1)};
    for (int i = 0; i < 2; i++) add_parameter(optimizer, i ? "turned" : "plain", p[i]);
    for (int t = 0; t < 10; t++) {
        RAPT_SCOPE;
        for (int i = 0; i < 2; i++) give_gradient(p[i], rapt_randn(RAPT_FLOAT32, rapt_rank(p[i]), rapt_shape(p[i])));
        cr_assert(rapt_optimizer_step(optimizer), "%s", rapt_error());
    }
    for (int i = 0; i < 2; i++) results[i] = rapt_clone(p[i]);
    rapt_optimizer_free(optimizer);
}

Test(matrix_optimizers, same_bits_with_any_number_of_threads)
{
    for (int kind = 0; kind < kinds; kind++) {
        RAPT_SCOPE;
        rapt_tensor *expected[2], *results[2];
        train(kind, 1, expected);
        train(kind, 3, results);
        for (int i = 0; i < 2; i++) cr_expect(same_bits(results[i], expected[i]), "kind %d, parameter %d", kind, i);
    }
    expect_no_error();
}

/* With β₂ = 0 the variance is the last gradient's square, of which nothing was lost beside one before of 1e10: each
 * element's step is its gradient divided by its own size. */
Test(matrix_optimizers, adafactor_without_memory_keeps_a_small_gradient)
{
    RAPT_SCOPE;
    rapt_optimizer *a = rapt_adafactor_new(NULL, &(rapt_adafactor_config){.beta2_decay = RAPT_ZERO});
    rapt_tensor *p = add_parameter(a, "p", rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(4)));
    give_gradient_of(p, 1e5);
    cr_assert(rapt_optimizer_step(a), "%s", rapt_error());
    cr_expect_float_eq(rapt_at(p, (int64_t[]){0}), 0.99, 1e-6);
    rapt_tensor *factors = rapt_from(RAPT_FLOAT32, RAPT_SHAPE(4), (float[]){1e-3f, 2e-3f, 3e-3f, 1e-2f});
    rapt_backward(rapt_sum(rapt_mul(p, factors), RAPT_ALL_AXES, false));
    cr_assert(rapt_optimizer_step(a), "%s", rapt_error());
    for (int64_t i = 0; i < 4; i++) cr_expect_float_eq(rapt_at(p, &i), 0.9801, 1e-6, "p[%d]", (int)i);
    rapt_optimizer_free(a);
    expect_no_error();
}

/* Which would let Muon change the kind of a parameter that has a state of the other. */
Test(matrix_optimizers, a_parameter_has_no_more_steps_than_its_optimizer)
{
    RAPT_SCOPE;
    rapt_optimizer *m = optimizer_of(muon);
    add_parameter(m, "w", rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(3, 2)));
    rapt_archive *archive = rapt_archive_new();
    const int64_t none = 0, five = 5;
    cr_assert(rapt_archive_add_text(archive, "kind", "Muon: momentum_buffer, exp_avg, exp_avg_sq"));
    cr_assert(rapt_archive_add(archive, "steps", rapt_from(RAPT_INT64, 0, NULL, &none)));
    cr_assert(rapt_archive_add(archive, "learning_rate", rapt_scalar(RAPT_FLOAT64, 0.1)));
    cr_assert(rapt_archive_add(archive, "w.step", rapt_from(RAPT_INT64, 0, NULL, &five)));
    cr_assert(rapt_archive_add(archive, "w.momentum_buffer", rapt_zeros(RAPT_FLOAT32, RAPT_SHAPE(3, 2))));
    cr_expect_not(rapt_optimizer_from_archive(m, NULL, archive));
    expect_error(RAPT_ERROR_FORMAT, "w.step is 5; at most the optimizer's steps, 0, expected");
    rapt_archive_free(archive);
    rapt_optimizer_free(m);
}
