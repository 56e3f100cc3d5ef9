/* Gradients in buckets: parts of a rank are added up, then pieces of each bucket are summed by one rank each. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "data_parallel.h"

static const char name[] = "data_parallel";

/* --- making them --- */

static int levels_of(const rapt_data_parallel *p)
{
    int levels = 0;
    while (1 << levels < p->own_parts) levels++;
    return levels;
}

static bool make_bucket(const rapt_data_parallel *p, rapt_bucket *b)
{
    RAPT_SCOPE;
    enum { line = 16 }; /* pieces begin with cache lines */
    const int64_t piece = (b->elements + p->ranks - 1) / p->ranks;
    b->piece = (piece + line - 1) / line * line;
    b->request = MPI_REQUEST_NULL;
    if (b->piece > INT_MAX / p->ranks)
        return rapt_fail(RAPT_ERROR_VALUE, name, "%lld numbers in one bucket; MPI counts to %d", (long long)b->elements,
                         INT_MAX);
    b->sum = rapt_retain(rapt_zeros(b->dtype, RAPT_SHAPE(p->ranks * b->piece)));
    b->mine = rapt_retain(rapt_zeros(b->dtype, RAPT_SHAPE(p->ranks, b->piece)));
    b->rows = calloc((size_t)p->ranks, sizeof(rapt_tensor *));
    if (!b->sum || !b->mine || !b->rows) return rapt_fail(RAPT_ERROR_MEMORY, name, "no memory for the gradients");
    for (int rank = 0; rank < p->ranks; rank++)
        if (!(b->rows[rank] = rapt_retain(rapt_select(b->mine, 0, rank)))) return false;
    for (int level = 0; level < levels_of(p); level++)
        if (!(b->levels[level] = rapt_retain(rapt_zeros_like(b->sum)))) return false;
    return true;
}

/* The view of a parameter's gradient in its bucket. */
static bool make_view(const rapt_data_parallel *p, rapt_shared_parameter *s, int64_t first)
{
    RAPT_SCOPE;
    const rapt_tensor *like = s->parameter;
    rapt_tensor *part = rapt_slice(p->buckets[s->bucket].sum, 0, first, first + rapt_count(like), 1);
    s->view = rapt_retain(rapt_reshape(part, rapt_rank(like), rapt_shape(like)));
    return s->view != NULL;
}

/* Lists the parameters from the last to the first, as backward comes to them, and makes room for their buckets. */
static bool list_parameters(rapt_data_parallel *p)
{
    rapt_tensor_list *list = rapt_module_list(p->module, RAPT_PARAMETERS);
    if (!list) return false;
    const size_t room = (size_t)list->count + 1;
    p->parameters = calloc(room, sizeof *p->parameters);
    p->buckets = calloc(room, sizeof *p->buckets);
    p->marks = calloc(room, sizeof *p->marks);
    bool good = (p->parameters && p->buckets && p->marks) ||
                rapt_fail(RAPT_ERROR_MEMORY, name, "no memory for %d parameters", list->count);
    for (int i = list->count - 1; good && i >= 0; i--) {
        if (!rapt_requires_gradient(list->tensors[i])) continue;
        rapt_shared_parameter *s = &p->parameters[p->parameter_count++];
        s->parameter = rapt_retain(list->tensors[i]);
        s->name = strdup(list->names[i]);
        if (!s->name) good = rapt_fail(RAPT_ERROR_MEMORY, name, "no memory for the name %s", list->names[i]);
    }
    rapt_tensor_list_free(list);
    return good;
}

/* A bucket is full when it has so many bytes, or the dtype changes. */
static void fill_buckets(rapt_data_parallel *p, int64_t bytes)
{
    rapt_bucket *b = NULL;
    for (int i = 0; i < p->parameter_count; i++) {
        const rapt_dtype dtype = rapt_get_dtype(p->parameters[i].parameter);
        if (!b || b->dtype != dtype || b->elements >= bytes / (int64_t)rapt_dtype_size(dtype)) {
            b = &p->buckets[p->bucket_count++];
            b->dtype = dtype;
        }
        p->parameters[i].bucket = p->bucket_count - 1;
        b->elements += rapt_count(p->parameters[i].parameter);
        b->parameters++;
        b->awaited++;
    }
}

bool rapt_buckets_new(rapt_data_parallel *p, int64_t bytes)
{
    if (!list_parameters(p)) return false;
    fill_buckets(p, bytes);
    for (int i = 0; i < p->bucket_count; i++)
        if (!make_bucket(p, &p->buckets[i])) return false;
    int64_t at = 0;
    for (int i = 0; i < p->parameter_count; i++) {
        rapt_shared_parameter *s = &p->parameters[i];
        if (i > 0 && s->bucket != s[-1].bucket) at = 0;
        if (!make_view(p, s, at)) return false;
        at += rapt_count(s->parameter);
    }
    return true;
}

void rapt_buckets_free(rapt_data_parallel *p)
{
    for (int i = 0; i < p->parameter_count; i++) {
        rapt_release(p->parameters[i].parameter);
        rapt_release(p->parameters[i].view);
        free(p->parameters[i].name);
    }
    for (int i = 0; i < p->bucket_count; i++) {
        rapt_bucket *b = &p->buckets[i];
        for (int rank = 0; b->rows && rank < p->ranks; rank++) rapt_release(b->rows[rank]);
        for (int level = 0; level < RAPT_MAX_LEVELS; level++) rapt_release(b->levels[level]);
        rapt_release(b->mine);
        rapt_release(b->values);
        rapt_release(b->sum);
        free(b->rows);
    }
    free(p->parameters);
    free(p->buckets);
    free(p->marks);
}

