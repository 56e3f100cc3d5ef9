/* Steps of all optimizers: out of memory, NaN, nothing asked of the system, threads, and what is warned of. */
#include "optimizer_kinds.h"
#include "optimizing.h"

#include <math.h>

#include "tensor/memory.h"

Test(optimizer_steps, out_of_memory_changes_no_parameter)
{
    RAPT_SCOPE;
    rapt_optimizer *optimizer = rapt_adam_new(NULL, NULL);
    rapt_tensor *p[] = {add_number(optimizer, "first", 1), add_number(optimizer, "second", 1)};
    for (int i = 0; i < 2; i++) give_gradient_of(p[i], 1);
    int failures = 0;
    for (;; failures++) {
        rapt_memory_fail_after(failures);
        bool good = rapt_optimizer_step(optimizer);
        rapt_memory_fail_after(-1);
        if (good) break;
        expect_error(RAPT_ERROR_MEMORY, "no memory");
        for (int i = 0; i < 2; i++) {
            cr_expect_eq(element(p[i], 0), 1);
            cr_expect_not_null(rapt_gradient(p[i]));
        }
        cr_expect_eq(rapt_optimizer_get_steps(optimizer), 0);
    }
    cr_expect_geq(failures, 2);
    for (int i = 0; i < 2; i++) cr_expect_float_eq(element(p[i], 0), 0.999, 1e-9);
    rapt_optimizer_free(optimizer);
}

Test(optimizer_steps, gradient_that_shares_the_parameters_memory)
{
    RAPT_SCOPE;
    const double values[] = {1, 2, 3, 4};
    rapt_tensor *p = rapt_require_gradient(rapt_from(RAPT_FLOAT64, RAPT_SHAPE(2, 2), values));
    rapt_tensor *gradient = rapt_transpose(rapt_detach(p), 0, 1);
    cr_assert(rapt_backward_from(1, &p, &gradient, RAPT_CREATE_GRAPH), "%s", rapt_error());
    rapt_optimizer *optimizer = descent(0.5);
    rapt_optimizer_add(optimizer, "p", p);
    cr_expect(rapt_optimizer_step(optimizer), "%s", rapt_error());
    const double expected[] = {0.5, 0.5, 2, 2};
    cr_expect_arr_eq(rapt_data(p), expected, sizeof expected);
    rapt_optimizer_free(optimizer);
}

Test(optimizer_steps, nan_gradient_reaches_its_elements_only)
{
    RAPT_SCOPE;
    const double values[] = {1, 1, 1}, gradient[] = {1, (double)NAN, 1};
    rapt_tensor *p = parameter_from(RAPT_FLOAT64, 3, values);
    rapt_optimizer *optimizer = rapt_adam_new(NULL, NULL);
    rapt_optimizer_add(optimizer, "p", p);
    give_gradient(p, rapt_from(RAPT_FLOAT64, RAPT_SHAPE(3), gradient));
    cr_expect(rapt_optimizer_step(optimizer));
    cr_expect(isnan(element(p, 1)));
    cr_expect_float_eq(element(p, 0), 0.999, 1e-9);
    cr_expect_float_eq(element(p, 2), 0.999, 1e-9);
    rapt_optimizer_free(optimizer);
}

/* As a masked logit's bias, which softmax gives no gradient. */
Test(optimizer_steps, without_decay_infinite_parameters_stay)
{
    const double values[] = {-(double)INFINITY, (double)INFINITY, 1}, gradient[] = {0, 0, 1};
    for (int dtype = RAPT_FLOAT32; dtype <= RAPT_FLOAT64; dtype++) {
        rapt_optimizer *optimizers[] = {descent(0.5),
                                        rapt_sgd_new(NULL, &(rapt_sgd_config){.learning_rate = 0.5, .momentum = 0.9}),
                                        rapt_adam_new(NULL, NULL),
                                        rapt_adamw_new(NULL, NULL),
                                        rapt_rmsprop_new(NULL, NULL),
                                        rapt_adagrad_new(NULL, NULL)};
        for (size_t i = 0; i < sizeof optimizers / sizeof *optimizers; i++) {
            RAPT_SCOPE;
            rapt_tensor *p = parameter_from((rapt_dtype)dtype, 3, values);
            rapt_optimizer_add(optimizers[i], "p", p);
            give_gradient(p, rapt_cast(rapt_from(RAPT_FLOAT64, RAPT_SHAPE(3), gradient), (rapt_dtype)dtype));
            cr_expect(rapt_optimizer_step(optimizers[i]), "%s", rapt_error());
            cr_expect(element(p, 0) == values[0] && element(p, 1) == values[1], "optimizer %d: %g and %g", (int)i,
                      element(p, 0), element(p, 1));
            cr_expect_lt(element(p, 2), 1);
            rapt_optimizer_free(optimizers[i]);
        }
    }
}

