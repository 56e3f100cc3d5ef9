/* One training by the ranks of mpirun, on librapt-mpi. */
#include "ranks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <rapt/mpi.h>

#include "alone.h"
#include "files.h"
#include "interrupt.h"

static bool have_joined;
static int rank, parts;
static rapt_data_parallel *parallel; /* NULL: one process */

/* OpenMPI, MPICH and what else starts processes tell them so. */
static bool was_started_by_mpi(void)
{
    return getenv("OMPI_COMM_WORLD_SIZE") || getenv("PMI_SIZE") || getenv("PMI_RANK") || getenv("PMIX_RANK");
}

bool ranks_begin(const char *program, int64_t number)
{
    if (number == 0 && !was_started_by_mpi()) return true;
    parts = (int)number;
    have_joined = MPI_Init(NULL, NULL) == MPI_SUCCESS && MPI_Comm_rank(MPI_COMM_WORLD, &rank) == MPI_SUCCESS;
    if (!have_joined) fprintf(stderr, "%s: MPI does not start\n", program);
    if (rank > 0 && !freopen("/dev/null", "w", stdout)) perror(program);
    rapt_on_error(rapt_abort_on_error);
    return have_joined;
}

bool ranks_is_first(void)
{
    return rank == 0;
}

bool ranks_share(rapt_module *module, const char *note)
{
    if (!have_joined) return true;
    parallel = rapt_data_parallel_new(MPI_COMM_WORLD, module, &(rapt_data_parallel_config){parts, .note = note});
    return parallel != NULL;
}

/* Random numbers of a part (dropout's) are those of its step and number, on whatever rank it is; the run's own, which
 * draw the data, go on as if there had been none. */
static void seed_part(rapt_random_state state, int64_t step, int number)
{
    const uint64_t most_parts = 1 << 16, most_numbers = UINT64_C(1) << 24;
    state.seed ^= UINT64_C(0x9E3779B97F4A7C15);
    state.offset = ((uint64_t)step * most_parts + (uint64_t)number) * most_numbers;
    rapt_random_set_state(state);
}

bool ranks_backward(int64_t step, int64_t items, ranks_loss *loss_of, void *context, double *loss)
{
    if (!parallel) return alone_backward(items, loss_of, context, loss);
    const rapt_random_state state = rapt_random_get_state();
    for (int own = 0; own < rapt_data_parallel_count_parts(parallel); own++) {
        RAPT_SCOPE;
        const rapt_part part = rapt_data_parallel_part(parallel, own, items);
        double weight = 0;
        seed_part(state, step, part.number);
        rapt_tensor *mean = part.first < part.last ? loss_of(context, part.first, part.last, &weight) : NULL;
        rapt_data_parallel_backward(parallel, mean, weight);
    }
    rapt_random_set_state(state);
    return rapt_data_parallel_finish(parallel, loss);
}

int ranks_signal(void)
{
    int number = interrupt_signal();
    if (parallel) MPI_Allreduce(MPI_IN_PLACE, &number, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    return number;
}

static const char index_ending[] = ".safetensors.index.json", file_ending[] = ".safetensors";

/* Shards lie beside their index, where a file without that ending can be written as well as they. */
static bool shards_can_be_saved(const char *program, const char *path)
{
    struct stat there;
    char *beside = strdup(path);
    if (!beside) return perror(program), false;
    beside[strlen(path) - strlen(index_ending) + strlen(file_ending)] = '\0';
    bool good = file_can_be_saved(program, beside);
    free(beside);
    if (good && stat(path, &there) == 0 && !S_ISREG(there.st_mode)) {
        fprintf(stderr, "%s: '%s' is not a regular file\n", program, path);
        good = false;
    }
    return good;
}

bool ranks_can_save(const char *program, const char *path)
{
    const size_t size = strlen(path), ending = strlen(index_ending);
    if (size <= ending || strcmp(path + size - ending, index_ending) != 0) return file_can_be_saved(program, path);
    if (have_joined) return shards_can_be_saved(program, path);
    fprintf(stderr, "%s: '%s' is an index of ranks' shards: mpirun -n 1 reads and writes them\n", program, path);
    return false;
}

bool ranks_save(const char *path, const rapt_checkpoint *checkpoint)
{
    return parallel ? rapt_data_parallel_save(parallel, path, checkpoint) : rapt_checkpoint_save(path, checkpoint);
}

bool ranks_load(const char *path, rapt_checkpoint *checkpoint)
{
    return parallel ? rapt_data_parallel_load(parallel, path, checkpoint) : rapt_checkpoint_load(path, checkpoint);
}

void ranks_end(void)
{
    rapt_data_parallel_free(parallel);
    if (have_joined) MPI_Finalize();
}
