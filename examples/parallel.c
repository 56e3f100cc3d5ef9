/* The loop of loop.c on many machines: mpirun -n 2 parallel. Each rank goes backward from its part of the batch. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <rapt.h>
#include <rapt/mpi.h>

#include "command_line.h"

/* The mean loss of a part of the four cases. */
static rapt_tensor *loss_of(rapt_sequential *model, rapt_tensor *x, rapt_tensor *target, rapt_part part)
{
    rapt_tensor *output = rapt_sequential_forward(model, rapt_slice(x, 0, part.first, part.last, 1));
    return rapt_mse_loss(output, rapt_slice(target, 0, part.first, part.last, 1), RAPT_REDUCE_MEAN);
}

int main(int argc, char **argv)
{
    bool resumes = false;
    const char *path = NULL;
    const struct command_option table[] = {{"--checkpoint", .metavar = "FILE",
                                            .help = "written as it goes: NAME.safetensors.index.json", .string = &path},
                                           {"--resume", .help = "go on from the checkpoint, with any number of ranks",
                                            .flag = &resumes},
                                           {0}};
    const struct command_line line = {"parallel", .summary = "Learns exclusive or on many machines.", .options = table};
    int status = command_line_parse(&line, argc, argv);
    if (status < 0 && resumes && !path) status = command_line_wrong("parallel", "--resume needs --checkpoint FILE");
    if (status >= 0) return status;
    MPI_Init(&argc, &argv);
    rapt_on_error(rapt_abort_on_error);
    rapt_seed(1);
    const float inputs[] = {0, 0, 0, 1, 1, 0, 1, 1}, targets[] = {0, 1, 1, 0};
    rapt_tensor *x = rapt_from(RAPT_FLOAT32, RAPT_SHAPE(4, 2), inputs);
    rapt_tensor *target = rapt_from(RAPT_FLOAT32, RAPT_SHAPE(4, 1), targets);
    rapt_sequential *model =
        RAPT_SEQUENTIAL((rapt_module *)rapt_linear_new(2, 16, RAPT_BIAS), rapt_activation_new("Tanh", rapt_tanh),
                        (rapt_module *)rapt_linear_new(16, 1, RAPT_BIAS));
    rapt_optimizer *adam = rapt_adam_new(&model->module, &(rapt_adam_config){.learning_rate = 1e-2});
    rapt_data_parallel *parallel = rapt_data_parallel_new(MPI_COMM_WORLD, &model->module, NULL);
    rapt_checkpoint run = {.module = &model->module, .optimizer = adam};
    if (resumes) rapt_data_parallel_load(parallel, path, &run);
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    double error = INFINITY;
    for (; run.step < 1000; run.step++) {
        RAPT_SCOPE;
        if (path && run.step % 100 == 0) rapt_data_parallel_save(parallel, path, &run);
        const rapt_part part = rapt_data_parallel_part(parallel, 0, 4);
        const int64_t rows = part.last - part.first;
        rapt_data_parallel_backward(parallel, rows ? loss_of(model, x, target, part) : NULL, (double)rows);
        rapt_data_parallel_finish(parallel, &error);
        rapt_optimizer_step(adam);
        if (rank == 0 && run.step % 200 == 0) printf("step %4d: loss %.6f\n", (int)run.step, error);
    }
    if (rank == 0) printf("at the end: loss %.6f\n", error);
    rapt_data_parallel_free(parallel);
    rapt_optimizer_free(adam);
    rapt_module_free(&model->module);
    MPI_Finalize();
    if (error < 1e-3) return EXIT_SUCCESS;
    if (rank == 0) fprintf(stderr, "parallel: a loss below 0.001 expected at the end, not %g\n", error);
    return EXIT_FAILURE;
}
