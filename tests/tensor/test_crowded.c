/* When other programs need the processors, and only then, work is done by one thread: a clock and a count of
 * preemptions that the test sets. */
#include <criterion/criterion.h>
#include <omp.h>
#include <sys/resource.h>
#include <time.h>

#include <rapt/runtime.h>

#include "tensor/parallel.h"

static int64_t clock_ms = 5000, preemptions;

int __wrap_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_getrusage(int who, struct rusage *usage);

int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
    (void)clock;
    *now = (struct timespec){.tv_sec = clock_ms / 1000, .tv_nsec = (long)(clock_ms % 1000 * 1000000)};
    return 0;
}

int __wrap_getrusage(int who, struct rusage *usage)
{
    (void)who;
    *usage = (struct rusage){.ru_nivcsw = (long)preemptions};
    return 0;
}

static void note_team(void *context, int64_t first, int64_t last)
{
    (void)last;
    if (first == 0) *(bool *)context = omp_in_parallel();
}

/* Work after so many milliseconds, in which the process was preempted so often: true if it was done by several. */
static bool works_together_after(int64_t ms, int64_t times)
{
    bool together = false;
    clock_ms += ms;
    preemptions += times;
    rapt_parallel(8, 1, note_team, &together);
    return together;
}

static void begin(void)
{
    if (rapt_get_threads() < 2) cr_skip_test("one processor");
    for (int i = 0; i < 2; i++) works_together_after(1100, 0); /* nothing is suspected */
}

Test(crowded, preempted_often_twice_running_one_thread_works_for_a_second, .init = begin)
{
    cr_expect(works_together_after(110, 5));
    cr_expect(works_together_after(110, 40), "once may be by chance");
    cr_expect(works_together_after(110, 5));
    cr_expect(works_together_after(110, 40));
    cr_expect_not(works_together_after(110, 40));
    cr_expect_not(works_together_after(500, 0));
    cr_expect(works_together_after(600, 0));
}

Test(crowded, still_preempted_often_after_that_second_once_is_enough, .init = begin)
{
    cr_expect(works_together_after(110, 40));
    cr_expect_not(works_together_after(110, 40));
    cr_expect(works_together_after(1100, 0), "a trial");
    cr_expect_not(works_together_after(110, 40));
    cr_expect(works_together_after(1100, 0));
    cr_expect(works_together_after(110, 5), "and nothing is suspected any more");
    cr_expect(works_together_after(110, 40));
}

Test(crowded, preempted_while_nothing_was_to_be_done_is_not_crowded, .init = begin)
{
    cr_expect(works_together_after(10000, 100), "ten in a second are few");
    cr_expect(works_together_after(110, 5));
    cr_expect(works_together_after(110, 40));
    cr_expect_not(works_together_after(110, 40));
}
