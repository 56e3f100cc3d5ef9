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
    SMALLEST_BAR = 80,
    AROUND = 280, /* more than labels, titles and bar take beside or below the matrices */
    NARROWEST = 3 /* cells that are as wide as a title or the name of an axis */
};

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

static struct layout lay_out(cairo_t *cairo, const struct heatmap *heatmap)
{
    struct layout layout = {.heatmap = heatmap};
    figure_find_scale(heatmap, &layout.low, &layout.high);
    int64_t longest = heatmap->keys > heatmap->queries ? heatmap->keys : heatmap->queries;
    bool labelled = heatmap->key_labels || heatmap->query_labels;
    layout.cell = fmin(fmax(floor(MATRIX_SIDE / (double)longest), labelled ? LABELLED_CELL : 1), LARGEST_CELL);
    layout.width = layout.cell * (double)heatmap->keys, layout.height = layout.cell * (double)heatmap->queries;

    drawing_font(cairo, TITLE_SIZE);
    double title_width = 0, row_title = 0;
    for (int64_t column = 0; heatmap->titles && column < heatmap->columns; column++)
        title_width = fmax(title_width, drawing_text_width(cairo, heatmap->titles[column]));
    for (int64_t row = 0; heatmap->row_titles && row < heatmap->rows; row++)
        row_title = fmax(row_title, drawing_text_width(cairo, heatmap->row_titles[row]));
    drawing_font(cairo, LABEL_SIZE);
    double x_room = fmax(title_width, drawing_text_width(cairo, heatmap->x_label));
    double y_room = fmax(row_title, drawing_text_width(cairo, heatmap->y_label));
    layout.x_pitch = ceil(fmax(layout.width, x_room)) + GAP, layout.y_pitch = ceil(fmax(layout.height, y_room)) + GAP;
    layout.right = layout.x_pitch * (double)(heatmap->columns - 1) + layout.width;
    layout.bottom = layout.y_pitch * (double)(heatmap->rows - 1) + layout.height;

    double key_width = widest_label(cairo, heatmap->key_labels, heatmap->keys);
    layout.label_width = widest_label(cairo, heatmap->query_labels, heatmap->queries);
    layout.slanted = heatmap->key_labels && key_width > layout.cell - 4;
    layout.label_depth = TICK + 3 + (layout.slanted ? (key_width + LABEL_SIZE) * sqrt(0.5) : LABEL_SIZE);
    layout.x_step = heatmap->key_labels ? 1 : figure_index_step(layout.cell, key_width + 5);
    layout.y_step = heatmap->query_labels ? 1 : figure_index_step(layout.cell, LABEL_SIZE + 3);
    return layout;
}

static void draw_matrix(cairo_t *cairo, const struct layout *layout, const float *values, double left, double top)
{
    int64_t queries = layout->heatmap->queries, keys = layout->heatmap->keys;
    for (int64_t query = 0; query < queries; query++) {
        for (int64_t key = 0; key < keys; key++) {
            double value = (double)values[query * keys + key];
            drawing_colour(cairo, figure_heat((value - layout->low) / (layout->high - layout->low)), 1);
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

static void draw_row_titles(cairo_t *cairo, const struct layout *layout)
{
    const struct heatmap *heatmap = layout->heatmap;
    double x = -TICK - layout->label_width - (heatmap->y_label ? 32 : 15);
    for (int64_t row = 0; heatmap->row_titles && row < heatmap->rows; row++)
        drawing_text(cairo, heatmap->row_titles[row], x, layout->y_pitch * (double)row + layout->height / 2, 0.5, 90);
}

static void draw_colour_bar(cairo_t *cairo, const struct layout *layout)
{
    double height = fmax(floor(0.6 * layout->bottom), SMALLEST_BAR);
    double left = layout->right + 20, top = floor((layout->bottom - height) / 2);
    cairo_pattern_t *gradient = cairo_pattern_create_linear(0, top + height, 0, top);
    for (int i = 0; i <= HEAT_PIECES; i++) {
        const struct colour colour = figure_heat((double)i / HEAT_PIECES);
        cairo_pattern_add_color_stop_rgb(gradient, (double)i / HEAT_PIECES, colour.channels[0], colour.channels[1],
                                         colour.channels[2]);
    }
    cairo_set_source(cairo, gradient);
    cairo_rectangle(cairo, left, top, BAR_WIDTH, height);
    cairo_fill(cairo);
    cairo_pattern_destroy(gradient);

    cairo_set_source_rgb(cairo, 0, 0, 0);
    drawing_frame(cairo, left, top, BAR_WIDTH, height);
    struct ticks ticks;
    figure_ticks(&ticks, layout->low, layout->high, 5);
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
    draw_row_titles(cairo, &layout);
}

bool picture_heatmaps(const char *path, const struct heatmap *heatmap, char *error, size_t error_size)
{
    if (!path) return figure_fail(error, error_size, "a heatmap needs a path to be written to, not NULL");
    return figure_check_heatmap(path, heatmap, error, error_size) &&
           drawing_write(path, draw_heatmaps, heatmap, error, error_size);
}

int64_t picture_room(int64_t matrices)
{
    const int64_t side = (MAX_SIDE - AROUND + GAP) / matrices - GAP;
    const int64_t tokens = side / (side < MATRIX_SIDE ? LARGEST_CELL : LABELLED_CELL);
    return tokens < NARROWEST ? 0 : tokens;
}
