/* Attention heatmaps: a grid of matrices with tokens on the axes and one colour bar. */
#include "drawing.h"
#include "picture.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MATRIX_SIDE = 180, /* of a matrix without labels */
    LARGEST_CELL = 28,
    LABELLED_CELL = 15, /* the smallest with room for a label */
    GAP = 14,           /* between matrices */
    TICK = 3,
    BAR_WIDTH = 10,
    SMALLEST_BAR = 80
};

/* Red from nearly white to dark. */
static const double ramp[][3] = {{1.0, 0.965, 0.945},   {0.992, 0.855, 0.79}, {0.985, 0.68, 0.57}, {0.975, 0.48, 0.35},
                                 {0.915, 0.265, 0.205}, {0.77, 0.1, 0.12},    {0.42, 0.0, 0.06}};
enum { RAMP_END = sizeof ramp / sizeof ramp[0] - 1 };

static void set_colour(cairo_t *cairo, double share)
{
    double place = fmin(fmax(share, 0), 1) * RAMP_END;
    int i = place >= RAMP_END ? RAMP_END - 1 : (int)place;
    double t = place - i, rgb[3];
    for (int channel = 0; channel < 3; channel++)
        rgb[channel] = ramp[i][channel] + t * (ramp[i + 1][channel] - ramp[i][channel]);
    if (isnan(share)) rgb[0] = rgb[1] = rgb[2] = 0.8;
    cairo_set_source_rgb(cairo, rgb[0], rgb[1], rgb[2]);
}

struct layout {
    const struct heatmap *heatmap;
    double low, high;        /* of the colour scale */
    double cell;             /* side of a cell */
    double width, height;    /* of a matrix */
    double x_pitch, y_pitch; /* from one matrix to the next */
    double right, bottom;    /* of the grid, whose left upper corner is at 0, 0 */
    int64_t x_step, y_step;  /* from one labelled cell to the next */
    bool slanted;            /* labels of keys */
    double label_width;      /* the widest label of a query */
    double label_depth;      /* how far the labels of keys reach below the grid */
};

static void find_scale(const struct heatmap *heatmap, double *low, double *high)
{
    int64_t count = heatmap->rows * heatmap->columns * heatmap->queries * heatmap->keys;
    *low = INFINITY, *high = -INFINITY;
    for (int64_t i = 0; i < count; i++) {
        if (!isfinite(heatmap->values[i])) continue;
        *low = fmin(*low, (double)heatmap->values[i]);
        *high = fmax(*high, (double)heatmap->values[i]);
    }
    if (*low > *high) *low = *high = 0;
    if (*high - *low > 1e-6 * fmax(fabs(*low), fabs(*high))) return;
    if (*high > 0)
        *low = 0;
    else if (*low < 0)
        *high = 0;
    else
        *high = 1;
}

/* The label of a cell: its token or its index. */
static const char *label_of(cairo_t *cairo, const char *const *labels, int64_t i, char room[LABEL_ROOM])
{
    if (labels) return drawing_shorten(cairo, labels[i], room);
    snprintf(room, LABEL_ROOM, "%lld", (long long)i);
    return room;
}

static double widest_label(cairo_t *cairo, const char *const *labels, int64_t count)
{
    double widest = 0;
    char room[LABEL_ROOM];
    for (int64_t i = labels ? 0 : count - 1; i < count; i++)
        widest = fmax(widest, drawing_text_width(cairo, label_of(cairo, labels, i, room)));
    return widest;
}

/* Indices go up by 1, 2, 5, 10, ..., so that neighbours are at least `distance` apart. */
static int64_t index_step(double cell, double distance)
{
    int64_t step = 1;
    for (int i = 0; (double)step * cell < distance; i++) step = i % 3 == 1 ? step / 2 * 5 : step * 2;
    return step;
}

static struct layout lay_out(cairo_t *cairo, const struct heatmap *heatmap)
{
    struct layout layout = {.heatmap = heatmap};
    find_scale(heatmap, &layout.low, &layout.high);
    int64_t longest = heatmap->keys > heatmap->queries ? heatmap->keys : heatmap->queries;
    bool labelled = heatmap->key_labels || heatmap->query_labels;
    layout.cell = fmin(fmax(floor(MATRIX_SIDE / (double)longest), labelled ? LABELLED_CELL : 1), LARGEST_CELL);
    layout.width = layout.cell * (double)heatmap->keys, layout.height = layout.cell * (double)heatmap->queries;

