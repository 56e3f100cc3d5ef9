/* Parcels: what of the buckets travels at once, how it is summed over ranks, and how all get what each has. */
#include <string.h>

#include "data_parallel.h"

static const char name[] = "data_parallel";

/* --- numbers of the parameters --- */

/* The number of the bucket's first parameter; behind the last bucket that of one more than there are. */
static int first_of(const rapt_data_parallel *p, int bucket)
{
    return bucket < p->bucket_count ? p->buckets[bucket].first_parameter : p->parameter_count;
}

void rapt_numbers_free(const rapt_data_parallel *p, int bucket, int end)
{
    for (int i = first_of(p, bucket); i < first_of(p, end); i++) {
        rapt_release(p->parameters[i].numbers);
        p->parameters[i].numbers = NULL;
    }
}

bool rapt_numbers_of_parameters(const rapt_data_parallel *p, int bucket, int end)
{
    RAPT_SCOPE;
    RAPT_NO_GRADIENT;
    for (int i = first_of(p, bucket); i < first_of(p, end); i++) {
        rapt_shared_parameter *s = &p->parameters[i];
        s->numbers = rapt_retain(rapt_reshape(s->parameter, RAPT_SHAPE(-1)));
        if (!s->numbers) return rapt_numbers_free(p, bucket, end), false;
    }
    return true;
}

/* Elements from `first` to before `last`, of those from `begin` on. */
typedef struct overlap {
    int64_t begin, first, last;
} overlap;

static overlap overlap_of(const rapt_shared_parameter *s, int64_t first, int64_t count)
{
    const int64_t end = s->first + rapt_count(s->parameter);
    return (overlap){s->first, first > s->first ? first : s->first, first + count < end ? first + count : end};
}

/* Moves the bucket's elements [first, first + count) from its parameters' numbers to the block, from `at` on. */
static bool pack(const rapt_data_parallel *p, const rapt_bucket *b, int64_t first, int64_t count, rapt_tensor *block,
                 int64_t at)
{
    RAPT_SCOPE;
    bool good = true;
    for (int i = b->first_parameter; i < b->first_parameter + b->parameters; i++) {
        const rapt_shared_parameter *s = &p->parameters[i];
        const overlap o = overlap_of(s, first, count);
        if (o.first >= o.last) continue;
        rapt_tensor *target = rapt_slice(block, 0, at + o.first - first, at + o.last - first, 1);
        if (!(s->numbers ? rapt_copy(target, rapt_slice(s->numbers, 0, o.first - o.begin, o.last - o.begin, 1))
                         : rapt_fill(target, 0)))
            good = false;
    }
    const int64_t padding = first > b->elements ? first : b->elements;
    if (padding >= first + count) return good;
    return rapt_fill(rapt_slice(block, 0, at + padding - first, at + count, 1), 0) && good;
}

/* Moves them from the block back to the parameters' numbers. That must not fail: some ranks would have what others have
 * not. */
static void unpack(const rapt_data_parallel *p, const rapt_bucket *b, int64_t first, int64_t count,
                   const rapt_tensor *block, int64_t at)
{
    const size_t size = rapt_dtype_size(b->dtype);
    const char *from = rapt_data(block);
    for (int i = b->first_parameter; i < b->first_parameter + b->parameters; i++) {
        const rapt_shared_parameter *s = &p->parameters[i];
        const overlap o = overlap_of(s, first, count);
        if (o.first >= o.last || !s->numbers) continue;
        char *to = rapt_data_for_writing(s->numbers);
        memcpy(to + (size_t)(o.first - o.begin) * size, from + (size_t)(at + o.first - first) * size,
               (size_t)(o.last - o.first) * size);
    }
}

rapt_tensor *rapt_bucket_cut(const rapt_data_parallel *p, const rapt_bucket *b)
{
    rapt_tensor *piece = rapt_empty(b->dtype, RAPT_SHAPE(b->piece));
    return piece && pack(p, b, p->rank * b->piece, b->piece, piece, 0) ? piece : NULL;
}

/* Puts what of all pieces is in the parcel into its slot. */
static bool pack_parcel(const rapt_data_parallel *p, const rapt_parcel *a)
{
    const rapt_bucket *b = &p->buckets[a->bucket];
    bool good = true;
    for (int rank = 0; rank < p->ranks; rank++)
        if (!pack(p, b, rank * b->piece + a->first, a->count, a->slot->sum, rank * a->count)) good = false;
    return good;
}

