/* Attention heatmaps as text: a grid of framed matrices, in colours or in shades, and their scale. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <rapt/progress.h>

#include "terminal_layout.h"

enum { SCALE_WIDTH = 20 };

static double share_of(const struct terminal_layout *layout, float value)
{
    return ((double)value - layout->low) / (layout->high - layout->low);
}

static const char *shade_of(double share)
{
    static const char *const shades[] = {" ", "░", "▒", "▓", "█"};
    if (isnan(share)) return "×";
    return shades[lround(4 * fmin(fmax(share, 0), 1))];
}

static void put_cell(FILE *page, const struct terminal_layout *layout, double share)
{
    terminal_set_heat(page, layout->colours, share, true);
    for (int i = 0; i < layout->cell; i++) fputs(layout->colours == TERMINAL_PLAIN ? shade_of(share) : " ", page);
}

/* One line of one matrix, without its frame. */
static void put_cells(FILE *page, const struct terminal_layout *layout, const float *values, int64_t query)
{
    const struct heatmap *heatmap = &layout->heatmap;
    values += query * heatmap->keys;
    for (int64_t key = 0; key < heatmap->keys; key++) {
        double share = share_of(layout, values[key]);
        if (!layout->halves) {
            put_cell(page, layout, share);
            continue;
        }
        terminal_set_heat(page, layout->colours, share, false);
        if (query + 1 < heatmap->queries)
            terminal_set_heat(page, layout->colours, share_of(layout, values[heatmap->keys + key]), true);
        fputs("▀", page);
    }
    terminal_reset(page, layout->colours);
}

static void put_margin(FILE *page, const struct terminal_layout *layout, const char *label)
{
    terminal_put(page, label, layout->label_width, 1);
    fputc(' ', page);
}

static void put_frame(FILE *page, const struct terminal_layout *layout, int64_t columns, const char *left,
                      const char *right)
{
    put_margin(page, layout, NULL);
    int inside = (int)layout->heatmap.keys * layout->cell;
    for (int64_t column = 0; column < columns; column++) {
        fputs(left, page);
        for (int i = 0; i < inside; i++) fputs("─", page);
        fputs(right, page);
        fprintf(page, "%*s", layout->room + 1 - inside - 2, "");
    }
    fputc('\n', page);
}

/* The row of the grid from its matrix `first` on. */
static void put_matrices(FILE *page, const struct terminal_layout *layout, const float *first, int64_t columns)
{
    const struct heatmap *heatmap = &layout->heatmap;
    int64_t per_line = layout->halves ? 2 : 1, lines = terminal_divide_up(heatmap->queries, per_line);
    int64_t step = heatmap->query_labels ? 1 : figure_index_step(1, (double)terminal_divide_up(lines, 12));
    put_frame(page, layout, columns, "┌", "┐");
    for (int64_t line = 0; line < lines; line++) {
        int64_t query = line * per_line;
        char index[32] = "";
        if (line % step == 0) snprintf(index, sizeof index, "%lld", (long long)(query * layout->merged_queries));
        put_margin(page, layout, heatmap->query_labels ? heatmap->query_labels[query] : index);
        for (int64_t column = 0; column < columns; column++) {
            fputs("│", page);
            put_cells(page, layout, first + column * heatmap->queries * heatmap->keys, query);
            fprintf(page, "│%*s", layout->room + 1 - 2 - (int)heatmap->keys * layout->cell, "");
        }
        fputc('\n', page);
    }
    put_frame(page, layout, columns, "└", "┘");
}

static void put_titles(FILE *page, const struct terminal_layout *layout, const char *const *titles, const char *title,
                       int64_t columns)
{
    put_margin(page, layout, NULL);
    int matrix = (int)layout->heatmap.keys * layout->cell + 2;
    for (int64_t column = 0; column < columns; column++) {
        const char *text = titles ? titles[column] : title;
        int width = terminal_text_width(text) > matrix ? layout->room : matrix;
        terminal_put(page, text, width, terminal_text_width(text) > matrix ? 0 : 0.5);
        fprintf(page, "%*s", layout->room + 1 - width, "");
    }
    fputc('\n', page);
}

/* Tokens stand upright below their keys, a character on each line. */
static void put_token_labels(FILE *page, const struct terminal_layout *layout, int64_t columns)
{
    const struct heatmap *heatmap = &layout->heatmap;
    const char *texts[2]; /* of the character to be printed: where it begins and ends */
    int lines = terminal_clamp(terminal_widest(heatmap->key_labels, heatmap->keys), LONGEST_LABEL);
    for (int line = 0; line < lines; line++) {
        put_margin(page, layout, NULL);
        for (int64_t column = 0; column < columns; column++) {
            fputc(' ', page);
            for (int64_t key = 0; key < heatmap->keys; key++) {
                int width = 0, rest = 0;
                texts[1] = heatmap->key_labels[key];
                for (int i = 0; i <= line; i++) texts[0] = texts[1], texts[1] = terminal_next(texts[0], &width);
                terminal_next(texts[1], &rest);
                if (line == LONGEST_LABEL - 1 && rest > 0)
                    fputs("⋮", page), width = 1;
                else
                    terminal_put_characters(page, texts[0], texts[1]);
                fprintf(page, "%*s", layout->cell - width, "");
            }
            fprintf(page, "%*s", layout->room - (int)heatmap->keys * layout->cell, "");
        }
        fputc('\n', page);
    }
}

