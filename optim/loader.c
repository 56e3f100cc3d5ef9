/* The batch loader: where it stands, and the next batch. */
#include "loader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tensor/core.h"
#include "tensor/debug.h"
#include "tensor/random.h"

static const char op[] = "loader";

/* Each epoch of a loader with a seed draws from a place of its own in the seed's random numbers. */
enum { epoch_bits = 40 };

/* In the offset of a state before the first item: the epoch's order is drawn, from the offset without it. */
static const uint64_t order_is_drawn = UINT64_C(1) << 63;

static bool check_numbers(const rapt_loader *loader)
{
    const rapt_loader_config *c = &loader->config;
    if (c->batch_size < 0 || c->most_tokens < 0 || c->bucket < 0 || c->prefetch < 0)
        return rapt_fail(RAPT_ERROR_VALUE, op,
                         "batch size %lld, most tokens %lld, bucket %lld, prefetch %d; 0 or more expected",
                         (long long)c->batch_size, (long long)c->most_tokens, (long long)c->bucket, c->prefetch);
    if (c->batch_size == 0 && c->most_tokens == 0)
        return rapt_fail(RAPT_ERROR_VALUE, op, "neither a batch size nor the most tokens of a batch are given");
    if ((c->bucket > 0 || c->most_tokens > 0) && !loader->lengths)
        return rapt_fail(RAPT_ERROR_NULL, op, "buckets and most tokens need lengths, or a column with starts");
    if (c->drop_last && loader->items < c->batch_size)
        return rapt_fail(RAPT_ERROR_VALUE, op, "%lld items are no batch of %lld, and shorter ones are left out",
                         (long long)loader->items, (long long)c->batch_size);
    return true;
}

static bool set_up(rapt_loader *loader)
{
    const rapt_loader_config *c = &loader->config;
    if (!c->columns && !c->make)
        return rapt_fail(RAPT_ERROR_NULL, op, "neither columns nor a function that makes batches are given");
    if (c->columns && c->make)
        return rapt_fail(RAPT_ERROR_VALUE, op, "both columns and a function that makes batches; one of them expected");
    if (c->make) loader->config.column_count = 0;
    loader->items = c->items;
    if (!rapt_loader_take_columns(loader) || !check_numbers(loader)) return false;
    if (c->columns) {
        loader->config.make = rapt_loader_make_columns;
        loader->config.context = loader;
    }
    loader->plan.order = malloc((size_t)loader->items * sizeof *loader->plan.order);
    loader->plan.ends = malloc((size_t)loader->items * sizeof *loader->plan.ends);
    if (!loader->plan.order || !loader->plan.ends)
        return rapt_fail(RAPT_ERROR_MEMORY, op, "no memory for the order of %lld items", (long long)loader->items);
    loader->config.columns = NULL;
    loader->config.lengths = NULL;
    if (c->prefetch > 0) loader->prefetch = rapt_prefetch_new(loader, c->prefetch);
    return c->prefetch == 0 || loader->prefetch;
}

/* In a forked child batches are made when they are asked for. What the thread had and held at the fork stays as it
 * was. */
static void leave_lost_thread(rapt_loader *loader)
{
    if (loader->prefetch && !rapt_prefetch_is_here(loader->prefetch)) loader->prefetch = NULL;
}

rapt_loader *rapt_loader_new(const rapt_loader_config *config)
{
    if (!config) return rapt_fail_null(op, "config"), NULL;
    rapt_loader *loader = calloc(1, sizeof *loader);
    if (!loader) return rapt_fail(RAPT_ERROR_MEMORY, op, "no memory for the loader"), NULL;
    loader->config = *config;
    if (set_up(loader)) return loader;
    rapt_loader_free(loader);
    return NULL;
}

void rapt_loader_free(rapt_loader *loader)
{
    if (!loader || rapt_was_freed("loader_free", loader)) return;
    leave_lost_thread(loader);
    rapt_prefetch_free(loader->prefetch);
    rapt_loader_drop(&loader->present);
    for (int i = 0; loader->columns && i < loader->config.column_count; i++) {
        rapt_release(loader->columns[i].values);
        rapt_release(loader->columns[i].starts);
    }
    free(loader->columns);
    free(loader->lengths);
    free(loader->plan.order);
    free(loader->plan.ends);
    rapt_free_object(loader, "loader");
}

void rapt_loader_drop(rapt_made_batch *made)
{
    for (int i = 0; i < RAPT_BATCH_TENSORS; i++) rapt_release(made->batch.tensors[i]);
    *made = (rapt_made_batch){0};
}

