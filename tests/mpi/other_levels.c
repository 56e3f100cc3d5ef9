/* Ranks of other instruction-set levels round otherwise: an error that names both. For two ranks, of which the last has
 * RAPT_LEVEL=baseline. */
#include "ranks.h"

int rank, ranks, failures;

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    char first[32], expected[128];
    snprintf(first, sizeof first, "%s", rapt_get_level());
    MPI_Bcast(first, sizeof first, MPI_CHAR, 0, MPI_COMM_WORLD);
    const bool differ = strcmp(first, "baseline") != 0; /* a library that is built for one level has it everywhere */
    snprintf(expected, sizeof expected, "'level: baseline' here is 'level: %s' on rank 0", first);
    rapt_linear *model = rapt_linear_new(4, 3, RAPT_BIAS);
    rapt_data_parallel *p = rapt_data_parallel_new(MPI_COMM_WORLD, &model->module, NULL);
    expect((p != NULL) == !differ, "%s", differ ? "no error" : rapt_error());
    if (differ) expect_error(RAPT_ERROR_RANK, expected);
    rapt_data_parallel_free(p);
    rapt_module_free(&model->module);
    MPI_Allreduce(MPI_IN_PLACE, &failures, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    return failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
