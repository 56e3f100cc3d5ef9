/* What drawn and printed pictures share: checks, scales, colours, axes and ticks. Private to the pictures. */
#ifndef EXAMPLES_FIGURE_H
#define EXAMPLES_FIGURE_H

#include "picture.h"

/* Writes the sentence into error and returns false, so that callers can return its result. */
bool figure_fail(char *error, size_t error_size, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* The code point at the beginning of a text that is UTF-8, and its bytes; whether that is one that never is a character
 * (U+FFFE), which cairo refuses. */
uint32_t figure_code_point(const char *text, int *length);
bool figure_is_noncharacter(uint32_t code);

/* False, with a sentence that begins with `place` (a path or "terminal"), for what cannot be drawn. */
bool figure_check_heatmap(const char *place, const struct heatmap *heatmap, char *error, size_t error_size);
/* One chart, or several that stand in a row and share their axes. */
bool figure_check_charts(const char *place, const struct chart *charts, int64_t count, char *error, size_t error_size);

/* The smallest and the largest finite value; equal ones get a scale that reaches to 0, and no values one from 0 to
 * 1. */
void figure_find_scale(const struct heatmap *heatmap, double *low, double *high);

/* Red, green and blue, 0 to 1. */
struct colour {
    double channels[3];
};

/* From nearly white (0) over red to dark (1), linear between HEAT_PIECES + 1 colours at equal distances; grey for
 * NaN. */
enum { HEAT_PIECES = 6 };
struct colour figure_heat(double share);
/* Of the lines of a chart: colours that colour-blind readers can tell apart, again from the first after the sixth. */
struct colour figure_series_colour(int64_t series);

struct axis {
    double low, high; /* logarithms on a logarithmic axis */
    double length;
    bool logarithmic;
};

double figure_on_axis(const struct axis *axis, double value);

/* Is the point within what an axis can show, and positive where it is logarithmic? */
bool figure_can_draw(const struct chart *chart, double x, double y);

/* Axes of unset length with room for all points of the charts; false if there is no point. */
bool figure_find_axes(const struct chart *charts, int64_t count, struct axis axes[2]);

enum { MAX_TICKS = 24 };

struct ticks {
    int count;
    double values[MAX_TICKS];
    char labels[MAX_TICKS][32];
};

/* Round numbers in low .. high, at most about `wanted` of them. Needs low < high, finite. */
void figure_ticks(struct ticks *ticks, double low, double high, int wanted);

/* The same for a logarithmic axis: powers of ten where there are enough. Needs 0 < low < high. */
void figure_logarithmic_ticks(struct ticks *ticks, double low, double high, int wanted);

/* The one of the two that the axis needs. */
void figure_axis_ticks(struct ticks *ticks, const struct axis *axis, int wanted);

/* Of 1, 2, 5, 10, ... the step from one labelled cell to the next, so that labels are at least `distance` apart. */
int64_t figure_index_step(double cell, double distance);

#endif
