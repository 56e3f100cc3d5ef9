/* Pictures: grids of attention heatmaps and charts, as SVG or PNG files (whichever the path ends in) and as text.

   All functions return false with one sentence in error (error_size bytes; may be NULL) for input that cannot be
   drawn or a file that cannot be written. A file is written beside its place and then renamed: it is whole or not
   there. In a build without cairo there are no files, always false, and the sentence says so; text there is in every
   build. */
#ifndef EXAMPLES_PICTURE_H
#define EXAMPLES_PICTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Dive into Deep Learning, 11.1, show_heatmaps. All texts are UTF-8; those that are NULL are left out. */
struct heatmap {
    const float *values; /* (rows, columns, queries, keys), contiguous; NaN is drawn grey */
    int64_t rows, columns, queries, keys;
    const char *const *titles;       /* (columns), above the first row */
    const char *const *query_labels; /* (queries), beside the first column; NULL: indices at round distances */
    const char *const *key_labels;   /* (keys), below the last row; slanted if they are wider than a cell */
    const char *x_label, *y_label;   /* below the last row, beside the first column */
    const char *const *row_titles;   /* (rows), at the side of each row */
};

/* Does this build draw files? */
extern const bool picture_has_files;

/* All matrices share one colour scale, from the smallest to the largest finite value, and its one colour bar. Equal
   values get a scale that reaches to 0. */
bool picture_heatmaps(const char *path, const struct heatmap *heatmap, char *error, size_t error_size);

/* How many tokens, with their labels, always have room in the file of a picture with so many matrices beside or below
   each other; 0: as many matrices as that may have none. */
int64_t picture_room(int64_t matrices);

struct chart_series {
    const char *name;    /* in the legend; NULL: not there */
    const double *x, *y; /* (count); the line has a gap where one is NaN or infinite */
    int64_t count;
    bool points; /* a half transparent dot for each point instead of a line */
};

struct chart {
    const struct chart_series *series; /* (num_series), the later ones above the earlier ones */
    int64_t num_series;
    const char *title, *x_label, *y_label; /* UTF-8, or NULL */
    bool logarithmic_x, logarithmic_y;     /* values that are not positive are gaps too */
};

/* One line for each series, a dot for a point without neighbours. False if not a single point can be drawn. */
bool picture_chart(const char *path, const struct chart *chart, char *error, size_t error_size);

/* Smaller charts in a row with the same axes: the numbers and y_label of the vertical one stand beside the first chart,
   and its legend at the end of the row. */
bool picture_charts(const char *path, const struct chart *charts, int64_t count, char *error, size_t error_size);

/* The same as text, at most as wide as the terminal (COLUMNS, or 80, elsewhere) if that has 50 columns or more. A
   terminal gets colours if COLORTERM or TERM says that it has at least 256 and NO_COLOR is not set; a stream that is
   none gets them if CLICOLOR_FORCE is set. Where the locale's characters are not UTF-8, all is ASCII: frames, shades
   and lines have others, and a foreign character of a text is a '?' for each column that it takes. Without colours a
   value is the nearest of the five shades " ░▒▓█", and NaN is ×. Matrices that have no room beside each other go
   below each other. One that has too many cells is printed coarser, each character the mean of several cells,
   without the labels of single tokens; a line below says so. */
bool picture_print_heatmaps(FILE *stream, const struct heatmap *heatmap, char *error, size_t error_size);
bool picture_print_chart(FILE *stream, const struct chart *chart, char *error, size_t error_size);

#endif
