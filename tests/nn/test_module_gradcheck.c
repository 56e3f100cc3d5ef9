/* gradcheck of whole modules. */
#include "node.h"

/* y = x·w + c, where the derivative by w is wrong by the factor 1 + 1e-4 where w is above 1. */
static rapt_tensor *wrong_forward(rapt_call *call)
{
    rapt_call_save(call, rapt_call_input(call, 0));
    rapt_call_save(call, rapt_call_input(call, 1));
    return rapt_mul(rapt_call_input(call, 0), rapt_call_input(call, 1));
}

static bool wrong_vjp(rapt_call *call)
{
    rapt_tensor *x = rapt_call_saved(call, 0), *w = rapt_call_saved(call, 1), *gradient = rapt_call_gradient(call, 0);
    rapt_tensor *factor = rapt_where(rapt_greater(w, rapt_scalar(RAPT_FLOAT64, 1)), rapt_scalar(RAPT_FLOAT64, 1 + 1e-4),
                                     rapt_scalar(RAPT_FLOAT64, 1));
    return rapt_call_give(call, 0, rapt_mul(gradient, w)) &&
           rapt_call_give(call, 1, rapt_mul(rapt_mul(gradient, x), factor));
}

static const rapt_op wrong_mul = {.name = "wrong_mul", .forward = wrong_forward, .vjp = wrong_vjp};

static rapt_tensor *scale(rapt_module *module, rapt_tensor *x)
{
    return rapt_add(RAPT_APPLY(&wrong_mul, NULL, x, rapt_module_find(module, "inner.scale")),
                    rapt_module_find(module, "shift"));
}

static const rapt_module_class scale_kind = {.name = "Scale", .forward = scale};

/* Parameters shift (3) and inner.scale (3), the second element of which may be above 1. */
static rapt_module *scale_new(double second)
{
    RAPT_SCOPE;
    rapt_module *module = rapt_module_new(sizeof *module, &scale_kind), *inner = node_new();
    rapt_module_add_parameter(module, "shift", doubles(RAPT_SHAPE(3), (double[]){1, 2, 3}));
    rapt_module_add_child(module, "inner", inner);
    rapt_module_add_parameter(inner, "scale", doubles(RAPT_SHAPE(3), (double[]){0.5, second, 0.25}));
    return rapt_module_finish(module);
}

static rapt_tensor *input(int64_t rows, int64_t size)
{
    return rapt_require_gradient(rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(rows, size)));
}

Test(module_gradcheck, right_gradients_pass)
{
    RAPT_SCOPE;
    rapt_module *module = scale_new(0.75);
    rapt_tensor *x = input(2, 3), *constant = rapt_detach(x);
    rapt_gradcheck_result result = rapt_module_gradcheck(module, NULL, 1, &x, NULL);
    cr_expect(result.passed, "%s", result.message);
    cr_expect_eq(result.checked, 6 * (6 + 3 + 3));
    result = rapt_module_gradcheck(module, NULL, 1, &constant, NULL);
    cr_expect(result.passed, "%s", result.message);
    cr_expect_eq(result.checked, 6 * (3 + 3), "an input without a gradient is a constant");
    rapt_module_free(module);
    expect_no_error();
}

Test(module_gradcheck, a_wrong_one_is_named)
{
    RAPT_SCOPE;
    rapt_module *module = scale_new(1.5);
    rapt_tensor *x = input(2, 3);
    rapt_gradcheck_result result = rapt_module_gradcheck(module, NULL, 1, &x, NULL);
    cr_expect_not(result.passed);
    cr_expect_eq(result.input, 2);
    cr_expect_eq(result.index, 1);
    cr_expect(strstr(result.message, "Scale: d output[") && strstr(result.message, "/ d inner.scale[1] is"), "%s",
              result.message);
    rapt_module_free(module);
    expect_no_error();
}

/* The function is the caller's, and so is its context. */
static rapt_tensor *decode(rapt_tensor *const *inputs, void *layer)
{
    return rapt_decoder_layer_forward(layer, inputs[0], inputs[1], RAPT_MASK(.causal = true), NULL, NULL);
}

