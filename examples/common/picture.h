/* Pictures: grids of attention heatmaps and line charts, written as SVG or PNG, whichever the path ends in.

   All functions return false with one sentence in error (error_size bytes; may be NULL) for input that cannot be drawn or
   a file that cannot be written. A file is written beside its place and then renamed: it is whole or not there. In a
   build without cairo they always return false, and the sentence says so. */
#ifndef EXAMPLES_PICTURE_H
#define EXAMPLES_PICTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Dive into Deep Learning, 11.1, show_heatmaps. All texts are UTF-8; those that are NULL are left out. */
struct heatmap {
    const float *values; /* (rows, columns, queries, keys), contiguous; NaN is drawn grey */
    int64_t rows, columns, queries, keys;
    const char *const *titles;       /* (columns), above the first row */
    const char *const *query_labels; /* (queries), beside the first column; NULL: indices at round distances */
    const char *const *key_labels;   /* (keys), below the last row; slanted if they are wider than a cell */
    const char *x_label, *y_label;   /* below the last row, beside the first column */
};

/* All matrices share one colour scale, from the smallest to the largest finite value, and its one colour bar. Equal values
   get a scale that reaches to 0. */
bool picture_heatmaps(const char *path, const struct heatmap *heatmap, char *error, size_t error_size);

struct chart_series {
    const char *name;    /* in the legend; NULL: not there */
    const double *x, *y; /* (count); the line has a gap where one is NaN or infinite */
    int64_t count;
};

struct chart {
    const struct chart_series *series; /* (num_series) */
    int64_t num_series;
    const char *title, *x_label, *y_label; /* UTF-8, or NULL */
    bool logarithmic_y;                    /* values that are not positive are gaps too */
};

/* One line for each series, a dot for a point without neighbours. False if not a single point can be drawn. */
bool picture_chart(const char *path, const struct chart *chart, char *error, size_t error_size);

#endif
