/* The picture files of a build without cairo: none, and the functions say so. */
#include "figure.h"

const bool picture_has_files = false;

static bool fail(const char *path, char *error, size_t error_size)
{
    return figure_fail(error, error_size, "cannot draw '%s': this build has no pictures, because cairo was not found",
                       path ? path : "(null)");
}

bool picture_heatmaps(const char *path, const struct heatmap *heatmap, char *error, size_t error_size)
{
    (void)heatmap;
    return fail(path, error, error_size);
}

int64_t picture_room(int64_t matrices)
{
    (void)matrices;
    return 0;
}

bool picture_chart(const char *path, const struct chart *chart, char *error, size_t error_size)
{
    (void)chart;
    return fail(path, error, error_size);
}

bool picture_charts(const char *path, const struct chart *charts, int64_t count, char *error, size_t error_size)
{
    (void)charts, (void)count;
    return fail(path, error, error_size);
}