static void unpack_parcel(const rapt_data_parallel *p, const rapt_parcel *a)
{
    const rapt_bucket *b = &p->buckets[a->bucket];
    for (int rank = 0; rank < p->ranks; rank++)
        unpack(p, b, rank * b->piece + a->first, a->count, a->slot->sum, rank * a->count);
}

static bool is_last(const rapt_data_parallel *p, const rapt_parcel *a)
{
    return a->first + a->count == p->buckets[a->bucket].piece;
}

/* --- on the way --- */

static MPI_Datatype type_of(const rapt_data_parallel *p, const rapt_parcel *a)
{
    return p->buckets[a->bucket].dtype == RAPT_FLOAT32 ? MPI_FLOAT : MPI_DOUBLE;
}

/* After an error in the memory of this rank, something travels all the same: the others wait for it. */
static void scatter(rapt_data_parallel *p, rapt_parcel *a)
{
    const int count = (int)a->count;
    const MPI_Datatype type = type_of(p, a);
    if (p->shards_gradients && !pack_parcel(p, a)) p->failed = true;
    if (p->shards_gradients && is_last(p, a)) rapt_numbers_free(p, a->bucket, a->bucket + 1);
    if (!rapt_check_mpi(name, MPI_Ialltoall(rapt_data(a->slot->sum), count, type, rapt_data_for_writing(a->slot->mine),
                                            count, type, p->scatter, &a->request)))
        p->broken = true;
}

/* Begins to gather in the slot's sum what all ranks have, this one from there on. */
static void gather(rapt_data_parallel *p, rapt_parcel *a, const void *own)
{
    const int count = (int)a->count;
    const MPI_Datatype type = type_of(p, a);
    if (!rapt_check_mpi(name, MPI_Iallgather(own, count, type, rapt_data_for_writing(a->slot->sum), count, type,
                                             p->gather, &a->request)))
        p->broken = true;
}

static bool is_over(rapt_data_parallel *p, MPI_Request *request, bool wait)
{
    int over = 1;
    const int code = wait ? MPI_Wait(request, MPI_STATUS_IGNORE) : MPI_Test(request, &over, MPI_STATUS_IGNORE);
    if (!rapt_check_mpi(name, code)) p->broken = true;
    return over && !p->broken;
}

/* --- sums over ranks --- */

static rapt_tensor *arrived_from(const rapt_parcel *a, int rank)
{
    return rapt_slice(a->slot->mine, 0, rank * a->count, (rank + 1) * a->count, 1);
}

rapt_tensor *rapt_parcel_sum(const rapt_parcel *a)
{
    return arrived_from(a, 0);
}

/* A piece whose sum over ranks is complete joins those of the parts before, as 1 is added to a binary number. */
static bool end_piece(const rapt_data_parallel *p, rapt_bucket *b)
{
    int level = 0;
    for (; (p->done >> level) & 1; level++) {
        if (!rapt_add_in_place(b->gradient, b->levels[level], 1)) return false;
        rapt_release(b->levels[level]);
        b->levels[level] = NULL;
    }
    if (p->done + 1 == p->own_parts) return true;
    b->levels[level] = b->gradient;
    b->gradient = NULL;
    return true;
}

/* Puts the sum of a parcel into the piece that this rank keeps. */
static bool keep_sum(const rapt_data_parallel *p, const rapt_parcel *a)
{
    rapt_bucket *b = &p->buckets[a->bucket];
    if (a->first == 0) {
        rapt_release(b->gradient); /* of a step that nobody made */
        b->gradient = rapt_retain(rapt_empty(b->dtype, RAPT_SHAPE(b->piece)));
    }
    return b->gradient && rapt_copy(rapt_slice(b->gradient, 0, a->first, a->first + a->count, 1), rapt_parcel_sum(a)) &&
           (!is_last(p, a) || end_piece(p, b));
}

/* Sums over all ranks, two and two by two and two. What is not kept in pieces is divided by the weight of the batch. */
static bool sum_parcel(const rapt_data_parallel *p, const rapt_parcel *a)
{
    RAPT_SCOPE;
    for (int step = 1; step < p->ranks; step *= 2)
        for (int rank = 0; rank + step < p->ranks; rank += 2 * step)
            if (!rapt_add_in_place(arrived_from(a, rank), arrived_from(a, rank + step), 1)) return false;
    if (p->shards_gradients) return keep_sum(p, a);
    return p->totals.weight <= 0 || rapt_scale_in_place(rapt_parcel_sum(a), 1 / p->totals.weight);
}

