/* A layer of one's own, with an op of its own: Snake, x + sin²(αx) / α with a learned α (Ziyin et al. 2020). It is
 * gradient-checked, and then a network with it learns a wave that a tanh network would only approximate. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <rapt.h>

#include "command_line.h"

/* What the op computes, for both floating types. */
static rapt_tensor *snake_forward(rapt_call *call)
{
    rapt_tensor *x = rapt_contiguous(rapt_call_input(call, 0)), *alpha = rapt_call_input(call, 1);
    rapt_tensor *y = rapt_empty_like(x);
    if (!y) return NULL;
    if (!rapt_dtype_is_floating(rapt_get_dtype(x))) {
        rapt_fail(RAPT_ERROR_DTYPE, "snake", "a floating x expected, not %s", rapt_dtype_name(rapt_get_dtype(x)));
        return NULL;
    }
    if (rapt_get_dtype(x) != rapt_get_dtype(alpha) || rapt_count(alpha) != 1) {
        rapt_fail(RAPT_ERROR_VALUE, "snake", "x and one alpha of the same dtype expected");
        return NULL;
    }
    double a = rapt_item(alpha);
    const void *in = rapt_data(x);
    void *out = rapt_data_for_writing(y);
    /* y = x + sin²(αx) / α */
    for (int64_t i = 0; i < rapt_count(x); i++) {
        if (rapt_get_dtype(x) == RAPT_FLOAT64)
            ((double *)out)[i] = ((const double *)in)[i] + pow(sin(a * ((const double *)in)[i]), 2) / a;
        else
            ((float *)out)[i] = (float)(((const float *)in)[i] + pow(sin(a * ((const float *)in)[i]), 2) / a);
    }
    rapt_call_save(call, rapt_call_input(call, 0));
    rapt_call_save(call, alpha);
    return y;
}

/* How it is differentiated: made of ops, so that second derivatives work too. */
static bool snake_vjp(rapt_call *call)
{
    rapt_tensor *x = rapt_call_saved(call, 0), *alpha = rapt_call_saved(call, 1), *g = rapt_call_gradient(call, 0);
    rapt_tensor *angle = rapt_mul_scalar(rapt_mul(x, alpha), 2);
    /* dy/dx = 1 + sin(2αx) */
    if (!rapt_call_give(call, 0, rapt_mul(g, rapt_add_scalar(rapt_sin(angle), 1)))) return false;
    /* dy/dα = x sin(2αx) / α − (1 − cos(2αx)) / 2α²; the engine sums it to the shape of α */
    rapt_tensor *first = rapt_div(rapt_mul(x, rapt_sin(angle)), alpha);
    rapt_tensor *second = rapt_div(rapt_add_scalar(rapt_cos(angle), -1), rapt_mul_scalar(rapt_mul(alpha, alpha), 2));
    return rapt_call_give(call, 1, rapt_mul(g, rapt_add(first, second)));
}

static const rapt_op snake = {.name = "snake", .forward = snake_forward, .vjp = snake_vjp};

/* The layer: a struct that begins with a module, and registers what it learns. */
typedef struct snake_layer {
    rapt_module module;
    rapt_tensor *alpha;
} snake_layer;

static rapt_tensor *snake_layer_forward(rapt_module *module, rapt_tensor *x)
{
    return RAPT_APPLY(&snake, NULL, x, ((snake_layer *)module)->alpha);
}

static const rapt_module_class snake_kind = {.name = "Snake", .forward = snake_layer_forward};

static rapt_module *snake_layer_new(double alpha)
{
    RAPT_SCOPE;
    snake_layer *layer = rapt_module_new(sizeof *layer, &snake_kind);
    if (!layer) return NULL;
    layer->alpha = rapt_module_add_parameter(&layer->module, "alpha", rapt_scalar(RAPT_FLOAT32, alpha));
    return rapt_module_finish(&layer->module);
}

static rapt_tensor *call_snake(rapt_tensor *const *inputs, void *context)
{
    (void)context;
    return RAPT_APPLY(&snake, NULL, inputs[0], inputs[1]);
}

static bool is_gradient_right(bool second_order)
{
    RAPT_SCOPE;
    rapt_tensor *inputs[] = {rapt_require_gradient(rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(3, 4))),
                             rapt_require_gradient(rapt_scalar(RAPT_FLOAT64, 0.7))};
    rapt_gradcheck_result result =
        rapt_gradcheck("snake", call_snake, 2, inputs, &(rapt_gradcheck_options){.second_order = second_order});
    printf("gradcheck, order %d: %s (worst error: %.0e of what is allowed)\n", second_order + 1,
           result.passed ? "right" : result.message, result.worst_error);
    return result.passed;
}

int main(int argc, char **argv)
{
    const struct command_line line = {.program = "layer",
                                      .summary =
                                          "Checks the gradient of a layer of one's own, and learns a wave with it."};
    const enum command_line_result result = command_line_parse(&line, argc, argv);
    if (result != COMMAND_LINE_RUN) return result;
    rapt_on_error(rapt_exit_on_error);
    rapt_seed(1);
    if (!is_gradient_right(false) || !is_gradient_right(true)) {
        fputs("layer: snake is not differentiated right\n", stderr);
        return EXIT_FAILURE;
    }

    rapt_tensor *x = rapt_reshape(rapt_linspace(RAPT_FLOAT32, -3, 3, 200), RAPT_SHAPE(200, 1));
    rapt_tensor *target = rapt_add(x, rapt_sin(rapt_mul_scalar(x, 4))); /* a wave on a slope */
    rapt_sequential *model = RAPT_SEQUENTIAL((rapt_module *)rapt_linear_new(1, 16, RAPT_BIAS), snake_layer_new(4),
                                             (rapt_module *)rapt_linear_new(16, 1, RAPT_BIAS));
    rapt_module_print(&model->module, stdout);
    rapt_optimizer *adam = rapt_adam_new(&model->module, &(rapt_adam_config){.learning_rate = 1e-2});
    double error = INFINITY;
    for (int step = 0; step < 2000; step++) {
        RAPT_SCOPE;
        rapt_tensor *loss = rapt_mse_loss(rapt_sequential_forward(model, x), target, RAPT_REDUCE_MEAN);
        rapt_backward(loss);
        rapt_optimizer_step(adam);
        error = rapt_item(loss);
        if (step % 500 == 0) printf("step %4d: loss %.6f\n", step, error);
    }
    printf("at the end: loss %.6f\n", error);
    rapt_optimizer_free(adam);
    rapt_module_free(&model->module);
    if (error < 1e-2) return EXIT_SUCCESS;
    fprintf(stderr, "layer: a loss below 0.01 expected at the end, not %g\n", error);
    return EXIT_FAILURE;
}
