/* Line charts: named series over linear or logarithmic axes. */
#include "drawing.h"
#include "picture.h"

#include <math.h>
#include <string.h>

enum {
    PLOT_WIDTH = 380,
    PLOT_HEIGHT = 230,
    TICK = 3,
    LEGEND_LINE = 15, /* height of an entry */
    LEGEND_KEY = 26,  /* length of its piece of line */
    LEGEND_EDGE = 6
};

/* Colours that colour-blind readers can tell apart; dashes tell the lines apart in grey. */
static const double colours[][3] = {{0.0, 0.35, 0.7},   {0.85, 0.3, 0.05},  {0.0, 0.55, 0.4},
                                    {0.75, 0.45, 0.65}, {0.35, 0.35, 0.35}, {0.85, 0.6, 0.0}};
static const double dashes[][4] = {{1, 0, 1, 0}, {6, 3, 6, 3}, {8, 3, 2, 3}, {2, 2, 2, 2}};
enum { NUM_COLOURS = sizeof colours / sizeof colours[0], NUM_DASHES = sizeof dashes / sizeof dashes[0] };

static void set_line_style(cairo_t *cairo, int64_t series)
{
    const double *colour = colours[series % NUM_COLOURS];
    int64_t dash = series % NUM_DASHES;
    cairo_set_source_rgb(cairo, colour[0], colour[1], colour[2]);
    cairo_set_dash(cairo, dashes[dash], dash == 0 ? 0 : 4, 0);
    cairo_set_line_width(cairo, 1.6);
}

struct axis {
    double low, high; /* logarithms on a logarithmic axis */
    double length;
    bool logarithmic;
};

static double on_axis(const struct axis *axis, double value)
{
    return ((axis->logarithmic ? log10(value) : value) - axis->low) / (axis->high - axis->low) * axis->length;
}

static bool can_draw(const struct chart *chart, double x, double y)
{
    const double limit = 1e280; /* so that nothing overflows, even with free space at the ends; false for NaN */
    return fabs(x) <= limit && fabs(y) <= limit && (!chart->logarithmic_y || y >= 1 / limit);
}

/* Leaves 5 % free at both ends; values that are all the same get an axis around them. */
static void widen(struct axis *axis)
{
    double size = fmax(fabs(axis->low), fabs(axis->high)), edge = 0.05 * (axis->high - axis->low);
    if (axis->high - axis->low <= 1e-9 * size) edge = 0.05 * size;
    if (edge == 0) edge = 0.5;
    axis->low -= edge, axis->high += edge;
}

/* False if there is no point. */
static bool find_axes(const struct chart *chart, struct axis *x_axis, struct axis *y_axis)
{
    *x_axis = (struct axis){INFINITY, -INFINITY, PLOT_WIDTH, false};
    *y_axis = (struct axis){INFINITY, -INFINITY, PLOT_HEIGHT, chart->logarithmic_y};
    for (int64_t s = 0; s < chart->num_series; s++) {
        const struct chart_series *series = &chart->series[s];
        for (int64_t i = 0; i < series->count; i++) {
            if (!can_draw(chart, series->x[i], series->y[i])) continue;
            double y = chart->logarithmic_y ? log10(series->y[i]) : series->y[i];
            x_axis->low = fmin(x_axis->low, series->x[i]), x_axis->high = fmax(x_axis->high, series->x[i]);
            y_axis->low = fmin(y_axis->low, y), y_axis->high = fmax(y_axis->high, y);
        }
    }
    if (x_axis->low > x_axis->high) return false;
    widen(x_axis);
    widen(y_axis);
    return true;
}

