/* An optimizer of which each rank has a share: it steps its pieces of the parameters, and all ranks get the values. */
#include <math.h>
#include <stdio.h>

#include "data_parallel.h"

/* This rank's piece of a bucket's parameters. A tensor of the innermost scope; NULL after an error. */
static rapt_tensor *piece_of(const rapt_data_parallel *p, int number)
{
    rapt_tensor *piece =
        rapt_numbers_of_parameters(p, number, number + 1) ? rapt_bucket_cut(p, &p->buckets[number]) : NULL;
    rapt_numbers_free(p, number, number + 1);
    return piece;
}

/* The pieces have the module's values. */
static void note_versions(rapt_data_parallel *p)
{
    for (int i = 0; i < p->parameter_count; i++) p->parameters[i].version = rapt_version(p->parameters[i].parameter);
}

bool rapt_take_pieces(rapt_data_parallel *p)
{
    RAPT_SCOPE;
    for (int i = 0; i < p->bucket_count; i++)
        if (!rapt_copy(p->buckets[i].values, piece_of(p, i))) return false;
    note_versions(p);
    return true;
}

/* Where somebody has loaded, filled or clipped parameters since, the step goes from what they are now. */
static bool take_changes(rapt_data_parallel *p)
{
    bool changed = false;
    for (int i = 0; i < p->parameter_count; i++)
        changed = changed || p->parameters[i].version != rapt_version(p->parameters[i].parameter);
    return !changed || rapt_take_pieces(p);
}

/* This rank's piece of a bucket's parameters becomes one of the optimizer. */
static bool add_piece(rapt_data_parallel *p, int number, rapt_optimizer *optimizer)
{
    RAPT_SCOPE;
    char name[32];
    rapt_bucket *b = &p->buckets[number];
    rapt_release(b->values); /* of a call that failed on another rank */
    b->values = rapt_retain(rapt_require_gradient(piece_of(p, number)));
    snprintf(name, sizeof name, "bucket.%d", number);
    return b->values && rapt_optimizer_add(optimizer, name, b->values);
}

/* Is it without parameters, and of a kind to which a piece of a parameter is as good as a whole one? */
static bool can_shard(const char *op, const rapt_optimizer *optimizer)
{
    if (!optimizer) return rapt_fail(RAPT_ERROR_NULL, op, "optimizer is NULL");
    if (!rapt_optimizer_is_elementwise(optimizer))
        return rapt_fail(RAPT_ERROR_VALUE, op,
                         "the optimizer steps parameters as a whole, as Muon and Adafactor do; one that steps each "
                         "number by itself expected");
    const int count = rapt_optimizer_count(optimizer);
    return count == 0 || rapt_fail(RAPT_ERROR_VALUE, op,
                                   "the optimizer has %d parameters; one made without a module expected", count);
}

bool rapt_data_parallel_shard(rapt_data_parallel *p, rapt_optimizer *optimizer)
{
    const char *op = "data_parallel_shard";
    int mark;
    if (!p) return rapt_fail(RAPT_ERROR_NULL, op, "parallel is NULL");
    bool good = !p->sharded || rapt_fail(RAPT_ERROR_VALUE, op, "there is a sharded optimizer already");
    good = good && can_shard(op, optimizer);
    good = rapt_ranks_agree(p, op, good && rapt_check_between_steps(p, op) && rapt_check_trained(p, op), &mark,
                            1); /* before one of them adds anything */
    if (!good) return false;
    for (int i = 0; good && i < p->bucket_count; i++) good = add_piece(p, i, optimizer);
    note_versions(p);
    good = rapt_ranks_agree(p, op, good, &mark, 1);
    if (good) p->sharded = optimizer;
    return good;
}

/* What was summed becomes the gradients of the pieces; of sharded gradients nothing else is kept. */
static bool give_pieces_gradients(const rapt_data_parallel *p)
{
    RAPT_SCOPE;
    for (int i = 0; i < p->bucket_count; i++) {
        rapt_bucket *b = &p->buckets[i];
        rapt_tensor *sum = p->shards_gradients ? b->gradient : rapt_parcel_sum(&p->parcels[b->first_parcel]);
        if (!sum || !rapt_backward_from(1, &b->values, &sum, 0)) return false;
        rapt_release(b->gradient);
        b->gradient = NULL;
    }
    return true;
}

