/* The trace: a line for each op that runs and for each vjp. */
#include <rapt/profile.h>

#include <stdlib.h>

#include "observe.h"
#include "tensor/lock.h"

RAPT_LOCK(stream_lock, TRACE)
static FILE *stream;

static __attribute__((constructor(200))) void start(void)
{
    const char *wanted = getenv("RAPT_TRACE");
    if (wanted && *wanted && strcmp(wanted, "0") != 0) rapt_trace(stderr);
}

FILE *rapt_trace(FILE *to)
{
    stream_lock_take();
    FILE *before = stream;
    stream = to;
    rapt_set_observer(RAPT_TRACES, to != NULL);
    stream_lock_give();
    return before;
}

/* Under the lock, so that nobody writes to a stream any more that rapt_trace has given back. */
void rapt_trace_line(const rapt_observation *o, const rapt_shapes *shapes, bool good)
{
    stream_lock_take();
    if (stream)
        fprintf(stream, "%-8s %s: %s -> %s%s%s\n", o->doing == RAPT_DOING_BACKWARD ? "backward" : "forward", o->name,
                *shapes->in ? shapes->in : "nothing", good ? shapes->out : "an error", o->path ? "; in " : "",
                o->path ? o->path : "");
    stream_lock_give();
}
