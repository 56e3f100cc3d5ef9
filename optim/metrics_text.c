/* Metrics as text: CSV and JSON lines. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "metrics.h"
#include "tensor/core.h"

static void put_text(rapt_metrics *metrics, const char *text)
{
    rapt_metrics_put(metrics, text, strlen(text));
}

static void put_integer(rapt_metrics *metrics, int64_t value)
{
    char text[32];
    snprintf(text, sizeof text, "%" PRId64, value);
    put_text(metrics, text);
}

/* The shortest digits that read back as the number; with a point, whatever the locale has. */
static void put_number(rapt_metrics *metrics, double value)
{
    char text[64];
    int precision = 1;
    do snprintf(text, sizeof text, "%.*g", precision, value);
    while (precision++ < 17 && strtod(text, NULL) != value);
    char *to = text;
    for (const char *from = text; *from; from++) {
        const bool is_plain = isdigit((unsigned char)*from) || strchr("+-e", *from);
        if (is_plain)
            *to++ = *from;
        else if (to == text || to[-1] != '.')
            *to++ = '.';
    }
    *to = '\0';
    put_text(metrics, text);
}

/* The longest line of names; so much memory an old file takes, whatever it is. */
enum { most_of_names = 1 << 18 };

static bool fail_names(const rapt_metrics *metrics)
{
    return rapt_fail(RAPT_ERROR_FORMAT, "metrics_open",
                     "the first line of '%s' is no list of names that begins with step, of at most %d bytes",
                     metrics->path, most_of_names);
}

static bool fail_to_read(const rapt_metrics *metrics, const char *op)
{
    return rapt_fail(RAPT_ERROR_FILE, op, "'%s' cannot be read", metrics->path);
}

typedef enum line_state { LINE_IS_WHOLE, LINE_IS_CUT, LINE_IS_FOREIGN, LINE_FAILED } line_state;

/* Where in a table a line is read: quotes begin a field, are doubled inside of it, and end it. */
typedef enum field_state { FIELD_BEGINS, FIELD_IS_PLAIN, FIELD_IS_QUOTED, QUOTE_CAME, QUOTE_IS_STRAY } field_state;

static field_state next_state(field_state field, int c)
{
    if (field == FIELD_IS_QUOTED) return c == '"' ? QUOTE_CAME : FIELD_IS_QUOTED;
    if (c == '"') return field == FIELD_IS_PLAIN ? QUOTE_IS_STRAY : FIELD_IS_QUOTED;
    if (c == ',') return FIELD_BEGINS;
    if (field == QUOTE_CAME) return c == '\r' ? QUOTE_CAME : QUOTE_IS_STRAY;
    return FIELD_IS_PLAIN;
}

/* Reads behind the end of the line, whose first bytes, at most so many, are added to the room; the file may end before.
 * Lines of a table do not end between quotes. They are foreign where a quote stands within a field, or one that nothing
 * closes takes lines up to the file's end: of what we write only the first line, which is kept, has quotes. */
static line_state read_line(rapt_metrics *metrics, const char *op, bool is_table, size_t most)
{
    field_state field = FIELD_BEGINS;
    bool takes_lines = false;
    for (int c; (c = fgetc(metrics->stream)) != EOF;) {
        const char byte = (char)c;
        if (metrics->used < most) rapt_metrics_put(metrics, &byte, 1);
        if (c == '\n' && field != FIELD_IS_QUOTED) return LINE_IS_WHOLE;
        if (is_table && (field = next_state(field, c)) == QUOTE_IS_STRAY) return LINE_IS_FOREIGN;
        takes_lines = takes_lines || c == '\n';
    }
    if (!ferror(metrics->stream))
        return takes_lines && field == FIELD_IS_QUOTED && most == 0 ? LINE_IS_FOREIGN : LINE_IS_CUT;
    fail_to_read(metrics, op);
    return LINE_FAILED;
}

/* Makes that place the end of the rows. */
static bool cut(rapt_metrics *metrics, const char *op, int64_t end, const char *what)
{
    if (ftruncate(fileno(metrics->stream), (off_t)end) != 0)
        return rapt_fail(RAPT_ERROR_FILE, op, "'%s' cannot be cut behind its last %s: %s", metrics->path, what,
                         strerror(errno));
    metrics->end = end;
    return true;
}

static bool fail_quote(const rapt_metrics *metrics, const char *op, int64_t row)
{
    return rapt_fail(RAPT_ERROR_FORMAT, op,
                     "row %lld of '%s' has a quote within a field, or one that nothing closes; metrics have none",
                     (long long)row, metrics->path);
}

/* Finds the end of an old file's last whole line. In the room is left how a table begins, of other lines how the part
 * behind that end does. */
