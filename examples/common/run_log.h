/* The log beside a run: what it fails with once the run has begun is told, and the run goes on without it. */
#ifndef EXAMPLES_RUN_LOG_H
#define EXAMPLES_RUN_LOG_H

#include <rapt.h>

struct run_log {
    rapt_metrics *rows; /* NULL: there is none, or none any more */
    bool failed;        /* rows are missing */
};

/* Opens a log, unless path is NULL. That of a run that goes on keeps its rows before the step `first`; 0: a new run.
 * False after an error. */
bool run_log_open(struct run_log *log, const char *path, int64_t first);

/* As rapt_metrics_write; but an error is said above the progress, and forgotten, and the log closed. */
void run_log_row(struct run_log *log, rapt_progress *progress, int64_t step, int count, const rapt_metric *list);

/* The same for rapt_metrics_close. */
void run_log_close(struct run_log *log, rapt_progress *progress);

#endif