/* --- filling them --- */

/* All of it has arrived: it joins what came before, as 1 is added to a binary number, and waits, unless it is last. */
static bool end_bucket(const rapt_data_parallel *p, rapt_bucket *b)
{
    int level = 0;
    for (; (p->done >> level) & 1; level++)
        if (!rapt_add_in_place(b->sum, b->levels[level], 1)) return false;
    return p->done + 1 == p->own_parts || rapt_copy(b->levels[level], b->sum);
}

static bool arrive(rapt_data_parallel *p, rapt_shared_parameter *s)
{
    rapt_bucket *b = &p->buckets[s->bucket];
    s->arrived = true;
    return --b->awaited > 0 || end_bucket(p, b);
}

bool rapt_buckets_take(void *parallel, rapt_tensor *parameter, rapt_tensor *gradient)
{
    rapt_data_parallel *p = parallel;
    for (int i = 0; i < p->parameter_count; i++) {
        rapt_shared_parameter *s = &p->parameters[i];
        if (s->parameter != parameter) continue;
        s->used = true;
        const bool good = rapt_copy(s->view, gradient) && arrive(p, s);
        rapt_buckets_exchange(p, false);
        return good;
    }
    return true; /* no parameter of the module */
}

void rapt_buckets_end_part(rapt_data_parallel *p)
{
    for (int i = 0; i < p->parameter_count; i++) {
        rapt_shared_parameter *s = &p->parameters[i];
        if (!s->arrived && !(rapt_fill(s->view, 0) && arrive(p, s))) p->failed = true;
        s->arrived = false;
    }
    for (int i = 0; i < p->bucket_count; i++) p->buckets[i].awaited = p->buckets[i].parameters;
    p->done++;
}

/* --- summing them over ranks --- */

static MPI_Datatype type_of(const rapt_bucket *b)
{
    return b->dtype == RAPT_FLOAT32 ? MPI_FLOAT : MPI_DOUBLE;
}

static bool is_full(const rapt_data_parallel *p, const rapt_bucket *b)
{
    return p->done == p->own_parts || (p->done + 1 == p->own_parts && b->awaited == 0);
}

static void scatter(rapt_data_parallel *p, rapt_bucket *b)
{
    const int piece = (int)b->piece;
    const MPI_Datatype type = type_of(b);
    if (!rapt_check_mpi(name, MPI_Ialltoall(rapt_data(b->sum), piece, type, rapt_data_for_writing(b->mine), piece, type,
                                            p->scatter, &b->request)))
        p->broken = true;
}

/* Sums this rank's piece over all, two and two by two and two, and divides by the weight of the batch. */
static bool sum_piece(const rapt_data_parallel *p, const rapt_bucket *b)
{
    for (int step = 1; step < p->ranks; step *= 2)
        for (int rank = 0; rank + step < p->ranks; rank += 2 * step)
            if (!rapt_add_in_place(b->rows[rank], b->rows[rank + step], 1)) return false;
    return p->totals.weight <= 0 || rapt_scale_in_place(b->rows[0], 1 / p->totals.weight);
}

void rapt_bucket_gather(rapt_data_parallel *p, rapt_bucket *b, const rapt_tensor *mine)
{
    const int piece = (int)b->piece;
    const MPI_Datatype type = type_of(b);
    if (!rapt_check_mpi(name, MPI_Iallgather(rapt_data(mine), piece, type, rapt_data_for_writing(b->sum), piece, type,
                                             p->gather, &b->request)))
        p->broken = true;
}

static bool is_over(rapt_data_parallel *p, MPI_Request *request, bool wait)
{
    int over = 1;
    const int code = wait ? MPI_Wait(request, MPI_STATUS_IGNORE) : MPI_Test(request, &over, MPI_STATUS_IGNORE);
    if (!rapt_check_mpi(name, code)) p->broken = true;
    return over && !p->broken;
}

bool rapt_buckets_wait(rapt_data_parallel *p)
{
    for (int i = 0; i < p->bucket_count && !p->broken; i++) is_over(p, &p->buckets[i].request, true);
    return !p->broken;
}

/* Σ of all ranks, by the tree of the gradients */
static void sum_totals(rapt_data_parallel *p)
{
    for (int step = 1; step < p->ranks; step *= 2)
        for (int rank = 0; rank + step < p->ranks; rank += 2 * step) {
            p->all[rank].weight += p->all[rank + step].weight;
            p->all[rank].loss += p->all[rank + step].loss;
        }
    p->totals = p->all[0];
    p->has_totals = true;
}

void rapt_buckets_exchange(rapt_data_parallel *p, bool wait)
{
    for (; p->scattered < p->bucket_count && !p->broken && is_full(p, &p->buckets[p->scattered]); p->scattered++)
        scatter(p, &p->buckets[p->scattered]);
    if (!p->has_totals && (p->scattered > 0 || wait) && is_over(p, &p->totals_request, wait)) sum_totals(p);
    for (; p->gathered < p->scattered && !p->broken && p->has_totals; p->gathered++) {
        rapt_bucket *b = &p->buckets[p->gathered];
        if (!is_over(p, &b->request, wait)) return;
        if (!sum_piece(p, b)) p->failed = true;
        if (!p->sharded) rapt_bucket_gather(p, b, b->rows[0]);
    }
    if (wait) rapt_buckets_wait(p);
}