/* The mean of a gradient without β is the gradient: what a large one before it left takes nothing from its digits. */
Test(optimizer_steps, without_momentum_the_mean_is_the_gradient)
{
    static const char *const names[] = {"p.exp_avg", "p.exp_avg", "p.exp_avg", "p.grad_avg", "p.momentum_buffer"};
    for (int dtype = RAPT_FLOAT32; dtype <= RAPT_FLOAT64; dtype++) {
        const rapt_adam_config adam = {.beta1 = RAPT_ZERO, .beta2 = RAPT_ZERO};
        rapt_optimizer *optimizers[] = {rapt_adam_new(NULL, &adam), rapt_adamw_new(NULL, &adam),
                                        rapt_lion_new(NULL,
                                                      &(rapt_lion_config){.beta1 = RAPT_ZERO, .beta2 = RAPT_ZERO}),
                                        rapt_rmsprop_new(NULL,
                                                         &(rapt_rmsprop_config){.alpha = RAPT_ZERO, .centered = true}),
                                        rapt_muon_new(NULL, &(rapt_muon_config){.momentum = RAPT_ZERO})};
        for (size_t i = 0; i < sizeof optimizers / sizeof *optimizers; i++) {
            RAPT_SCOPE;
            rapt_tensor *p = rapt_require_gradient(rapt_zeros((rapt_dtype)dtype, RAPT_SHAPE(1, 2)));
            rapt_optimizer_add(optimizers[i], "p", p);
            give_gradient_of(p, dtype == RAPT_FLOAT32 ? 3e7 : 1e17);
            cr_expect(rapt_optimizer_step(optimizers[i]), "%s", rapt_error());
            const double before = rapt_at(p, (int64_t[]){0, 1});
            give_gradient_of(p, -1);
            cr_expect(rapt_optimizer_step(optimizers[i]), "%s", rapt_error());
            rapt_archive *archive = rapt_archive_new();
            cr_assert(rapt_optimizer_to_archive(optimizers[i], NULL, archive), "%s", rapt_error());
            cr_expect_eq(rapt_at(rapt_archive_find(archive, names[i]), (int64_t[]){0, 1}), -1, "optimizer %d", (int)i);
            if (i != 3) cr_expect_gt(rapt_at(p, (int64_t[]){0, 1}), before, "optimizer %d", (int)i);
            rapt_archive_free(archive);
            rapt_optimizer_free(optimizers[i]);
        }
    }
    expect_no_error();
}

Test(optimizer_steps, steady_step_asks_the_system_for_nothing)
{
    RAPT_SCOPE;
    rapt_optimizer *optimizer = rapt_rmsprop_new(NULL, &(rapt_rmsprop_config){.momentum = 0.5, .centered = true});
    rapt_tensor *p = rapt_require_gradient(rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(300, 200)));
    rapt_optimizer_add(optimizer, "p", p);
    int64_t before = 0;
    for (int i = 0; i < 20; i++) {
        if (i == 10) before = rapt_memory_get_statistics().system_allocations;
        give_gradient_of(p, i);
        cr_expect(rapt_clip_gradient_norm(optimizer, 1, NULL));
        cr_expect(rapt_clip_gradient_value(optimizer, 0.5));
        cr_expect(rapt_optimizer_step(optimizer));
    }
    cr_expect_eq(rapt_memory_get_statistics().system_allocations, before);
    rapt_optimizer_free(optimizer);
    expect_no_error();
}

/* Ten steps, clipped, of parameters of several sizes, one of them strided; they are left in results. */
static void train(int threads, rapt_tensor *results[3])
{
    cr_assert(rapt_set_threads(threads));
    rapt_seed(7);
    rapt_optimizer *optimizer = rapt_adam_new(NULL, &(rapt_adam_config){.weight_decay = 0.01});
    rapt_tensor *p[] = {rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(100003)),
                        rapt_transpose(rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(217, 341)), 0, 1),
                        rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(20011))};
    const char *names[] = {"large", "strided", "double"};
    for (int i = 0; i < 3; i++)
        cr_assert(rapt_optimizer_add(optimizer, names[i], rapt_require_gradient(p[i])), "%s", rapt_error());
    for (int t = 0; t < 10; t++) {
        for (int i = 0; i < 3; i++)
            give_gradient(p[i], rapt_randn(rapt_get_dtype(p[i]), rapt_rank(p[i]), rapt_shape(p[i])));
        cr_assert(rapt_clip_gradient_norm(optimizer, 1, NULL), "%s", rapt_error());
        cr_assert(rapt_optimizer_step(optimizer), "%s", rapt_error());
    }
    for (int i = 0; i < 3; i++) results[i] = rapt_clone(p[i]);
    rapt_optimizer_free(optimizer);
}

Test(optimizer_steps, same_bits_with_any_number_of_threads)
{
    RAPT_SCOPE;
    rapt_tensor *expected[3], *results[3];
    train(1, expected);
    for (int threads = 2; threads <= 4; threads++) {
        train(threads, results);
        for (int i = 0; i < 3; i++)
            cr_expect(same_bits(results[i], expected[i]), "%d threads, parameter %d", threads, i);
    }
    expect_no_error();
}

