/* What the caching allocator keeps of the memory that it took of the system. */
#include "address_sanitizer.h"
#include "expect.h"

#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

enum { megabyte = 1 << 20 };

/* Resident bytes of this process; 0 where the system does not say. */
static int64_t resident(void)
{
#ifdef _WIN32
    return 0;
#else
    long long all = 0, pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%lld %lld", &all, &pages) != 2) pages = 0;
    if (file) fclose(file);
    return pages * sysconf(_SC_PAGESIZE);
#endif
}

static int64_t taken_of_the_system(void)
{
    const rapt_memory_statistics s = rapt_memory_get_statistics();
    return s.live_bytes + s.cached_bytes;
}

Test(memory_cache, trimmed_small_blocks_are_the_systems_again)
{
    const int64_t before = resident();
    {
        RAPT_SCOPE;
        for (int i = 0; i < 40000; i++) rapt_zeros(RAPT_UINT8, RAPT_SHAPE(2000 + i % 2000));
    }
    if (before == 0 || resident() - before < 100 * megabyte) cr_skip_test("nobody tells what is resident");
    rapt_memory_trim();
    cr_expect_eq(rapt_memory_get_statistics().cached_bytes, 0);
#if defined __GLIBC__ && !defined UNDER_ADDRESS_SANITIZER && !defined UNDER_MEMORY_SANITIZER &&                        \
    !defined __SANITIZE_THREAD__ /* whose allocators keep it */
    cr_expect_lt(resident() - before, 30 * megabyte, "%lld MB are resident", (long long)(resident() - before) >> 20);
#endif
}

/* A chain of tensors of n MB, of which three are there at a time: with it, at most 3 n MB are in use. */
static void run_chain(int64_t n)
{
    RAPT_SCOPE;
    for (int i = 0; i < 3; i++) rapt_empty(RAPT_UINT8, RAPT_SHAPE(n * megabyte));
}

Test(memory_cache, large_blocks_that_are_kept_are_no_more_than_those_in_use_at_most)
{
    enum { longest = 200 };
    uint32_t random = 1;
    int64_t most = 0;
    rapt_memory_trim();
    for (int64_t n = 1; n <= longest; n++) run_chain(n);
    for (int64_t n = longest; n > 0; n--) {
        rapt_memory_reset_peak(); /* for its reader; the cache knows better */
        run_chain(n);
    }
    for (int i = 0; i < 500; i++) {
        random = random * 1664525 + 1013904223;
        run_chain(1 + random / 65536 % longest);
        if (taken_of_the_system() > most) most = taken_of_the_system();
    }
    const int64_t in_use = (int64_t)(3 * 1.25 * longest) * megabyte; /* in blocks that are a fourth too large */
    cr_expect_leq(most, 2 * in_use, "%lld MB", (long long)most / megabyte);
    const int64_t asked = rapt_memory_get_statistics().system_allocations;
    for (int i = 0; i < 20; i++) run_chain(longest), run_chain(longest / 4);
    cr_expect_leq(rapt_memory_get_statistics().system_allocations - asked, 6);
}

enum { passed_on = 4000, rounds = 20 };

typedef struct passing_on {
    rapt_tensor *tensor[passed_on];
    pthread_barrier_t made, released;
} passing_on;

static void make(passing_on *passing)
{
    RAPT_SCOPE;
    for (int i = 0; i < passed_on; i++) {
        passing->tensor[i] = rapt_retain(rapt_empty(RAPT_UINT8, RAPT_SHAPE(20)));
        cr_assert(passing->tensor[i]);
    }
}

static void *release_what_is_made(void *argument)
{
    passing_on *passing = argument;
    for (int round = 0; round < rounds; round++) {
        pthread_barrier_wait(&passing->made);
        for (int i = 0; i < passed_on; i++) rapt_release(passing->tensor[i]);
        pthread_barrier_wait(&passing->released);
    }
    return NULL;
}

Test(memory_cache, what_one_thread_makes_and_another_releases_goes_round)
{
    static passing_on passing;
    pthread_t releasing;
    int64_t first = 0, last = 0;
    pthread_barrier_init(&passing.made, NULL, 2);
    pthread_barrier_init(&passing.released, NULL, 2);
    cr_assert_eq(pthread_create(&releasing, NULL, release_what_is_made, &passing), 0);
    for (int round = 0; round < rounds; round++) {
        make(&passing);
        last = taken_of_the_system();
        if (round == 0) first = last;
        pthread_barrier_wait(&passing.made);
        pthread_barrier_wait(&passing.released);
    }
    cr_expect_eq(pthread_join(releasing, NULL), 0);
    cr_expect_leq(last - first, 100 << 10, "%lld KiB more than in the first round", (long long)(last - first) >> 10);
}