static void draw_series(cairo_t *cairo, const struct chart *chart, int64_t index, const struct axis axes[2])
{
    const struct chart_series *series = &chart->series[index];
    set_line_style(cairo, index);
    int64_t run = 0; /* points of the line so far */
    double x = 0, y = 0;
    for (int64_t i = 0; i <= series->count; i++) {
        bool drawable = i < series->count && can_draw(chart, series->x[i], series->y[i]);
        if (!drawable && run == 1) {
            cairo_new_path(cairo);
            cairo_arc(cairo, x, y, 2.2, 0, 2 * acos(-1));
            cairo_fill(cairo);
        } else if (!drawable && run > 1) {
            cairo_stroke(cairo);
        }
        run = drawable ? run + 1 : 0;
        if (!drawable) continue;
        x = on_axis(&axes[0], series->x[i]), y = PLOT_HEIGHT - on_axis(&axes[1], series->y[i]);
        if (run == 1) cairo_move_to(cairo, x, y);
        if (run > 1) cairo_line_to(cairo, x, y);
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
        const struct chart_series *series = &chart->series[s];
        double from_x = NAN, from_y = NAN;
        for (int64_t i = 0; i < series->count; i++) {
            double x = NAN, y = NAN;
            if (can_draw(chart, series->x[i], series->y[i]))
                x = on_axis(&axes[0], series->x[i]), y = PLOT_HEIGHT - on_axis(&axes[1], series->y[i]);
            double distance = hypot(x - from_x, y - from_y);
            int parts = distance > 0 ? (int)ceil(distance / 2) : 1; /* 1 where there is no line */
            for (int part = 1; part <= parts; part++) {
                double t = (double)part / parts;
                double px = parts > 1 ? from_x + t * (x - from_x) : x, py = parts > 1 ? from_y + t * (y - from_y) : y;
                if (px > box->left && px < box->left + box->width && py > box->top && py < box->top + box->height)
                    return true;
            }
            from_x = x, from_y = y;
        }
    }
    return false;
}

/* In the first corner of the plot that is free: right upper, left upper, right lower, left lower; else to the right of it. */
static void place_legend(const struct chart *chart, const struct axis axes[2], struct box *box)
{
    const double edge = 8;
    double rights[] = {PLOT_WIDTH - edge - box->width, edge}, bottoms[] = {edge, PLOT_HEIGHT - edge - box->height};
    bool fits = box->width < PLOT_WIDTH / 2 && box->height < PLOT_HEIGHT - 2 * edge;
    for (int corner = 0; fits && corner < 4; corner++) {
        box->left = rights[corner % 2], box->top = bottoms[corner / 2];
        if (!is_covered(chart, axes, box)) return;
    }
    box->left = PLOT_WIDTH + edge, box->top = 0;
}

static void draw_legend(cairo_t *cairo, const struct chart *chart, const struct axis axes[2])
{
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
    place_legend(chart, axes, &box);
    cairo_set_source_rgb(cairo, 1, 1, 1);
    cairo_rectangle(cairo, box.left, box.top, box.width, box.height);
    cairo_fill(cairo);
    cairo_set_source_rgb(cairo, 0.8, 0.8, 0.8);
    drawing_frame(cairo, box.left, box.top, box.width, box.height);
    double left = box.left + LEGEND_EDGE, y = box.top + (LEGEND_LINE + LEGEND_EDGE) / 2.0;
    for (int64_t s = 0; s < chart->num_series; s++) {
        if (!chart->series[s].name) continue;
        set_line_style(cairo, s);
        cairo_move_to(cairo, left, y);
        cairo_line_to(cairo, left + LEGEND_KEY, y);
        cairo_stroke(cairo);
        cairo_set_dash(cairo, NULL, 0, 0);
        cairo_set_source_rgb(cairo, 0, 0, 0);
        drawing_text(cairo, drawing_shorten(cairo, chart->series[s].name, room), left + LEGEND_KEY + LEGEND_EDGE, y, 0,
                     0);
        y += LEGEND_LINE;
    }
}

static void find_ticks(struct ticks *ticks, const struct axis *axis)
{
    const int wanted = axis->length > PLOT_HEIGHT ? 7 : 6;
    if (axis->logarithmic)
        drawing_logarithmic_ticks(ticks, pow(10, axis->low), pow(10, axis->high), wanted);
    else
        drawing_ticks(ticks, axis->low, axis->high, wanted);
}

