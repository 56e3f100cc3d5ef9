/* A score modification of one's own: −sharpness · (i − j − delay)², for the scores of query i and key j, with both
 * numbers learned. It finds out after how many steps a signal comes back as its echo. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <rapt.h>

#include "command_line.h"

typedef struct echo {
    rapt_score_modification modification; /* first: an echo is a modification, which is a module */
    rapt_tensor *numbers;                 /* delay and sharpness (1, 1, 2): for all items and heads */
} echo;

/* What the two functions below read. */
static bool capture(rapt_score_modification *modification, rapt_dtype dtype, rapt_tensor **captured)
{
    (void)dtype;
    captured[0] = ((echo *)modification)->numbers;
    return true;
}

/* s − sharpness · u² with u = i − j − delay */
static void change(const rapt_score_tile *tile)
{
    const float *numbers = tile->captured[0], delay = numbers[0], sharpness = numbers[1];
    for (int64_t row = 0; row < tile->rows; row++) {
        float *scores = (float *)tile->scores + row * tile->stride;
        for (int64_t column = 0; column < tile->columns; column++) {
            const float u = (float)(tile->queries[row] - tile->first_key - column) - delay;
            scores[column] -= sharpness * u * u;
        }
    }
}

/* d delay = Σ ds · 2 · sharpness · u, d sharpness = −Σ ds · u²; the gradient ds of the scores stays as it is */
static void differentiate(const rapt_score_tile *tile)
{
    const float *numbers = tile->captured[0], delay = numbers[0], sharpness = numbers[1];
    double *gradients = tile->captured_gradients[0];
    for (int64_t row = 0; row < tile->rows && gradients; row++) {
        const float *gradient = (const float *)tile->gradient + row * tile->stride;
        for (int64_t column = 0; column < tile->columns; column++) {
            const float u = (float)(tile->queries[row] - tile->first_key - column) - delay;
            gradients[0] += (double)(gradient[column] * 2 * sharpness * u);
            gradients[1] -= (double)(gradient[column] * u * u);
        }
    }
}

static rapt_score_modification *echo_new(void)
{
    static const rapt_module_class kind = {.name = "Echo"};
    echo *e = rapt_module_new(sizeof *e, &kind);
    if (!e) return NULL;
    e->modification.float32 = (rapt_score_functions){change, differentiate};
    e->modification.captured_count = 1;
    e->modification.capture = capture;
    e->numbers = rapt_module_add_parameter(&e->modification.module, "numbers",
                                           rapt_from(RAPT_FLOAT32, RAPT_SHAPE(1, 1, 2), (const float[]){1, 0.3F}));
    return rapt_module_finish(&e->modification.module);
}

int main(int argc, char **argv)
{
    const struct command_line line =
        {.program = "own_modification",
         .summary = "Learns, by a score modification of its own, after how many steps a signal comes back."};
    const enum command_line_result result = command_line_parse(&line, argc, argv);
    if (result != COMMAND_LINE_RUN) return result;
    enum { length = 512, steps_back = 3 };
    rapt_on_error(rapt_exit_on_error);
    rapt_seed(1);
    rapt_tensor *signal = rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(1, length, 1));
    rapt_tensor *nothing =
        rapt_zeros(RAPT_FLOAT32, RAPT_SHAPE(1, length, 1)); /* what scores are made of: only places count */
    rapt_tensor *later = rapt_slice(signal, 1, 0, length - steps_back, 1);
    rapt_attention *attention = rapt_dot_product_attention_new(0);
    rapt_attention_modify(attention, "echo", echo_new());
    rapt_optimizer *adam = rapt_adam_new(&attention->module, &(rapt_adam_config){.learning_rate = 0.05});
    double loss = INFINITY;
    for (int step = 0; step < 300; step++) {
        RAPT_SCOPE;
        rapt_tensor *heard = rapt_attention_forward(attention, nothing, nothing, signal, RAPT_MASK(.causal = true));
        rapt_tensor *error = rapt_mse_loss(rapt_slice(heard, 1, steps_back, length, 1), later, RAPT_REDUCE_MEAN);
        rapt_backward(error);
        rapt_optimizer_step(adam);
        loss = rapt_item(error);
    }
    const rapt_tensor *numbers = rapt_module_find(&attention->module, "echo.numbers");
    const double delay = rapt_at(numbers, (const int64_t[]){0, 0, 0}),
                 sharpness = rapt_at(numbers, (const int64_t[]){0, 0, 1});
    printf("at the end: loss %.4f, delay %.2f, sharpness %.1f\n", loss, delay, sharpness);
    rapt_optimizer_free(adam);
    rapt_module_free(&attention->module);
    if (loss < 0.1 && fabs(delay - steps_back) < 0.1) return EXIT_SUCCESS;
    fprintf(stderr, "own_modification: a loss below 0.1 and a delay of %d expected, not %g and %g\n", steps_back, loss,
            delay);
    return EXIT_FAILURE;
}
