/* Line charts: named series over linear or logarithmic axes, alone or in a row. */
#include "drawing.h"

#include <math.h>
#include <string.h>

enum {
    TICK = 3,
    GAP = 16,         /* between charts of a row */
    LEGEND_LINE = 15, /* height of an entry */
    LEGEND_KEY = 26,  /* length of its piece of line */
    LEGEND_EDGE = 6
};

struct row {
    const struct chart *charts;
    int64_t count;
    struct axis axes[2]; /* of all charts */
};

/* Dashes tell the lines apart in grey. */
static void set_style(cairo_t *cairo, const struct chart *chart, int64_t series)
{
    static const double dashes[][4] = {{1, 0, 1, 0}, {6, 3, 6, 3}, {8, 3, 2, 3}, {2, 2, 2, 2}};
    int64_t dash = series % (int64_t)(sizeof dashes / sizeof dashes[0]);
    drawing_colour(cairo, figure_series_colour(series), chart->series[series].points ? 0.5 : 1);
    cairo_set_dash(cairo, dashes[dash], dash == 0 ? 0 : 4, 0);
    cairo_set_line_width(cairo, 1.6);
}

static void draw_dot(cairo_t *cairo, double x, double y)
{
    cairo_new_path(cairo);
    cairo_arc(cairo, x, y, 2.2, 0, 2 * acos(-1));
    cairo_fill(cairo);
}

struct point {
    double x, y;
};

/* NaN where the point cannot be drawn. */
static struct point place_point(const struct chart *chart, const struct axis axes[2], int64_t series, int64_t i)
{
    double x = chart->series[series].x[i], y = chart->series[series].y[i];
    if (!figure_can_draw(chart, x, y)) return (struct point){NAN, NAN};
    return (struct point){figure_on_axis(&axes[0], x), axes[1].length - figure_on_axis(&axes[1], y)};
}

static void draw_series(cairo_t *cairo, const struct chart *chart, int64_t index, const struct axis axes[2])
{
    const struct chart_series *series = &chart->series[index];
    set_style(cairo, chart, index);
    int64_t run = 0; /* points of the line so far */
    struct point last = {0, 0};
    for (int64_t i = 0; i <= series->count; i++) {
        struct point point = i < series->count ? place_point(chart, axes, index, i) : (struct point){NAN, NAN};
        bool goes_on = !isnan(point.x) && !(series->points && run == 1);
        if (!goes_on && run == 1) draw_dot(cairo, last.x, last.y);
        if (!goes_on && run > 1) cairo_stroke(cairo);
        run = isnan(point.x) ? 0 : goes_on ? run + 1 : 1;
        last = point;
        if (run == 1) cairo_move_to(cairo, point.x, point.y);
        if (run > 1) cairo_line_to(cairo, point.x, point.y);
    }
    cairo_set_dash(cairo, NULL, 0, 0);
}

struct box {
    double left, top, width, height;
};

/* Does any line run through the box? Looks at each line at distances of about 2 points. */
static bool is_covered(const struct chart *chart, const struct axis axes[2], const struct box *box)
{
    for (int64_t s = 0; s < chart->num_series; s++) {
        struct point from = {NAN, NAN};
        for (int64_t i = 0; i < chart->series[s].count; i++) {
            struct point to = place_point(chart, axes, s, i);
            double distance = chart->series[s].points ? 0 : hypot(to.x - from.x, to.y - from.y);
            int parts = distance > 0 ? (int)ceil(distance / 2) : 1; /* 1 where there is no line */
            for (int part = 1; part <= parts; part++) {
                double t = (double)part / parts;
                double x = parts > 1 ? from.x + t * (to.x - from.x) : to.x;
                double y = parts > 1 ? from.y + t * (to.y - from.y) : to.y;
                if (x > box->left && x < box->left + box->width && y > box->top && y < box->top + box->height)
                    return true;
            }
            from = to;
        }
    }
    return false;
}

/* In the first corner of a lone plot that is free: right upper, left upper, right lower, left lower; else beside it. */
static void place_legend(const struct row *row, struct box *box)
{
    const double edge = 8, width = row->axes[0].length, height = row->axes[1].length;
    double lefts[] = {width - edge - box->width, edge}, tops[] = {edge, height - edge - box->height};
    bool fits = row->count == 1 && box->width < width / 2 && box->height < height - 2 * edge;
    for (int corner = 0; fits && corner < 4; corner++) {
        box->left = lefts[corner % 2], box->top = tops[corner / 2];
        if (!is_covered(row->charts, row->axes, box)) return;
    }
    box->left = (width + GAP) * (double)row->count - GAP + edge, box->top = 0;
}

static void draw_legend_key(cairo_t *cairo, const struct chart *chart, int64_t series, double left, double y)
{
    set_style(cairo, chart, series);
    if (chart->series[series].points) {
        draw_dot(cairo, left + LEGEND_KEY / 2.0, y);
    } else {
        cairo_move_to(cairo, left, y);
        cairo_line_to(cairo, left + LEGEND_KEY, y);
        cairo_stroke(cairo);
    }
    cairo_set_dash(cairo, NULL, 0, 0);
}

