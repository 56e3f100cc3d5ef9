/* Clipping by global norm and by value. */
#include "optimizing.h"

#include <math.h>

#include "tensor/memory.h"

/* An optimizer of one float32 and one float64 parameter. */
typedef struct fixture {
    rapt_optimizer *optimizer;
    rapt_tensor *p[2];
} fixture;

static fixture two_parameters(void)
{
    const double zeros[3] = {0};
    fixture f = {rapt_sgd_new(NULL, NULL),
                 {parameter_from(RAPT_FLOAT32, 2, zeros), parameter_from(RAPT_FLOAT64, 3, zeros)}};
    cr_assert(rapt_optimizer_add(f.optimizer, "first", f.p[0]) && rapt_optimizer_add(f.optimizer, "second", f.p[1]));
    return f;
}

static void give_first(const fixture *f, float a, float b)
{
    give_gradient(f->p[0], rapt_from(RAPT_FLOAT32, RAPT_SHAPE(2), (float[]){a, b}));
}

static void give_second(const fixture *f, double a, double b, double c)
{
    give_gradient(f->p[1], rapt_from(RAPT_FLOAT64, RAPT_SHAPE(3), (double[]){a, b, c}));
}

static void expect_gradient(const rapt_tensor *p, const double *expected)
{
    const rapt_tensor *gradient = rapt_gradient(p);
    for (int64_t i = 0; i < rapt_count(p); i++)
        cr_expect_float_eq(element(gradient, i), expected[i], 1e-7, "element %d is %g, not %g", (int)i,
                           element(gradient, i), expected[i]);
}

/* 2² + 4² + 5² + 6² = 9² */
Test(clip, global_norm_over_both_dtypes)
{
    RAPT_SCOPE;
    fixture f = two_parameters();
    give_first(&f, 2, -4);
    give_second(&f, 5, 0, 6);
    double norm = 0;
    cr_expect(rapt_clip_gradient_norm(f.optimizer, 9, &norm));
    cr_expect_eq(norm, 9);
    expect_gradient(f.p[0], (double[]){2, -4});
    cr_expect(rapt_clip_gradient_norm(f.optimizer, (double)INFINITY, NULL));
    expect_gradient(f.p[1], (double[]){5, 0, 6});
    cr_expect(rapt_clip_gradient_norm(f.optimizer, 3, &norm));
    cr_expect_eq(norm, 9);
    expect_gradient(f.p[0], (double[]){2.0 / 3, -4.0 / 3});
    expect_gradient(f.p[1], (double[]){5.0 / 3, 0, 2});
    cr_expect(rapt_clip_gradient_norm(f.optimizer, 100, &norm));
    cr_expect_float_eq(norm, 3, 1e-6);
    rapt_optimizer_free(f.optimizer);
    expect_no_error();
}

Test(clip, no_gradients_have_norm_zero)
{
    RAPT_SCOPE;
    fixture f = two_parameters();
    double norm = 1;
    cr_expect(rapt_clip_gradient_norm(f.optimizer, 1, &norm));
    cr_expect_eq(norm, 0);
    cr_expect(rapt_clip_gradient_value(f.optimizer, 1));
    rapt_optimizer_free(f.optimizer);
    expect_no_error();
}

/* A million equal float32 numbers: summed in float32 the norm would be off in the third digit. */
Test(clip, norm_of_many_is_accurate)
{
    RAPT_SCOPE;
    rapt_tensor *p = rapt_require_gradient(rapt_zeros(RAPT_FLOAT32, RAPT_SHAPE(1000, 1000)));
    rapt_optimizer *optimizer = rapt_sgd_new(NULL, NULL);
    rapt_optimizer_add(optimizer, "p", p);
    give_gradient_of(p, 0.1);
    double norm = 0;
    cr_expect(rapt_clip_gradient_norm(optimizer, 1000, &norm));
    cr_expect_float_eq(norm, 1000 * (double)0.1f, 1e-9, "%.17g", norm);
    give_gradient_of(p, 3e38 - 0.1);
    cr_expect(rapt_clip_gradient_norm(optimizer, 1, &norm), "squares above float32's range");
    cr_expect_float_eq(norm / 3e41, 1, 1e-6);
    rapt_optimizer_free(optimizer);
    expect_no_error();
}

