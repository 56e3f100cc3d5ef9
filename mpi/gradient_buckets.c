/* Gradients in buckets: what arrives is put together, and parts of a rank are added up. */
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data_parallel.h"

static const char name[] = "data_parallel";

/* --- making them --- */

/* Lists the trained vectors, or the others, from the last to the first. */
static bool list_some(rapt_data_parallel *p, const rapt_tensor_list *list, bool vectors)
{
    for (int i = list->count - 1; i >= 0; i--) {
        if (!rapt_requires_gradient(list->tensors[i]) || (rapt_rank(list->tensors[i]) < 2) != vectors) continue;
        rapt_shared_parameter *s = &p->parameters[p->parameter_count++];
        s->parameter = rapt_retain(list->tensors[i]);
        s->name = strdup(list->names[i]);
        if (!s->name) return rapt_fail(RAPT_ERROR_MEMORY, name, "no memory for the name %s", list->names[i]);
    }
    return true;
}

/* Lists the parameters as backward comes to them, and makes room for their buckets. Vectors are last: they are few
 * bytes, and a layer's norms, which have names behind its matrices', would let a bucket of those wait for the layer's
 * end. */
static bool list_parameters(rapt_data_parallel *p)
{
    rapt_tensor_list *list = rapt_module_list(p->module, RAPT_PARAMETERS);
    if (!list) return false;
    const size_t room = (size_t)list->count + 1;
    p->parameters = calloc(room, sizeof *p->parameters);
    p->buckets = calloc(room, sizeof *p->buckets);
    p->marks = calloc(room + (size_t)p->buffers->count, sizeof *p->marks);
    bool good = (p->parameters && p->buckets && p->marks) ||
                rapt_fail(RAPT_ERROR_MEMORY, name, "no memory for %d parameters", list->count);
    good = good && list_some(p, list, false) && list_some(p, list, true);
    rapt_tensor_list_free(list);
    return good;
}

/* NULL for a tensor that is none of the parameters that were trained when they were listed. */
static rapt_shared_parameter *find_listed(const rapt_data_parallel *p, const rapt_tensor *parameter)
{
    for (int i = 0; i < p->parameter_count; i++)
        if (p->parameters[i].parameter == parameter) return &p->parameters[i];
    return NULL;
}

/* What stands in the message, too: the op that checks. */
typedef struct check {
    const rapt_data_parallel *parallel;
    const char *op;
} check;

static bool is_as_listed(const char *parameter_name, rapt_tensor *parameter, void *context)
{
    const check *c = context;
    const bool is_trained = rapt_requires_gradient(parameter);
    return is_trained == (find_listed(c->parallel, parameter) != NULL) ||
           rapt_fail(RAPT_ERROR_VALUE, c->op,
                     "%s is %s in rapt_data_parallel_new; make the rapt_data_parallel anew on all ranks",
                     parameter_name, is_trained ? "trained, and was frozen" : "frozen, and was not");
}

static bool count_trained(const char *parameter_name, rapt_tensor *parameter, void *count)
{
    (void)parameter_name;
    *(int *)count += rapt_requires_gradient(parameter);
    return true;
}

/* What travels is copied as numbers of the buckets' dtypes. */
bool rapt_check_dtypes(const rapt_data_parallel *p, const char *op)
{
    for (int i = 0; i < p->parameter_count; i++) {
        const rapt_shared_parameter *s = &p->parameters[i];
        const rapt_dtype now = rapt_get_dtype(s->parameter), before = p->buckets[s->bucket].dtype;
        if (now != before)
            return rapt_fail(
                RAPT_ERROR_DTYPE, op,
                "%s is %s, and was %s in rapt_data_parallel_new; make the rapt_data_parallel anew on all ranks",
                s->name, rapt_dtype_name(now), rapt_dtype_name(before));
    }
    return true;
}

/* The sets are one if all of the list are trained, and as many are as it has. Only of others is each looked for. */
bool rapt_check_trained(const rapt_data_parallel *p, const char *op)
{
    int trained = 0, listed = 0;
    if (!rapt_check_dtypes(p, op)) return false;
    if (!rapt_module_visit(p->module, RAPT_PARAMETERS, count_trained, &trained)) return false;
    for (int i = 0; i < p->parameter_count; i++) listed += rapt_requires_gradient(p->parameters[i].parameter);
    if (listed == p->parameter_count && trained == p->parameter_count) return true;
    return rapt_module_visit(p->module, RAPT_PARAMETERS, is_as_listed, &(check){p, op});
}

/* Pieces begin with cache lines: of so many elements, or two. */
enum { line = 16 };

