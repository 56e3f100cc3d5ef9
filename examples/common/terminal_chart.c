/* Charts as text: lines of braille dots in colours, or of a character for each series. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <rapt/progress.h>

#include "system.h"
#include "terminal.h"

enum { MOST_COLUMNS = 64, FEWEST_COLUMNS = 8, LINES = 16 };

struct canvas {
    int columns;
    int dots_x, dots_y; /* in a character: 2 and 4 with braille, else 1 and 1 */
    enum terminal_colours colours;
    struct {
        unsigned char bits;                 /* of braille dots */
        const char *mark;                   /* of a point; or of the series, without braille */
        const struct chart_series *topmost; /* NULL: empty */
    } cells[LINES][MOST_COLUMNS];
};

/* Points and lines have marks of their own, each from the first on. */
static const char *mark_of(const struct chart *chart, int64_t series)
{
    static const char *const marks[] = {"*", "+", "x", "o", "#", "@"}, *const points[] = {"•", "◦", "▪"};
    int64_t before = 0;
    for (int64_t s = 0; s < series; s++) before += chart->series[s].points == chart->series[series].points;
    return chart->series[series].points ? points[before % 3] : marks[before % 6];
}

static void put_dot(struct canvas *canvas, const struct chart *chart, int64_t series, int x, int y)
{
    /* The numbers of the dots in Unicode's braille patterns: 1, 2, 3, 7 on the left, 4, 5, 6, 8 on the right. */
    static const unsigned char bits[4][2] = {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};
    int column = x / canvas->dots_x, line = LINES - 1 - y / canvas->dots_y;
    bool braille = canvas->dots_x > 1 && !chart->series[series].points;
    canvas->cells[line][column].topmost = &chart->series[series];
    canvas->cells[line][column].mark = braille ? NULL : mark_of(chart, series);
    canvas->cells[line][column].bits |= bits[3 - y % canvas->dots_y % 4][x % canvas->dots_x];
}

/* The dot of a value on an axis whose length is a number of dots. */
static int dot_of(const struct axis *axis, double value)
{
    return (int)fmin(fmax(figure_on_axis(axis, value), 0), axis->length - 1);
}

static void put_series(struct canvas *canvas, const struct chart *chart, int64_t index, const struct axis axes[2])
{
    const struct chart_series *series = &chart->series[index];
    bool joins = false;
    int from_x = 0, from_y = 0;
    for (int64_t i = 0; i < series->count; i++) {
        bool drawable = figure_can_draw(chart, series->x[i], series->y[i]);
        int x = drawable ? dot_of(&axes[0], series->x[i]) : 0, y = drawable ? dot_of(&axes[1], series->y[i]) : 0;
        int far_x = abs(x - from_x), far_y = abs(y - from_y), parts = far_x > far_y ? far_x : far_y;
        for (int part = 1; drawable && joins && part < parts; part++)
            put_dot(canvas, chart, index, (int)lround(from_x + (double)part / parts * (x - from_x)),
                    (int)lround(from_y + (double)part / parts * (y - from_y)));
        if (drawable) put_dot(canvas, chart, index, x, y);
        joins = drawable && !series->points;
        from_x = x, from_y = y;
    }
}

/* Somewhat lighter than on paper, so that it can be seen on black as well as on white. */
static void set_colour(FILE *page, const struct canvas *canvas, int64_t series)
{
    struct colour colour = figure_series_colour(series);
    for (int channel = 0; channel < 3; channel++) colour.channels[channel] = 0.2 + 0.8 * colour.channels[channel];
    terminal_set_colour(page, canvas->colours, colour, false);
}

static void put_cell(FILE *page, const struct canvas *canvas, const struct chart *chart, int line, int column)
{
    const struct chart_series *series = canvas->cells[line][column].topmost;
    if (!series) {
        fputc(' ', page);
        return;
    }
    set_colour(page, canvas, series - chart->series);
    if (canvas->cells[line][column].mark)
        fputs(canvas->cells[line][column].mark, page);
    else /* U+2800 and the bits of the dots */
        fprintf(page, "\xe2%c%c", 0xa0 + (canvas->cells[line][column].bits >> 6),
                0x80 + (canvas->cells[line][column].bits & 0x3f));
    terminal_reset(page, canvas->colours);
}

static void put_side(FILE *page, const struct ticks *ticks, const struct axis *axis, int line, int width)
{
    const char *label = NULL;
    for (int i = 0; i < ticks->count; i++)
        if (dot_of(axis, ticks->values[i]) * LINES / (int)axis->length == LINES - 1 - line) label = ticks->labels[i];
    terminal_put(page, label, width, 1);
    fputs(label ? " ┤" : " │", page);
}