Test(clip, norm_that_is_not_finite_is_an_error)
{
    RAPT_SCOPE;
    const float bad[] = {NAN, INFINITY, -INFINITY};
    for (int i = 0; i < 3; i++) {
        fixture f = two_parameters();
        give_second(&f, 3, 4, 5);
        give_first(&f, 100, bad[i]);
        double norm = -1;
        cr_expect_not(rapt_clip_gradient_norm(f.optimizer, 1, &norm));
        expect_error(RAPT_ERROR_VALUE, "'first'");
        cr_expect_eq(norm, -1);
        cr_expect_eq(element(rapt_gradient(f.p[0]), 0), 100);
        expect_gradient(f.p[1], (double[]){3, 4, 5});
        rapt_optimizer_free(f.optimizer);
    }
}

Test(clip, value)
{
    RAPT_SCOPE;
    fixture f = two_parameters();
    give_first(&f, -7, NAN);
    give_second(&f, 0.25, 0.5, INFINITY);
    cr_expect(rapt_clip_gradient_value(f.optimizer, 0.5));
    cr_expect_eq(element(rapt_gradient(f.p[0]), 0), -0.5);
    cr_expect(isnan(element(rapt_gradient(f.p[0]), 1)));
    expect_gradient(f.p[1], (double[]){0.25, 0.5, 0.5});
    rapt_optimizer_free(f.optimizer);
    expect_no_error();
}

/* With a graph the same tensor may be the gradient of two leaves; each is clipped once, and the tensor stays. */
Test(clip, shared_gradient)
{
    RAPT_SCOPE;
    const double zeros[2] = {0};
    rapt_tensor *p[] = {parameter_from(RAPT_FLOAT64, 2, zeros), parameter_from(RAPT_FLOAT64, 2, zeros)};
    rapt_tensor *gradient = rapt_from(RAPT_FLOAT64, RAPT_SHAPE(2), (double[]){4, 4});
    cr_assert(rapt_backward_from(2, p, (rapt_tensor *[]){gradient, gradient}, RAPT_CREATE_GRAPH), "%s", rapt_error());
    rapt_optimizer *optimizer = rapt_sgd_new(NULL, NULL);
    cr_expect(rapt_optimizer_add(optimizer, "a", p[0]) && rapt_optimizer_add(optimizer, "b", p[1]));
    cr_expect(rapt_clip_gradient_norm(optimizer, 4, NULL));
    expect_gradient(p[0], (double[]){2, 2});
    expect_gradient(p[1], (double[]){2, 2});
    cr_expect_eq(element(gradient, 0), 4);
    rapt_optimizer_free(optimizer);
    expect_no_error();
}

Test(clip, bad_arguments)
{
    rapt_optimizer *optimizer = rapt_sgd_new(NULL, NULL);
    const double bad[] = {0, -1, (double)NAN};
    for (int i = 0; i < 3; i++) {
        cr_expect_not(rapt_clip_gradient_norm(optimizer, bad[i], NULL));
        expect_error(RAPT_ERROR_VALUE, "above 0");
        cr_expect_not(rapt_clip_gradient_value(optimizer, bad[i]));
        expect_error(RAPT_ERROR_VALUE, "above 0");
    }
    cr_expect_not(rapt_clip_gradient_norm(NULL, 1, NULL));
    expect_error(RAPT_ERROR_NULL, "optimizer");
    cr_expect_not(rapt_clip_gradient_value(NULL, 1));
    expect_error(RAPT_ERROR_NULL, "optimizer");
    for (int i = 0; i < 3; i++) {
        cr_expect_not(rapt_optimizer_step_clipped(optimizer, bad[i], NULL));
        expect_error(RAPT_ERROR_VALUE, "above 0");
    }
    cr_expect_not(rapt_optimizer_step_clipped(NULL, 1, NULL));
    expect_error(RAPT_ERROR_NULL, "optimizer");
    rapt_optimizer_free(optimizer);
}

