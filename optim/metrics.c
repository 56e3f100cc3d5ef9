/* Metrics: files of rows, which are whole whatever happens. */
#include "metrics.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tensor/core.h"
#include "tensor/debug.h"
#include "tensor/system.h"
#include "tensor/utf8.h"

static const rapt_metrics_kind *const kinds[] = {
    [RAPT_METRICS_CSV] = &rapt_csv_kind,
    [RAPT_METRICS_JSON_LINES] = &rapt_json_lines_kind,
    [RAPT_METRICS_TENSORBOARD] = &rapt_event_kind,
};

/* By what comes behind the last point of the file's name; BY_NAME and an error for another ending. */
static rapt_metrics_format format_of(const char *path)
{
    static const struct {
        const char *ending;
        rapt_metrics_format format;
    } endings[] = {{".csv", RAPT_METRICS_CSV}, {".jsonl", RAPT_METRICS_JSON_LINES}};
    const char *slash = strrchr(path, '/'), *ending = strrchr(slash ? slash : path, '.');
    if (!ending || !ending[1]) return RAPT_METRICS_TENSORBOARD;
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
        if (strcmp(ending, endings[i].ending) == 0) return endings[i].format;
    rapt_fail(RAPT_ERROR_VALUE, "metrics_open", "'%s' ends in %s; .csv, .jsonl, or the name of a folder expected", path,
              ending);
    return RAPT_METRICS_BY_NAME;
}

static bool make_room(rapt_metrics *metrics, size_t count)
{
    if (metrics->size - metrics->used >= count) return true;
    const size_t size = 2 * metrics->size + count;
    char *room = realloc(metrics->room, size);
    if (!room) return rapt_fail(RAPT_ERROR_MEMORY, "metrics_write", "no memory for a row of %zu bytes", size);
    metrics->room = room;
    metrics->size = size;
    return true;
}

void rapt_metrics_put(rapt_metrics *metrics, const void *bytes, size_t count)
{
    if (!metrics->lacks_memory) metrics->lacks_memory = !make_room(metrics, count);
    if (metrics->lacks_memory) return;
    memcpy(metrics->room + metrics->used, bytes, count);
    metrics->used += count;
}

bool rapt_metrics_open_file(rapt_metrics *metrics, bool append)
{
    struct stat status;
    metrics->process = getpid();
    const bool is_there = append && stat(metrics->path, &status) == 0;
    /* what cannot be looked at may have rows */
    const bool may_begin = is_there || !append || errno == ENOENT;
    if (is_there && !S_ISREG(status.st_mode))
        return rapt_fail(RAPT_ERROR_FILE, "metrics_open", "'%s' is no regular file, which alone can go on",
                         metrics->path);
    if (may_begin) metrics->stream = rapt_system_open_stream(metrics->path, is_there ? "r+b" : "w+b", true);
    if (!metrics->stream && errno == EWOULDBLOCK)
        return rapt_fail(RAPT_ERROR_FILE, "metrics_open",
                         "'%s' is being written already, by this program or another one", metrics->path);
    return metrics->stream ||
           rapt_fail(RAPT_ERROR_FILE, "metrics_open", "'%s' cannot be written: %s", metrics->path, strerror(errno));
}

rapt_metrics *rapt_metrics_open(const char *path, rapt_metrics_format format, bool append)
{
    const char *op = "metrics_open";
    if (!path) return rapt_fail_null(op, "path"), NULL;
    if ((size_t)format >= sizeof kinds / sizeof *kinds)
        return rapt_fail(RAPT_ERROR_VALUE, op, "%d is not a format of metrics", (int)format), NULL;
    if (format == RAPT_METRICS_BY_NAME) format = format_of(path);
    if (format == RAPT_METRICS_BY_NAME) return NULL;
    rapt_metrics *metrics = calloc(1, sizeof *metrics);
    if (metrics) *metrics = (rapt_metrics){.kind = kinds[format], .path = strdup(path)};
    if (!metrics || !metrics->path) {
        free(metrics);
        return rapt_fail(RAPT_ERROR_MEMORY, op, "no memory for '%s'", path), NULL;
    }
    if (metrics->kind->open(metrics, append)) return metrics;
    rapt_metrics_close(metrics);
    return NULL;
}

