/* The one place where threads are started: how many, and when they are not, because other programs need the
 * processors. */
#include "tensor/parallel.h"

#include <stdatomic.h>

#include <rapt/error.h>
#include <rapt/runtime.h>

#include "openmp.h"
#include "rounding.h"
#include "tensor/system.h"
#include "tensor/thread.h"

enum { elements_a_piece = 16384 };

/* OpenMP ends the program where it has no memory for a team. */
enum { most_threads = 4096 };

/* Threads that meet at the end of each op cannot be slower than the slowest of them: with another program on one of two
 * processors, a training step was measured to take twenty times as long as on one thread. Being preempted shows it. */
enum { trial_ms = 100, pause_ms = 1000, preemptions_allowed = 12 }; /* alone 3 to 13; beside another program 13 to 28 */

static _Atomic int threads;
static _Atomic bool threads_are_fixed;

static _Atomic bool is_crowded, is_suspected;
static _Atomic int64_t next_look_ms, preemptions_before;

/* OpenMP's threads do not survive a fork: to start some in the child, a thread would wait forever for those that it
 * had. So the thread that forked works alone in the child, unless it is told a number of threads there and its process
 * had no others, which may have been OpenMP's, in regions of the program's own. Threads that the child makes are as
 * free as any. */
static RAPT_THREAD_LOCAL struct {
    bool was_alone; /* at its last fork, and at those before */
    bool is_forked; /* came into a child by a fork */
} this_thread;

static void before_fork(void)
{
    this_thread.was_alone = rapt_system_is_alone() && (this_thread.was_alone || !this_thread.is_forked);
}

static void enter_child(void)
{
    this_thread.is_forked = true;
}

/* Before the start-up that tells of threads. */
static __attribute__((constructor(200))) void start(void)
{
    rapt_system_at_fork(before_fork, NULL, enter_child);
    const int given = omp_get_max_threads();
    atomic_store(&threads, given < most_threads ? given : most_threads);
}

bool rapt_set_threads(int count)
{
    if (count < 1 || count > most_threads)
        return rapt_fail(RAPT_ERROR_VALUE, "set_threads", "%d threads asked for; 1 to %d expected", count,
                         most_threads);
    if (count > 1 && this_thread.is_forked && !this_thread.was_alone)
        return rapt_fail(
            RAPT_ERROR_UNSUPPORTED, "set_threads",
            "%d threads asked for in a forked child, by the thread that forked when its process had several; it "
            "works alone there, other threads of the child do not",
            count);
    this_thread.is_forked = this_thread.is_forked && !this_thread.was_alone;
#ifndef _OPENMP
    count = 1;
#endif
    atomic_store(&threads, count);
    atomic_store(&threads_are_fixed, true);
    return true;
}

int rapt_get_threads(void)
{
    return atomic_load_explicit(&threads, memory_order_relaxed);
}

/* Looks every 100 ms, or when there is work again, how often the process was preempted. Too often for that time, twice
 * running, means one thread for a second, and then a new trial; after that second once is enough. (Alone once in 170
 * looks is too often, which would cost a second.) Threads that race here at worst look twice. */
static bool leaves_room_to_others(void)
{
    int64_t now = rapt_system_coarse_ms(), due = atomic_load_explicit(&next_look_ms, memory_order_relaxed);
    if (now < due) return atomic_load_explicit(&is_crowded, memory_order_relaxed);
    int64_t preemptions = rapt_system_preemptions();
    bool was_trial = due != 0 && !atomic_load(&is_crowded);
    const int64_t times = preemptions - atomic_load(&preemptions_before), trials = (now - due) / trial_ms + 1;
    const bool too_often = was_trial && times > preemptions_allowed * trials;
    const bool crowded = too_often && atomic_load(&is_suspected);
    atomic_store(&is_suspected, too_often || atomic_load(&is_crowded));
    atomic_store(&preemptions_before, preemptions);
    atomic_store(&is_crowded, crowded);
    atomic_store(&next_look_ms, now + (crowded ? pause_ms : trial_ms));
    return crowded;
}

int64_t rapt_grain(int64_t cost)
{
    return cost <= 1 ? elements_a_piece : cost >= elements_a_piece ? 1 : elements_a_piece / (int32_t)cost;
}

/* All items of a call, and how they are cut. */
typedef struct work {
    int64_t count, grain, pieces;
    rapt_task *task;
    void *context;
    rapt_rounding rounding; /* the caller's */
} work;

static inline void run_piece(const work *w, int64_t piece)
{
    const int64_t first = piece * w->grain;
    w->task(w->context, first, first + w->grain < w->count ? first + w->grain : w->count);
}

/* By any thread. OpenMP's are also those of the program's own regions, so each goes on as it was. */
static inline void run_piece_as_caller(const work *w, int64_t piece)
{
    const rapt_rounding own = rapt_rounding_get();
    if (own != w->rounding) rapt_rounding_set(w->rounding);
    run_piece(w, piece);
    if (own != w->rounding) rapt_rounding_set(own);
}

/* True when the work is done, for this thread has to do it alone. */
static bool run_alone(const work *w)
{
    if (rapt_get_threads() > 1 && w->pieces > 1 && !this_thread.is_forked && !omp_in_parallel() &&
        (atomic_load_explicit(&threads_are_fixed, memory_order_relaxed) || !leaves_room_to_others()))
        return false;
    for (int64_t piece = 0; piece < w->pieces; piece++) run_piece(w, piece);
    return true;
}

/* Always all threads, though some may find no piece: for another number OpenMP makes another team, with memory and
 * threads asked of the system. */
void rapt_parallel(int64_t count, int64_t grain, rapt_task *task, void *context)
{
    work w = {.count = count, .grain = grain, .pieces = rapt_divide_up(count, grain), .task = task, .context = context};
    if (run_alone(&w)) return;
    w.rounding = rapt_rounding_get();
#pragma omp parallel for schedule(dynamic, 1) num_threads(rapt_get_threads())
    for (int64_t piece = 0; piece < w.pieces; piece++) run_piece_as_caller(&w, piece);
}

/* The pieces that a thread begins with, in a line of its own. */
typedef struct share {
    _Atomic int64_t next;
    int64_t end;
} __attribute__((aligned(64))) share;

void rapt_parallel_evenly(int64_t count, int64_t grain, rapt_task *task, void *context)
{
    enum { most_shares = 64 };
    work w = {.count = count, .grain = grain, .pieces = rapt_divide_up(count, grain), .task = task, .context = context};
    if (run_alone(&w)) return;
    w.rounding = rapt_rounding_get();
    const int used = rapt_get_threads(), share_count = used < most_shares ? used : most_shares;
    share shares[most_shares];
    for (int i = 0; i < share_count; i++) {
        atomic_init(&shares[i].next, w.pieces * i / share_count);
        shares[i].end = w.pieces * (i + 1) / share_count;
    }
#pragma omp parallel num_threads(used)
    for (int i = 0; i < share_count; i++) {
        share *s = &shares[(omp_get_thread_num() + i) % share_count];
        for (int64_t piece; (piece = atomic_fetch_add_explicit(&s->next, 1, memory_order_relaxed)) < s->end;)
            run_piece_as_caller(&w, piece);
    }
}
