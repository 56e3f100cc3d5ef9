/* What ranks tell each other: errors, and at the start whether they train the same model, and from which values. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data_parallel.h"

static const char name[] = "data_parallel";

bool rapt_check_mpi(const char *op, int code)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length;
    if (code == MPI_SUCCESS) return true;
    MPI_Error_string(code, text, &length);
    return rapt_fail(RAPT_ERROR_RANK, op, "MPI: %s", text);
}

bool rapt_mpi_is_running(void)
{
    int running = 0, over = 0;
    return MPI_Initialized(&running) == MPI_SUCCESS && running && MPI_Finalized(&over) == MPI_SUCCESS && !over;
}

void rapt_abort_on_error(rapt_error_code code, const char *message)
{
    int rank = -1;
    if (!rapt_mpi_is_running()) {
        rapt_exit_on_error(code, message);
        return;
    }
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    fprintf(stderr, "rank %d: %s\n", rank, message);
    MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
}

bool rapt_ranks_of(const char *op, MPI_Comm communicator, rapt_ranks *ranks)
{
    *ranks = (rapt_ranks){.communicator = communicator};
    if (!rapt_mpi_is_running())
        return rapt_fail(RAPT_ERROR_RANK, op, "MPI is not running; a call between MPI_Init and MPI_Finalize expected");
    if (communicator == MPI_COMM_NULL) return rapt_fail(RAPT_ERROR_NULL, op, "the communicator is MPI_COMM_NULL");
    return rapt_check_mpi(op, MPI_Comm_rank(communicator, &ranks->rank)) &&
           rapt_check_mpi(op, MPI_Comm_size(communicator, &ranks->ranks));
}

bool rapt_ranks_tell(const rapt_ranks *r, const char *op, bool good, int *marks, int count)
{
    char message[RAPT_REASON_ROOM] = "";
    marks[0] = good ? 0 : r->ranks - r->rank; /* the largest is of the first rank that is not well */
    if (!rapt_check_mpi(op, MPI_Allreduce(MPI_IN_PLACE, marks, count, MPI_INT, MPI_MAX, r->communicator))) return false;
    if (marks[0] == 0) return true;
    const int first = r->ranks - marks[0];
    const char *reason = r->reason && *r->reason ? r->reason : rapt_error();
    if (r->rank == first)
        snprintf(message, sizeof message, "%s", reason && *reason ? reason : "failed without a reason");
    if (!rapt_check_mpi(op, MPI_Bcast(message, sizeof message, MPI_CHAR, first, r->communicator))) return false;
    return rapt_fail(RAPT_ERROR_RANK, op, "rank %d: %s", first, message);
}

bool rapt_ranks_agree(const rapt_data_parallel *p, const char *op, bool good, int *marks, int count)
{
    const rapt_ranks ranks = {p->scatter, p->rank, p->ranks, p->reason};
    return rapt_ranks_tell(&ranks, op, good, marks, count);
}

void rapt_note_failure(rapt_data_parallel *p)
{
    if (!p->failed && rapt_error()) snprintf(p->reason, sizeof p->reason, "%s", rapt_error());
    p->failed = true;
}

/* --- the same model --- */

/* A line for a tensor: "trained encoder.weight: float32 [16, 2]". */
static bool write_line(const char *tensor_name, rapt_tensor *tensor, void *context)
{
    char found[200];
    return fprintf(context, "%s %s: %s\n", rapt_requires_gradient(tensor) ? "trained" : "fixed", tensor_name,
                   rapt_describe(tensor, found, sizeof found)) > 0;
}

/* All that must be the same, in lines. NULL after an error; to be freed. */
static char *text_of(const rapt_data_parallel *p, const rapt_data_parallel_config *config)
{
    char *text = NULL;
    size_t size;
    FILE *stream = open_memstream(&text, &size);
    bool good =
        stream &&
        fprintf(stream, "rapt " RAPT_VERSION "\nlevel: %s\nparts: %d\nbucket_bytes: %lld\nshards_gradients: %d\n",
                rapt_get_level(), p->parts, (long long)config->bucket_bytes, config->shards_gradients) > 0;
    good = good && rapt_module_visit(p->module, RAPT_PARAMETERS | RAPT_BUFFERS, write_line, stream) &&
           fprintf(stream, "note: %s\n", config->note ? config->note : "") > 0;
    if (stream && fclose(stream) != 0) good = false;
    if (good && size < INT_MAX) return text;
    free(text);
    rapt_fail(RAPT_ERROR_MEMORY, name, "no memory for the names of the parameters");
    return NULL;
}

enum { excerpt_room = 200, excerpt_begin = 20 };

/* The line; of a long one its first characters, and some from the difference on. */
static const char *excerpt(char text[excerpt_room], const char *line, int length, int difference)
{
    const bool is_cut = length >= excerpt_room && difference > excerpt_begin;
    while (is_cut && difference > excerpt_begin && ((unsigned char)line[difference] & 0xC0) == 0x80) difference--;
    if (is_cut)
        snprintf(text, excerpt_room, "%.*s ... %.*s", excerpt_begin, line, length - difference, line + difference);
    else
        snprintf(text, excerpt_room, "%.*s", length, line);
    return text;
}