static void put_index_labels(FILE *page, const struct terminal_layout *layout, int64_t columns)
{
    int64_t keys = layout->heatmap.keys, merged = layout->merged_keys;
    char label[32];
    int digits = snprintf(label, sizeof label, "%lld", (long long)((keys - 1) * merged));
    int64_t step = figure_index_step(layout->cell, digits + 1);
    put_margin(page, layout, NULL);
    for (int64_t column = 0; column < columns; column++) {
        int used = fprintf(page, " ");
        for (int64_t key = 0; key < keys; key += step) {
            int length = snprintf(label, sizeof label, "%lld", (long long)(key * merged));
            int place = 1 + (int)key * layout->cell;
            if (place + length <= layout->room) used += fprintf(page, "%*s%s", place - used, "", label);
        }
        fprintf(page, "%*s", layout->room + 1 - used, "");
    }
    fputc('\n', page);
}

static void put_scale(FILE *page, const struct terminal_layout *layout)
{
    const struct heatmap *heatmap = &layout->heatmap;
    struct terminal_layout narrow = *layout;
    narrow.cell = 1;
    put_margin(page, layout, NULL);
    fprintf(page, "%.3g │", layout->low);
    for (int i = 0; i < SCALE_WIDTH; i++) put_cell(page, &narrow, (i + 0.5) / SCALE_WIDTH);
    terminal_reset(page, layout->colours);
    fprintf(page, "│ %.3g", layout->high);
    bool has_nan = false;
    for (int64_t i = 0; i < heatmap->rows * heatmap->columns * heatmap->queries * heatmap->keys; i++)
        has_nan = has_nan || isnan(heatmap->values[i]);
    if (has_nan) {
        fputs("   ", page);
        put_cell(page, &narrow, (double)NAN);
        terminal_reset(page, layout->colours);
        fputs(" NaN", page);
    }
    fputc('\n', page);
    if (layout->merged_queries > 1 || layout->merged_keys > 1)
        fprintf(page, "each %s is the mean of %lld %s x %lld %s\n", layout->halves ? "half character" : "character",
                (long long)layout->merged_queries, layout->merged_queries > 1 ? "queries" : "query",
                (long long)layout->merged_keys, layout->merged_keys > 1 ? "keys" : "key");
    if (layout->labels_left_out) fputs("the labels of the keys have no room\n", page);
}

/* A text at the left edge, cut where there is no room for it and the two columns of what ends it. */
static void put_line(FILE *page, const struct terminal_layout *layout, const char *text, const char *end)
{
    terminal_put(page, text, terminal_clamp(terminal_text_width(text), layout->width - 2), 0);
    fprintf(page, "%s\n", end);
}

static void put_heatmaps(FILE *page, const struct terminal_layout *layout)
{
    const struct heatmap *heatmap = &layout->heatmap;
    for (int64_t first = 0; first < heatmap->columns; first += layout->band) {
        int64_t columns = heatmap->columns - first < layout->band ? heatmap->columns - first : layout->band;
        if (first > 0) fputc('\n', page);
        if (heatmap->y_label) put_line(page, layout, heatmap->y_label, " ↓");
        if (heatmap->titles) put_titles(page, layout, heatmap->titles + first, NULL, columns);
        for (int64_t row = 0; row < heatmap->rows; row++) {
            if (heatmap->row_titles) put_line(page, layout, heatmap->row_titles[row], "");
            put_matrices(page, layout,
                         heatmap->values + (row * heatmap->columns + first) * heatmap->queries * heatmap->keys,
                         columns);
        }
        if (heatmap->key_labels)
            put_token_labels(page, layout, columns);
        else
            put_index_labels(page, layout, columns);
        if (heatmap->x_label) put_titles(page, layout, NULL, heatmap->x_label, columns);
    }
    put_scale(page, layout);
}

bool picture_print_heatmaps(FILE *stream, const struct heatmap *heatmap, char *error, size_t error_size)
{
    if (!stream) return figure_fail(error, error_size, "terminal: a heatmap needs a stream to be printed to, not NULL");
    if (!figure_check_heatmap("terminal", heatmap, error, error_size)) return false;
    struct terminal_layout layout = {.heatmap = *heatmap,
                                     .width = rapt_terminal_width(stream),
                                     .colours = terminal_colours(stream)};
    float *values = terminal_lay_out(&layout);
    if (!values) return figure_fail(error, error_size, "terminal: out of memory for a picture");
    struct page page;
    bool printed = page_open(&page, error, error_size);
    if (printed) {
        put_heatmaps(page.stream, &layout);
        printed = page_print(&page, stream, error, error_size);
    }
    free(values);
    return printed;
}
