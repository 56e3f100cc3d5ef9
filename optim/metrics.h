/* What the formats of metrics share: a file, room for a row, and what each does of its own. */
#ifndef RAPT_OPTIM_METRICS_H
#define RAPT_OPTIM_METRICS_H

#include <rapt/metrics.h>

#include <stdio.h>
#include <sys/types.h>

enum { rapt_metrics_name_size = 256 };

typedef struct rapt_metrics_kind {
    /* Opens the stream; false after an error. */
    bool (*open)(rapt_metrics *metrics, bool append);
    /* Takes back the rows of this step and later ones; false after an error. */
    bool (*rewind)(rapt_metrics *metrics, int64_t step);
    /* Puts the row into the room, by rapt_metrics_put; false after an error other than that of memory. */
    bool (*put_row)(rapt_metrics *metrics, int64_t step, int count, const rapt_metric *list);
} rapt_metrics_kind;

struct rapt_metrics {
    const rapt_metrics_kind *kind;
    char *path; /* of the file that is written */
    FILE *stream;
    pid_t process; /* that opened it: a forked child is another */
    int64_t end;   /* of the last whole row */
    char *room;    /* the row that is made */
    size_t used, size;
    bool lacks_memory; /* for what was put into the room */
    char *columns;     /* CSV: the names, each closed by a NUL */
    size_t columns_size;
    int column_count;
};

extern const rapt_metrics_kind rapt_csv_kind, rapt_json_lines_kind, rapt_event_kind;

/* Adds bytes to the row. Where there is no memory for them, that is an error, and nothing more is added: lacks_memory
 * says so. */
void rapt_metrics_put(rapt_metrics *metrics, const void *bytes, size_t count);

/* Writes the room behind the last whole row; what does not arrive whole is cut off again. False after an error, that of
 * putting too. */
bool rapt_metrics_write_room(rapt_metrics *metrics, const char *op);

/* Opens metrics->path for writing, at its end or as a new file; false and an error. */
bool rapt_metrics_open_file(rapt_metrics *metrics, bool append);

/* The CRC-32C (Castagnoli) of some bytes. */
uint32_t rapt_crc32c(const void *bytes, size_t count);

#endif