Test(module_gradcheck, of_any_number_of_parameters)
{
    RAPT_SCOPE;
    const rapt_transformer_config config = {.hidden = 4, .heads = 2, .feed_forward = 3, .attention_bias = true};
    rapt_decoder_layer *layer = in_float64(rapt_decoder_layer_new(&config));
    draw_parameters(layer);
    rapt_tensor *inputs[] = {rapt_require_gradient(rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(1, 3, 4))),
                             rapt_require_gradient(rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(1, 2, 4)))};
    rapt_gradcheck_options options = {.context = layer};
    rapt_gradcheck_result result = rapt_module_gradcheck(&layer->module, decode, 2, inputs, &options);
    cr_expect(result.passed, "%s", result.message);
    cr_expect_eq(result.checked, 12 * (12 + 8 + rapt_module_parameter_count(&layer->module)));
    options.random_projection = true;
    result = rapt_module_gradcheck(&layer->module, decode, 2, inputs, &options);
    cr_expect(result.passed && result.checked == 1, "%s", result.message);
    rapt_module_free(&layer->module);
    expect_no_error();
}

Test(module_gradcheck, of_second_order)
{
    RAPT_SCOPE;
    rapt_linear *linear = in_float64(rapt_linear_new(2, 2, RAPT_BIAS));
    rapt_module *net =
        (rapt_module *)RAPT_SEQUENTIAL(&linear->module, rapt_activation_new("tanh", rapt_tanh), &linear->module);
    rapt_tensor *x = input(2, 2);
    rapt_gradcheck_result result =
        rapt_module_gradcheck(net, NULL, 1, &x, &(rapt_gradcheck_options){.second_order = true});
    cr_expect(result.passed, "%s", result.message);
    rapt_module_free(net);
    expect_no_error();
}

Test(module_gradcheck, dropout_drops_the_same_at_every_call)
{
    RAPT_SCOPE;
    rapt_linear *linear = in_float64(rapt_linear_new(3, 4, RAPT_BIAS));
    rapt_module *net = (rapt_module *)RAPT_SEQUENTIAL(&linear->module, (rapt_module *)rapt_dropout_new(0.5));
    rapt_tensor *x = input(3, 3);
    const rapt_random_state random = rapt_random_get_state();
    for (int projects = 0; projects < 2; projects++) {
        rapt_gradcheck_options options = {.random_projection = projects, .seed = 5};
        rapt_gradcheck_result result = rapt_module_gradcheck(net, NULL, 1, &x, &options);
        cr_expect(result.passed, "%s", result.message);
    }
    cr_expect(same_generator(rapt_random_get_state(), random));
    rapt_module_free(net);
    expect_no_error();
}

static void expect_refusal(rapt_gradcheck_result result, rapt_error_code code, const char *part)
{
    cr_expect_not(result.passed);
    cr_expect(strstr(result.message, part), "'%s' is not in: %s", part, result.message);
    expect_error(code, part);
}

Test(module_gradcheck, what_cannot_be_checked_is_refused)
{
    RAPT_SCOPE;
    rapt_linear *linear = rapt_linear_new(2, 2, RAPT_BIAS);
    rapt_module *module = &linear->module, *empty = rapt_activation_new("tanh", rapt_tanh);
    rapt_tensor *x = input(2, 2), *constant = rapt_detach(x), *pair[] = {x, NULL};
    expect_refusal(rapt_module_gradcheck(module, NULL, 1, &x, NULL), RAPT_ERROR_DTYPE, "Linear: weight is float32");
    in_float64(linear);
    pair[1] = linear->bias;
    expect_refusal(rapt_module_gradcheck(module, NULL, 2, pair, NULL), RAPT_ERROR_VALUE, "2 inputs; one");
    expect_refusal(rapt_module_gradcheck(module, decode, 2, pair, NULL), RAPT_ERROR_VALUE,
                   "input 1 is the parameter bias");
    pair[1] = NULL;
    expect_refusal(rapt_module_gradcheck(module, decode, 2, pair, NULL), RAPT_ERROR_NULL, "Linear: input 1 is NULL");
    expect_refusal(rapt_module_gradcheck(module, decode, -1, NULL, NULL), RAPT_ERROR_VALUE, "-1 inputs");
    expect_refusal(rapt_module_gradcheck(module, decode, 1, NULL, NULL), RAPT_ERROR_NULL, "inputs are NULL");
    expect_refusal(rapt_module_gradcheck(NULL, NULL, 1, &x, NULL), RAPT_ERROR_NULL, "module is NULL");
    expect_refusal(rapt_module_gradcheck(empty, NULL, 1, &constant, NULL), RAPT_ERROR_VALUE, "no input requires");
    rapt_module_free(module);
    rapt_module_free(empty);
}

static rapt_tensor *square(rapt_tensor *const *inputs, void *context)
{
    (void)context;
    return rapt_mul(inputs[0], inputs[0]);
}