static bool read_lines(rapt_metrics *metrics, bool is_table, size_t most)
{
    const char *op = "metrics_open";
    line_state state;
    for (int64_t row = 0;; row++) {
        if (!is_table) metrics->used = 0;
        state = read_line(metrics, op, is_table, row > 0 && is_table ? 0 : most);
        if (state == LINE_IS_FOREIGN) return row > 0 ? fail_quote(metrics, op, row) : fail_names(metrics);
        if (state != LINE_IS_WHOLE) return state != LINE_FAILED && !metrics->lacks_memory;
        metrics->end = ftello(metrics->stream);
    }
}

/* Behind the last whole line, when what is there was found to be metrics. */
static bool cut_part(rapt_metrics *metrics)
{
    return cut(metrics, "metrics_open", metrics->end, "whole line");
}

/* Cuts before the first row that has such a step, of rows that begin as the format of scanf says. */
static bool rewind_lines(rapt_metrics *metrics, int64_t step, const char *format, bool is_table)
{
    const char *op = "metrics_rewind";
    FILE *stream = metrics->stream;
    clearerr(stream);
    if (fseeko(stream, 0, SEEK_SET) != 0) return fail_to_read(metrics, op);
    line_state state = is_table ? read_line(metrics, op, true, 0) : LINE_IS_WHOLE; /* the names */
    int64_t found, end = 0, row = 0;
    while (state == LINE_IS_WHOLE && (end = ftello(stream)) < metrics->end) {
        row++;
        if (fscanf(stream, format, &found) != 1)
            return rapt_fail(RAPT_ERROR_FORMAT, op, "the row of '%s' at byte %lld does not begin with its step",
                             metrics->path, (long long)end);
        if (found >= step) break;
        state = read_line(metrics, op, is_table, 0);
    }
    if (state == LINE_IS_FOREIGN) return fail_quote(metrics, op, row);
    return state != LINE_FAILED && cut(metrics, op, end, "row before the step");
}

/* --- JSON lines --- */

/* Other lines may stand there, but only a row of ours is taken for one that was not written to its end. */
static bool open_json_lines(rapt_metrics *metrics, bool append)
{
    static const char begin[] = "{\"step\":";
    if (!rapt_metrics_open_file(metrics, append)) return false;
    if (!append) return true;
    if (!read_lines(metrics, false, sizeof begin - 1)) return false;
    if (metrics->used > 0 && memcmp(metrics->room, begin, metrics->used) != 0)
        return rapt_fail(RAPT_ERROR_FORMAT, "metrics_open", "'%s' ends with a part of a line that is no row of metrics",
                         metrics->path);
    return cut_part(metrics);
}

static bool rewind_json_lines(rapt_metrics *metrics, int64_t step)
{
    return rewind_lines(metrics, step, "{\"step\": %" SCNd64, false);
}

static void put_json_name(rapt_metrics *metrics, const char *name)
{
    put_text(metrics, ", \"");
    for (const unsigned char *p = (const unsigned char *)name; *p; p++) {
        char text[8] = {(char)*p};
        if (*p == '"' || *p == '\\')
            snprintf(text, sizeof text, "\\%c", *p);
        else if (*p < ' ')
            snprintf(text, sizeof text, "\\u%04x", *p);
        put_text(metrics, text);
    }
    put_text(metrics, "\": ");
}

static bool put_json_row(rapt_metrics *metrics, int64_t step, int count, const rapt_metric *list)
{
    put_text(metrics, "{\"step\": ");
    put_integer(metrics, step);
    for (int i = 0; i < count; i++) {
        put_json_name(metrics, list[i].name);
        if (isfinite(list[i].value))
            put_number(metrics, list[i].value);
        else
            put_text(metrics, "null");
    }
    put_text(metrics, "}\n");
    return true;
}

/* --- CSV --- */

/* In quotes, which are doubled inside, where a reader would split it else. */
static void put_csv_name(rapt_metrics *metrics, const char *name)
{
    const bool quoted = strpbrk(name, ",\"\r\n") != NULL;
    put_text(metrics, quoted ? ",\"" : ",");
    for (const char *p = name; *p; p++) rapt_metrics_put(metrics, *p == '"' ? "\"\"" : p, *p == '"' ? 2 : 1);
    put_text(metrics, quoted ? "\"" : "");
}

/* A name more; there is room for those of the longest line. */
static bool add_column(rapt_metrics *metrics, const char *name)
{
    const size_t size = strlen(name) + 1;
    if (!metrics->columns && !(metrics->columns = malloc(most_of_names)))
        return rapt_fail(RAPT_ERROR_MEMORY, "metrics", "no memory for the name '%s'", name);
    memcpy(metrics->columns + metrics->columns_size, name, size);
    metrics->columns_size += size;
    metrics->column_count++;
    return true;
}

