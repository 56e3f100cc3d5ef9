/* A network that is slower than this machine's memory, for programs that are started with this preloaded: what
 * MPI_Ialltoall and MPI_Iallgather began is complete when RAPT_LATENCY seconds for each message and its bytes by
 * RAPT_BANDWIDTH a second have gone by, one call behind the other. The processor is free meanwhile. */
#include <mpi.h>
#include <stdlib.h>
#include <time.h>

enum { room = 4096 };

static struct {
    MPI_Request request;
    double due;
} waiting[room];
static int count;
static double free_at;

static double number(const char *name, double otherwise)
{
    const char *text = getenv(name);
    return text ? atof(text) : otherwise;
}

static void hold(MPI_Request request, int pieces, MPI_Datatype type, MPI_Comm communicator)
{
    int ranks, size;
    PMPI_Comm_size(communicator, &ranks);
    PMPI_Type_size(type, &size);
    const double now = PMPI_Wtime(), latency = number("RAPT_LATENCY", 0), bandwidth = number("RAPT_BANDWIDTH", 1e12);
    free_at = (free_at > now ? free_at : now) + (ranks - 1) * (latency + (double)pieces * size / bandwidth);
    if (count == room) abort();
    waiting[count].request = request;
    waiting[count++].due = free_at;
}

static int find(MPI_Request request)
{
    int i = 0;
    while (i < count && waiting[i].request != request) i++;
    return i;
}

static void forget(int i)
{
    if (i < count) waiting[i] = waiting[--count];
}

int MPI_Ialltoall(const void *from, int pieces, MPI_Datatype type, void *to, int taken, MPI_Datatype taken_type,
                  MPI_Comm communicator, MPI_Request *request)
{
    const int code = PMPI_Ialltoall(from, pieces, type, to, taken, taken_type, communicator, request);
    hold(*request, pieces, type, communicator);
    return code;
}

int MPI_Iallgather(const void *from, int pieces, MPI_Datatype type, void *to, int taken, MPI_Datatype taken_type,
                   MPI_Comm communicator, MPI_Request *request)
{
    const int code = PMPI_Iallgather(from, pieces, type, to, taken, taken_type, communicator, request);
    hold(*request, pieces, type, communicator);
    return code;
}

int MPI_Test(MPI_Request *request, int *over, MPI_Status *status)
{
    const int i = find(*request);
    *over = 0;
    if (i < count && PMPI_Wtime() < waiting[i].due) {
        int ignored; /* but what travels in this machine's memory goes on, as a network's card would see to */
        return PMPI_Request_get_status(*request, &ignored, MPI_STATUS_IGNORE);
    }
    const int code = PMPI_Test(request, over, status);
    if (*over) forget(i);
    return code;
}

int MPI_Wait(MPI_Request *request, MPI_Status *status)
{
    const int i = find(*request);
    const double seconds = i < count ? waiting[i].due - PMPI_Wtime() : 0;
    const struct timespec pause = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
    if (seconds > 0) nanosleep(&pause, NULL);
    forget(i);
    return PMPI_Wait(request, status);
}