/* --- a clipped step --- */

static rapt_optimizer *make_sgd(void)
{
    return rapt_sgd_new(NULL, &(rapt_sgd_config){.weight_decay = 0.1});
}

static rapt_optimizer *make_momentum(void)
{
    return rapt_sgd_new(NULL, &(rapt_sgd_config){.momentum = 0.9, .nesterov = true});
}

static rapt_optimizer *make_adam(void)
{
    return rapt_adam_new(NULL, &(rapt_adam_config){.weight_decay = 0.1});
}

static rapt_optimizer *make_adamw(void)
{
    return rapt_adamw_new(NULL, NULL);
}

static rapt_optimizer *make_rmsprop(void)
{
    return rapt_rmsprop_new(NULL, &(rapt_rmsprop_config){.momentum = 0.9, .centered = true});
}

static rapt_optimizer *make_adagrad(void)
{
    return rapt_adagrad_new(NULL, NULL);
}

static rapt_optimizer *make_lion(void)
{
    return rapt_lion_new(NULL, NULL);
}

static rapt_optimizer *make_muon(void)
{
    return rapt_muon_new(NULL, NULL);
}

static rapt_optimizer *make_adafactor(void)
{
    return rapt_adafactor_new(NULL, NULL);
}

typedef rapt_optimizer *make_optimizer(void);
static make_optimizer *const makers[] = {make_sgd,     make_momentum, make_adam, make_adamw,    make_rmsprop,
                                         make_adagrad, make_lion,     make_muon, make_adafactor};

/* A matrix, a transposed one, and a vector whose length is a multiple of nothing. */
typedef struct model {
    rapt_optimizer *optimizer;
    rapt_tensor *p[3];
} model;

static model make_model(make_optimizer *make)
{
    rapt_seed(3);
    model m = {.optimizer = make()};
    m.p[0] = rapt_require_gradient(rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(30, 401)));
    m.p[1] = rapt_require_gradient(rapt_detach(rapt_transpose(rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(70, 31)), 0, 1)));
    m.p[2] = rapt_require_gradient(rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(40001)));
    for (int k = 0; k < 3; k++) cr_assert(rapt_optimizer_add(m.optimizer, (const char *[]){"a", "b", "c"}[k], m.p[k]));
    return m;
}

static void give_gradients(const model *m, double size)
{
    for (int k = 0; k < 3; k++) give_gradient(m->p[k], rapt_mul_scalar(rapt_randn_like(m->p[k]), size * (k + 1)));
}

/* Norms below and above the limit. */
Test(clip, clipped_step_has_the_bits_of_clipping_and_a_step)
{
    for (size_t kind = 0; kind < sizeof makers / sizeof *makers; kind++) {
        RAPT_SCOPE;
        model both[2] = {make_model(makers[kind]), make_model(makers[kind])};
        for (int step = 0; step < 4; step++) {
            double norm[2] = {0};
            for (int way = 0; way < 2; way++) {
                rapt_seed((uint64_t)step);
                give_gradients(&both[way], step % 2 ? 1 : 1e-3);
                const bool good = way ? rapt_optimizer_step_clipped(both[1].optimizer, 7, &norm[1])
                                      : rapt_clip_gradient_norm(both[0].optimizer, 7, &norm[0]) &&
                                            rapt_optimizer_step(both[0].optimizer);
                cr_assert(good, "optimizer %d: %s", (int)kind, rapt_error());
            }
            cr_expect_eq(norm[0], norm[1]);
            cr_expect_eq(norm[1] > 7, step % 2);
            for (int k = 0; k < 3; k++) {
                cr_expect_null(rapt_gradient(both[1].p[k]));
                cr_expect(same_bits(both[0].p[k], both[1].p[k]), "optimizer %d, step %d, parameter %d", (int)kind, step,
                          k);
            }
        }
        for (int way = 0; way < 2; way++) rapt_optimizer_free(both[way].optimizer);
    }
    expect_no_error();
}

