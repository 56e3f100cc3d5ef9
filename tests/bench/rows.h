/* What the benchmark programs share: families of rows, each of which is timed in its phases. */
#ifndef BENCH_ROWS_H
#define BENCH_ROWS_H

#include <stdbool.h>
#include <stddef.h>

#include "timing.h"

enum { rows_most_phases = 3 };

typedef struct row_family {
    const void *rows; /* an array of structs whose first member is the name, a const char * */
    size_t row_size;
    int row_count;
    const char *phases[rows_most_phases]; /* "fwd", "step", …; NULL where there are fewer */
    timing_work *work[rows_most_phases];
    /* Makes a row ready for its phases. Its tensors belong to the innermost scope; `end` gives back the rest. */
    void *(*make)(const void *row, const void *context);
    void (*end)(void *made);
    /* What one run costs, floating-point operations or bytes read; 0 or NULL: not counted. */
    double (*cost)(const void *made, int phase);
    bool is_bytes;
    const void *context;
    const char *note; /* printed above the rows, or NULL */
} row_family;

#define ROWS_OF(array) .rows = (array), .row_size = sizeof *(array), .row_count = (int)(sizeof(array) / sizeof *(array))

/* A main function. Without arguments it prints a table of all rows: median ms, the rate and its share of what the
 * processor can do at most, the memory beyond what the row was made with. With "--row NAME --phase PHASE" it serves
 * tests/bench/compare: for each number of seconds that it reads it prints the median in ms of runs that take that
 * long, the process's largest memory in MB, what a run costs, what the machine can do at most in a second, and the unit
 * of both, FLOP or B. The exit status. */
int rows_main(int count, char **arguments, const row_family *families, int family_count);

#endif
