/* The likeliest few of many, without sorting them all: a heap. */
#include "nn/generate.h"

static bool is_before(const double *values, int64_t a, int64_t b)
{
    return values[a] > values[b] || (values[a] == values[b] && a < b);
}

/* Moves the place at `parent` down to where it belongs in a heap that has the last of the ranking on top. */
static void sink(const double *values, int64_t *places, int64_t count, int64_t parent)
{
    const int64_t moved = places[parent];
    for (int64_t child; (child = 2 * parent + 1) < count; parent = child) {
        if (child + 1 < count && is_before(values, places[child], places[child + 1])) child++;
        if (!is_before(values, moved, places[child])) break;
        places[parent] = places[child];
    }
    places[parent] = moved;
}

static void heap_last_first(const double *values, int64_t count, int64_t *places)
{
    for (int64_t i = count / 2; i-- > 0;) sink(values, places, count, i);
}

static void sort_heap(const double *values, int64_t count, int64_t *places)
{
    while (--count > 0) {
        const int64_t last = places[0];
        places[0] = places[count];
        places[count] = last;
        sink(values, places, count, 0);
    }
}

void rapt_rank_places(const double *values, int64_t count, int64_t *places)
{
    heap_last_first(values, count, places);
    sort_heap(values, count, places);
}

void rapt_rank_few(const double *values, int64_t count, int64_t few, int64_t *places)
{
    for (int64_t i = 0; i < few; i++) places[i] = i;
    heap_last_first(values, few, places);
    for (int64_t i = few; i < count; i++) {
        if (!(values[i] > values[places[0]])) continue;
        places[0] = i;
        sink(values, places, few, 0);
    }
    sort_heap(values, few, places);
}