/* Adds what a part counts to what those before do, as gradients are added. */
static rapt_totals add_levels(rapt_data_parallel *p, rapt_totals totals)
{
    int level = 0;
    for (; (p->done >> level) & 1; level++) {
        totals.weight += p->levels[level].weight;
        totals.loss += p->levels[level].loss;
    }
    p->levels[level] = totals;
    return totals;
}

/* Parts are added up before ranks are, as gradients are; or ranks first, where they are sharded. */
void rapt_totals_begin(rapt_data_parallel *p, rapt_totals part)
{
    p->own = p->shards_gradients ? part : add_levels(p, part);
    if (!p->shards_gradients && p->done + 1 < p->own_parts) return;
    if (!rapt_check_mpi(name,
                        MPI_Iallgather(&p->own, 2, MPI_DOUBLE, p->all, 2, MPI_DOUBLE, p->scatter, &p->totals_request)))
        p->broken = true;
}

/* Σ of all ranks, by the tree of the gradients */
static void sum_totals(rapt_data_parallel *p)
{
    for (int step = 1; step < p->ranks; step *= 2)
        for (int rank = 0; rank + step < p->ranks; rank += 2 * step) {
            p->all[rank].weight += p->all[rank + step].weight;
            p->all[rank].loss += p->all[rank + step].loss;
        }
    p->totals = p->shards_gradients ? add_levels(p, p->all[0]) : p->all[0];
    p->has_totals = true;
}

/* --- parcels of gradients --- */

/* Is there a parcel whose gradients are complete, and which has not begun? */
static bool is_ready(const rapt_data_parallel *p)
{
    return p->scattered < p->parcel_count && p->buckets[p->parcels[p->scattered].bucket].awaited == 0 &&
           (p->shards_gradients || p->done + 1 >= p->own_parts);
}

static void wait_for_all(rapt_data_parallel *p)
{
    for (int i = 0; i < p->parcel_count && !p->broken; i++) is_over(p, &p->parcels[i].request, true);
}

void rapt_parcels_exchange(rapt_data_parallel *p, bool wait)
{
    while (!p->broken) {
        for (; is_ready(p) && p->scattered - p->summed < p->at_once; p->scattered++)
            scatter(p, &p->parcels[p->scattered]);
        if (!p->has_totals && (p->scattered > 0 || wait) && is_over(p, &p->totals_request, wait)) sum_totals(p);
        if (p->summed == p->scattered || !(p->shards_gradients || p->has_totals)) break;
        rapt_parcel *a = &p->parcels[p->summed];
        /* A parcel that is ready needs a slot. On a ring others may begin this one at their part's end alone, and
         * backward meets them before. */
        if (!is_over(p, &a->request, wait || (is_ready(p) && !p->ring))) break;
        if (!sum_parcel(p, a)) rapt_note_failure(p);
        if (!p->sharded) gather(p, a, rapt_data(a->slot->mine));
        p->summed++;
    }
    if (wait) wait_for_all(p);
}

bool rapt_parcels_are_over(rapt_data_parallel *p)
{
    bool over = is_over(p, &p->totals_request, false);
    for (int i = 0; over && i < p->parcel_count; i++) over = is_over(p, &p->parcels[i].request, false);
    return over;
}

/* --- parcels of what each rank has a piece of --- */

static void begin_to_spread(rapt_data_parallel *p, rapt_parcel *a)
{
    const rapt_bucket *b = &p->buckets[a->bucket];
    const char *numbers = rapt_data(b->given);
    gather(p, a, numbers + (size_t)a->first * rapt_dtype_size(b->dtype));
}

bool rapt_buckets_spread(rapt_data_parallel *p, int bucket, int end)
{
    if (bucket == end || p->broken) return !p->broken;
    const rapt_bucket *final = &p->buckets[end - 1];
    const int first = p->buckets[bucket].first_parcel, last = final->first_parcel + final->parcels;
    for (int i = bucket; i < end; i++) rapt_retain(p->buckets[i].given);
    for (int i = first; i <= last && !p->broken; i++) {
        if (i < last) begin_to_spread(p, &p->parcels[i]);
        if (i > first && is_over(p, &p->parcels[i - 1].request, true)) unpack_parcel(p, &p->parcels[i - 1]);
    }
    for (int i = bucket; i < end && !p->broken; i++) rapt_release(p->buckets[i].given);
    return !p->broken;
}