    drawing_font(cairo, TITLE_SIZE);
    double title_width = 0;
    for (int64_t column = 0; heatmap->titles && column < heatmap->columns; column++)
        title_width = fmax(title_width, drawing_text_width(cairo, heatmap->titles[column]));
    drawing_font(cairo, LABEL_SIZE);
    double x_room = fmax(title_width, drawing_text_width(cairo, heatmap->x_label));
    double y_room = drawing_text_width(cairo, heatmap->y_label);
    layout.x_pitch = ceil(fmax(layout.width, x_room)) + GAP, layout.y_pitch = ceil(fmax(layout.height, y_room)) + GAP;
    layout.right = layout.x_pitch * (double)(heatmap->columns - 1) + layout.width;
    layout.bottom = layout.y_pitch * (double)(heatmap->rows - 1) + layout.height;

    double key_width = widest_label(cairo, heatmap->key_labels, heatmap->keys);
    layout.label_width = widest_label(cairo, heatmap->query_labels, heatmap->queries);
    layout.slanted = heatmap->key_labels && key_width > layout.cell - 4;
    layout.label_depth = TICK + 3 + (layout.slanted ? (key_width + LABEL_SIZE) * sqrt(0.5) : LABEL_SIZE);
    layout.x_step = heatmap->key_labels ? 1 : index_step(layout.cell, key_width + 5);
    layout.y_step = heatmap->query_labels ? 1 : index_step(layout.cell, LABEL_SIZE + 3);
    return layout;
}

static void draw_matrix(cairo_t *cairo, const struct layout *layout, const float *values, double left, double top)
{
    int64_t queries = layout->heatmap->queries, keys = layout->heatmap->keys;
    for (int64_t query = 0; query < queries; query++) {
        for (int64_t key = 0; key < keys; key++) {
            double value = (double)values[query * keys + key];
            set_colour(cairo, (value - layout->low) / (layout->high - layout->low));
            /* Reaches half a point under its neighbours, so that no zoom shows seams. */
            cairo_rectangle(cairo, left + layout->cell * (double)key, top + layout->cell * (double)query,
                            layout->cell + (key + 1 < keys ? 0.5 : 0), layout->cell + (query + 1 < queries ? 0.5 : 0));
            cairo_fill(cairo);
        }
    }
    cairo_set_source_rgb(cairo, 0, 0, 0);
    drawing_frame(cairo, left, top, layout->width, layout->height);
}

static void draw_key_labels(cairo_t *cairo, const struct layout *layout, double left)
{
    char room[LABEL_ROOM];
    double top = layout->bottom;
    for (int64_t key = 0; key < layout->heatmap->keys; key += layout->x_step) {
        double x = left + layout->cell * ((double)key + 0.5);
        const char *label = label_of(cairo, layout->heatmap->key_labels, key, room);
        drawing_line(cairo, x, top, x, top + TICK);
        if (layout->slanted)
            drawing_text(cairo, label, x + 2, top + TICK + 5, 1, 45);
        else
            drawing_text(cairo, label, x, top + TICK + 7, 0.5, 0);
    }
    drawing_text(cairo, layout->heatmap->x_label, left + layout->width / 2, top + layout->label_depth + 9, 0.5, 0);
}

static void draw_query_labels(cairo_t *cairo, const struct layout *layout, double top)
{
    char room[LABEL_ROOM];
    for (int64_t query = 0; query < layout->heatmap->queries; query += layout->y_step) {
        double y = top + layout->cell * ((double)query + 0.5);
        drawing_line(cairo, -TICK, y, 0, y);
        drawing_text(cairo, label_of(cairo, layout->heatmap->query_labels, query, room), -TICK - 3, y, 1, 0);
    }
    drawing_text(cairo, layout->heatmap->y_label, -TICK - layout->label_width - 13, top + layout->height / 2, 0.5, 90);
}

