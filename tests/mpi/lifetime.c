/* A rapt_data_parallel that is freed in the middle of a step, after an error of MPI's, or after MPI has ended. For two
 * ranks or more. */
#include <math.h>
#include <unistd.h>

#include "ranks.h"

int rank, ranks, failures;

enum { size = 100, count = 40 };

/* What MPI was given to read and has not said to be done with, once it fails. */
enum { most_given = 8, most_bytes = 4 * size * size };
static struct {
    const void *own;
    int bytes;
    MPI_Request request;
    char before[most_bytes];
} given[most_given];
static int given_count;
static bool is_failing;

/* Those of this program, in place of MPI's own: while it fails, waiting for what has begun is an error. */
int MPI_Iallgather(const void *from, int pieces, MPI_Datatype type, void *to, int taken, MPI_Datatype taken_type,
                   MPI_Comm communicator, MPI_Request *request)
{
    int bytes;
    const int code = PMPI_Iallgather(from, pieces, type, to, taken, taken_type, communicator, request);
    PMPI_Type_size(type, &bytes);
    if (!is_failing || given_count == most_given || pieces * bytes > most_bytes) return code;
    given[given_count].own = from;
    given[given_count].bytes = pieces * bytes;
    given[given_count].request = *request;
    memcpy(given[given_count++].before, from, (size_t)pieces * (size_t)bytes);
    return code;
}

int MPI_Wait(MPI_Request *request, MPI_Status *status)
{
    return is_failing ? MPI_ERR_OTHER : PMPI_Wait(request, status);
}

static rapt_data_parallel *parallel_of(rapt_linear *model, int own_parts)
{
    rapt_data_parallel *p = rapt_data_parallel_new(MPI_COMM_WORLD, &model->module,
                                                   &(rapt_data_parallel_config){.parts = own_parts * ranks});
    expect(p, "%s", rapt_error());
    return p;
}

static void go_backward(rapt_data_parallel *p, rapt_linear *model)
{
    RAPT_SCOPE;
    rapt_tensor *y = rapt_linear_forward(model, rapt_full(RAPT_FLOAT32, RAPT_SHAPE(2, size), rank));
    expect(rapt_data_parallel_backward(p, rapt_mean(y, RAPT_ALL_AXES, false), 1), "%s", rapt_error());
}

/* By one made anew: what the step before left on its way must not be taken for its own. */
static void expect_good_step(rapt_linear *model)
{
    const double expected = 0.5 * (ranks - 1) / size; /* the mean of the ranks' numbers, one of `size` outputs */
    rapt_data_parallel *p = parallel_of(model, 1);
    go_backward(p, model);
    expect(rapt_data_parallel_finish(p, NULL), "%s", rapt_error());
    const double gradient = rapt_at(rapt_gradient(model->weight), (int64_t[]){3, 7});
    expect(fabs(gradient - expected) < 1e-6 * expected, "a gradient of %.9g; %.9g expected", gradient, expected);
    rapt_module_clear_gradients(&model->module);
    rapt_data_parallel_free(p);
}

/* Rank 0 frees everything, and has the memory anew, long before the others send what it still awaits; the last rank
 * sends nothing where some of its parts are missing. */
static void a_step_that_is_given_up_changes_nothing(int own_parts, int missing)
{
    RAPT_SCOPE;
    rapt_linear *model = rapt_linear_new(size, size, RAPT_NO_BIAS), *other = rapt_linear_new(size, size, RAPT_NO_BIAS);
    rapt_data_parallel *p = parallel_of(model, own_parts);
    rapt_tensor *later[count];
    int changed = 0;
    if (rank > 0) usleep(200000);
    for (int own = rank == ranks - 1 ? missing : 0; own < own_parts; own++) go_backward(p, model);
    rapt_data_parallel_free(p);
    rapt_module_free(&model->module);
    for (int i = 0; i < count; i++) later[i] = rapt_ones(RAPT_FLOAT32, RAPT_SHAPE((1 + i % 2) * (size * size + 16)));
    expect_good_step(other);
    MPI_Barrier(MPI_COMM_WORLD);
    usleep(200000);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < count; i++)
        for (int64_t k = 0; k < rapt_count(later[i]); k++) changed += rapt_at(later[i], &k) != 1;
    expect(changed == 0, "%d of %d own parts missing: %d numbers of later tensors were changed", missing, own_parts,
           changed);
    rapt_module_free(&other->module);
}

/* An error of MPI's on the way of the values of a step, or of the state of a save. */
static void what_mpi_reads_stays_after_its_error(bool saves)
{
    RAPT_SCOPE;
    rapt_linear *model = rapt_linear_new(size, size, RAPT_NO_BIAS);
    rapt_data_parallel *p =
        rapt_data_parallel_new(MPI_COMM_WORLD, &model->module,
                               &(rapt_data_parallel_config){.bucket_bytes = 4000 * ranks, .shards_gradients = true});
    rapt_optimizer *adam = rapt_adam_new(NULL, NULL);
    rapt_checkpoint run = {.module = &model->module, .optimizer = adam};
    rapt_tensor *later[count];
    const char *path = "/there/is/none.safetensors";
    expect(rapt_data_parallel_shard(p, adam), "%s", rapt_error());
    go_backward(p, model);
    expect(rapt_data_parallel_finish(p, NULL), "%s", rapt_error());
    if (saves) expect(rapt_data_parallel_step(p, INFINITY, NULL), "%s", rapt_error());
    is_failing = true;
    given_count = 0;
    expect(!(saves ? rapt_data_parallel_save(p, path, &run) : rapt_data_parallel_step(p, INFINITY, NULL)), "no error");
    expect_error(RAPT_ERROR_RANK, "MPI: ");
    is_failing = false;
    rapt_data_parallel_free(p);
    rapt_optimizer_free(adam);
    rapt_module_free(&model->module);
    const int64_t piece = (size * size + ranks * 16 - 1) / (ranks * 16) * 16;
    for (int i = 0; i < count; i++) later[i] = rapt_full(RAPT_FLOAT32, RAPT_SHAPE(piece), 77);
    expect(given_count > 0 && later[count - 1], "nothing was on its way");
    for (int i = 0; i < given_count; i++) {
        expect(memcmp(given[i].own, given[i].before, (size_t)given[i].bytes) == 0, "parcel %d of a %s was changed", i,
               saves ? "save" : "step");
        PMPI_Wait(&given[i].request, MPI_STATUS_IGNORE);
    }
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int own_parts = 1; own_parts < 3; own_parts++)
        for (int missing = 0; missing <= own_parts; missing++)
            a_step_that_is_given_up_changes_nothing(own_parts, missing);
    for (int saves = 0; saves < 2; saves++) what_mpi_reads_stays_after_its_error(saves);
    rapt_linear *model = rapt_linear_new(size, size, RAPT_BIAS);
    rapt_data_parallel *p = parallel_of(model, 1);
    rapt_ring *ring = rapt_mpi_ring_new(MPI_COMM_WORLD, 10);
    expect(ring, "%s", rapt_error());
    MPI_Allreduce(MPI_IN_PLACE, &failures, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    rapt_data_parallel_free(p);
    rapt_mpi_ring_free(ring);
    rapt_module_free(&model->module);
    expect(!rapt_error(), "%s", rapt_error());
    return failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
