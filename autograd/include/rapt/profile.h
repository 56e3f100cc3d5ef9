/* Seeing inside: which ops run, on what, and where the time goes. */
#ifndef RAPT_PROFILE_H
#define RAPT_PROFILE_H

#include <stdio.h>

#include <rapt/base.h>

RAPT_BEGIN_DECLS

/* From now on writes a line to the stream for each op that runs and for each gradient that backward computes, in all
 * threads: forward or backward, op, dtypes and shapes in -> out ("-": none), and the path of the module.
 *     forward  affine: float32 [8, 16], float32 [32, 16], float32 [32] -> float32 [8, 32]; in Sequential 0
 * What an op's own functions call is not listed. NULL ends it. RAPT_TRACE=1 in the environment starts it on stderr.
 * Returns the stream before. */
RAPT_API FILE *rapt_trace(FILE *stream);

/* Ends a profile that runs, forgets what was measured before and begins to measure, in all threads. A file that is not
 * NULL becomes a trace of each op, and of each module around its ops, in Chrome's trace event format, which
 * https://ui.perfetto.dev shows, of about 250 bytes each. RAPT_PROFILE=1 in the environment begins before main and
 * reports to stderr when the program ends; RAPT_PROFILE=NAME.json writes that file too. It may be a pipe or a device as
 * well: opening a named pipe waits for a reader. False after an error, and nothing is measured: the file cannot be
 * written, or that of the profile before could not be finished. */
RAPT_API bool rapt_profile_start(const char *file);

/* Ends it; what was measured stays until the next start. False after an error: the file could not be written whole;
 * one of which nothing was is removed. */
RAPT_API bool rapt_profile_stop(void);

/* What was measured, in seconds. A thread's time goes from its first op (in that which started the profile: from the
 * start) to its last (in that which stops it: to the stop), and is the sum of what follows it. */
typedef struct rapt_profile_times {
    int threads;
    double all;               /* the times of all threads */
    double forward, backward; /* in ops, and in their vector-Jacobian products */
    double walk;              /* in the rest of backward and gradients */
    double step;              /* in optimizers' steps and clipping */
    double own;               /* in the profile itself */
    double outside;           /* in everything else: loops, data, layers between their ops */
    double flops;             /* of matrix products and dot-product attention, a multiply-add being two */
    int64_t calls, lost;      /* lost: for lack of memory */
} rapt_profile_times;

/* The times of what was measured last, or is being measured. */
RAPT_API rapt_profile_times rapt_profile_get_times(void);

/* Prints the times as three tables: by op, by module (with all that is below it) and in all; shares are of the sum of
 * the threads' times. Bytes are those of the tensors that go in and come out, once each; flops those of matrix products
 * and dot-product attention (of keys within the mask's ranges). False after an error. */
RAPT_API bool rapt_profile_report(FILE *stream);

RAPT_END_DECLS

#endif
