/* Work in pieces: each item is done once whatever the number of threads, and threads that are done help the others. */
#include <criterion/criterion.h>
#include <fenv.h>
#include <omp.h>
#include <stdatomic.h>
#include <string.h>

#ifdef __SSE__
#include <xmmintrin.h>
#endif

#include <rapt/runtime.h>

#include "tensor/parallel.h"

enum { most_items = 1000 };

typedef void divided(int64_t count, int64_t grain, rapt_task *task, void *context);

static divided *const ways[] = {rapt_parallel, rapt_parallel_evenly};

static _Atomic int done[most_items], calls;

static void count_items(void *context, int64_t first, int64_t last)
{
    const int64_t grain = *(const int64_t *)context;
    cr_expect(first % grain == 0 && last > first && last - first <= grain, "[%d, %d)", (int)first, (int)last);
    for (int64_t i = first; i < last; i++) atomic_fetch_add(&done[i], 1);
    atomic_fetch_add(&calls, 1);
}

static void expect_each_once(int way, int64_t count, int64_t grain)
{
    memset(done, 0, sizeof done);
    atomic_store(&calls, 0);
    ways[way](count, grain, count_items, &grain);
    for (int64_t i = 0; i < most_items; i++)
        cr_expect_eq(atomic_load(&done[i]), i < count, "item %d of %d in pieces of %d", (int)i, (int)count, (int)grain);
    cr_expect_eq(atomic_load(&calls), rapt_divide_up(count, grain));
}

Test(parallel, each_item_is_done_once)
{
    static const int numbers[] = {1, 2, 3, 8, 70}; /* the last: more than have shares of their own */
    static const int64_t counts[] = {0, 1, 2, 7, 69, most_items};
    for (size_t t = 0; t < sizeof numbers / sizeof *numbers; t++) {
        cr_assert(rapt_set_threads(numbers[t]));
        for (int way = 0; way < 2; way++)
            for (size_t c = 0; c < sizeof counts / sizeof *counts; c++)
                for (int64_t grain = 1; grain <= 100; grain *= 10) expect_each_once(way, counts[c], grain);
    }
}

enum { share = 50 };

static _Atomic int elsewhere;

/* The thread that begins the first share waits in its first piece until the rest of it is done. */
static void wait_for_help(void *context, int64_t first, int64_t last)
{
    (void)context, (void)last;
    if (first > 0 && first < share) atomic_fetch_add(&elsewhere, 1);
    while (first == 0 && atomic_load(&elsewhere) < share - 1) {
    }
}

Test(parallel, a_thread_that_is_done_helps_the_others, .timeout = 60)
{
    cr_assert(rapt_set_threads(2));
    rapt_parallel_evenly(2 * share, 1, wait_for_help, NULL);
    cr_expect_eq(atomic_load(&elsewhere), share - 1);
}

static int begun_by[2][2 * share];
static _Atomic int begun;

/* The first pieces of both threads wait for each other, so that neither has to help before it began. */
static void note_thread(void *context, int64_t first, int64_t last)
{
    (void)last;
    ((int *)context)[first] = omp_get_thread_num();
    if (first % share > 0) return;
    atomic_fetch_add(&begun, 1);
    while (atomic_load(&begun) % 2 != 0) {
    }
}

Test(parallel, threads_begin_where_they_began_before)
{
    cr_assert(rapt_set_threads(2));
    for (int i = 0; i < 2; i++) {
        rapt_parallel_evenly(2 * share, 1, note_thread, begun_by[i]);
        cr_expect_eq(begun_by[i][0], 0);
        cr_expect_eq(begun_by[i][share], 1);
    }
}

enum { modes = 4 };

static const int directions[modes] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TONEAREST};

/* What a thread computes with: 1/3 by its rounding, and a subnormal number. */
typedef struct numbers {
    float third, tiny;
} numbers;

static numbers compute(void)
{
    volatile float one = 1, three = 3, small = 0x1p-126f, half = 0.5f;
    return (numbers){one / three, small * half};
}

/* Both threads have a piece. */
static void note_numbers(void *context, int64_t first, int64_t last)
{
    (void)last;
    ((numbers *)context)[first] = compute();
    atomic_fetch_add(&begun, 1);
    while (atomic_load(&begun) % 2 != 0) {
    }
}

static void flush_subnormal(bool flushes)
{
#ifdef __SSE__
    const unsigned bits = _MM_FLUSH_ZERO_ON | 0x40; /* results, and operands */
    _mm_setcsr(flushes ? _mm_getcsr() | bits : _mm_getcsr() & ~bits);
#else
    (void)flushes;
#endif
}

static void expect_as_own(const numbers *found, const numbers *own, const char *whose)
{
    cr_expect(found->third == own->third && found->tiny == own->tiny, "%s %.9g, %g; %.9g, %g expected", whose,
              (double)found->third, (double)found->tiny, (double)own->third, (double)own->tiny);
}

/* Threads that were there before the caller changed its rounding compute as it does, and afterwards as they did. */
Test(parallel, threads_round_as_their_caller, .timeout = 60)
{
    cr_assert(rapt_set_threads(2));
    const numbers usual = compute();
    for (int i = 0; i < 2 * modes; i++) {
        numbers found[2], after[2];
        fesetround(directions[i / 2]);
        flush_subnormal(i / 2 == modes - 1);
        const numbers own = compute();
        ways[i % 2](2, 1, note_numbers, found);
#pragma omp parallel num_threads(2)
        after[omp_get_thread_num()] = compute();
        fesetround(FE_TONEAREST);
        flush_subnormal(false);
        expect_as_own(&found[0], &own, "first piece");
        expect_as_own(&found[1], &own, "second piece");
        expect_as_own(&after[0], &own, "caller afterwards");
        expect_as_own(&after[1], &usual, "other thread afterwards");
    }
}