/* An error that shows the first line that is not that of rank 0. */
static bool compare_lines(const char *text, const char *first)
{
    while (*text || *first) {
        const int here = (int)strcspn(text, "\n"), there = (int)strcspn(first, "\n");
        int same = 0;
        while (same < here && same < there && text[same] == first[same]) same++;
        if (same < here || same < there) {
            char own[excerpt_room], other[excerpt_room];
            return rapt_fail(RAPT_ERROR_RANK, name, "'%s' here is '%s' on rank 0", excerpt(own, text, here, same),
                             excerpt(other, first, there, same));
        }
        text += here + (text[here] != 0);
        first += there + (first[there] != 0);
    }
    return true;
}

bool rapt_check_same_model(const rapt_data_parallel *p, const rapt_data_parallel_config *config)
{
    char *text = text_of(p, config), *first = NULL;
    int mark, length = text ? (int)strlen(text) + 1 : 1;
    bool good = rapt_ranks_agree(p, name, text != NULL, &mark, 1) &&
                rapt_check_mpi(name, MPI_Bcast(&length, 1, MPI_INT, 0, p->scatter));
    if (good) {
        first = p->rank == 0 ? text : calloc((size_t)length, 1);
        good = rapt_ranks_agree(p, name, first || rapt_fail(RAPT_ERROR_MEMORY, name, "no memory for %d bytes", length),
                                &mark, 1) &&
               rapt_check_mpi(name, MPI_Bcast(first, length, MPI_CHAR, 0, p->scatter)) &&
               rapt_ranks_agree(p, name, compare_lines(text, first), &mark, 1);
    }
    if (first != text) free(first);
    free(text);
    return good;
}

/* --- the same values --- */

static bool broadcast(const rapt_data_parallel *p, char *bytes, int64_t count)
{
    enum { at_once = 1 << 28 };
    for (int64_t at = 0; at < count; at += at_once)
        if (!rapt_check_mpi(name, MPI_Bcast(bytes + at, (int)(count - at < at_once ? count - at : at_once), MPI_BYTE, 0,
                                            p->scatter)))
            return false;
    return true;
}

/* Gives tensors rank 0's values: all, or those that are marked. Nothing is changed where one rank has no memory. */
static bool take_values(const rapt_data_parallel *p, const rapt_tensor_list *list, const int *marks)
{
    int mark;
    RAPT_SCOPE;
    rapt_tensor **values = calloc((size_t)list->count + 1, sizeof *values);
    bool good = values || rapt_fail(RAPT_ERROR_MEMORY, name, "no memory for %d tensors", list->count);
    for (int i = 0; good && i < list->count; i++)
        if (!marks || marks[i]) good = (values[i] = rapt_clone(list->tensors[i])) != NULL;
    good = rapt_ranks_agree(p, name, good, &mark, 1);
    for (int i = 0; good && i < list->count; i++) {
        if (!values[i]) continue;
        const int64_t bytes = rapt_count(values[i]) * (int64_t)rapt_dtype_size(rapt_get_dtype(values[i]));
        good = broadcast(p, rapt_data_for_writing(values[i]), bytes);
    }
    for (int i = 0; good && i < list->count; i++) good = !values[i] || rapt_copy(list->tensors[i], values[i]);
    free(values);
    return rapt_ranks_agree(p, name, good, &mark, 1);
}

static void note_versions(rapt_data_parallel *p)
{
    for (int i = 0; i < p->buffers->count; i++) p->versions[i] = rapt_version(p->buffers->tensors[i]);
}

bool rapt_take_first_values(rapt_data_parallel *p)
{
    int mark;
    rapt_tensor_list *list = rapt_module_list(p->module, RAPT_PARAMETERS | RAPT_BUFFERS);
    p->buffers = rapt_module_list(p->module, RAPT_BUFFERS);
    p->versions = p->buffers ? calloc((size_t)p->buffers->count + 1, sizeof *p->versions) : NULL;
    bool good = list && p->buffers &&
                (p->versions || rapt_fail(RAPT_ERROR_MEMORY, name, "no memory for %d tensors", p->buffers->count));
    good = rapt_ranks_agree(p, name, good, &mark, 1) && take_values(p, list, NULL);
    if (good) note_versions(p);
    rapt_tensor_list_free(list);
    return good;
}

void rapt_mark_changed_buffers(const rapt_data_parallel *p, int *marks)
{
    for (int i = 0; i < p->buffers->count; i++) marks[i] = rapt_version(p->buffers->tensors[i]) != p->versions[i];
}

bool rapt_take_changed_buffers(rapt_data_parallel *p, const int *marks)
{
    bool any = false;
    for (int i = 0; i < p->buffers->count; i++) any = any || marks[i];
    if (!any) return true;
    const bool good = take_values(p, p->buffers, marks);
    if (good) note_versions(p);
    return good;
}