/* --- warnings --- */

static char warned[1100];

static void remember(const char *message)
{
    snprintf(warned, sizeof warned, "%s", message);
}

/* What the first step says when of five parameters those with a bit in `reached` have a gradient. */
static const char *first_step_of(int reached)
{
    static const char *const names[] = {"encoder.weight", "encoder.bias", "decoder.weight", "frozen.group", "frozen"};
    RAPT_SCOPE;
    rapt_tensor *p[5];
    rapt_optimizer *optimizer = descent(0.1);
    rapt_on_warning(remember);
    for (int i = 0; i < 5; i++) p[i] = add_number(optimizer, names[i], 1);
    for (int i = 0; i < 5; i++)
        if (reached >> i & 1) give_gradient_of(p[i], 1);
    rapt_optimizer_group(optimizer, "frozen.group", &(rapt_group_config){.learning_rate = RAPT_ZERO});
    rapt_refuse_gradient(p[4]);
    *warned = '\0';
    cr_expect(rapt_optimizer_step(optimizer), "%s", rapt_error());
    static char first[sizeof warned];
    strcpy(first, warned);
    *warned = '\0';
    cr_expect(rapt_optimizer_step(optimizer), "%s", rapt_error());
    cr_expect_str_empty(warned, "the second step said: %s", warned);
    rapt_optimizer_free(optimizer);
    return first;
}

Test(optimizer_steps, first_step_names_what_has_no_gradient_once)
{
    cr_expect_str_eq(first_step_of(7), "");
    cr_expect_str_eq(first_step_of(1), "SGD: 2 of 3 parameters got no gradient by the first step: encoder.bias, "
                                       "decoder.weight; freeze those that are not to be trained (rapt_module_freeze); "
                                       "the step of another optimizer drops the gradients of parameters that both "
                                       "have");
    cr_expect(strstr(first_step_of(0), "SGD: no parameter has a gradient at the first step; rapt_backward"));
    cr_expect(strstr(first_step_of(0), "the step of another optimizer drops the gradients"));
}

Test(optimizer_steps, names_as_many_as_fit)
{
    RAPT_SCOPE;
    char name[400];
    rapt_optimizer *optimizer = descent(0.1);
    rapt_on_warning(remember);
    give_gradient_of(add_number(optimizer, "reached", 1), 1);
    for (int i = 0; i < 9; i++) {
        snprintf(name, sizeof name, "%0*d", 380, i);
        add_number(optimizer, name, 1);
    }
    cr_expect(rapt_optimizer_step(optimizer));
    cr_expect(strstr(warned, "9 of 10 parameters") && strstr(warned, "01 and others; freeze"), "%s", warned);
    rapt_optimizer_free(optimizer);
}

enum { elements = 64 };

/* Three steps of a matrix, or of its halves as parameters of their own. */
static void step_pieces(rapt_optimizer *optimizer, int pieces, double results[elements])
{
    RAPT_SCOPE;
    const int count = elements / pieces;
    rapt_tensor *p[2];
    for (int i = 0; i < pieces; i++) {
        rapt_tensor *numbers = rapt_arange(RAPT_FLOAT64, i * count - 7, (i + 1) * count - 7, 1);
        p[i] = rapt_require_gradient(pieces == 1 ? rapt_clone(rapt_reshape(numbers, RAPT_SHAPE(8, 8))) : numbers);
        cr_assert(rapt_optimizer_add(optimizer, i ? "second" : "first", p[i]), "%s", rapt_error());
    }
    cr_expect_eq(rapt_optimizer_count(optimizer), pieces);
    for (int step = 0; step < 3; step++) {
        for (int i = 0; i < pieces; i++) give_gradient(p[i], rapt_sin(rapt_detach(p[i])));
        cr_assert(rapt_optimizer_step(optimizer), "%s", rapt_error());
    }
    for (int i = 0; i < pieces; i++) memcpy(results + i * count, rapt_data(p[i]), (size_t)count * sizeof *results);
}

Test(optimizer_steps, elementwise_kinds_step_pieces_as_what_is_whole)
{
    for (int kind = 0; kind < kinds; kind++) {
        double results[2][elements];
        for (int i = 0; i < 2; i++) {
            rapt_optimizer *optimizer = optimizer_of(kind, NULL);
            cr_expect_eq(rapt_optimizer_count(optimizer), 0);
            cr_expect_eq(rapt_optimizer_is_elementwise(optimizer), kind < elementwise_kinds, "kind %d", kind);
            step_pieces(optimizer, 1 + i, results[i]);
            rapt_optimizer_free(optimizer);
        }
        const bool is_same = memcmp(results[0], results[1], sizeof results[0]) == 0;
        cr_expect_eq(is_same, kind < elementwise_kinds, "kind %d", kind);
    }
    expect_no_error();
}
