/* aborts WHEN: rapt_abort_on_error takes an error before MPI_Init, within, or behind MPI_Finalize. */
#include "ranks.h"

int rank, ranks, failures;

int main(int argc, char **argv)
{
    const char *when = argc > 1 ? argv[1] : "";
    rapt_on_error(rapt_abort_on_error);
    if (strcmp(when, "before") == 0) rapt_mpi_ring_new(MPI_COMM_WORLD, 5);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (strcmp(when, "within") == 0 && rank == ranks - 1) rapt_mpi_ring_new(MPI_COMM_NULL, 5);
    MPI_Finalize(); /* where the others wait until the last rank ends them */
    if (strcmp(when, "behind") == 0) rapt_mpi_ring_new(MPI_COMM_WORLD, 5);
    return EXIT_SUCCESS;
}
