/* The smallest training loop: a network of two layers learns exclusive or. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rapt.h>

/* The exit status: a failure, too, if what was printed did not arrive. */
static int end(int status)
{
    if (fflush(stdout) == 0 && !ferror(stdout)) return status;
    perror("loop: cannot write to standard output");
    return EXIT_FAILURE;
}

int main(int argc, char **argv)
{
    if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0))
        return end(puts("usage: loop (it has no options)") < 0);
    if (argc > 1) return fprintf(stderr, "loop: there is no option '%s'\n", argv[1]), 2;
    rapt_on_error(rapt_exit_on_error);
    rapt_seed(1);
    const float inputs[] = {0, 0, 0, 1, 1, 0, 1, 1}, targets[] = {0, 1, 1, 0};
    rapt_tensor *x = rapt_from(RAPT_FLOAT32, RAPT_SHAPE(4, 2), inputs);
    rapt_tensor *target = rapt_from(RAPT_FLOAT32, RAPT_SHAPE(4, 1), targets);

    rapt_sequential *model =
        RAPT_SEQUENTIAL((rapt_module *)rapt_linear_new(2, 16, RAPT_BIAS), rapt_activation_new("Tanh", rapt_tanh),
                        (rapt_module *)rapt_linear_new(16, 1, RAPT_BIAS));
    rapt_optimizer *adam = rapt_adam_new(&model->module, &(rapt_adam_config){.learning_rate = 1e-2});

    double error = INFINITY;
    for (int step = 0; step < 1000; step++) {
        RAPT_SCOPE;
        rapt_tensor *loss = rapt_mse_loss(rapt_sequential_forward(model, x), target, RAPT_REDUCE_MEAN);
        rapt_backward(loss);
        rapt_optimizer_step(adam);
        error = rapt_item(loss);
        if (step % 200 == 0) printf("step %4d: loss %.6f\n", step, error);
    }
    printf("at the end: loss %.6f\n", error);
    rapt_optimizer_free(adam);
    rapt_module_free(&model->module);
    if (error < 1e-3) return end(EXIT_SUCCESS);
    fprintf(stderr, "loop: a loss below 0.001 expected at the end, not %g\n", error);
    return end(EXIT_FAILURE);
}