static void draw_grid(cairo_t *cairo, const struct ticks ticks[2], const struct axis axes[2])
{
    cairo_set_source_rgb(cairo, 0.88, 0.88, 0.88);
    for (int i = 0; i < ticks[0].count; i++) {
        double x = on_axis(&axes[0], ticks[0].values[i]);
        drawing_line(cairo, x, 0, x, PLOT_HEIGHT);
    }
    for (int i = 0; i < ticks[1].count; i++) {
        double y = PLOT_HEIGHT - on_axis(&axes[1], ticks[1].values[i]);
        drawing_line(cairo, 0, y, PLOT_WIDTH, y);
    }
}

static void draw_axes(cairo_t *cairo, const struct chart *chart, const struct ticks ticks[2], const struct axis axes[2])
{
    cairo_set_source_rgb(cairo, 0, 0, 0);
    drawing_frame(cairo, 0, 0, PLOT_WIDTH, PLOT_HEIGHT);
    for (int i = 0; i < ticks[0].count; i++) {
        double x = on_axis(&axes[0], ticks[0].values[i]);
        drawing_line(cairo, x, PLOT_HEIGHT, x, PLOT_HEIGHT + TICK);
        drawing_text(cairo, ticks[0].labels[i], x, PLOT_HEIGHT + TICK + 8, 0.5, 0);
    }
    double widest = 0;
    for (int i = 0; i < ticks[1].count; i++) {
        double y = PLOT_HEIGHT - on_axis(&axes[1], ticks[1].values[i]);
        drawing_line(cairo, -TICK, y, 0, y);
        drawing_text(cairo, ticks[1].labels[i], -TICK - 3, y, 1, 0);
        widest = fmax(widest, drawing_text_width(cairo, ticks[1].labels[i]));
    }
    drawing_text(cairo, chart->x_label, PLOT_WIDTH / 2.0, PLOT_HEIGHT + TICK + 24, 0.5, 0);
    drawing_text(cairo, chart->y_label, -TICK - widest - 13, PLOT_HEIGHT / 2.0, 0.5, 90);
}

static void draw_chart(cairo_t *cairo, const void *what)
{
    const struct chart *chart = what;
    struct axis axes[2];
    if (!find_axes(chart, &axes[0], &axes[1])) return;
    struct ticks ticks[2];
    find_ticks(&ticks[0], &axes[0]);
    find_ticks(&ticks[1], &axes[1]);
    draw_grid(cairo, ticks, axes);
    for (int64_t s = 0; s < chart->num_series; s++) draw_series(cairo, chart, s, axes);
    draw_axes(cairo, chart, ticks, axes);
    draw_legend(cairo, chart, axes);
    drawing_font(cairo, TITLE_SIZE);
    drawing_text(cairo, chart->title, PLOT_WIDTH / 2.0, -12, 0.5, 0);
}

bool picture_chart(const char *path, const struct chart *chart, char *error, size_t error_size)
{
    if (!path) return drawing_fail(error, error_size, "a chart needs a path to be written to, not NULL");
    if (!chart || !chart->series || chart->num_series < 1)
        return drawing_fail(error, error_size, "the chart for '%s' has no series", path);
    for (int64_t s = 0; s < chart->num_series; s++) {
        const struct chart_series *series = &chart->series[s];
        if (series->count < 0 || (series->count > 0 && (!series->x || !series->y)))
            return drawing_fail(error, error_size, "series %lld of the chart for '%s' has %lld points but %s is NULL",
                                (long long)s, path, (long long)series->count, series->x ? "y" : "x");
    }
    struct axis x_axis, y_axis;
    if (!find_axes(chart, &x_axis, &y_axis))
        return drawing_fail(error, error_size, "the chart for '%s' has not a single %spoint", path,
                            chart->logarithmic_y ? "finite positive " : "finite ");
    return drawing_write(path, draw_chart, chart, error, error_size);
}