/* √Σ of the squares of all ranks' norms, in the order of the ranks; −1 after an error, the same on all. */
static double norm_of_all(rapt_data_parallel *p, const char *op, double own)
{
    double sum = 0;
    if (!rapt_check_mpi(op, MPI_Allgather(&own, 1, MPI_DOUBLE, p->norms, 1, MPI_DOUBLE, p->scatter))) return -1;
    for (int rank = 0; rank < p->ranks; rank++) sum += p->norms[rank] * p->norms[rank];
    if (isfinite(sum)) return sqrt(sum);
    return rapt_fail(RAPT_ERROR_VALUE, op, "the norm of all ranks' gradients is %g; a finite one expected", sqrt(sum)),
           -1;
}

static bool scale_gradients(const rapt_data_parallel *p, double factor)
{
    for (int i = 0; i < p->bucket_count; i++)
        if (!rapt_scale_in_place(rapt_gradient(p->buckets[i].values), factor)) return false;
    return true;
}

/* All ranks get all pieces. */
static bool spread_values(rapt_data_parallel *p)
{
    RAPT_SCOPE;
    for (int i = 0; i < p->bucket_count; i++) p->buckets[i].given = p->buckets[i].values;
    bool good = rapt_buckets_spread(p, 0, p->bucket_count);
    for (int i = 0; good && i < p->parameter_count; i++) {
        const rapt_shared_parameter *s = &p->parameters[i];
        if (!rapt_is_contiguous(s->parameter)) /* then its numbers are a copy */
            good = rapt_copy(s->parameter, rapt_reshape(s->numbers, rapt_rank(s->parameter), rapt_shape(s->parameter)));
    }
    if (good) note_versions(p);
    return good;
}

/* All of the step that takes memory, before anything is changed. */
static bool prepare_step(rapt_data_parallel *p, const char *op, double *norm)
{
    if (!p->has_sums) return rapt_fail(RAPT_ERROR_VALUE, op, "rapt_data_parallel_finish expected before it");
    return rapt_check_trained(p, op) && take_changes(p) && give_pieces_gradients(p) &&
           rapt_optimizer_prepare(p->sharded) && rapt_clip_gradient_norm(p->sharded, INFINITY, norm) &&
           rapt_numbers_of_parameters(p, 0, p->bucket_count);
}

static void end_step(rapt_data_parallel *p)
{
    p->has_sums = false;
    rapt_numbers_free(p, 0, p->bucket_count);
    rapt_optimizer_clear_gradients(p->sharded);
}

bool rapt_data_parallel_step(rapt_data_parallel *p, double limit, double *norm)
{
    const char *op = "data_parallel_step";
    double own = 0;
    int mark;
    if (!p) return rapt_fail(RAPT_ERROR_NULL, op, "parallel is NULL");
    if (!p->sharded) return rapt_fail(RAPT_ERROR_VALUE, op, "rapt_data_parallel_shard expected before it");
    bool good = limit > 0 || rapt_fail(RAPT_ERROR_VALUE, op, "the limit is %g; a number above 0 expected", limit);
    if (!rapt_ranks_agree(p, op, good && prepare_step(p, op, &own), &mark, 1)) return end_step(p), false;
    const double length = norm_of_all(p, op, own);
    good = length >= 0 && (length <= limit || scale_gradients(p, limit / length)) && rapt_optimizer_step(p->sharded);
    good = rapt_ranks_agree(p, op, good, &mark, 1);
    if (!good) rapt_take_pieces(p); /* a kind that takes memory in its step: other ranks had it */
    good = good && rapt_ranks_agree(p, op, spread_values(p), &mark, 1);
    end_step(p);
    if (good && norm) *norm = length;
    return good;
}