static int64_t end_after(const rapt_loader_plan *plan, int64_t item)
{
    int64_t low = 0, high = plan->batches - 1;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (plan->ends[middle] > item)
            high = middle;
        else
            low = middle + 1;
    }
    return plan->ends[low];
}

/* Where a batch begins, or the epoch ends. */
static bool is_boundary(const rapt_loader_plan *plan, int64_t item)
{
    return item == 0 || (item <= plan->items && end_after(plan, item - 1) == item);
}

/* The function, with the batch's own random numbers: what was drawn before, and on which thread, does not count. */
static bool call_function(const rapt_loader *loader, rapt_batch *batch)
{
    const rapt_random_state before = rapt_random_get_state();
    const rapt_random_state of_epoch = rapt_random_branch(loader->state.random_state, (uint64_t)batch->epoch);
    rapt_random_set_state(rapt_random_branch(of_epoch, (uint64_t)batch->first));
    const bool good = loader->config.make(loader->config.context, batch);
    rapt_random_set_state(before);
    return good;
}

/* Shares in what the function gave; false and an error where one of them is gone. */
static bool take_tensors(rapt_tensor *const *given, rapt_tensor **tensors)
{
    for (int i = 0; rapt_debugging && i < RAPT_BATCH_TENSORS; i++) {
        char what[40];
        snprintf(what, sizeof what, "tensor %d of the batch", i);
        if (!rapt_check_alive(op, what, given[i])) return false;
    }
    for (int i = 0; i < RAPT_BATCH_TENSORS; i++) tensors[i] = rapt_retain(given[i]);
    return true;
}

void rapt_loader_make(rapt_loader *loader, int64_t epoch, int64_t first, rapt_made_batch *made)
{
    RAPT_SCOPE;
    const rapt_batch batch = {.epoch = epoch,
                              .first = first,
                              .count = end_after(&loader->plan, first) - first,
                              .items = loader->plan.order + first};
    *made = (rapt_made_batch){.batch = batch};
    const bool stood = rapt_error();
    const bool good = call_function(loader, &made->batch) && (stood || !rapt_error());
    const rapt_batch given = made->batch;
    made->batch = batch; /* of which the function gives the tensors alone */
    if (good && take_tensors(given.tensors, made->batch.tensors)) return;
    made->code = rapt_error() ? rapt_error_get_code() : RAPT_ERROR_VALUE;
    snprintf(made->op, sizeof made->op, "%s", rapt_error() ? rapt_error_get_op() : op);
    const char *message = rapt_error() ? strstr(rapt_error(), ": ") : NULL;
    snprintf(made->error, sizeof made->error, "%s", message ? message + 2 : "the function that makes batches failed");
}

/* What the order of an epoch is drawn from where there is a seed. The offset has room for 2^24 epochs. */
static rapt_random_state random_state_of(const rapt_loader *loader, int64_t epoch)
{
    const rapt_random_state state = {loader->config.seed, (uint64_t)epoch << epoch_bits};
    const uint64_t beyond = (uint64_t)epoch >> (64 - epoch_bits);
    return beyond > 0 ? rapt_random_branch(state, beyond) : state;
}

/* The plan of the epoch; the thread's generator goes on only where it is what orders are drawn from. */
static bool begin(rapt_loader *loader)
{
    rapt_loader_state *state = &loader->state;
    const uint64_t seed = loader->config.seed;
    const bool is_drawn = state->next > 0 || (state->random_state.offset & order_is_drawn);
    const bool draws_anew = seed == 0 && !is_drawn;
    const rapt_random_state before = rapt_random_get_state();
    rapt_random_state from = draws_anew ? before : state->random_state;
    from.offset &= ~order_is_drawn;
    if (seed != 0) from = random_state_of(loader, state->epoch);
    rapt_random_set_state(from);
    loader->is_planned = rapt_loader_plan_epoch(loader);
    if (!loader->config.shuffle && loader->config.make != rapt_loader_make_columns)
        rapt_random_reserve(1); /* which the function's random numbers come from */
    if (!draws_anew || !loader->is_planned) rapt_random_set_state(before);
    if (!loader->is_planned) return false;
    state->random_state = from;
    if (!is_boundary(&loader->plan, state->next)) {
        loader->is_planned = false;
        return rapt_fail(RAPT_ERROR_VALUE, op,
                         "the state is at item %lld of an epoch of %lld, where no batch begins; it is of other options",
                         (long long)state->next, (long long)loader->plan.items);
    }
    if (loader->prefetch && state->next < loader->plan.items)
        rapt_prefetch_start(loader->prefetch, state->epoch, state->next);
    return true;
}