/* The lower edge with its ticks, and their numbers, which leave each other room. */
static void put_foot(FILE *page, const struct ticks *ticks, const struct axis *axis, int columns, int margin)
{
    char numbers[MOST_COLUMNS + 1] = "";
    bool marked[MOST_COLUMNS] = {false};
    int used = 0;
    for (int i = 0; i < ticks->count; i++) {
        int column = dot_of(axis, ticks->values[i]) * columns / (int)axis->length;
        int length = (int)strlen(ticks->labels[i]), start = column - (length - 1) / 2;
        if (start + length > columns) start = columns - length;
        if (start < 0) start = 0;
        marked[column] = true;
        if (start + length > columns || (used > 0 && start <= used)) continue;
        memset(numbers + used, ' ', (size_t)(start - used));
        memcpy(numbers + start, ticks->labels[i], (size_t)length);
        used = start + length;
    }
    fprintf(page, "%*s└", margin - 1, "");
    for (int column = 0; column < columns; column++) fputs(marked[column] ? "┬" : "─", page);
    fprintf(page, "\n%*s%s\n", margin, "", numbers);
}

static void put_legend(FILE *page, const struct canvas *canvas, const struct chart *chart, int margin, int width)
{
    int used = 0;
    for (int64_t s = 0; s < chart->num_series; s++) {
        if (!chart->series[s].name) continue;
        bool braille = canvas->dots_x > 1 && !chart->series[s].points;
        int length = terminal_text_width(chart->series[s].name), room = width - margin - 2;
        if (length > room) length = room > 1 ? room : 1;
        if (used > 0 && used + 3 + 2 + length > width) fputc('\n', page), used = 0;
        fprintf(page, "%*s", used > 0 ? 3 : margin, "");
        used += (used > 0 ? 3 : margin) + 2 + length;
        set_colour(page, canvas, s);
        fputs(braille ? "─" : mark_of(chart, s), page);
        terminal_reset(page, canvas->colours);
        fputc(' ', page);
        terminal_put(page, chart->series[s].name, length, 0);
    }
    if (used > 0) fputc('\n', page);
}

static int lines_of(const struct chart *chart)
{
    int lines = 0;
    for (int64_t s = 0; s < chart->num_series; s++) lines += !chart->series[s].points;
    return lines;
}

static void put_chart(FILE *page, struct canvas *canvas, const struct chart *chart, int width)
{
    struct axis axes[2];
    struct ticks ticks[2];
    figure_find_axes(chart, 1, axes);
    int label_width = 0;
    figure_axis_ticks(&ticks[1], &axes[1], LINES / 3);
    for (int i = 0; i < ticks[1].count; i++)
        if ((int)strlen(ticks[1].labels[i]) > label_width) label_width = (int)strlen(ticks[1].labels[i]);
    int margin = label_width + 2; /* of the labels, a space and the edge */
    canvas->columns = width - margin < MOST_COLUMNS ? width - margin : MOST_COLUMNS;
    if (canvas->columns < FEWEST_COLUMNS) canvas->columns = FEWEST_COLUMNS;
    axes[0].length = canvas->columns * canvas->dots_x, axes[1].length = LINES * canvas->dots_y;
    figure_axis_ticks(&ticks[0], &axes[0], canvas->columns / 10 > 1 ? canvas->columns / 10 : 1);
    for (int64_t s = 0; s < chart->num_series; s++) put_series(canvas, chart, s, axes);

    if (chart->title) {
        fprintf(page, "%*s", margin, "");
        terminal_put(page, chart->title, canvas->columns, 0.5);
        fputc('\n', page);
    }
    if (chart->y_label) {
        terminal_put(page, chart->y_label, margin + canvas->columns, 0);
        fputc('\n', page);
    }
    for (int line = 0; line < LINES; line++) {
        put_side(page, &ticks[1], &axes[1], line, label_width);
        for (int column = 0; column < canvas->columns; column++) put_cell(page, canvas, chart, line, column);
        fputc('\n', page);
    }
    put_foot(page, &ticks[0], &axes[0], canvas->columns, margin);
    if (chart->x_label) {
        fprintf(page, "%*s", margin, "");
        terminal_put(page, chart->x_label, canvas->columns, 0.5);
        fputc('\n', page);
    }
    put_legend(page, canvas, chart, margin, width);
}

bool picture_print_chart(FILE *stream, const struct chart *chart, char *error, size_t error_size)
{
    if (!stream) return figure_fail(error, error_size, "terminal: a chart needs a stream to be printed to, not NULL");
    if (!figure_check_charts("terminal", chart, 1, error, error_size)) return false;
    /* Braille is finer, but without colours its lines look alike. */
    enum terminal_colours colours = terminal_colours(stream);
    bool braille = (colours != TERMINAL_PLAIN || lines_of(chart) < 2) && system_is_utf8();
    struct canvas *canvas = calloc(1, sizeof *canvas);
    struct page page;
    if (!canvas) return figure_fail(error, error_size, "terminal: out of memory for a picture");
    canvas->colours = colours;
    canvas->dots_x = braille ? 2 : 1, canvas->dots_y = braille ? 4 : 1;
    bool printed = page_open(&page, error, error_size);
    if (printed) {
        put_chart(page.stream, canvas, chart, rapt_terminal_width(stream));
        printed = page_print(&page, stream, error, error_size);
    }
    free(canvas);
    return printed;
}
