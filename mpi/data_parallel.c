/* Data-parallel training: each rank goes backward from its parts of a batch, and all get the gradients of the whole. */
#include "data_parallel.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

static const char name[] = "data_parallel";

/* --- making and freeing it --- */

/* With all that has the size of the ranks, and on the user's communicator. NULL after an error on this rank. */
static rapt_data_parallel *make(const rapt_data_parallel *start, rapt_module *module,
                                const rapt_data_parallel_config *config)
{
    if (!module) return rapt_fail(RAPT_ERROR_NULL, name, "module is NULL"), NULL;
    if (config->bucket_bytes < 0)
        return rapt_fail(RAPT_ERROR_VALUE, name, "bucket_bytes is %lld; 0 or more expected",
                         (long long)config->bucket_bytes),
               NULL;
    rapt_data_parallel *p = calloc(1, sizeof *p);
    rapt_totals *all = calloc((size_t)start->ranks, sizeof *all);
    double *norms = calloc((size_t)start->ranks, sizeof *norms);
    if (!p || !all || !norms) {
        rapt_fail(RAPT_ERROR_MEMORY, name, "no memory for %d ranks", start->ranks);
        free(p), free(all), free(norms);
        return NULL;
    }
    *p = *start;
    p->scatter = p->gather = MPI_COMM_NULL;
    p->totals_request = MPI_REQUEST_NULL;
    p->module = rapt_module_retain(module);
    p->shards_gradients = config->shards_gradients;
    p->all = all;
    p->norms = norms;
    return p;
}

static bool cut_batch(rapt_data_parallel *p, int parts)
{
    p->parts = parts ? parts : p->ranks;
    p->own_parts = p->parts / p->ranks;
    const bool is_power = p->own_parts > 0 && (p->own_parts & (p->own_parts - 1)) == 0;
    return (p->parts % p->ranks == 0 && is_power) ||
           rapt_fail(RAPT_ERROR_VALUE, name, "%d parts for %d ranks; the ranks times a power of two expected", parts,
                     p->ranks);
}

rapt_data_parallel *rapt_data_parallel_new(MPI_Comm communicator, rapt_module *module,
                                           const rapt_data_parallel_config *config)
{
    enum { default_bytes = 4 << 20 };
    const rapt_data_parallel_config c = config ? *config : (rapt_data_parallel_config){0};
    rapt_ranks ranks;
    int mark;
    if (!rapt_ranks_of(name, communicator, &ranks)) return NULL;
    const rapt_data_parallel start = {.scatter = communicator, .rank = ranks.rank, .ranks = ranks.ranks};
    rapt_data_parallel *p = make(&start, module, &c);
    const bool good =
        rapt_ranks_agree(&start, name, p != NULL, &mark, 1) &&
        rapt_check_mpi(name, MPI_Comm_dup(communicator, &p->scatter)) &&
        rapt_check_mpi(name, MPI_Comm_dup(communicator, &p->gather)) &&
        rapt_ranks_agree(p, name, cut_batch(p, c.parts), &mark, 1) && rapt_check_same_model(p, &c) &&
        rapt_take_first_values(p) &&
        rapt_ranks_agree(p, name, rapt_buckets_new(p, c.bucket_bytes ? c.bucket_bytes : default_bytes), &mark, 1);
    if (good) return p;
    rapt_data_parallel_free(p);
    return NULL;
}

void rapt_data_parallel_free(rapt_data_parallel *p)
{
    if (!p) return;
    /* Of a step that is under way other ranks may never make the rest: MPI keeps what it writes into and reads, until
     * MPI_Finalize. */
    const bool is_running = rapt_mpi_is_running(), over = !is_running || rapt_parcels_are_over(p);
    rapt_buckets_free(p, !over);
    rapt_tensor_list_free(p->buffers);
    free(p->versions);
    rapt_module_free(p->module);
    if (is_running && p->scatter != MPI_COMM_NULL) MPI_Comm_free(&p->scatter);
    if (is_running && p->gather != MPI_COMM_NULL) MPI_Comm_free(&p->gather);
    free(p->norms);
    if (!over) return;
    free(p->all);
    free(p);
}