/* The column behind that one; the first behind NULL, NULL behind the last. */
static const char *next_column(const rapt_metrics *metrics, const char *column)
{
    const char *next = column ? column + strlen(column) + 1 : metrics->columns;
    return metrics->columns && next < metrics->columns + metrics->columns_size ? next : NULL;
}

/* The next name of a header, of which *from is behind it then; false when it has none. */
static bool read_name(const char **from, char name[rapt_metrics_name_size])
{
    const char *p = *from;
    const bool quoted = *p == '"';
    size_t length = 0;
    for (p += quoted; *p && (quoted || !strchr(",\r\n", *p)); p++) {
        if (quoted && *p == '"' && *++p != '"') break;
        if (length == rapt_metrics_name_size - 1) return false;
        name[length++] = *p;
    }
    name[length] = '\0';
    *from = p;
    return length > 0 && (*p == ',' || *p == '\r' || *p == '\n');
}

/* Is it a first line that was not written to its end? */
static bool begins_names(const char *text)
{
    char name[rapt_metrics_name_size] = "";
    const char *from = text;
    bool more = read_name(&from, name);
    if (strncmp("step", name, more ? sizeof name : strlen(name)) != 0) return false;
    while (more && *from == ',') {
        from++;
        more = read_name(&from, name);
    }
    return *from == '\0';
}

/* The names of a first line that is whole. */
static bool take_names(rapt_metrics *metrics)
{
    char name[rapt_metrics_name_size];
    const char *from = metrics->room;
    bool good = read_name(&from, name) && strcmp(name, "step") == 0;
    while (good && *from == ',') {
        from++;
        good = read_name(&from, name);
        if (good && !add_column(metrics, name)) return false;
    }
    return good || fail_names(metrics);
}

/* Looks at the first line of the file that goes on before anything is cut. */
static bool open_csv(rapt_metrics *metrics, bool append)
{
    if (!rapt_metrics_open_file(metrics, append)) return false;
    if (!append) return true;
    if (!read_lines(metrics, true, most_of_names + 1)) return false;
    const size_t size = metrics->used;
    rapt_metrics_put(metrics, "", 1);
    if (metrics->lacks_memory) return false;
    if (size > most_of_names) return fail_names(metrics);
    const bool is_part = metrics->end == 0;
    if (is_part && (strlen(metrics->room) != size || !begins_names(metrics->room))) return fail_names(metrics);
    return (is_part || take_names(metrics)) && cut_part(metrics);
}

static bool rewind_csv(rapt_metrics *metrics, int64_t step)
{
    return rewind_lines(metrics, step, "%" SCNd64, true);
}

static const rapt_metric *find(int count, const rapt_metric *list, const char *name)
{
    for (int i = 0; i < count; i++)
        if (strcmp(list[i].name, name) == 0) return &list[i];
    return NULL;
}

static bool has_column(const rapt_metrics *metrics, const char *name)
{
    for (const char *column = NULL; (column = next_column(metrics, column));)
        if (strcmp(column, name) == 0) return true;
    return false;
}

static bool put_header(rapt_metrics *metrics, int count, const rapt_metric *list)
{
    metrics->column_count = 0;
    metrics->columns_size = 0;
    put_text(metrics, "step");
    for (int i = 0; i < count; i++) {
        put_csv_name(metrics, list[i].name);
        if (metrics->used >= most_of_names)
            return rapt_fail(RAPT_ERROR_VALUE, "metrics_write", "the names of %d metrics take more than %d bytes",
                             count, most_of_names);
        if (!add_column(metrics, list[i].name)) return false;
    }
    put_text(metrics, "\n");
    return true;
}

static void put_csv_number(rapt_metrics *metrics, double value)
{
    if (isfinite(value))
        put_number(metrics, value);
    else
        put_text(metrics, isnan(value) ? "nan" : value > 0 ? "inf" : "-inf");
}

static bool put_csv_row(rapt_metrics *metrics, int64_t step, int count, const rapt_metric *list)
{
    if (metrics->end == 0 && !put_header(metrics, count, list)) return false;
    for (int i = 0; i < count; i++)
        if (!has_column(metrics, list[i].name))
            return rapt_fail(RAPT_ERROR_VALUE, "metrics_write",
                             "'%s' is none of the %d names that '%s' began with; the first row has all names",
                             list[i].name, metrics->column_count, metrics->path);
    put_integer(metrics, step);
    for (const char *column = NULL; (column = next_column(metrics, column));) {
        const rapt_metric *metric = find(count, list, column);
        put_text(metrics, ",");
        if (metric) put_csv_number(metrics, metric->value);
    }
    put_text(metrics, "\n");
    return true;
}

const rapt_metrics_kind rapt_csv_kind = {.open = open_csv, .rewind = rewind_csv, .put_row = put_csv_row};
const rapt_metrics_kind rapt_json_lines_kind = {.open = open_json_lines,
                                                .rewind = rewind_json_lines,
                                                .put_row = put_json_row};
