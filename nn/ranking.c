/* The likeliest few of many, without sorting them all: a heap. */
#include "nn/generate.h"

static bool is_before(const double *values, int64_t a, int64_t b)
{
    return values[a] > values[b] || (values[a] == values[b] && a < b);
}

/* Moves the place at `parent` down to where it belongs. */
static void sink(const double *values, int64_t *places, int64_t count, int64_t parent)
{
    const int64_t moved = places[parent];
    for (int64_t child; (child = 2 * parent + 1) < count; parent = child) {
        if (child + 1 < count && is_before(values, places[child + 1], places[child])) child++;
        if (!is_before(values, places[child], moved)) break;
        places[parent] = places[child];
    }
    places[parent] = moved;
}

void rapt_ranking_start(rapt_ranking *r)
{
    r->taken = 0;
    for (int64_t i = 0; i < r->count; i++) r->places[i] = i;
    for (int64_t i = r->count / 2; i-- > 0;) sink(r->values, r->places, r->count, i);
}

int64_t rapt_ranking_place(rapt_ranking *r, int64_t rank)
{
    while (r->taken <= rank) {
        const int64_t largest = r->places[0], left = r->count - ++r->taken;
        r->places[0] = r->places[left];
        r->places[left] = largest;
        sink(r->values, r->places, left, 0);
    }
    return r->places[r->count - 1 - rank];
}