/* --- parts --- */

int rapt_data_parallel_count_parts(const rapt_data_parallel *p)
{
    if (p) return p->own_parts;
    rapt_fail(RAPT_ERROR_NULL, "data_parallel_count_parts", "parallel is NULL");
    return 0;
}

/* Where the part of that number begins: n·items / parts, without overflow. */
static int64_t begin_of(const rapt_data_parallel *p, int64_t number, int64_t items)
{
    return items / p->parts * number + items % p->parts * number / p->parts;
}

rapt_part rapt_data_parallel_part(const rapt_data_parallel *p, int own, int64_t items)
{
    const char *op = "data_parallel_part";
    const rapt_part none = {.number = -1};
    if (!p) return rapt_fail(RAPT_ERROR_NULL, op, "parallel is NULL"), none;
    if (own < 0 || own >= p->own_parts)
        return rapt_fail(RAPT_ERROR_VALUE, op, "part %d; 0 to %d expected", own, p->own_parts - 1), none;
    if (items < 0) return rapt_fail(RAPT_ERROR_VALUE, op, "%lld items; 0 or more expected", (long long)items), none;
    const int number = p->shards_gradients ? own * p->ranks + p->rank : p->rank * p->own_parts + own;
    return (rapt_part){number, begin_of(p, number, items), begin_of(p, number + 1, items)};
}

/* --- a step --- */

static bool check_part(const rapt_data_parallel *p, rapt_tensor *loss, double weight)
{
    const char *op = "data_parallel_backward";
    char found[200];
    if (!(weight >= 0 && isfinite(weight)))
        return rapt_fail(RAPT_ERROR_VALUE, op, "the weight is %g; a finite number of 0 or more expected", weight);
    if (weight == 0 && !loss)
        return !p->ring || rapt_fail(RAPT_ERROR_NULL, op,
                                     "no loss of weight 0, where attention goes across ranks; one whose gradient is 0 "
                                     "expected, through which that of the others goes");
    if (!loss) return rapt_fail(RAPT_ERROR_NULL, op, "loss is NULL");
    const double least = rapt_get_dtype(loss) == RAPT_FLOAT64 ? DBL_MIN : (double)FLT_MIN, most = 1 / least;
    if (weight > 0 && (weight < least || weight > most))
        return rapt_fail(RAPT_ERROR_VALUE, op, "the weight is %g; %g to %g expected for a loss of %s", weight, least,
                         most, rapt_dtype_name(rapt_get_dtype(loss)));
    return rapt_count(loss) == 1 || rapt_fail(RAPT_ERROR_SHAPE, op, "the loss is %s; one number expected",
                                              rapt_describe(loss, found, sizeof found));
}

/* One part, which counts nothing when it is no good. */
static bool run_part(rapt_data_parallel *p, rapt_tensor *loss, double weight, bool good)
{
    RAPT_SCOPE;
    p->ring = rapt_attention_get_ring(p->module);
    good = good && check_part(p, loss, weight);
    if (!good) weight = 0;
    p->weight = weight;
    p->is_finite = good && loss && weight == 0 && isfinite(rapt_item(loss));
    const double value = weight > 0 ? rapt_item(loss) : 0;
    rapt_buckets_begin_part(p);
    rapt_totals_begin(p, (rapt_totals){weight, weight * value});
    bool walks = false; /* and meets the others on its way, or where that ends early */
    if (good && loss) { /* of weight 0 too: gradients of other ranks go through this one */
        rapt_tensor *seed = rapt_full(rapt_get_dtype(loss), rapt_rank(loss), rapt_shape(loss), weight);
        walks = seed && rapt_requires_gradient(loss);
        good = seed && rapt_backward_to(1, &loss, &seed, 0, rapt_buckets_take, p);
    }
    if (!good && !walks && p->ring) p->ring->agree(p->ring, "data_parallel_backward", false, NULL);
    if (!good) rapt_note_failure(p);
    rapt_buckets_end_part(p);
    return good;
}