typedef struct factors_module {
    rapt_module module;
    rapt_tensor *factors;
} factors_module;

static rapt_tensor *multiply(rapt_module *module, rapt_tensor *x)
{
    return rapt_mul(((factors_module *)module)->factors, x);
}

static const rapt_module_class factors_class = {.name = "Factors", .forward = multiply};

/* Differences would end the program there. */
Test(module_gradcheck, memory_that_may_only_be_read_is_refused)
{
    RAPT_SCOPE;
    static const double numbers[] = {1, 2, 3};
    rapt_tensor *wrapped = rapt_wrap_read_only(RAPT_FLOAT64, RAPT_SHAPE(3), NULL, numbers, NULL, NULL),
                *x = rapt_ones(RAPT_FLOAT64, RAPT_SHAPE(3));
    cr_assert(rapt_require_gradient(wrapped), "%s", rapt_error());
    factors_module *module = rapt_module_new(sizeof *module, &factors_class);
    module->factors = rapt_module_add_parameter(&module->module, "factors", wrapped);
    cr_assert_not_null(rapt_module_finish(&module->module), "%s", rapt_error());
    for (int projects = 0; projects < 2; projects++) {
        const rapt_gradcheck_options options = {.random_projection = projects};
        expect_refusal(rapt_gradcheck("square", square, 1, &wrapped, &options), RAPT_ERROR_VALUE,
                       "square: input 0 lies in memory that may only be read");
        expect_refusal(rapt_module_gradcheck(&module->module, NULL, 1, &x, &options), RAPT_ERROR_VALUE,
                       "Factors: factors lies in memory that may only be read");
    }
    rapt_refuse_gradient(wrapped);
    rapt_tensor *y = rapt_require_gradient(x), *inputs[] = {y, wrapped};
    cr_expect(rapt_gradcheck("square", square, 2, inputs, NULL).passed, "a constant is only read: %s", rapt_error());
    rapt_module_free(&module->module);
}

typedef struct centre {
    rapt_module module;
    rapt_tensor *mean, *scale;
} centre;

/* Reads a buffer, which it changes then. */
static rapt_tensor *centre_forward(rapt_module *module, rapt_tensor *x)
{
    centre *c = (centre *)module;
    rapt_tensor *y = rapt_mul(rapt_sub(x, rapt_clone(c->mean)), c->scale);
    const bool good = rapt_scale_in_place(c->mean, 0.9) &&
                      rapt_add_in_place(c->mean, rapt_mean(rapt_detach(x), RAPT_AXES(0), false), 0.1);
    return good ? y : NULL;
}

/* Changes it first, so that the graph needs it as it is then. */
static rapt_tensor *centre_first(rapt_module *module, rapt_tensor *x)
{
    centre *c = (centre *)module;
    return rapt_add_in_place(c->mean, rapt_ones_like(c->mean), 1) ? rapt_mul(rapt_mul(x, c->mean), c->scale) : NULL;
}

Test(module_gradcheck, each_run_finds_the_buffers_as_they_were)
{
    static const rapt_module_class kinds[] = {{.name = "Centre", .forward = centre_forward},
                                              {.name = "First", .forward = centre_first}};
    for (int mode = 0; mode < 8; mode++) {
        RAPT_SCOPE;
        const rapt_gradcheck_options options = {.second_order = mode & 1, .random_projection = mode & 2};
        centre *c = rapt_module_new(sizeof *c, &kinds[mode / 4]);
        c->mean = rapt_module_add_buffer(&c->module, "mean", rapt_full(RAPT_FLOAT64, RAPT_SHAPE(3), 0.5));
        c->scale = rapt_module_add_parameter(&c->module, "scale", rapt_ones(RAPT_FLOAT64, RAPT_SHAPE(3)));
        cr_assert_not_null(rapt_module_finish(&c->module), "%s", rapt_error());
        rapt_batch_norm *norm = in_float64(rapt_batch_norm_new(3));
        rapt_module *modules[] = {&c->module, &norm->module};
        rapt_tensor *x = input(4, 3);
        for (int i = 0; i < 2; i++) {
            const rapt_gradcheck_result result = rapt_module_gradcheck(modules[i], NULL, 1, &x, &options);
            cr_expect(result.passed, "mode %d: %s", mode, result.message);
        }
        cr_expect_eq(rapt_at(c->mean, (int64_t[]){1}), 0.5);
        cr_expect_eq(rapt_item_int64(norm->batches), 0);
        rapt_module_free(&c->module);
        rapt_module_free(&norm->module);
    }
    expect_no_error();
}