static void draw_colour_bar(cairo_t *cairo, const struct layout *layout)
{
    double height = fmax(floor(0.6 * layout->bottom), SMALLEST_BAR);
    double left = layout->right + 20, top = floor((layout->bottom - height) / 2);
    cairo_pattern_t *gradient = cairo_pattern_create_linear(0, top + height, 0, top);
    for (int i = 0; i <= RAMP_END; i++)
        cairo_pattern_add_color_stop_rgb(gradient, (double)i / RAMP_END, ramp[i][0], ramp[i][1], ramp[i][2]);
    cairo_set_source(cairo, gradient);
    cairo_rectangle(cairo, left, top, BAR_WIDTH, height);
    cairo_fill(cairo);
    cairo_pattern_destroy(gradient);

    cairo_set_source_rgb(cairo, 0, 0, 0);
    drawing_frame(cairo, left, top, BAR_WIDTH, height);
    struct ticks ticks;
    drawing_ticks(&ticks, layout->low, layout->high, 5);
    for (int i = 0; i < ticks.count; i++) {
        double y = top + height * (layout->high - ticks.values[i]) / (layout->high - layout->low);
        drawing_line(cairo, left + BAR_WIDTH, y, left + BAR_WIDTH + TICK, y);
        drawing_text(cairo, ticks.labels[i], left + BAR_WIDTH + TICK + 3, y, 0, 0);
    }
}

static void draw_heatmaps(cairo_t *cairo, const void *what)
{
    const struct heatmap *heatmap = what;
    struct layout layout = lay_out(cairo, heatmap);
    const float *values = heatmap->values;
    for (int64_t row = 0; row < heatmap->rows; row++) {
        for (int64_t column = 0; column < heatmap->columns; column++, values += heatmap->queries * heatmap->keys) {
            double left = layout.x_pitch * (double)column, top = layout.y_pitch * (double)row;
            draw_matrix(cairo, &layout, values, left, top);
            if (row == heatmap->rows - 1) draw_key_labels(cairo, &layout, left);
            if (column == 0) draw_query_labels(cairo, &layout, top);
        }
    }
    draw_colour_bar(cairo, &layout);
    drawing_font(cairo, TITLE_SIZE);
    for (int64_t column = 0; heatmap->titles && column < heatmap->columns; column++)
        drawing_text(cairo, heatmap->titles[column], layout.x_pitch * (double)column + layout.width / 2, -11, 0.5, 0);
}

/* Which of the texts is NULL; count if none, or if there are no texts at all. */
static int64_t find_missing(const char *const *texts, int64_t count)
{
    int64_t i = texts ? 0 : count;
    while (i < count && texts[i]) i++;
    return i;
}

bool picture_heatmaps(const char *path, const struct heatmap *heatmap, char *error, size_t error_size)
{
    if (!path) return drawing_fail(error, error_size, "a heatmap needs a path to be written to, not NULL");
    if (!heatmap || !heatmap->values)
        return drawing_fail(error, error_size, "the heatmap for '%s' has no values (NULL)", path);
    const int64_t sizes[4] = {heatmap->rows, heatmap->columns, heatmap->queries, heatmap->keys};
    double count = 1;
    for (int i = 0; i < 4; i++) count *= sizes[i] > 0 ? (double)sizes[i] : 0;
    if (!(count > 0 && count <= 1e8))
        return drawing_fail(
            error, error_size,
            "the heatmap for '%s' has shape (%lld, %lld, %lld, %lld); all four sizes must be at least 1 "
            "and their product at most 100,000,000",
            path, (long long)sizes[0], (long long)sizes[1], (long long)sizes[2], (long long)sizes[3]);
    const struct {
        const char *name, *const *texts;
        int64_t count;
    } lists[] = {{"titles", heatmap->titles, heatmap->columns},
                 {"query_labels", heatmap->query_labels, heatmap->queries},
                 {"key_labels", heatmap->key_labels, heatmap->keys}};
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        int64_t missing = find_missing(lists[i].texts, lists[i].count);
        if (missing < lists[i].count)
            return drawing_fail(error, error_size, "the heatmap for '%s' has NULL at %s[%lld]", path, lists[i].name,
                                (long long)missing);
    }
    return drawing_write(path, draw_heatmaps, heatmap, error, error_size);
}
