/* Runs that are stopped and go on from their checkpoint. */
#ifndef EXAMPLES_RESUME_H
#define EXAMPLES_RESUME_H

#include <stdbool.h>
#include <stdint.h>

/* Is the checkpoint of a run with these options, a note whose parts are set apart by ", "? False after an error, which
 * names the parts that differ. */
bool resume_check_note(const char *path, const char *note);

/* Says on stderr where the signal stopped the run and how it goes on. Returns what the program exits with. */
int resume_announce(int64_t step, int64_t total, int signal);

#endif
