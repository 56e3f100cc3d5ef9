/* Frozen parameters: found by name, passed over by backward and by optimizers, and in files and casts as all others. */
#include "modules.h"

#include <rapt/optim.h>

#include "tensor/memory.h"

enum { in = 3, out = 400 };

static rapt_tensor *total(rapt_tensor *x)
{
    return rapt_sum(x, RAPT_ALL_AXES, false);
}

static rapt_sequential *two_layers(void)
{
    return RAPT_SEQUENTIAL((rapt_module *)rapt_linear_new(in, out, RAPT_BIAS),
                           (rapt_module *)rapt_linear_new(out, 2, RAPT_BIAS));
}

static bool requires(const rapt_sequential *s, const char *name)
{
    return rapt_requires_gradient(rapt_module_find(&s->module, name));
}

Test(module_freeze, finds_parameters_by_pattern)
{
    RAPT_SCOPE;
    rapt_sequential *s = two_layers();
    cr_expect_eq(rapt_module_freeze(&s->module, "0.*", true), 2);
    cr_expect(!requires(s, "0.weight") && !requires(s, "0.bias") && requires(s, "1.weight") && requires(s, "1.bias"));
    cr_expect_eq(rapt_module_freeze(&s->module, "*.weight", true), 2);
    cr_expect(!requires(s, "1.weight") && requires(s, "1.bias"));
    cr_expect_eq(rapt_module_freeze(&s->module, "*", false), 4);
    cr_expect(requires(s, "0.weight") && requires(s, "1.bias"));
    expect_no_error();

    cr_expect_eq(rapt_module_freeze(&s->module, "encoder.*", true), 0);
    expect_error(RAPT_ERROR_VALUE, "module_freeze: no name of the parameters of Sequential matches 'encoder.*'");
    cr_expect_eq(rapt_module_freeze(NULL, "*", true), 0);
    expect_error(RAPT_ERROR_NULL, "the module is NULL");
    cr_expect_eq(rapt_module_freeze(&s->module, NULL, true), 0);
    expect_error(RAPT_ERROR_NULL, "the pattern is NULL");
    rapt_module_free(&s->module);
}

/* A tied tensor, and one of a layer that stands in two places. */
Test(module_freeze, the_error_of_a_later_name_has_the_first)
{
    RAPT_SCOPE;
    rapt_linear *linear = rapt_linear_new(in, 2, RAPT_BIAS);
    rapt_sequential *s = RAPT_SEQUENTIAL(&linear->module, (rapt_module *)rapt_batch_norm_new(2), &linear->module);
    rapt_module_add_parameter(&s->module, "tied", linear->weight);
    cr_expect_eq(rapt_module_freeze(&s->module, "tied", true), 0);
    expect_error(RAPT_ERROR_VALUE,
                 "module_freeze: 'tied' of Sequential is the parameter '0.weight' by a later name; its first expected");
    cr_expect_eq(rapt_module_freeze(&s->module, "2.bias", true), 0);
    expect_error(RAPT_ERROR_VALUE, "'2.bias' of Sequential is the parameter '0.bias' by a later name");
    cr_expect(requires(s, "tied") && requires(s, "2.bias"));
    cr_expect_eq(rapt_module_freeze(&s->module, "1.running_mean", true), 0);
    expect_error(RAPT_ERROR_VALUE, "no name of the parameters of Sequential matches '1.running_mean'");
    cr_expect_eq(rapt_module_freeze(&s->module, "0.*", true), 2);
    cr_expect(!requires(s, "tied") && !requires(s, "2.bias"));
    rapt_module_free(&s->module);
    expect_no_error();
}

Test(module_freeze, a_tensor_refuses_its_gradient)
{
    RAPT_SCOPE;
    rapt_tensor *x = rapt_require_gradient(rapt_ones(RAPT_FLOAT64, RAPT_SHAPE(2)));
    rapt_tensor *y = rapt_require_gradient(rapt_ones(RAPT_FLOAT64, RAPT_SHAPE(2)));
    rapt_tensor *recorded = total(rapt_mul(x, y));
    cr_expect(rapt_backward(total(rapt_mul(x, y))) && rapt_gradient(x));
    cr_expect_eq(rapt_refuse_gradient(x), x);
    cr_expect(!rapt_requires_gradient(x) && !rapt_gradient(x));
    cr_expect_eq(rapt_refuse_gradient(x), x);
    cr_expect(rapt_backward(recorded) && !rapt_gradient(x));
    cr_expect_eq(rapt_at(rapt_gradient(y), (int64_t[]){0}), 2);
    recorded = total(rapt_mul(x = rapt_require_gradient(x), y));
    cr_expect(rapt_refuse_gradient(x) && rapt_require_gradient(x) == x, "it is another leaf than that of the graph");
    cr_expect(rapt_backward(recorded) && !rapt_gradient(x));
    cr_expect(rapt_backward(total(x)) && rapt_gradient(x));
    cr_expect_null(rapt_refuse_gradient(rapt_exp(y)));
    expect_error(RAPT_ERROR_GRAPH, "refuse_gradient: the tensor is the result of a recorded op");
    cr_expect_null(rapt_refuse_gradient(NULL));
    expect_error(RAPT_ERROR_NULL, "tensor is NULL");
}

/* What backward takes from the allocator at most, beyond what forward left. */
static int64_t backward_needs(rapt_sequential *s)
{
    RAPT_SCOPE;
    rapt_tensor *loss = total(rapt_module_forward(&s->module, rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(1, in))));
    const int64_t before = live_bytes();
    rapt_memory_reset_peak();
    cr_assert(rapt_backward(loss), "%s", rapt_error());
    rapt_module_clear_gradients(&s->module);
    return rapt_memory_get_statistics().peak_bytes - before;
}

