/* Training on ranks against training alone: losses, weights, bits. train_on_ranks [PARTS] prints the weights' hash. */
#include <math.h>

#include "ranks.h"

int rank, ranks, failures;

enum { steps = 50 };

static double largest(rapt_tensor *x)
{
    return rapt_item(rapt_max(rapt_abs(x), RAPT_ALL_AXES, false));
}

/* The largest difference of two models' parameters, as a part of the largest parameter. */
static double difference(const rapt_module *a, const rapt_module *b)
{
    RAPT_SCOPE;
    RAPT_NO_GRADIENT;
    double apart = 0, size = 0;
    rapt_tensor_list *one = rapt_module_list(a, RAPT_PARAMETERS), *other = rapt_module_list(b, RAPT_PARAMETERS);
    for (int i = 0; i < one->count; i++) {
        apart = fmax(apart, largest(rapt_sub(one->tensors[i], other->tensors[i])));
        size = fmax(size, largest(other->tensors[i]));
    }
    rapt_tensor_list_free(one);
    rapt_tensor_list_free(other);
    return apart / size;
}

/* FNV-1a of all bits. */
static bool add_bits(const char *name, rapt_tensor *tensor, void *context)
{
    uint64_t *hash = context;
    const unsigned char *bytes = rapt_data(tensor);
    (void)name;
    for (size_t i = 0; i < (size_t)rapt_count(tensor) * rapt_dtype_size(rapt_get_dtype(tensor)); i++)
        *hash = (*hash ^ bytes[i]) * UINT64_C(0x100000001B3);
    return true;
}

static uint64_t hash_of(const rapt_module *module, double loss)
{
    uint64_t hash = UINT64_C(0xCBF29CE484222325), bits;
    rapt_module_visit(module, RAPT_PARAMETERS, add_bits, &hash);
    memcpy(&bits, &loss, sizeof bits);
    return hash ^ bits;
}

static rapt_module *make(const learner *learns, rapt_dtype dtype, uint64_t seed)
{
    rapt_seed(seed);
    rapt_module *model = learns->make();
    if (model) rapt_module_cast(model, dtype);
    return model;
}

/* The step of all ranks; its loss. */
static double step_together(const learner *learns, rapt_data_parallel *parallel, rapt_module *model, int step,
                            rapt_optimizer *optimizer, bool sharded)
{
    RAPT_SCOPE;
    double loss = NAN;
    for (int own = 0; own < rapt_data_parallel_count_parts(parallel); own++) {
        const rapt_part part = rapt_data_parallel_part(parallel, own, batch_rows);
        double weight = 0;
        rapt_tensor *mean = part.first < part.last ? learns->loss(model, step, part.first, part.last, &weight) : NULL;
        expect(rapt_data_parallel_backward(parallel, mean, weight), "%s", rapt_error());
    }
    expect(rapt_data_parallel_finish(parallel, &loss), "%s", rapt_error());
    expect(sharded ? rapt_data_parallel_step(parallel, 0.5, NULL) : rapt_optimizer_step_clipped(optimizer, 0.5, NULL),
           "%s", rapt_error());
    return loss;
}

static double step_alone(const learner *learns, rapt_module *model, int step, rapt_optimizer *optimizer)
{
    RAPT_SCOPE;
    double weight;
    rapt_tensor *loss = learns->loss(model, step, 0, batch_rows, &weight);
    expect(rapt_backward(loss) && rapt_optimizer_step_clipped(optimizer, 0.5, NULL), "%s", rapt_error());
    return rapt_item(loss);
}

static void train(const learner *learns, rapt_dtype dtype, int parts, bool sharded)
{
    const double bound = dtype == RAPT_FLOAT64 ? 1e-12 : 1e-4;
    rapt_module *model = make(learns, dtype, 5 + (uint64_t)rank), *alone = make(learns, dtype, 5);
    rapt_data_parallel *parallel = rapt_data_parallel_new(MPI_COMM_WORLD, model,
                                                          &(rapt_data_parallel_config){.parts = parts,
                                                                                       .bucket_bytes = 1000,
                                                                                       .note = learns->name});
    expect(parallel, "%s", rapt_error());
    if (!parallel) return;
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
    if (rank == 0)
        printf("%s %s: hash %016llx\n", learns->name, rapt_dtype_name(dtype), (unsigned long long)hash_of(model, loss));
    if (rank == 0)
        fprintf(stderr, "%s %s on %d%s: weights differ by %.2g\n", learns->name, rapt_dtype_name(dtype), ranks,
                sharded ? ", sharded" : "", apart);
    rapt_optimizer_free(optimizer);
    rapt_optimizer_free(other);
    rapt_data_parallel_free(parallel);
    rapt_module_free(model);
    rapt_module_free(alone);
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
    rapt_module *model = make(&learners[0], RAPT_FLOAT32, 5);
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
        /* Sharded, gradients are clipped by a norm that is summed over pieces, whose number is that of the ranks. */
        for (int sharded = 0; sharded < (parts ? 1 : 2); sharded++) {
            train(&learners[i], RAPT_FLOAT64, parts, sharded);
            train(&learners[i], RAPT_FLOAT32, parts, sharded);
        }
    }
    share_state();
    MPI_Allreduce(MPI_IN_PLACE, &failures, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    return failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
