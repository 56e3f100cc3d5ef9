/* Does something again and again while memory runs out: each time it succeeds, or it is an error and leaves nothing
 * behind. For one source file of a program, whose allocator becomes failing_malloc.h's. */
#ifndef RAPT_TESTS_MEMORY_TRIALS_H
#define RAPT_TESTS_MEMORY_TRIALS_H

#include "expect.h"
#include "failing_malloc.h"

#include "tensor/memory.h"

/* What fails: a request of anybody's to the system, all from one on, or all of the library's blocks from one on. */
typedef enum memory_failure { one_request, all_requests, all_blocks, memory_failures } memory_failure;

/* True where it succeeds. */
typedef bool memory_trial(void);

enum { most_trials = 100000 };

/* One run, of which that many requests or blocks succeed before they fail. *failed: some did; *left: bytes that a run
 * that fails leaves behind. */
static inline bool starve(memory_trial *succeeds, memory_failure kind, long after, bool *failed, int64_t *left)
{
    bool good;
    rapt_memory_trim(); /* the cache asks the system for nothing that it has */
    const int64_t before = rapt_memory_get_statistics().live_bytes;
    {
        RAPT_SCOPE;
        if (kind == all_blocks)
            rapt_memory_fail_after(after);
        else
            fail_malloc(after, kind == all_requests);
        good = succeeds();
        *failed = kind == all_blocks ? !good : allocator.failed > 0;
        rapt_memory_fail_after(-1);
        fail_malloc(-1, false);
    }
    *left = good ? 0 : rapt_memory_get_statistics().live_bytes - before; /* what it keeps may be its result */
    return good;
}

/* All trials of one kind of failure, up to the first in which nothing fails. */
static inline void try_failures(const char *name, memory_trial *succeeds, memory_failure kind)
{
    static const char *const kinds[] = {"one request fails", "all requests fail", "all blocks fail"};
    int64_t left;
    bool failed;
    for (long after = 0;; after++) {
        const bool good = starve(succeeds, kind, after, &failed, &left);
        cr_expect(good == !rapt_error(), "%s, %s after %ld: %s", name, kinds[kind], after,
                  rapt_error() ? rapt_error() : "it fails without an error");
        cr_expect(kind != all_blocks || good || rapt_error_get_code() == RAPT_ERROR_MEMORY, "%s, %s after %ld: %s",
                  name, kinds[kind], after, rapt_error());
        cr_expect_eq(left, 0, "%s, %s after %ld: %lld bytes leak", name, kinds[kind], after, (long long)left);
        rapt_clear_error();
        if (failed && after < most_trials) continue;
        cr_expect(good, "%s with all memory", name);
        cr_expect(after > 0 || kind == all_blocks, "%s needs no memory", name);
        return;
    }
}

static inline void try_all_failures(const char *name, memory_trial *succeeds)
{
    try_failures(name, succeeds, one_request);
    try_failures(name, succeeds, all_requests);
    try_failures(name, succeeds, all_blocks);
}

#endif