/* A bucket is full when it has so many bytes, or the dtype changes. */
static void fill_buckets(rapt_data_parallel *p, int64_t bytes)
{
    rapt_bucket *b = NULL;
    for (int i = 0; i < p->parameter_count; i++) {
        rapt_shared_parameter *s = &p->parameters[i];
        const rapt_dtype dtype = rapt_get_dtype(s->parameter);
        if (!b || b->dtype != dtype || b->elements >= bytes / (int64_t)rapt_dtype_size(dtype)) {
            b = &p->buckets[p->bucket_count++];
            b->dtype = dtype;
            b->first_parameter = i;
        }
        s->bucket = p->bucket_count - 1;
        s->first = b->elements;
        b->elements += rapt_count(s->parameter);
        b->parameters++;
        b->piece = (b->elements + p->ranks * line - 1) / (p->ranks * line) * line;
    }
}

/* Elements of a piece that a parcel has at most. */
static int64_t longest_parcel(const rapt_data_parallel *p, const rapt_bucket *b, int64_t bytes)
{
    const int64_t some = bytes / (int64_t)rapt_dtype_size(b->dtype) / p->ranks / line * line;
    return !p->shards_gradients || some > b->piece ? b->piece : some > 0 ? some : line;
}

/* Cuts buckets into parcels: one, or several. */
static bool make_parcels(rapt_data_parallel *p, int64_t bytes)
{
    int64_t count = 0;
    for (int i = 0; i < p->bucket_count; i++) {
        rapt_bucket *b = &p->buckets[i];
        const int64_t most = longest_parcel(p, b, bytes), parcels = b->piece > most ? (b->piece + most - 1) / most : 1;
        if (most > INT_MAX / p->ranks || count + parcels > INT_MAX)
            return rapt_fail(RAPT_ERROR_VALUE, name, "%lld numbers in one bucket; MPI counts to %d",
                             (long long)b->elements, INT_MAX);
        b->first_parcel = (int)count;
        b->parcels = (int)parcels;
        count += parcels;
    }
    p->parcels = calloc((size_t)count + 1, sizeof *p->parcels);
    if (!p->parcels) return rapt_fail(RAPT_ERROR_MEMORY, name, "no memory for %lld parcels", (long long)count);
    for (int i = 0; i < p->bucket_count; i++) {
        const rapt_bucket *b = &p->buckets[i];
        const int64_t most = longest_parcel(p, b, bytes);
        for (int k = 0; k < b->parcels; k++) {
            const int64_t left = b->piece - k * most;
            p->parcels[p->parcel_count++] = (rapt_parcel){.bucket = i,
                                                          .first = k * most,
                                                          .count = left < most ? left : most,
                                                          .request = MPI_REQUEST_NULL};
        }
    }
    return true;
}

/* Parcels have slots in turn. Those of another dtype have others. */
static bool make_slots(rapt_data_parallel *p)
{
    RAPT_SCOPE;
    enum { at_once = 4 };
    p->at_once = p->shards_gradients ? at_once : p->parcel_count;
    p->slot_count = p->shards_gradients ? 2 * at_once : p->parcel_count;
    p->slots = calloc((size_t)p->slot_count + 1, sizeof *p->slots);
    if (!p->slots) return rapt_fail(RAPT_ERROR_MEMORY, name, "no memory for %d buckets", p->slot_count);
    for (int i = 0; i < p->parcel_count; i++) {
        rapt_parcel *a = &p->parcels[i];
        const rapt_dtype dtype = p->buckets[a->bucket].dtype;
        rapt_slot *slot = &p->slots[i % p->at_once + (p->shards_gradients && dtype == RAPT_FLOAT64) * at_once];
        const int64_t size = p->ranks * a->count;
        a->slot = slot;
        if (slot->mine && rapt_count(slot->mine) >= size) continue;
        rapt_release(slot->sum), rapt_release(slot->mine);
        slot->sum = rapt_retain(rapt_zeros(dtype, RAPT_SHAPE(size)));
        slot->mine = rapt_retain(rapt_zeros(dtype, RAPT_SHAPE(size)));
        if (!slot->sum || !slot->mine) return rapt_fail(RAPT_ERROR_MEMORY, name, "no memory for the gradients");
    }
    return true;
}

/* Where gradients are not sharded: the views of all of a bucket's gradients in its slot, and as many levels. */
static bool make_views(rapt_data_parallel *p)
{
    RAPT_SCOPE;
    for (int i = 0; i < p->parameter_count; i++) {
        rapt_shared_parameter *s = &p->parameters[i];
        rapt_tensor *sum = p->slots[s->bucket].sum;
        rapt_tensor *part = rapt_slice(sum, 0, s->first, s->first + rapt_count(s->parameter), 1);
        s->view = rapt_retain(rapt_reshape(part, rapt_rank(s->parameter), rapt_shape(s->parameter)));
        if (!s->view) return false;
    }
    for (int i = 0; i < p->bucket_count; i++)
        for (int level = 0; 1 << level < p->own_parts; level++)
            if (!(p->buckets[i].levels[level] = rapt_retain(rapt_zeros_like(p->slots[i].sum)))) return false;
    return true;
}

