/* Metrics: named numbers of a step, to CSV, to JSON lines, to TensorBoard. */
#ifndef RAPT_METRICS_H
#define RAPT_METRICS_H

#include <rapt/base.h>

RAPT_BEGIN_DECLS

/* How the numbers are written. */
typedef enum rapt_metrics_format {
    RAPT_METRICS_BY_NAME,     /* .csv, .jsonl, or for a path without an ending a folder for TensorBoard */
    RAPT_METRICS_CSV,         /* "step,loss,…" and a line for each row (RFC 4180) */
    RAPT_METRICS_JSON_LINES,  /* {"step": 1, "loss": 0.5, …}, a line for each row; NaN and infinities are null */
    RAPT_METRICS_TENSORBOARD, /* an event file of scalars, as float32 */
} rapt_metrics_format;

/* A file, or folder, that rows of numbers are written to. */
typedef struct rapt_metrics rapt_metrics;

/* Begins a file; with `append` one that is there goes on (its last line, when it is not whole, goes; what is no file of
 * metrics is an error, and left as it is, but among JSON lines whole ones of others may stand), else it is replaced.
 * For TensorBoard the path is a folder, made if there is none, and each call begins a file of its own in it,
 * events.out.tfevents.…, which TensorBoard shows as one run with those that are there. NULL after an error, as for a
 * file that is being written by other metrics, here or in another program, where the file system has locks: from here
 * on until the process that opened it closes it, or all that have it end. A pipe with a name (FIFO) waits here for who
 * reads it. Free it with rapt_metrics_close. */
RAPT_API rapt_metrics *rapt_metrics_open(const char *path, rapt_metrics_format format, bool append);

/* Takes back the rows from the first one of this step or a later one on: a run that goes on from a checkpoint says so
 * before its first row, and no step is there twice. The names of a CSV file stay. TensorBoard's files keep the rows,
 * and say that TensorBoard shall not show them. False after an error, which a row that does not begin with its step
 * is. */
RAPT_API bool rapt_metrics_rewind(rapt_metrics *metrics, int64_t step);

/* A number with its name: UTF-8 of 1 to 255 bytes, and not "step". */
typedef struct rapt_metric {
    const char *name;
    double value;
} rapt_metric;

/* A row written in place: rapt_metrics_write(metrics, step, RAPT_METRIC_ROW({"loss", loss}, {"rate", rate})). */
#define RAPT_METRIC_ROW(...) RAPT_LENGTH_OF(rapt_metric, __VA_ARGS__), RAPT_ARRAY_OF(rapt_metric, __VA_ARGS__)

/* Writes a row of count metrics, 1 or more of different names, and hands it to the system, so that a crash loses none.
 * The names of a CSV file are those of its first row; in later ones some may be missing, but none be new. Numbers are
 * as short as they can be and still read back as the same. False after an error; the file then ends with a whole
 * row. */
RAPT_API bool rapt_metrics_write(rapt_metrics *metrics, int64_t step, int count, const rapt_metric *list);

/* False when something did not arrive. NULL does nothing and is true. */
RAPT_API bool rapt_metrics_close(rapt_metrics *metrics);

RAPT_END_DECLS

#endif
