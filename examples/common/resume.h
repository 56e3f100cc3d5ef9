/* Runs that are stopped and go on from their checkpoint. */
#ifndef EXAMPLES_RESUME_H
#define EXAMPLES_RESUME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Room for a path in a note, and for a note with two paths. */
enum { resume_path_size = 3 * 4096, resume_note_size = 2 * resume_path_size + 1024 };

/* A path as it stands in a note, or a file's text for a terminal: commas, and what is no printable ASCII, by their
 * numbers, "caf%E9". Returns the text. */
const char *resume_path(const char *path, char text[resume_path_size]);

/* Ends a note: with the hash of the data, where they are of a file (else 0), and the number of parts (0: not given). */
void resume_end_note(char *note, size_t size, uint64_t data, int64_t parts);

/* Is the checkpoint of a run with these options, a note whose parts are set apart by ", "? False after an error, which
 * names the parts that differ. */
bool resume_check_note(const char *path, const char *note);

/* May a run with these options begin from the start? False after an error where the checkpoint is of the same run,
 * stopped before its last step: it would be written over. */
bool resume_check_new(const char *path, const char *note, int64_t total);

/* Says on stderr where the signal stopped the run and how it goes on. Returns what the program exits with. */
int resume_announce(int64_t step, int64_t total, int signal);

#endif