Test(module_freeze, no_product_for_what_is_frozen)
{
    rapt_sequential *s = RAPT_SEQUENTIAL((rapt_module *)rapt_linear_new(in, out, RAPT_BIAS),
                                         (rapt_module *)rapt_linear_new(out, out, RAPT_BIAS));
    const int64_t bytes = out * out * (int64_t)sizeof(float);
    cr_expect_gt(backward_needs(s), bytes);
    rapt_module_freeze(&s->module, "1.weight", true);
    cr_expect_lt(backward_needs(s), bytes / 4);
    rapt_module_free(&s->module);
}

static int64_t products;

static rapt_tensor *count_forward(rapt_call *call)
{
    return rapt_clone(rapt_call_input(call, 0));
}

static bool count_vjp(rapt_call *call)
{
    products++;
    return rapt_call_give(call, 0, rapt_call_gradient(call, 0));
}

static const rapt_op counting = {.name = "counting", .forward = count_forward, .vjp = count_vjp};

Test(module_freeze, backward_ends_where_all_is_frozen)
{
    RAPT_SCOPE;
    rapt_module *layers[] = {(rapt_module *)rapt_linear_new(in, out, RAPT_BIAS),
                             (rapt_module *)rapt_linear_new(out, 2, RAPT_BIAS)};
    rapt_sequential *s = rapt_sequential_new(2, layers);
    for (int frozen = 0; frozen < 2; frozen++) {
        products = 0;
        if (frozen) rapt_module_freeze(&s->module, "0.*", true);
        rapt_tensor *inner = rapt_module_forward(layers[0], rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(1, in)));
        inner = RAPT_APPLY(&counting, NULL, inner);
        cr_expect(rapt_backward(total(rapt_module_forward(layers[1], inner))));
        cr_expect_eq(products, !frozen);
    }
    rapt_module_free(&s->module);
}

static void step(rapt_sequential *s, rapt_optimizer *adam)
{
    RAPT_SCOPE;
    cr_assert(rapt_backward(total(rapt_module_forward(&s->module, rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(1, in))))));
    cr_assert(rapt_optimizer_step(adam), "%s", rapt_error());
}

static int warnings;

static void count_warning(const char *message)
{
    warnings++;
    cr_expect_null(message, "%s", message);
}

Test(module_freeze, optimizers_pass_over_what_is_frozen)
{
    RAPT_SCOPE;
    rapt_on_warning(count_warning);
    rapt_sequential *s = two_layers();
    rapt_tensor *weight = rapt_module_find(&s->module, "0.weight");
    rapt_module_freeze(&s->module, "0.weight", true);
    rapt_optimizer *adam = rapt_adam_new(&s->module, NULL);
    cr_assert(adam, "%s", rapt_error());
    rapt_tensor *before = rapt_clone(weight);
    step(s, adam);
    cr_expect(memcmp(rapt_data(before), rapt_data(weight), sizeof(float) * in * out) == 0);
    rapt_module_freeze(&s->module, "0.weight", false);
    step(s, adam);
    cr_expect(memcmp(rapt_data(before), rapt_data(weight), sizeof(float) * in * out) != 0);
    before = rapt_clone(weight);
    rapt_module_freeze(&s->module, "*", true);
    rapt_module_freeze(&s->module, "1.bias", false);
    step(s, adam);
    cr_expect(memcmp(rapt_data(before), rapt_data(weight), sizeof(float) * in * out) == 0);
    cr_expect_eq(warnings, 0);
    expect_no_error();

    cr_expect_not(rapt_optimizer_add(adam, "frozen", weight));
    expect_error(RAPT_ERROR_GRAPH, "'frozen' is no leaf");
    rapt_optimizer_free(adam);
    rapt_module_free(&s->module);
}

Test(module_freeze, files_and_casts_take_frozen_parameters_as_all_others)
{
    RAPT_SCOPE;
    rapt_sequential *s = two_layers(), *t = two_layers();
    rapt_module_freeze(&s->module, "0.weight", true);
    const int64_t count = rapt_module_parameter_count(&s->module);
    cr_expect_eq(count, in * out + out + 2 * out + 2);
    cr_expect(rapt_module_copy(&t->module, &s->module), "%s", rapt_error());
    cr_expect(requires(t, "0.weight"));
    cr_expect(rapt_module_cast(&s->module, RAPT_FLOAT64) && !requires(s, "0.weight") && requires(s, "0.bias"));
    expect_no_error();
    rapt_module_free(&s->module);
    rapt_module_free(&t->module);
}

/* All or none: what was trained before stays so, and nothing else is. */
Test(module_freeze, out_of_memory_trains_nothing)
{
    RAPT_SCOPE;
    rapt_sequential *s = two_layers();
    cr_assert_eq(rapt_module_freeze(&s->module, "*", true), 4);
    cr_assert_eq(rapt_module_freeze(&s->module, "0.bias", false), 1);
    int failures = 0;
    for (bool good = false; !good; failures++) {
        rapt_memory_trim();
        rapt_memory_fail_after(failures);
        good = rapt_module_freeze(&s->module, "*", false) == 4;
        rapt_memory_fail_after(-1);
        if (!good) expect_error(RAPT_ERROR_MEMORY, "no memory");
        cr_expect_eq(requires(s, "0.weight"), good);
        cr_expect_eq(requires(s, "1.weight"), good);
        cr_expect_eq(requires(s, "1.bias"), good);
        cr_expect(requires(s, "0.bias"));
    }
    cr_expect_gt(failures, 1);
    rapt_module_free(&s->module);
    expect_no_error();
}