static void draw_legend(cairo_t *cairo, const struct row *row)
{
    const struct chart *chart = row->charts;
    char room[LABEL_ROOM];
    int entries = 0;
    double widest = 0;
    for (int64_t s = 0; s < chart->num_series; s++) {
        if (!chart->series[s].name) continue;
        widest = fmax(widest, drawing_text_width(cairo, drawing_shorten(cairo, chart->series[s].name, room)));
        entries++;
    }
    if (entries == 0) return;
    struct box box = {.width = ceil(widest) + LEGEND_KEY + 3 * LEGEND_EDGE,
                      .height = LEGEND_LINE * entries + LEGEND_EDGE};
    place_legend(row, &box);
    cairo_set_source_rgb(cairo, 1, 1, 1);
    cairo_rectangle(cairo, box.left, box.top, box.width, box.height);
    cairo_fill(cairo);
    cairo_set_source_rgb(cairo, 0.8, 0.8, 0.8);
    drawing_frame(cairo, box.left, box.top, box.width, box.height);
    double left = box.left + LEGEND_EDGE, y = box.top + (LEGEND_LINE + LEGEND_EDGE) / 2.0;
    for (int64_t s = 0; s < chart->num_series; s++) {
        if (!chart->series[s].name) continue;
        draw_legend_key(cairo, chart, s, left, y);
        cairo_set_source_rgb(cairo, 0, 0, 0);
        drawing_text(cairo, drawing_shorten(cairo, chart->series[s].name, room), left + LEGEND_KEY + LEGEND_EDGE, y, 0,
                     0);
        y += LEGEND_LINE;
    }
}

static void draw_grid(cairo_t *cairo, const struct ticks ticks[2], const struct axis axes[2])
{
    cairo_set_source_rgb(cairo, 0.88, 0.88, 0.88);
    for (int i = 0; i < ticks[0].count; i++) {
        double x = figure_on_axis(&axes[0], ticks[0].values[i]);
        drawing_line(cairo, x, 0, x, axes[1].length);
    }
    for (int i = 0; i < ticks[1].count; i++) {
        double y = axes[1].length - figure_on_axis(&axes[1], ticks[1].values[i]);
        drawing_line(cairo, 0, y, axes[0].length, y);
    }
}

static void draw_axes(cairo_t *cairo, const struct chart *chart, const struct ticks ticks[2], const struct axis axes[2])
{
    cairo_set_source_rgb(cairo, 0, 0, 0);
    drawing_frame(cairo, 0, 0, axes[0].length, axes[1].length);
    for (int i = 0; i < ticks[0].count; i++) {
        double x = figure_on_axis(&axes[0], ticks[0].values[i]), bottom = axes[1].length;
        drawing_line(cairo, x, bottom, x, bottom + TICK);
        drawing_text(cairo, ticks[0].labels[i], x, bottom + TICK + 8, 0.5, 0);
    }
    for (int i = 0; i < ticks[1].count; i++) {
        double y = axes[1].length - figure_on_axis(&axes[1], ticks[1].values[i]);
        drawing_line(cairo, -TICK, y, 0, y);
    }
    drawing_text(cairo, chart->x_label, axes[0].length / 2, axes[1].length + TICK + 24, 0.5, 0);
}

/* Numbers and label of the vertical axis. */
static void draw_side(cairo_t *cairo, const struct row *row, const struct ticks *ticks)
{
    const struct axis *axis = &row->axes[1];
    double widest = 0;
    cairo_set_source_rgb(cairo, 0, 0, 0);
    for (int i = 0; i < ticks->count; i++) {
        drawing_text(cairo, ticks->labels[i], -TICK - 3, axis->length - figure_on_axis(axis, ticks->values[i]), 1, 0);
        widest = fmax(widest, drawing_text_width(cairo, ticks->labels[i]));
    }
    drawing_text(cairo, row->charts->y_label, -TICK - widest - 13, axis->length / 2, 0.5, 90);
}

static void draw_row(cairo_t *cairo, const void *what)
{
    const struct row *row = what;
    const struct axis *axes = row->axes;
    struct ticks ticks[2];
    figure_axis_ticks(&ticks[0], &axes[0], (int)axes[0].length / 54);
    figure_axis_ticks(&ticks[1], &axes[1], (int)axes[1].length / 38);
    for (int64_t i = 0; i < row->count; i++) {
        const struct chart *chart = &row->charts[i];
        cairo_save(cairo);
        cairo_translate(cairo, (axes[0].length + GAP) * (double)i, 0);
        draw_grid(cairo, ticks, axes);
        for (int64_t s = 0; s < chart->num_series; s++) draw_series(cairo, chart, s, axes);
        draw_axes(cairo, chart, ticks, axes);
        drawing_font(cairo, TITLE_SIZE);
        drawing_text(cairo, chart->title, axes[0].length / 2, -12, 0.5, 0);
        cairo_restore(cairo);
    }
    draw_side(cairo, row, &ticks[1]);
    draw_legend(cairo, row);
}

bool picture_charts(const char *path, const struct chart *charts, int64_t count, char *error, size_t error_size)
{
    if (!path) return figure_fail(error, error_size, "a chart needs a path to be written to, not NULL");
    if (!figure_check_charts(path, charts, count, error, error_size)) return false;
    struct row row = {.charts = charts, .count = count};
    figure_find_axes(charts, count, row.axes);
    row.axes[0].length = count == 1 ? 380 : 230;
    row.axes[1].length = count == 1 ? 230 : 170;
    return drawing_write(path, draw_row, &row, error, error_size);
}

bool picture_chart(const char *path, const struct chart *chart, char *error, size_t error_size)
{
    return picture_charts(path, chart, 1, error, error_size);
}