bool rapt_loader_next(rapt_loader *loader, rapt_batch *batch)
{
    if (!loader || !batch) return rapt_fail_null("loader_next", loader ? "batch" : "loader");
    if (rapt_was_freed("loader_next", loader)) return false;
    leave_lost_thread(loader);
    rapt_loader_drop(&loader->present);
    if (!loader->is_planned && !begin(loader)) return false;
    rapt_loader_state *state = &loader->state;
    if (state->next == loader->plan.items) { /* of which the caller hears now */
        loader->is_planned = false;
        state->epoch++;
        state->next = 0;
        return false;
    }
    if (loader->prefetch)
        loader->present = rapt_prefetch_take(loader->prefetch, state->epoch, state->next);
    else
        rapt_loader_make(loader, state->epoch, state->next, &loader->present);
    rapt_made_batch *made = &loader->present;
    if (made->code != RAPT_OK) return rapt_fail(made->code, made->op, "%s", made->error);
    *batch = made->batch;
    state->next += batch->count;
    return true;
}

int64_t rapt_loader_count_batches(rapt_loader *loader)
{
    if (!loader) return rapt_fail_null("loader_count_batches", "loader"), -1;
    if (rapt_was_freed("loader_count_batches", loader)) return -1;
    if (loader->is_planned) return loader->plan.batches;
    leave_lost_thread(loader);
    const rapt_loader_config *c = &loader->config;
    if (c->most_tokens == 0) {
        const int64_t whole = loader->items / c->batch_size, rest = loader->items % c->batch_size;
        return whole + (rest > 0 && !c->drop_last ? 1 : 0);
    }
    return begin(loader) ? loader->plan.batches : -1;
}

bool rapt_loader_get_state(const rapt_loader *loader, rapt_loader_state *state)
{
    if (!loader || !state) return rapt_fail_null("loader_get_state", loader ? "state" : "loader");
    if (rapt_was_freed("loader_get_state", loader)) return false;
    *state = loader->state;
    if (loader->is_planned && state->next == 0) state->random_state.offset |= order_is_drawn;
    return true;
}

bool rapt_loader_check_state(const char *of, const rapt_loader *loader, const rapt_loader_state *state)
{
    const rapt_loader_config *c = &loader->config;
    const int64_t size = c->most_tokens == 0 ? c->batch_size : 1;
    const int64_t items = c->drop_last && c->most_tokens == 0 ? loader->items / size * size : loader->items;
    if (state->epoch < 0 || state->epoch >= INT64_C(1) << 62 || state->next < 0 || state->next > items)
        return rapt_fail(RAPT_ERROR_VALUE, of,
                         "the loader's state is epoch %lld, item %lld; an epoch from 0 to below 2^62 and an item from "
                         "0 to %lld expected",
                         (long long)state->epoch, (long long)state->next, (long long)items);
    const rapt_random_state *from = &state->random_state, expected = random_state_of(loader, state->epoch);
    const bool draws = c->shuffle || c->make != rapt_loader_make_columns;
    if (c->seed != 0 && draws && state->next > 0 && (from->seed != expected.seed || from->offset != expected.offset))
        return rapt_fail(RAPT_ERROR_VALUE, of,
                         "the order of the loader's state is drawn from seed %llu and offset %llu; seed %llu and "
                         "offset %llu expected",
                         (unsigned long long)from->seed, (unsigned long long)from->offset,
                         (unsigned long long)expected.seed, (unsigned long long)expected.offset);
    /* a short batch may come early where batches of sorted items are shuffled, as where tokens are counted */
    return (c->bucket > 0 && c->shuffle) || state->next % size == 0 || state->next == items ||
           rapt_fail(RAPT_ERROR_VALUE, of, "the loader's state is item %lld, where no batch of %lld begins",
                     (long long)state->next, (long long)size);
}

bool rapt_loader_set_state(rapt_loader *loader, rapt_loader_state state)
{
    if (!loader) return rapt_fail_null("loader_set_state", "loader");
    if (rapt_was_freed("loader_set_state", loader)) return false;
    if (!rapt_loader_check_state("loader_set_state", loader, &state)) return false;
    leave_lost_thread(loader);
    if (loader->prefetch) rapt_prefetch_stop(loader->prefetch);
    rapt_loader_drop(&loader->present);
    loader->state = state;
    loader->is_planned = false;
    return true;
}