Test(clip, clipped_step_that_fails_changes_no_parameter)
{
    RAPT_SCOPE;
    fixture f = two_parameters();
    give_second(&f, 3, 4, 5);
    give_first(&f, 100, INFINITY);
    double norm = -1;
    cr_expect_not(rapt_optimizer_step_clipped(f.optimizer, 1, &norm));
    expect_error(RAPT_ERROR_VALUE, "'first'");
    cr_expect_eq(norm, -1);
    cr_expect_eq(element(f.p[1], 0), 0);
    cr_expect_eq(rapt_optimizer_get_steps(f.optimizer), 0);
    rapt_optimizer_free(f.optimizer);
}

Test(clip, out_of_memory_keeps_gradients)
{
    RAPT_SCOPE;
    rapt_tensor *p = rapt_require_gradient(rapt_zeros(RAPT_FLOAT32, RAPT_SHAPE(100000)));
    rapt_optimizer *optimizer = rapt_sgd_new(NULL, NULL);
    rapt_optimizer_add(optimizer, "p", p);
    give_gradient_of(p, 1);
    int failures = 0;
    for (;; failures++) {
        rapt_memory_fail_after(failures);
        bool good = rapt_clip_gradient_norm(optimizer, 1, NULL);
        rapt_memory_fail_after(-1);
        if (good) break;
        expect_error(RAPT_ERROR_MEMORY, "no memory");
        cr_expect_eq(element(rapt_gradient(p), 99999), 1);
    }
    cr_expect_gt(failures, 0);
    cr_expect_float_eq(element(rapt_gradient(p), 99999), 1 / sqrt(100000.0), 1e-9);
    rapt_optimizer_free(optimizer);
}

/* Of an optimizer that reads gradients often, and of a factor below the least normal float32: those that are multiplied
 * before the step. */
Test(clip, clipped_step_of_what_was_cast_keeps_gradients)
{
    for (int way = 0; way < 2; way++) {
        RAPT_SCOPE;
        const double size = way == 0 ? 3 : 3e38, limit = way == 0 ? 1 : 1e-6;
        rapt_module *linear = (rapt_module *)rapt_linear_new(1, 1, 0);
        rapt_optimizer *optimizer = way == 0 ? rapt_muon_new(linear, NULL) : rapt_adam_new(linear, NULL);
        rapt_tensor *weight = rapt_module_find(linear, "weight");
        give_gradient(weight, rapt_ones_like(weight));
        cr_assert(rapt_optimizer_step(optimizer));
        cr_assert(rapt_module_cast(linear, RAPT_FLOAT64));
        give_gradient(weight, rapt_mul_scalar(rapt_ones_like(weight), size));
        cr_expect_not(rapt_optimizer_step_clipped(optimizer, limit, NULL));
        expect_error(RAPT_ERROR_DTYPE, "'weight' is float64 now");
        cr_expect_float_eq(rapt_item(rapt_gradient(weight)), size, size * 1e-7);
        rapt_optimizer_free(optimizer);
        rapt_module_free(linear);
    }
}

/* limit / norm is 7e-45, of which float32 has one digit. */
Test(clip, a_small_limit_of_large_gradients)
{
    for (int in_one = 0; in_one < 2; in_one++) {
        RAPT_SCOPE;
        rapt_optimizer *sgd = rapt_sgd_new(NULL, &(rapt_sgd_config){.learning_rate = 1});
        rapt_tensor *p = rapt_require_gradient(rapt_zeros(RAPT_FLOAT32, RAPT_SHAPE(2)));
        cr_assert(rapt_optimizer_add(sgd, "p", p));
        rapt_backward(rapt_sum(rapt_mul_scalar(p, 1e38), RAPT_ALL_AXES, false));
        if (in_one)
            cr_assert(rapt_optimizer_step_clipped(sgd, 1e-6, NULL), "%s", rapt_error());
        else
            cr_assert(rapt_clip_gradient_norm(sgd, 1e-6, NULL) && rapt_optimizer_step(sgd), "%s", rapt_error());
        for (int64_t i = 0; i < 2; i++) cr_expect_float_eq(rapt_at(p, &i) / -1e-6, sqrt(0.5), 1e-6);
        rapt_optimizer_free(sgd);
    }
    expect_no_error();
}
