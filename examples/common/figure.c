/* Checks, scales, colours and axes of all pictures. */
#include "figure.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

bool figure_fail(char *error, size_t error_size, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error, error ? error_size : 0, format, arguments);
    va_end(arguments);
    return false;
}

/* As RFC 3629 has it: no overlong forms, no surrogates, nothing above U+10FFFF. */
static bool is_utf8(const char *text)
{
    for (const unsigned char *at = (const unsigned char *)text; *at;) {
        int following = *at < 0x80 ? 0 : *at >= 0xc2 && *at < 0xe0 ? 1 : *at >= 0xe0 && *at < 0xf0 ? 2 : 3;
        if ((*at >= 0x80 && *at < 0xc2) || *at > 0xf4) return false;
        if ((*at == 0xe0 && at[1] < 0xa0) || (*at == 0xed && at[1] > 0x9f)) return false;
        if ((*at == 0xf0 && at[1] < 0x90) || (*at == 0xf4 && at[1] > 0x8f)) return false;
        for (at++; following > 0; following--, at++)
            if ((*at & 0xc0) != 0x80) return false;
    }
    return true;
}

uint32_t figure_code_point(const char *text, int *length)
{
    const unsigned char *at = (const unsigned char *)text;
    *length = at[0] < 0x80 ? 1 : at[0] < 0xe0 ? 2 : at[0] < 0xf0 ? 3 : 4;
    uint32_t code = *length == 1 ? at[0] : at[0] & (0xffU >> (*length + 1));
    for (int i = 1; i < *length; i++) code = code << 6 | (at[i] & 0x3f);
    return code;
}

bool figure_is_noncharacter(uint32_t code)
{
    return (code & 0xfffe) == 0xfffe || (code >= 0xfdd0 && code <= 0xfdef);
}

struct texts {
    const char *name, *const *texts;
    int64_t count;
    bool optional; /* each of them */
};

static bool check_texts(const char *place, const struct texts *list, char *error, size_t error_size)
{
    for (int64_t i = 0; list->texts && i < list->count; i++) {
        char index[32] = "";
        if (!list->optional) snprintf(index, sizeof index, "[%lld]", (long long)i);
        if (!list->texts[i] && !list->optional)
            return figure_fail(error, error_size, "%s: the picture has NULL at %s%s", place, list->name, index);
        if (list->texts[i] && !is_utf8(list->texts[i]))
            return figure_fail(error, error_size, "%s: %s%s of the picture is not UTF-8", place, list->name, index);
    }
    return true;
}

bool figure_check_heatmap(const char *place, const struct heatmap *heatmap, char *error, size_t error_size)
{
    if (!heatmap || !heatmap->values)
        return figure_fail(error, error_size, "%s: the heatmap has no values (NULL)", place);
    const int64_t sizes[4] = {heatmap->rows, heatmap->columns, heatmap->queries, heatmap->keys};
    double count = 1;
    for (int i = 0; i < 4; i++) count *= sizes[i] > 0 ? (double)sizes[i] : 0;
    if (!(count > 0 && count <= 1e8))
        return figure_fail(error, error_size,
                           "%s: the heatmap has shape (%lld, %lld, %lld, %lld); all four sizes must be at least 1 "
                           "and their product at most 100,000,000",
                           place, (long long)sizes[0], (long long)sizes[1], (long long)sizes[2], (long long)sizes[3]);
    const struct texts lists[] = {{"titles", heatmap->titles, heatmap->columns, false},
                                  {"row_titles", heatmap->row_titles, heatmap->rows, false},
                                  {"query_labels", heatmap->query_labels, heatmap->queries, false},
                                  {"key_labels", heatmap->key_labels, heatmap->keys, false},
                                  {"x_label", &heatmap->x_label, 1, true},
                                  {"y_label", &heatmap->y_label, 1, true}};
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
        if (!check_texts(place, &lists[i], error, error_size)) return false;
    return true;
}

static bool check_chart(const char *place, const struct chart *chart, char *error, size_t error_size)
{
    if (!chart->series || chart->num_series < 1)
        return figure_fail(error, error_size, "%s: the chart has no series", place);
    for (int64_t s = 0; s < chart->num_series; s++) {
        const struct chart_series *series = &chart->series[s];
        if (series->count < 0 || (series->count > 0 && (!series->x || !series->y)))
            return figure_fail(error, error_size, "%s: series %lld of the chart has %lld points but %s is NULL", place,
                               (long long)s, (long long)series->count, series->x ? "y" : "x");
        const struct texts name = {"the name of a series", &series->name, 1, true};
        if (!check_texts(place, &name, error, error_size)) return false;
    }
    const struct texts lists[] = {{"title", &chart->title, 1, true},
                                  {"x_label", &chart->x_label, 1, true},
                                  {"y_label", &chart->y_label, 1, true}};
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
        if (!check_texts(place, &lists[i], error, error_size)) return false;
    return true;
}

