/* The order of the items of an epoch, and its batches: drawn, sorted by length in buckets, cut, and drawn again. */
#include <stdlib.h>
#include <string.h>

#include "loader.h"
#include "tensor/core.h"

/* 0 … count − 1, shuffled or not, into order; false after an error. */
static bool draw(bool shuffle, int64_t count, int64_t *order)
{
    RAPT_SCOPE;
    rapt_tensor *drawn = shuffle ? rapt_randperm(count) : NULL;
    if (shuffle && !drawn) return false;
    const int64_t *numbers = drawn ? rapt_data(drawn) : NULL;
    for (int64_t i = 0; i < count; i++) order[i] = numbers ? numbers[i] : i;
    return true;
}

typedef struct keyed {
    int64_t length, place, item;
} keyed;

static int compare(const void *left, const void *right)
{
    const keyed *a = left, *b = right;
    if (a->length != b->length) return a->length < b->length ? -1 : 1;
    return a->place < b->place ? -1 : a->place > b->place;
}

static void sort_bucket(const rapt_loader *loader, int64_t *order, int64_t count, keyed *room)
{
    for (int64_t i = 0; i < count; i++) room[i] = (keyed){loader->lengths[order[i]], i, order[i]};
    qsort(room, (size_t)count, sizeof *room, compare);
    for (int64_t i = 0; i < count; i++) order[i] = room[i].item;
}

static void sort_buckets(const rapt_loader *loader, int64_t *order, keyed *room)
{
    const int64_t bucket = loader->config.bucket;
    for (int64_t first = 0; first < loader->items; first += bucket)
        sort_bucket(loader, order + first, loader->items - first < bucket ? loader->items - first : bucket, room);
}

/* The end of the batch that begins there. */
static int64_t end_of_batch(const rapt_loader *loader, const int64_t *order, int64_t first)
{
    const rapt_loader_config *c = &loader->config;
    int64_t end = first, longest = 0, sum = 0;
    for (; end < loader->items && (c->batch_size == 0 || end - first < c->batch_size); end++) {
        if (c->most_tokens == 0) continue;
        const int64_t length = loader->lengths[order[end]];
        longest = length > longest ? length : longest;
        const bool fits =
            c->packed ? length <= c->most_tokens - sum : longest == 0 || end - first + 1 <= c->most_tokens / longest;
        if (!fits && end > first) break;
        if (c->packed) sum += length;
    }
    return end;
}

static void cut(rapt_loader *loader, const int64_t *order)
{
    rapt_loader_plan *plan = &loader->plan;
    plan->batches = 0;
    plan->items = 0;
    while (plan->items < loader->items) {
        const int64_t end = end_of_batch(loader, order, plan->items);
        const bool is_short = end == loader->items && end - plan->items < loader->config.batch_size;
        if (loader->config.drop_last && is_short) break;
        plan->ends[plan->batches++] = plan->items = end;
    }
}

/* The batches in another order. room has as many numbers as there are items, twice. */
static void rearrange(rapt_loader_plan *plan, const int64_t *batches, int64_t *room)
{
    int64_t *ends = room + plan->items, place = 0;
    for (int64_t i = 0; i < plan->batches; i++) {
        const int64_t b = batches[i], first = b > 0 ? plan->ends[b - 1] : 0, count = plan->ends[b] - first;
        memcpy(room + place, plan->order + first, (size_t)count * sizeof *room);
        ends[i] = place += count;
    }
    memcpy(plan->order, room, (size_t)plan->items * sizeof *room);
    memcpy(plan->ends, ends, (size_t)plan->batches * sizeof *ends);
}

/* room: for a keyed, or three numbers, of each item */
static bool plan_in(rapt_loader *loader, keyed *room)
{
    rapt_loader_plan *plan = &loader->plan;
    const bool is_sorted = loader->config.bucket > 0;
    if (!draw(loader->config.shuffle, loader->items, plan->order)) return false;
    if (is_sorted) sort_buckets(loader, plan->order, room);
    cut(loader, plan->order);
    if (!is_sorted || !loader->config.shuffle) return true;
    int64_t *batches = (int64_t *)room;
    if (!draw(true, plan->batches, batches)) return false;
    rearrange(plan, batches, batches + plan->batches);
    return true;
}

bool rapt_loader_plan_epoch(rapt_loader *loader)
{
    keyed *room = malloc((size_t)loader->items * sizeof *room);
    if (!room) return rapt_fail(RAPT_ERROR_MEMORY, "loader", "no memory for the order of an epoch");
    const bool good = plan_in(loader, room);
    free(room);
    return good;
}
