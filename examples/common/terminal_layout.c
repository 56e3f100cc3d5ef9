/* Cells, labels and bands of printed heatmaps: what fits into a terminal, and coarser matrices where they do not. */
#include "terminal_layout.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "system.h"

enum {
    MOST_LINES = 48,  /* of a matrix whose queries have no labels */
    FEWEST_CELLS = 16 /* of a matrix beside another, before matrices go below each other */
};

int terminal_clamp(int width, int most)
{
    return width < most ? width : most > 1 ? most : 1;
}

int terminal_widest(const char *const *texts, int64_t count)
{
    int width = 0;
    for (int64_t i = 0; texts && i < count; i++)
        if (terminal_text_width(texts[i]) > width) width = terminal_text_width(texts[i]);
    return width;
}

static bool has_wide_character(const char *const *texts, int64_t count)
{
    for (int64_t i = 0; texts && i < count; i++) {
        int width = 1;
        for (const char *at = texts[i]; width > 0; at = terminal_next(at, &width))
            if (width > 1) return true;
    }
    return false;
}

/* The columns of a matrix that shows so many cells. */
static int matrix_room(const struct terminal_layout *layout, int64_t cells, int cell)
{
    const struct heatmap *heatmap = &layout->heatmap;
    int text = terminal_widest(heatmap->titles, heatmap->columns), x_label = terminal_text_width(heatmap->x_label);
    int frame = (int)fmin((double)cells * cell + 2, 1e6);
    text = terminal_clamp(text > x_label ? text : x_label, layout->width - layout->label_width - 1);
    return frame > text ? frame : text;
}

static bool fits(const struct terminal_layout *layout, int64_t cells, int cell, int64_t columns)
{
    return layout->label_width + (double)columns * (matrix_room(layout, cells, cell) + 1) <= layout->width;
}

int64_t terminal_divide_up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

/* How many keys a cell must stand for, so that so many matrices stand beside each other; 0 if that would be too
 * coarse. */
static int64_t find_merge(const struct terminal_layout *layout, int64_t columns)
{
    int64_t keys = layout->heatmap.keys, fewest = columns == 1 ? 1 : keys < FEWEST_CELLS ? keys : FEWEST_CELLS;
    for (int64_t merged = 1; terminal_divide_up(keys, merged) >= fewest; merged++) {
        if (fits(layout, terminal_divide_up(keys, merged), 1, columns)) return merged;
        if (merged >= keys) break;
    }
    return columns == 1 ? keys : 0;
}

static void choose_cells(struct terminal_layout *layout)
{
    struct heatmap *heatmap = &layout->heatmap;
    int smallest = has_wide_character(heatmap->key_labels, heatmap->keys) ? 2 : 1;
    layout->labels_left_out = heatmap->key_labels && !fits(layout, heatmap->keys, smallest, 1);
    if (layout->labels_left_out) heatmap->key_labels = NULL;
    layout->merged_keys = 1;
    layout->cell = 2;
    layout->band = heatmap->columns;
    if (fits(layout, heatmap->keys, 2, heatmap->columns)) return;
    if (!heatmap->key_labels)
        layout->cell = 1;
    else if (!fits(layout, heatmap->keys, 2, 1))
        layout->cell = smallest;
    int64_t bands = heatmap->columns / layout->width + 1;
    do {
        layout->band = terminal_divide_up(heatmap->columns, bands++);
        layout->merged_keys = heatmap->key_labels ? fits(layout, heatmap->keys, layout->cell, layout->band)
                                                  : find_merge(layout, layout->band);
    } while (layout->merged_keys == 0 && layout->band > 1);
}

static void choose_layout(struct terminal_layout *layout)
{
    struct heatmap *heatmap = &layout->heatmap;
    char last[32];
    snprintf(last, sizeof last, "%lld", (long long)heatmap->queries - 1);
    layout->label_width =
        heatmap->query_labels ? terminal_widest(heatmap->query_labels, heatmap->queries) : (int)strlen(last);
    layout->label_width = terminal_clamp(layout->label_width, terminal_clamp(LONGEST_LABEL, layout->width / 3));
    choose_cells(layout);
    layout->halves =
        layout->cell == 1 && layout->colours != TERMINAL_PLAIN && !heatmap->query_labels && system_is_utf8();
    /* A character is about twice as high as wide. */
    layout->merged_queries = layout->merged_keys > 1 && !layout->halves ? 2 * layout->merged_keys : layout->merged_keys;
    int64_t coarsest = terminal_divide_up(heatmap->queries, MOST_LINES * (layout->halves ? 2 : 1));
    if (layout->merged_queries < coarsest) layout->merged_queries = coarsest;
    if (heatmap->query_labels) layout->merged_queries = 1;
}

/* NaN counts only where a cell has nothing else. */
float *terminal_lay_out(struct terminal_layout *layout)
{
    choose_layout(layout);
    struct heatmap *coarse = &layout->heatmap;
    const struct heatmap fine = *coarse;
    coarse->queries = terminal_divide_up(fine.queries, layout->merged_queries);
    coarse->keys = terminal_divide_up(fine.keys, layout->merged_keys);
    int64_t matrices = fine.rows * fine.columns, cells = coarse->queries * coarse->keys;
    float *values = calloc((size_t)(matrices * cells), sizeof *values);
    double *sums = calloc((size_t)cells, sizeof *sums), *counts = calloc((size_t)cells, sizeof *counts);
    bool complete = values && sums && counts;
    for (int64_t matrix = 0; complete && matrix < matrices; matrix++) {
        memset(sums, 0, (size_t)cells * sizeof *sums);
        memset(counts, 0, (size_t)cells * sizeof *counts);
        for (int64_t i = 0; i < fine.queries * fine.keys; i++) {
            double value = (double)fine.values[matrix * fine.queries * fine.keys + i];
            int64_t query = i / fine.keys / layout->merged_queries, key = i % fine.keys / layout->merged_keys;
            if (isnan(value)) continue;
            sums[query * coarse->keys + key] += value;
            counts[query * coarse->keys + key]++;
        }
        for (int64_t i = 0; i < cells; i++)
            values[matrix * cells + i] = counts[i] > 0 ? (float)(sums[i] / counts[i]) : NAN;
    }
    free(sums);
    free(counts);
    if (!complete) {
        free(values);
        return NULL;
    }
    coarse->values = values;
    layout->room = matrix_room(layout, coarse->keys, layout->cell);
    figure_find_scale(coarse, &layout->low, &layout->high);
    return values;
}
