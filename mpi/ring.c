/* The ring of attention across ranks: messages from each rank to the next. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data_parallel.h"

static const char name[] = "mpi_ring";

/* Of a channel: what goes out, and what comes in. */
enum { goes_out, comes_in, directions };

typedef struct mpi_ring {
    rapt_ring ring;
    MPI_Comm communicator;
    MPI_Request requests[RAPT_RING_CHANNELS][directions];
} mpi_ring;

/* Is what rank 0 says what this one says? */
static bool compare(const char *op, const char *text, const char *first)
{
    return strcmp(text, first) == 0 || rapt_fail(RAPT_ERROR_RANK, op, "'%s' here is '%s' on rank 0", text, first);
}

/* FNV-1a, above 0; texts that differ have one number once in a billion. */
static int hash_of(const char *text)
{
    uint32_t hash = UINT32_C(0x811C9DC5);
    for (; *text; text++) hash = (hash ^ (unsigned char)*text) * UINT32_C(0x01000193);
    return (int)(hash >> 1) | 1;
}

/* The texts themselves travel only where they differ: what costs is how often all wait for each other. */
static bool agree(rapt_ring *ring, const char *op, bool good, const char *text)
{
    enum { own, largest, smallest, mark_count, room = 300 };
    char first[room] = "";
    const rapt_ranks ranks = {((mpi_ring *)ring)->communicator, ring->rank, ring->ranks, NULL};
    if (!text) text = "";
    int marks[mark_count] = {[largest] = hash_of(text), [smallest] = -hash_of(text)};
    if (!rapt_ranks_tell(&ranks, op, good, marks, mark_count)) return false;
    if (marks[largest] == -marks[smallest]) return true;
    if (ring->rank == 0) strncpy(first, text, room - 1);
    return rapt_check_mpi(op, MPI_Bcast(first, room, MPI_CHAR, 0, ranks.communicator)) &&
           rapt_ranks_tell(&ranks, op, compare(op, text, first), marks, 1);
}

static bool fits(int64_t count)
{
    return count <= INT_MAX ||
           rapt_fail(RAPT_ERROR_VALUE, name, "%lld bytes in one message; MPI counts to %d", (long long)count, INT_MAX);
}

static bool send(rapt_ring *ring, rapt_ring_channel channel, const void *bytes, int64_t count)
{
    mpi_ring *r = (mpi_ring *)ring;
    const int next = (ring->rank + 1) % ring->ranks;
    return fits(count) && rapt_check_mpi(name, MPI_Isend(bytes, (int)count, MPI_BYTE, next, (int)channel,
                                                         r->communicator, &r->requests[channel][goes_out]));
}

static bool receive(rapt_ring *ring, rapt_ring_channel channel, void *bytes, int64_t count)
{
    mpi_ring *r = (mpi_ring *)ring;
    const int before = (ring->rank + ring->ranks - 1) % ring->ranks;
    return fits(count) && rapt_check_mpi(name, MPI_Irecv(bytes, (int)count, MPI_BYTE, before, (int)channel,
                                                         r->communicator, &r->requests[channel][comes_in]));
}

static bool wait(rapt_ring *ring, rapt_ring_channel channel)
{
    MPI_Status ignored[directions]; /* gcc takes MPICH's MPI_STATUSES_IGNORE for an array that is too small */
    return rapt_check_mpi(name, MPI_Waitall(directions, ((mpi_ring *)ring)->requests[channel], ignored));
}

/* MPI moves large messages only while it is called. */
static void advance(rapt_ring *ring)
{
    MPI_Status ignored[directions];
    int over;
    for (int channel = 0; channel < RAPT_RING_CHANNELS; channel++)
        MPI_Testall(directions, ((mpi_ring *)ring)->requests[channel], &over, ignored);
}

rapt_ring *rapt_mpi_ring_new(MPI_Comm communicator, int64_t length)
{
    char text[60];
    rapt_ranks ranks;
    int mark;
    if (!rapt_ranks_of(name, communicator, &ranks)) return NULL;
    mpi_ring *r = calloc(1, sizeof *r);
    if (!rapt_ranks_tell(&ranks, name, r || rapt_fail(RAPT_ERROR_MEMORY, name, "no memory for the ring"), &mark, 1))
        return free(r), NULL;
    r->communicator = MPI_COMM_NULL;
    r->ring = (rapt_ring){.rank = ranks.rank,
                          .ranks = ranks.ranks,
                          .length = length,
                          .agree = agree,
                          .send = send,
                          .receive = receive,
                          .wait = wait,
                          .advance = advance};
    for (int i = 0; i < RAPT_RING_CHANNELS * directions; i++)
        r->requests[i / directions][i % directions] = MPI_REQUEST_NULL;
    snprintf(text, sizeof text, "a sequence of %lld", (long long)length);
    const bool good =
        rapt_check_mpi(name, MPI_Comm_dup(communicator, &r->communicator)) &&
        agree(&r->ring, name,
              length >= 0 || rapt_fail(RAPT_ERROR_VALUE, name, "%s; a length of 0 or more expected", text), text);
    if (good) return &r->ring;
    rapt_mpi_ring_free(&r->ring);
    return NULL;
}

void rapt_mpi_ring_free(rapt_ring *ring)
{
    if (!ring) return;
    mpi_ring *r = (mpi_ring *)ring;
    if (r->communicator != MPI_COMM_NULL && rapt_mpi_is_running()) MPI_Comm_free(&r->communicator);
    free(r);
}
