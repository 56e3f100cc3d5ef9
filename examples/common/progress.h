/* How far a training run is: a bar that is redrawn in place on a terminal, plain lines elsewhere. */
#ifndef EXAMPLES_PROGRESS_H
#define EXAMPLES_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Seconds of a clock that never goes back. */
double progress_now(void);

struct progress {
    FILE *stream;
    bool on_terminal;
    bool is_shown; /* a bar stands on the current line of the terminal */
    int64_t total, step;
    double interval; /* seconds between two drawings, or two plain lines; may be changed after progress_start */
    double last_update, last_shown;
    double recent_seconds, recent_steps, recent_tokens; /* counted with weights that fade within half a minute */
};

/* A run of `total` steps of which `step` are done already (0, or more after a resume). The stream is a terminal if
   isatty says so and TERM is not "dumb"; a terminal gets at most ten drawings a second, other streams a line every 5
   seconds. */
struct progress progress_start(FILE *stream, int64_t step, int64_t total);

/* One more step is done, whose loss was `loss` (in it, num_tokens tokens); shows it if it is time, and at the last
 * step. */
void progress_step(struct progress *progress, double loss, int64_t num_tokens);

/* Prints a line of its own (a newline is added), above the bar. */
void progress_print(struct progress *progress, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Leaves the bar as it is and goes to the next line. For the end, also one before the last step. */
void progress_end(struct progress *progress);

/* The text of the bar or plain line, without control characters, at most width characters (0: no limit and no bar).
   Parts that have no room are left out, from the right; returns room. */
const char *progress_text(const struct progress *progress, double loss, int width, char room[256]);

#endif
