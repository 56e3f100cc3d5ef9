/* A scoring function of one's own: −½ ‖s ∘ (q − k)‖², the Gaussian kernel with a learned scale for each component. In
 * kernel regression it finds out which of four numbers a value depends on. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <rapt.h>

#include "command_line.h"

typedef struct relevance {
    rapt_scoring scoring; /* first: a relevance is a scoring function, which is a module */
    rapt_tensor *scale;   /* s (d) */
} relevance;

/* Queries (…, Q, d) and keys (…, K, d) to scores (…, Q, K). Made of ops, it differentiates itself. */
static rapt_tensor *score(rapt_scoring *scoring, rapt_tensor *queries, rapt_tensor *keys)
{
    rapt_tensor *scale = ((relevance *)scoring)->scale, *q = rapt_mul(queries, scale), *k = rapt_mul(keys, scale);
    /* −½ ‖q − k‖² = qᵀk − ½ (‖q‖² + ‖k‖²) */
    rapt_tensor *q_squared = rapt_sum(rapt_mul(q, q), RAPT_AXES(-1), true); /* (…, Q, 1) */
    rapt_tensor *k_squared = rapt_transpose(rapt_sum(rapt_mul(k, k), RAPT_AXES(-1), true), -2, -1);
    return rapt_sub(rapt_matmul(q, rapt_transpose(k, -2, -1)), rapt_mul_scalar(rapt_add(q_squared, k_squared), 0.5));
}

static rapt_scoring *relevance_new(int64_t size)
{
    static const rapt_module_class kind = {.name = "Relevance"};
    relevance *r = rapt_module_new(sizeof *r, &kind);
    if (!r) return NULL;
    r->scoring.score = score;
    r->scale = rapt_module_add_parameter(&r->scoring.module, "scale", rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(size)));
    return rapt_module_finish(&r->scoring.module);
}

int main(int argc, char **argv)
{
    const struct command_line line =
        {.program = "own_scoring",
         .summary = "Learns, by a scoring function of its own, which of four numbers a value depends on."};
    const enum command_line_result result = command_line_parse(&line, argc, argv);
    if (result != COMMAND_LINE_RUN) return result;
    enum { count = 300 };
    rapt_on_error(rapt_exit_on_error);
    rapt_seed(1);
    rapt_tensor *x = rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(1, count, 4)), *columns[4];
    rapt_split(x, -1, 4, (const int64_t[]){1, 1, 1, 1}, columns);
    rapt_tensor *y = rapt_add(rapt_sin(rapt_mul_scalar(columns[0], 2)), columns[2]); /* sin 2x₀ + x₂ */
    rapt_tensor *others = rapt_equal(rapt_eye(RAPT_FLOAT32, count), rapt_scalar(RAPT_FLOAT32, 0)); /* not itself */
    rapt_attention *regression = rapt_attention_new(relevance_new(4), 0);
    rapt_optimizer *adam = rapt_adam_new(&regression->module, &(rapt_adam_config){.learning_rate = 0.05});
    double loss = INFINITY, scale[4];
    for (int step = 0; step < 200; step++) {
        RAPT_SCOPE;
        rapt_tensor *predicted = rapt_attention_forward(regression, x, x, y, RAPT_MASK(.seen = others));
        rapt_tensor *error = rapt_mse_loss(predicted, y, RAPT_REDUCE_MEAN);
        rapt_backward(error);
        rapt_optimizer_step(adam);
        loss = rapt_item(error);
    }
    for (int64_t i = 0; i < 4; i++) scale[i] = fabs(rapt_at(rapt_module_find(&regression->module, "scale"), &i));
    printf("at the end: loss %.4f, scales %.2f %.2f %.2f %.2f\n", loss, scale[0], scale[1], scale[2], scale[3]);
    rapt_optimizer_free(adam);
    rapt_module_free(&regression->module);
    if (loss < 0.1 && fmin(scale[0], scale[2]) > 5 * fmax(scale[1], scale[3])) return EXIT_SUCCESS;
    fprintf(stderr,
            "own_scoring: a loss below 0.1 expected, not %g, and the first and third scale by far the largest\n", loss);
    return EXIT_FAILURE;
}