bool figure_check_charts(const char *place, const struct chart *charts, int64_t count, char *error, size_t error_size)
{
    if (!charts || count < 1) return figure_fail(error, error_size, "%s: the chart has no series", place);
    for (int64_t i = 0; i < count; i++) {
        if (!check_chart(place, &charts[i], error, error_size)) return false;
        if (charts[i].logarithmic_x != charts->logarithmic_x || charts[i].logarithmic_y != charts->logarithmic_y)
            return figure_fail(error, error_size,
                               "%s: charts 0 and %lld share their axes, but one is logarithmic where the other is not",
                               place, (long long)i);
    }
    struct axis axes[2];
    if (!figure_find_axes(charts, count, axes))
        return figure_fail(error, error_size, "%s: the chart has not a single %spoint", place,
                           charts->logarithmic_x || charts->logarithmic_y ? "finite positive " : "finite ");
    return true;
}

void figure_find_scale(const struct heatmap *heatmap, double *low, double *high)
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

struct colour figure_heat(double share)
{
    static const struct colour ramp[HEAT_PIECES + 1] = {{{1.0, 0.965, 0.945}},   {{0.992, 0.855, 0.79}},
                                                        {{0.985, 0.68, 0.57}},   {{0.975, 0.48, 0.35}},
                                                        {{0.915, 0.265, 0.205}}, {{0.77, 0.1, 0.12}},
                                                        {{0.42, 0.0, 0.06}}};
    if (isnan(share)) return (struct colour){{0.8, 0.8, 0.8}};
    double place = fmin(fmax(share, 0), 1) * HEAT_PIECES;
    int i = place >= HEAT_PIECES ? HEAT_PIECES - 1 : (int)place;
    struct colour mixed;
    for (int c = 0; c < 3; c++)
        mixed.channels[c] = ramp[i].channels[c] + (place - i) * (ramp[i + 1].channels[c] - ramp[i].channels[c]);
    return mixed;
}

struct colour figure_series_colour(int64_t series)
{
    static const struct colour colours[] = {{{0.0, 0.35, 0.7}},   {{0.85, 0.3, 0.05}},  {{0.0, 0.55, 0.4}},
                                            {{0.75, 0.45, 0.65}}, {{0.35, 0.35, 0.35}}, {{0.85, 0.6, 0.0}}};
    return colours[series % (int64_t)(sizeof colours / sizeof colours[0])];
}

static double scaled(const struct axis *axis, double value)
{
    return axis->logarithmic ? log10(value) : value;
}

double figure_on_axis(const struct axis *axis, double value)
{
    return (scaled(axis, value) - axis->low) / (axis->high - axis->low) * axis->length;
}

bool figure_can_draw(const struct chart *chart, double x, double y)
{
    const double limit = 1e280; /* so that nothing overflows, even with free space at the ends; false for NaN */
    return fabs(x) <= limit && fabs(y) <= limit && (!chart->logarithmic_x || x >= 1 / limit) &&
           (!chart->logarithmic_y || y >= 1 / limit);
}

/* Leaves 5 % free at both ends; values that are all the same get an axis around them. */
static void widen(struct axis *axis)
{
    double size = fmax(fabs(axis->low), fabs(axis->high)), edge = 0.05 * (axis->high - axis->low);
    if (axis->high - axis->low <= 1e-9 * size) edge = 0.05 * size;
    if (edge == 0) edge = 0.5;
    axis->low -= edge, axis->high += edge;
}

bool figure_find_axes(const struct chart *charts, int64_t count, struct axis axes[2])
{
    axes[0] = (struct axis){INFINITY, -INFINITY, 0, charts->logarithmic_x};
    axes[1] = (struct axis){INFINITY, -INFINITY, 0, charts->logarithmic_y};
    for (const struct chart *chart = charts; chart < charts + count; chart++) {
        for (int64_t s = 0; s < chart->num_series; s++) {
            const struct chart_series *series = &chart->series[s];
            for (int64_t i = 0; i < series->count; i++) {
                if (!figure_can_draw(chart, series->x[i], series->y[i])) continue;
                double point[2] = {scaled(&axes[0], series->x[i]), scaled(&axes[1], series->y[i])};
                for (int a = 0; a < 2; a++)
                    axes[a].low = fmin(axes[a].low, point[a]), axes[a].high = fmax(axes[a].high, point[a]);
            }
        }
    }
    if (axes[0].low > axes[0].high) return false;
    widen(&axes[0]);
    widen(&axes[1]);
    return true;
}

int64_t figure_index_step(double cell, double distance)
{
    int64_t step = 1;
    for (int i = 0; (double)step * cell < distance; i++) step = i % 3 == 1 ? step / 2 * 5 : step * 2;
    return step;
}
