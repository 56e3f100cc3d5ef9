/* Progress bars and lines. */
#include <rapt/progress.h>

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tensor/core.h"
#include "tensor/system.h"
#include "tensor/utf8.h"

enum { ROOM = 256, WIDEST_BAR = 40, NARROWEST_BAR = 8, LONGEST_NAME = 32, CHARACTER_BYTES = 4 };

double rapt_seconds(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

int rapt_terminal_width(FILE *stream)
{
    const char *columns = getenv("COLUMNS");
    long width = columns ? strtol(columns, NULL, 10) : 0;
    if (width <= 0 && stream) width = rapt_system_terminal_width(stream);
    if (width <= 0) width = 80;
    return width < 10000 ? (int)width : 10000;
}

rapt_progress rapt_progress_start(FILE *stream, int64_t step, int64_t total)
{
    const char *kind = getenv("TERM");
    bool on_terminal = stream && isatty(fileno(stream)) && kind && strcmp(kind, "dumb") != 0;
    double start = rapt_seconds();
    return (rapt_progress){.stream = stream,
                           .on_terminal = on_terminal,
                           .total = total,
                           .step = step,
                           .interval = on_terminal ? 0.1 : 5,
                           .last_update = start,
                           .last_shown = start};
}

/* How many characters UTF-8 has. */
static size_t width_of(const char *text)
{
    size_t width = 0;
    for (; *text; text++) width += (*text & 0xc0) != 0x80;
    return width;
}

/* The first characters of a name; those that would move a cursor, and what is no UTF-8, are ?. */
static const char *clean_name(const char *name, char text[LONGEST_NAME * CHARACTER_BYTES + 1])
{
    char *to = text;
    for (int i = 0; *name && i < LONGEST_NAME; i++) {
        const size_t length = rapt_utf8_length(name, strnlen(name, CHARACTER_BYTES));
        const bool is_shown = length > 0 && rapt_control_length(name) == 0;
        memcpy(to, is_shown ? name : "?", is_shown ? length : 1);
        to += is_shown ? length : 1;
        name += length > 0 ? length : 1;
    }
    *to = '\0';
    return text;
}

/* Appends a part after a gap, if it fits into the width; if not, nothing fits any more. */
static void add(char room[ROOM], size_t *width, const char *part)
{
    const size_t used = strlen(room), gap = used > 0 ? 2 : 0;
    if (width_of(room) + gap + width_of(part) > *width || used + gap + strlen(part) >= ROOM) *width = 0;
    if (*width == 0) return;
    memset(room + used, ' ', gap);
    strcpy(room + used + gap, part);
}

static void format_time(char *text, size_t size, double seconds)
{
    int64_t whole = (int64_t)fmin(ceil(seconds), 1e9);
    if (whole < 3600)
        snprintf(text, size, "%" PRId64 ":%02" PRId64 " left", whole / 60, whole % 60);
    else
        snprintf(text, size, "%" PRId64 ":%02" PRId64 ":%02" PRId64 " left", whole / 3600, whole / 60 % 60, whole % 60);
}

/* Puts "[=====>    ]" in front, as wide as what is left allows. */
static void add_bar(char room[ROOM], size_t width, double share)
{
    const size_t used = strlen(room), shown = width_of(room);
    const size_t left = width - shown < ROOM - 1 - used ? width - shown : ROOM - 1 - used;
    if (left < NARROWEST_BAR + 3) return;
    const size_t cells = left - 3 < WIDEST_BAR ? left - 3 : WIDEST_BAR, full = (size_t)(share * (double)cells);
    memmove(room + cells + 3, room, used + 1);
    room[0] = '[';
    memset(room + 1, '=', full);
    memset(room + 1 + full, ' ', cells - full);
    if (full < cells) room[1 + full] = '>';
    room[cells + 1] = ']';
    room[cells + 2] = ' ';
}

const char *rapt_progress_text(const rapt_progress *progress, double loss, int width, char room[ROOM])
{
    if (!progress || !room) {
        rapt_fail_null("progress_text", progress ? "room" : "progress");
        return room ? strcpy(room, "") : NULL;
    }
    char part[2 * ROOM], name[LONGEST_NAME * CHARACTER_BYTES + 1];
    size_t limit = width > 0 && width < ROOM ? (size_t)width : ROOM - 1, left = limit;
    room[0] = '\0';
    snprintf(part, sizeof part, "step %" PRId64 "/%" PRId64, progress->step, progress->total);
    add(room, &left, part);
    if (isnan(loss)) loss = (double)NAN; /* without its sign */
    snprintf(part, sizeof part, fabs(loss) < 1e4 ? "loss %.4f" : "loss %.4g", loss);
    add(room, &left, part);
    if (progress->recent_seconds > 0) {
        snprintf(part, sizeof part, "%.0f %s/s", progress->recent_items / progress->recent_seconds,
                 clean_name(progress->item_name ? progress->item_name : "tokens", name));
        add(room, &left, part);
    }
    if (progress->recent_steps > 0 && progress->step < progress->total) {
        double seconds_per_step = progress->recent_seconds / progress->recent_steps;
        format_time(part, sizeof part, ((double)progress->total - (double)progress->step) * seconds_per_step);
        add(room, &left, part);
    }
    double share = progress->total > 0 ? (double)progress->step / (double)progress->total : 1;
    if (width > 0) add_bar(room, limit, fmin(fmax(share, 0), 1));
    return room;
}

void rapt_progress_step(rapt_progress *progress, double loss, int64_t items)
{
    if (!progress) return (void)rapt_fail_null("progress_step", "progress");
    double time = rapt_seconds(), seconds = time - progress->last_update, kept = exp(-seconds / 10);
    progress->last_update = time;
    progress->recent_seconds = kept * progress->recent_seconds + seconds;
    progress->recent_steps = kept * progress->recent_steps + 1;
    progress->recent_items = kept * progress->recent_items + (double)items;
    if (progress->step < INT64_MAX) progress->step++;
    if (!progress->stream) return;
    if (time - progress->last_shown < progress->interval && progress->step != progress->total) return;
    progress->last_shown = time;
    char room[ROOM];
    if (progress->on_terminal) {
        /* One column stays free: some terminals wrap when the last one is written. */
        int width = rapt_terminal_width(progress->stream) - 1;
        fprintf(progress->stream, "\r%s\033[K", rapt_progress_text(progress, loss, width > 0 ? width : 1, room));
        progress->is_shown = true;
    } else {
        fprintf(progress->stream, "%s\n", rapt_progress_text(progress, loss, 0, room));
    }
    fflush(progress->stream);
}

void rapt_progress_print(rapt_progress *progress, const char *format, ...)
{
    if (!progress || !format) return (void)rapt_fail_null("progress_print", progress ? "format" : "progress");
    if (!progress->stream) return;
    if (progress->is_shown) fputs("\r\033[K", progress->stream);
    progress->is_shown = false;
    va_list arguments;
    va_start(arguments, format);
    vfprintf(progress->stream, format, arguments);
    va_end(arguments);
    fputc('\n', progress->stream);
    fflush(progress->stream);
}

void rapt_progress_end(rapt_progress *progress)
{
    if (!progress || !progress->stream) return;
    if (progress->is_shown) fputc('\n', progress->stream);
    progress->is_shown = false;
    fflush(progress->stream);
}
