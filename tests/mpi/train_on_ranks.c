/* Training on ranks against training alone: losses, weights, bits. train_on_ranks [PARTS] prints the weights' hash. */
#include <math.h>

#include "ranks.h"

int rank, ranks, failures;

enum { steps = 50 };

/* What each rank has a share of. */
enum { nothing, state, state_and_gradients, ways };

/* The hash of weights and loss. */
static uint64_t train(const learner *learns, rapt_dtype dtype, int parts, int way)
{
    static const char *const texts[] = {"", ", sharded", ", gradients sharded"};
    const bool sharded = way != nothing;
    const double bound = dtype == RAPT_FLOAT64 ? 1e-12 : 1e-4;
    rapt_module *model = make_model(learns, dtype, 5 + (uint64_t)rank), *alone = make_model(learns, dtype, 5);
    rapt_data_parallel *parallel =
        rapt_data_parallel_new(MPI_COMM_WORLD, model,
                               &(rapt_data_parallel_config){.parts = parts,
                                                            .bucket_bytes = 1000,
                                                            .shards_gradients = way == state_and_gradients,
                                                            .note = learns->name});
    expect(parallel, "%s", rapt_error());
    if (!parallel) return 0;
    const rapt_adam_config config = {.learning_rate = 0.003};
    rapt_optimizer *optimizer = rapt_adamw_new(sharded ? NULL : model, &config),
                   *other = rapt_adamw_new(alone, &config);
    expect(!sharded || rapt_data_parallel_shard(parallel, optimizer), "%s", rapt_error());
    double loss = 0, expected = 0;
    for (int step = 0; step < steps; step++) {
        loss = step_together(learns, parallel, model, step, optimizer, sharded);
        expected = step_alone(learns, alone, step, other);
        expect(fabs(loss - expected) <= bound * expected, "%s, step %d: loss %.17g, alone %.17g", learns->name, step,
               loss, expected);
    }
    const double apart = difference(model, alone);
    expect(apart <= bound, "%s: weights differ by %g", learns->name, apart);
    const uint64_t hash = hash_of(model, loss);
    if (rank == 0)
        fprintf(stderr, "%s %s on %d%s: weights differ by %.2g\n", learns->name, rapt_dtype_name(dtype), ranks,
                texts[way], apart);
    rapt_optimizer_free(optimizer);
    rapt_optimizer_free(other);
    rapt_data_parallel_free(parallel);
    rapt_module_free(model);
    rapt_module_free(alone);
    return hash;
}

/* Sharded, gradients are clipped by a norm that is summed over pieces, whose number is that of the ranks: it is for the
 * whole optimizer alone that 1, 2 and 4 ranks have one hash. With sharded gradients the bits are those without. */
static void train_in_ways(const learner *learns, rapt_dtype dtype, int parts)
{
    const int few = parts ? nothing + 1 : state + 1, all = parts && learns != learners ? few : ways;
    uint64_t hashes[ways] = {0};
    for (int way = 0; way < (dtype == RAPT_FLOAT64 ? all : few); way++) {
        hashes[way] = train(learns, dtype, parts, way);
        if (rank == 0 && (way == nothing || !parts))
            printf("%s %s: hash %016llx\n", learns->name, rapt_dtype_name(dtype), (unsigned long long)hashes[way]);
    }
    expect(!hashes[state_and_gradients] || hashes[state_and_gradients] == hashes[state],
           "%s: other bits with sharded gradients", learns->name);
}

/* Numbers that the optimizer keeps on this rank, but those of one element. */
static int64_t count_state(const rapt_optimizer *optimizer)
{
    int64_t sum = 0;
    rapt_archive *archive = rapt_archive_new();
    expect(rapt_optimizer_to_archive(optimizer, NULL, archive), "%s", rapt_error());
    for (int64_t i = 0; i < rapt_archive_count(archive); i++) {
        const int64_t count = rapt_count(rapt_archive_tensor(archive, i));
        sum += count > 1 ? count : 0;
    }
    rapt_archive_free(archive);
    return sum;
}

/* Each rank has its share of the state, within 5 %. */
static void share_state(void)
{
    rapt_module *model = make_model(&learners[0], RAPT_FLOAT32, 5);
    rapt_data_parallel *parallel = rapt_data_parallel_new(MPI_COMM_WORLD, model, NULL);
    rapt_optimizer *optimizer = rapt_adam_new(NULL, NULL);
    expect(rapt_data_parallel_shard(parallel, optimizer), "%s", rapt_error());
    step_together(&learners[0], parallel, model, 0, optimizer, true);
    const int64_t all = 2 * rapt_module_parameter_count(model), own = count_state(optimizer);
    expect(own * ranks >= all && (double)own * ranks <= 1.05 * (double)all, "%lld of %lld numbers", (long long)own,
           (long long)all);
    rapt_optimizer_free(optimizer);
    rapt_data_parallel_free(parallel);
    rapt_module_free(model);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const int parts = argc > 1 ? atoi(argv[1]) : 0;
    for (int i = 0; i < learner_count; i++) {
        train_in_ways(&learners[i], RAPT_FLOAT64, parts);
        train_in_ways(&learners[i], RAPT_FLOAT32, parts);
    }
    share_state();
    MPI_Allreduce(MPI_IN_PLACE, &failures, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    return failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