static bool check_parallel(const rapt_data_parallel *p, const char *op)
{
    if (!p) return rapt_fail(RAPT_ERROR_NULL, op, "parallel is NULL");
    return p->sharded || !p->shards_gradients ||
           rapt_fail(RAPT_ERROR_VALUE, op, "gradients are sharded; rapt_data_parallel_shard expected before it");
}

bool rapt_data_parallel_backward(rapt_data_parallel *p, rapt_tensor *loss, double weight)
{
    const char *op = "data_parallel_backward";
    if (!check_parallel(p, op)) return false;
    if (p->done == p->own_parts)
        return rapt_fail(RAPT_ERROR_VALUE, op, "all %d own parts went backward; rapt_data_parallel_finish expected",
                         p->own_parts);
    return run_part(p, loss, weight, true);
}

/* To the parameters that a part has reached. */
static bool give_gradients(const rapt_data_parallel *p)
{
    for (int i = 0; i < p->parameter_count; i++) {
        const rapt_shared_parameter *s = &p->parameters[i];
        rapt_tensor *leaf = s->parameter, *gradient = s->view;
        if (!p->marks[1 + i] || !rapt_requires_gradient(leaf)) continue;
        if (!rapt_backward_from(1, &leaf, &gradient, 0)) return false;
    }
    return true;
}

/* Sharded gradients become those of the mean. */
static bool divide_pieces(const rapt_data_parallel *p)
{
    for (int i = 0; p->shards_gradients && i < p->bucket_count; i++)
        if (!rapt_scale_in_place(p->buckets[i].gradient, 1 / p->totals.weight)) return false;
    return true;
}

bool rapt_check_between_steps(const rapt_data_parallel *p, const char *op)
{
    return p->done == 0 || rapt_fail(RAPT_ERROR_VALUE, op,
                                     "%d of %d own parts went backward; rapt_data_parallel_finish expected before it",
                                     p->done, p->own_parts);
}

static void begin_anew(rapt_data_parallel *p)
{
    for (int i = 0; i < p->parameter_count; i++) p->parameters[i].used = false;
    p->done = 0;
    p->failed = false;
    p->reason[0] = 0;
}

bool rapt_data_parallel_finish(rapt_data_parallel *p, double *loss)
{
    const char *op = "data_parallel_finish";
    if (!check_parallel(p, op)) return false;
    int *changed = p->marks + 1 + p->parameter_count;
    if (p->done < p->own_parts)
        rapt_fail(RAPT_ERROR_VALUE, op, "%d of %d own parts went backward", p->done, p->own_parts);
    while (p->done < p->own_parts) run_part(p, NULL, 0, false);
    rapt_parcels_exchange(p, true);
    for (int i = 0; i < p->parameter_count; i++) p->marks[1 + i] = p->parameters[i].used;
    rapt_mark_changed_buffers(p, changed);
    bool good = !p->failed && !p->broken;
    if (good && !(p->totals.weight > 0))
        good = rapt_fail(RAPT_ERROR_VALUE, op, "no part of the batch has a weight above 0");
    good = good && rapt_check_trained(p, op) && divide_pieces(p);
    for (int i = 0; i < p->parameter_count; i++) rapt_clear_gradient(p->parameters[i].parameter);
    good = rapt_ranks_agree(p, op, good, p->marks, 1 + p->parameter_count + p->buffers->count) &&
           (p->sharded || rapt_ranks_agree(p, op, give_gradients(p), p->marks, 1)) &&
           rapt_take_changed_buffers(p, changed);
    for (int i = 0; i < p->parameter_count && !good; i++) rapt_clear_gradient(p->parameters[i].parameter);
    if (!good) rapt_buckets_drop(p);
    p->has_sums = good;
    if (good && loss) *loss = p->totals.loss / p->totals.weight;
    begin_anew(p);
    return good;
}
