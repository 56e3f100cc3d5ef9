/* How far a training run is: a bar that is redrawn in place on a terminal, plain lines elsewhere. */
#ifndef RAPT_PROGRESS_H
#define RAPT_PROGRESS_H

#include <stdio.h>

#include <rapt/base.h>

RAPT_BEGIN_DECLS

/* Seconds of a clock that never goes back. */
RAPT_API double rapt_seconds(void);

/* A run and how far it is. */
typedef struct rapt_progress {
    FILE *stream;
    bool on_terminal;
    bool is_shown; /* a bar stands on the current line of the terminal */
    int64_t total, step;
    double interval; /* seconds between two drawings, or two plain lines; may be changed after rapt_progress_start */
    double last_update, last_shown;
    double recent_seconds, recent_steps, recent_items; /* counted with weights that fade within half a minute */
    const char *item_name;                             /* what is counted by the second; "tokens" at first */
} rapt_progress;

/* A run of `total` steps of which `step` are done already (0, or more after a resume). The stream is a terminal if
 * isatty says so and TERM is not "dumb"; a terminal gets at most ten drawings a second, other streams a line every 5
 * seconds, and NULL nothing. */
RAPT_API rapt_progress rapt_progress_start(FILE *stream, int64_t step, int64_t total);

/* One more step is done, whose loss was `loss` (in it, so many tokens or other items); shows it if it is time, and at
 * the last step. */
RAPT_API void rapt_progress_step(rapt_progress *progress, double loss, int64_t items);

/* Prints a line of its own (a newline is added), above the bar. */
RAPT_API void rapt_progress_print(rapt_progress *progress, const char *format, ...)
    __attribute__((format(RAPT_PRINTF, 2, 3)));

/* Leaves the bar as it is and goes to the next line. For the end, also one before the last step. */
RAPT_API void rapt_progress_end(rapt_progress *progress);

/* The text of the bar or plain line, without control characters, at most width characters (0: no limit and no bar).
 * Parts that have no room are left out, from the right; of item_name, in UTF-8, the first 32 characters are shown.
 * Returns room, which is empty after an error. NULL is one. */
RAPT_API const char *rapt_progress_text(const rapt_progress *progress, double loss, int width, char room[256]);

/* The columns of a terminal: COLUMNS of the environment, else what the terminal says, else 80. */
RAPT_API int rapt_terminal_width(FILE *stream);

RAPT_END_DECLS

#endif
