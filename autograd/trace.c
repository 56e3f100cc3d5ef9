/* The trace: a line for each op that runs and for each vjp. */
#include <rapt/profile.h>

#include <stdatomic.h>
#include <stdlib.h>

#include "observe.h"

static FILE *_Atomic stream;

static __attribute__((constructor(200))) void start(void)
{
    const char *wanted = getenv("RAPT_TRACE");
    if (wanted && *wanted && strcmp(wanted, "0") != 0) rapt_trace(stderr);
}

FILE *rapt_trace(FILE *to)
{
    FILE *before = atomic_exchange(&stream, to);
    rapt_set_observer(RAPT_TRACES, to != NULL);
    return before;
}

void rapt_trace_line(const rapt_observation *o, const rapt_shapes *shapes, bool good)
{
    FILE *to = atomic_load(&stream);
    if (!to) return;
    fprintf(to, "%-8s %s: %s -> %s%s%s\n", o->doing == RAPT_DOING_BACKWARD ? "backward" : "forward", o->name,
            *shapes->in ? shapes->in : "nothing", good ? shapes->out : "an error", o->path ? "; in " : "",
            o->path ? o->path : "");
}