bool rapt_buckets_new(rapt_data_parallel *p, int64_t bytes)
{
    if (!list_parameters(p)) return false;
    fill_buckets(p, bytes);
    return make_parcels(p, bytes) && make_slots(p) && (p->shards_gradients || make_views(p));
}

static void release_gradients(rapt_bucket *b)
{
    rapt_release(b->gradient);
    b->gradient = NULL;
    for (int level = 0; level < RAPT_MAX_LEVELS; level++) {
        rapt_release(b->levels[level]);
        b->levels[level] = NULL;
    }
}

void rapt_buckets_free(rapt_data_parallel *p, bool keeps_slots)
{
    rapt_numbers_free(p, 0, p->bucket_count);
    for (int i = 0; i < p->parameter_count; i++) {
        rapt_release(p->parameters[i].parameter);
        rapt_release(p->parameters[i].view);
        free(p->parameters[i].name);
    }
    for (int i = 0; i < p->bucket_count; i++) {
        release_gradients(&p->buckets[i]);
        rapt_release(p->buckets[i].values);
    }
    for (int i = 0; p->slots && !keeps_slots && i < p->slot_count; i++)
        rapt_release(p->slots[i].sum), rapt_release(p->slots[i].mine);
    free(p->parameters);
    free(p->buckets);
    free(p->parcels);
    free(p->slots);
    free(p->marks);
}

void rapt_buckets_drop(rapt_data_parallel *p)
{
    for (int i = 0; p->shards_gradients && i < p->bucket_count; i++) release_gradients(&p->buckets[i]);
}

/* --- filling them --- */

void rapt_buckets_begin_part(rapt_data_parallel *p)
{
    for (int i = 0; i < p->bucket_count; i++) p->buckets[i].awaited = p->buckets[i].parameters;
    p->scattered = p->summed = 0;
    p->has_totals = p->has_sums = false;
}

/* All of it has arrived: it joins what came before, as 1 is added to a binary number, and waits, unless it is last. */
static bool end_bucket(const rapt_data_parallel *p, rapt_bucket *b)
{
    rapt_tensor *sum = p->parcels[b->first_parcel].slot->sum;
    int level = 0;
    for (; (p->done >> level) & 1; level++)
        if (!rapt_add_in_place(sum, b->levels[level], 1)) return false;
    return p->done + 1 == p->own_parts || rapt_copy(b->levels[level], sum);
}

static bool arrive(rapt_data_parallel *p, rapt_shared_parameter *s)
{
    rapt_bucket *b = &p->buckets[s->bucket];
    s->arrived = true;
    return --b->awaited > 0 || p->shards_gradients || end_bucket(p, b);
}

/* Sharded gradients wait as they are until it is their bucket's turn. */
static bool keep(rapt_shared_parameter *s, rapt_tensor *gradient)
{
    RAPT_SCOPE;
    RAPT_NO_GRADIENT;
    s->numbers = rapt_retain(rapt_reshape(gradient, RAPT_SHAPE(-1)));
    return s->numbers != NULL;
}

/* Of a loss of weight 0 it is 0, or 0 times what is not finite; on a ring there is that of the others beside it. */
static bool check_gradient(const rapt_data_parallel *p, const rapt_shared_parameter *s, rapt_tensor *gradient)
{
    RAPT_SCOPE;
    RAPT_NO_GRADIENT;
    if (p->weight > 0) return true;
    const double sum = rapt_item(rapt_sum(gradient, RAPT_ALL_AXES, false));
    const bool fits = p->ring ? !isnan(sum) || p->is_finite : sum == 0;
    return fits || rapt_fail(RAPT_ERROR_VALUE, "data_parallel_backward",
                             "%s has a gradient of %g from a loss of weight 0, which would be all ranks'; 0 "
                             "expected, of a loss that is not 0 / 0",
                             s->name, sum);
}

bool rapt_buckets_take(void *parallel, rapt_tensor *parameter, rapt_tensor *gradient)
{
    rapt_data_parallel *p = parallel;
    rapt_shared_parameter *s = find_listed(p, parameter);
    if (!s) return true; /* no parameter of the module */
    s->used = true;
    if (!check_gradient(p, s, gradient)) return false;
    const bool good = (p->shards_gradients ? keep(s, gradient) : rapt_copy(s->view, gradient)) && arrive(p, s);
    rapt_parcels_exchange(p, false);
    return good;
}

void rapt_buckets_end_part(rapt_data_parallel *p)
{
    for (int i = 0; i < p->parameter_count; i++) {
        rapt_shared_parameter *s = &p->parameters[i];
        if (!s->arrived && !((p->shards_gradients || rapt_fill(s->view, 0)) && arrive(p, s))) rapt_note_failure(p);
        s->arrived = false;
    }
    rapt_parcels_exchange(p, p->shards_gradients);
    p->done++;
}
