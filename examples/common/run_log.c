/* The log beside a run. */
#include "run_log.h"

bool run_log_open(struct run_log *log, const char *path, int64_t first)
{
    *log = (struct run_log){.rows = path ? rapt_metrics_open(path, RAPT_METRICS_BY_NAME, first > 0) : NULL};
    return !path || (log->rows && (first == 0 || rapt_metrics_rewind(log->rows, first)));
}

static void tell(struct run_log *log, rapt_progress *progress)
{
    rapt_progress_print(progress, "%s", rapt_error());
    rapt_clear_error();
    log->failed = true;
}

/* Without the handler, which may end the run. After an error of the run's own there is nothing to log. */
void run_log_row(struct run_log *log, rapt_progress *progress, int64_t step, int count, const rapt_metric *list)
{
    if (!log->rows || rapt_error()) return;
    rapt_error_handler *handler = rapt_on_error(NULL);
    if (!rapt_metrics_write(log->rows, step, count, list)) {
        tell(log, progress);
        rapt_metrics_close(log->rows);
        rapt_clear_error(); /* the same once more */
        log->rows = NULL;
    }
    rapt_on_error(handler);
}

void run_log_close(struct run_log *log, rapt_progress *progress)
{
    const bool has_failed = rapt_error() != NULL; /* by itself, and that is told later */
    rapt_error_handler *handler = rapt_on_error(NULL);
    if (!rapt_metrics_close(log->rows) && !has_failed) tell(log, progress);
    rapt_on_error(handler);
    log->rows = NULL;
}
