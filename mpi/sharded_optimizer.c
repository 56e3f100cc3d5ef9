/* An optimizer of which each rank has a share: it steps its pieces of the parameters, and all ranks get the values. */
#include <math.h>
#include <stdio.h>

#include "data_parallel.h"

/* Puts the parameters of a bucket behind one another, into its sum. */
static bool collect(const rapt_data_parallel *p, int bucket)
{
    bool good = true;
    for (int i = 0; good && i < p->parameter_count; i++)
        if (p->parameters[i].bucket == bucket) good = rapt_copy(p->parameters[i].view, p->parameters[i].parameter);
    return good;
}

rapt_tensor *rapt_own_piece(const rapt_data_parallel *p, const rapt_bucket *b)
{
    return rapt_slice(b->sum, 0, p->rank * b->piece, (p->rank + 1) * b->piece, 1);
}

bool rapt_take_pieces(const rapt_data_parallel *p)
{
    RAPT_SCOPE;
    for (int i = 0; i < p->bucket_count; i++)
        if (!collect(p, i) || !rapt_copy(p->buckets[i].values, rapt_own_piece(p, &p->buckets[i]))) return false;
    return true;
}

/* This rank's piece of a bucket's parameters becomes one of the optimizer. */
static bool add_piece(rapt_data_parallel *p, int number, rapt_optimizer *optimizer)
{
    RAPT_SCOPE;
    char name[32];
    rapt_bucket *b = &p->buckets[number];
    rapt_release(b->values); /* of a call that failed on another rank */
    b->values = NULL;
    if (!collect(p, number)) return false;
    b->values = rapt_retain(rapt_require_gradient(rapt_clone(rapt_own_piece(p, b))));
    snprintf(name, sizeof name, "bucket.%d", number);
    return b->values && rapt_optimizer_add(optimizer, name, b->values);
}

bool rapt_data_parallel_shard(rapt_data_parallel *p, rapt_optimizer *optimizer)
{
    const char *op = "data_parallel_shard";
    int mark;
    if (!p) return rapt_fail(RAPT_ERROR_NULL, op, "parallel is NULL");
    bool good = optimizer || rapt_fail(RAPT_ERROR_NULL, op, "optimizer is NULL");
    if (good && p->sharded) good = rapt_fail(RAPT_ERROR_VALUE, op, "there is a sharded optimizer already");
    for (int i = 0; good && i < p->bucket_count; i++) good = add_piece(p, i, optimizer);
    good = rapt_ranks_agree(p, op, good, &mark, 1);
    if (good) p->sharded = optimizer;
    return good;
}

static bool give_pieces_gradients(const rapt_data_parallel *p)
{
    for (int i = 0; i < p->bucket_count; i++)
        if (!rapt_backward_from(1, &p->buckets[i].values, &p->buckets[i].rows[0], 0)) return false;
    return true;
}

/* √Σ of the squares of all ranks' norms, in the order of the ranks; −1 after an error. */
static double norm_of_all(rapt_data_parallel *p, const char *op, double own)
{
    double sum = 0;
    if (!rapt_check_mpi(op, MPI_Allgather(&own, 1, MPI_DOUBLE, p->norms, 1, MPI_DOUBLE, p->scatter))) return -1;
    for (int rank = 0; rank < p->ranks; rank++) sum += p->norms[rank] * p->norms[rank];
    return sqrt(sum);
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
    for (int i = 0; i < p->bucket_count; i++) rapt_bucket_gather(p, &p->buckets[i], p->buckets[i].values);
    bool good = rapt_buckets_wait(p);
    for (int i = 0; good && i < p->parameter_count; i++)
        good = rapt_copy(p->parameters[i].parameter, p->parameters[i].view);
    return good;
}

bool rapt_data_parallel_step(rapt_data_parallel *p, double limit, double *norm)
{
    const char *op = "data_parallel_step";
    double own = 0;
    int mark;
    if (!p) return rapt_fail(RAPT_ERROR_NULL, op, "parallel is NULL");
    if (!p->sharded) return rapt_fail(RAPT_ERROR_VALUE, op, "rapt_data_parallel_shard expected before it");
    bool good = limit > 0 || rapt_fail(RAPT_ERROR_VALUE, op, "the limit is %g; a number above 0 expected", limit);
    good = good && give_pieces_gradients(p) && rapt_clip_gradient_norm(p->sharded, INFINITY, &own);
    if (!rapt_ranks_agree(p, op, good, &mark, 1)) return rapt_optimizer_clear_gradients(p->sharded), false;
    const double length = norm_of_all(p, op, own);
    good = length >= 0 && (length <= limit || scale_gradients(p, limit / length)) && rapt_optimizer_step(p->sharded);
    if (!rapt_ranks_agree(p, op, good, &mark, 1) || !spread_values(p)) return false;
    if (norm) *norm = length;
    return true;
}
