/* A rapt_data_parallel that is freed in the middle of a step, or after MPI has ended. For two ranks or more. */
#include <math.h>
#include <unistd.h>

#include "ranks.h"

int rank, ranks, failures;

enum { size = 100, count = 40 };

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

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int own_parts = 1; own_parts < 3; own_parts++)
        for (int missing = 0; missing <= own_parts; missing++)
            a_step_that_is_given_up_changes_nothing(own_parts, missing);
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
