/* Buffers that forward changes, the running statistics of BatchNorm: on every rank what rank 0's parts made of them. */
#include "ranks.h"

int rank, ranks, failures;

enum { rows = 24, channels = 3, steps = 3, nobody = -1 };

static rapt_batch_norm *make(void)
{
    rapt_batch_norm *model = rapt_batch_norm_new(channels);
    if (model) rapt_module_cast(&model->module, RAPT_FLOAT64);
    return model;
}

static rapt_tensor *loss_of(rapt_batch_norm *model, int64_t first, int64_t last, rapt_tensor *x)
{
    rapt_tensor *y = rapt_batch_norm_forward(model, rapt_slice(x, 0, first, last, 1));
    return rapt_mean(rapt_exp(y), RAPT_ALL_AXES, false);
}

/* A step that fails on that rank. In `alone`, which all ranks have, rank 0's parts go forward. */
static void step(rapt_data_parallel *parallel, rapt_batch_norm *model, rapt_batch_norm *alone, int failing)
{
    RAPT_SCOPE;
    rapt_tensor *x = rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(rows, channels));
    for (int own = 0; own < rapt_data_parallel_count_parts(parallel); own++) {
        const rapt_part part = rapt_data_parallel_part(parallel, own, rows);
        rapt_tensor *loss = loss_of(model, part.first, part.last, x);
        int64_t ends[] = {part.first, part.last};
        const bool good = rapt_data_parallel_backward(parallel, rank == failing ? NULL : loss, 1);
        expect(good == (rank != failing), "%s", rapt_error());
        MPI_Bcast(ends, 2, MPI_INT64_T, 0, MPI_COMM_WORLD);
        expect(loss_of(alone, ends[0], ends[1], x), "%s", rapt_error());
    }
    expect(rapt_data_parallel_finish(parallel, NULL) == (failing == nobody), "%s", rapt_error());
    if (failing != nobody) rapt_clear_error();
}

static void expect_same(const char *what, const rapt_tensor *a, const rapt_tensor *b)
{
    const size_t bytes = (size_t)rapt_count(a) * rapt_dtype_size(rapt_get_dtype(a));
    expect(memcmp(rapt_data(a), rapt_data(b), bytes) == 0, "%s is not what rank 0's parts made of it", what);
}

static void train(bool shards_gradients, int own_parts)
{
    rapt_batch_norm *model = make(), *alone = make();
    rapt_data_parallel *parallel =
        rapt_data_parallel_new(MPI_COMM_WORLD, &model->module,
                               &(rapt_data_parallel_config){.parts = ranks * own_parts,
                                                            .shards_gradients = shards_gradients});
    rapt_optimizer *optimizer = rapt_sgd_new(NULL, NULL);
    expect(!shards_gradients || rapt_data_parallel_shard(parallel, optimizer), "%s", rapt_error());
    for (int i = 0; i < steps; i++) {
        step(parallel, model, alone, i == 1 ? ranks - 1 : nobody); /* what failed once is good again after the next */
        if (i == 1) continue;
        expect_same("mean", model->running_mean, alone->running_mean);
        expect_same("variance", model->running_var, alone->running_var);
        expect_same("count", model->batches, alone->batches);
    }
    const uint64_t version = rapt_version(model->running_mean);
    rapt_module_train(&model->module, false);
    step(parallel, model, alone, nobody);
    expect(rapt_version(model->running_mean) == version, "what no rank changed was written");
    rapt_optimizer_free(optimizer);
    rapt_data_parallel_free(parallel);
    rapt_module_free(&model->module);
    rapt_module_free(&alone->module);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int own_parts = 1; own_parts <= 2; own_parts++) {
        train(false, own_parts);
        train(true, own_parts);
    }
    MPI_Allreduce(MPI_IN_PLACE, &failures, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    return failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
