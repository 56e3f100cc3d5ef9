/* What ThreadSanitizer does not know of gcc's OpenMP: the threads of a region see what was done before it, and who
 * began it sees what they did; what is critical, one thread does after the other. Linked into all that threads.sh
 * builds, before OpenMP; not itself instrumented. */
#define _GNU_SOURCE
#include <dlfcn.h>

/* Where there is none, as when meson tries the compiler, nothing is told. */
extern void __tsan_acquire(void *place) __attribute__((weak));
extern void __tsan_release(void *place) __attribute__((weak));

typedef void body(void *data);

typedef struct region {
    body *run;
    void *data;
    char begin, end; /* places that stand for these moments */
} region;

static void pass_on(void *place)
{
    if (__tsan_release) __tsan_release(place);
}

static void take_over(void *place)
{
    if (__tsan_acquire) __tsan_acquire(place);
}

static void run_in_thread(void *data)
{
    region *r = data;
    take_over(&r->begin);
    r->run(r->data);
    pass_on(&r->end);
}

/* What gcc calls for a region, and around what is critical. */
#define INSTEAD __attribute__((visibility("hidden"))) void

INSTEAD GOMP_parallel(body *run, void *data, unsigned threads, unsigned flags)
{
    void (*begin)(body *, void *, unsigned, unsigned);
    *(void **)&begin = dlsym(RTLD_NEXT, "GOMP_parallel");
    region r = {.run = run, .data = data};
    pass_on(&r.begin);
    begin(run_in_thread, &r, threads, flags);
    take_over(&r.end);
}

static char critical; /* a place that stands for all of it */

static void call(const char *name)
{
    void (*function)(void);
    *(void **)&function = dlsym(RTLD_NEXT, name);
    function();
}

INSTEAD GOMP_critical_start(void)
{
    call("GOMP_critical_start");
    take_over(&critical);
}

INSTEAD GOMP_critical_end(void)
{
    pass_on(&critical);
    call("GOMP_critical_end");
}