static bool check_row(int count, const rapt_metric *list)
{
    const char *op = "metrics_write";
    if (count < 1) return rapt_fail(RAPT_ERROR_VALUE, op, "%d metrics; 1 or more expected", count);
    if (!list) return rapt_fail_null(op, "list");
    for (int i = 0; i < count; i++) {
        const char *name = list[i].name;
        if (!name) return rapt_fail(RAPT_ERROR_NULL, op, "the name of metric %d is NULL", i);
        const size_t length = strlen(name);
        if (length == 0 || length >= rapt_metrics_name_size)
            return rapt_fail(RAPT_ERROR_VALUE, op, "the name of metric %d has %zu bytes; 1 to %d expected", i, length,
                             rapt_metrics_name_size - 1);
        if (!rapt_is_utf8(name)) return rapt_fail(RAPT_ERROR_VALUE, op, "the name of metric %d is not UTF-8", i);
        if (strcmp(name, "step") == 0)
            return rapt_fail(RAPT_ERROR_VALUE, op, "metric %d is called step, as the number of the row is", i);
        for (int k = 0; k < i; k++)
            if (strcmp(name, list[k].name) == 0)
                return rapt_fail(RAPT_ERROR_VALUE, op, "metrics %d and %d are both called '%s'", k, i, name);
    }
    return true;
}

/* Cuts what came behind the last whole row; by a new stream, since what the old one holds back would come behind. */
static bool cut_failed_row(rapt_metrics *metrics)
{
    metrics->stream = rapt_system_renew_stream(metrics->stream);
    return metrics->stream && ftruncate(fileno(metrics->stream), (off_t)metrics->end) == 0;
}

bool rapt_metrics_write_room(rapt_metrics *metrics, const char *op)
{
    FILE *stream = metrics->stream;
    if (metrics->lacks_memory) return false;
    clearerr(stream);
    const bool good = fseeko(stream, (off_t)metrics->end, SEEK_SET) == 0 &&
                      fwrite(metrics->room, 1, metrics->used, stream) == metrics->used && fflush(stream) == 0;
    if (good) {
        metrics->end += (int64_t)metrics->used;
        return true;
    }
    const int why = errno;
    const bool cut = cut_failed_row(metrics);
    return rapt_fail(RAPT_ERROR_FILE, op, "'%s' cannot be written: %s%s", metrics->path, strerror(why),
                     cut ? "" : "; it may end with a part of a row");
}

/* Can it go on? The room is empty then. */
static bool check(const char *op, rapt_metrics *metrics)
{
    if (!metrics) return rapt_fail_null(op, "metrics");
    if (rapt_was_freed(op, metrics)) return false;
    metrics->used = 0;
    metrics->lacks_memory = false;
    return metrics->stream ||
           rapt_fail(RAPT_ERROR_FILE, op, "'%s' was closed, since it could not be written", metrics->path);
}

bool rapt_metrics_write(rapt_metrics *metrics, int64_t step, int count, const rapt_metric *list)
{
    const char *op = "metrics_write";
    if (!check(op, metrics) || !check_row(count, list)) return false;
    return metrics->kind->put_row(metrics, step, count, list) && rapt_metrics_write_room(metrics, op);
}

bool rapt_metrics_rewind(rapt_metrics *metrics, int64_t step)
{
    return check("metrics_rewind", metrics) && metrics->kind->rewind(metrics, step);
}

bool rapt_metrics_close(rapt_metrics *metrics)
{
    if (!metrics) return true;
    if (rapt_was_freed("metrics_close", metrics)) return false;
    /* a child that closes what it inherited leaves the parent alone with the file */
    if (metrics->stream && metrics->process == getpid()) rapt_system_unlock_stream(metrics->stream);
    bool good = !metrics->stream || fclose(metrics->stream) == 0;
    if (!good)
        rapt_fail(RAPT_ERROR_FILE, "metrics_close", "'%s' cannot be written: %s", metrics->path, strerror(errno));
    free(metrics->path);
    free(metrics->room);
    free(metrics->columns);
    rapt_free_object(metrics, "metrics");
    return good;
}
