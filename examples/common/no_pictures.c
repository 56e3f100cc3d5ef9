/* The pictures of a build without cairo: none, and the functions say so. */
#include "picture.h"

#include <stdio.h>

static bool fail(const char *path, char *error, size_t error_size)
{
    snprintf(error, error ? error_size : 0, "cannot draw '%s': this build has no pictures, because cairo was not found",
             path ? path : "(null)");
    return false;
}

bool picture_heatmaps(const char *path, const struct heatmap *heatmap, char *error, size_t error_size)
{
    (void)heatmap;
    return fail(path, error, error_size);
}

bool picture_chart(const char *path, const struct chart *chart, char *error, size_t error_size)
{
    (void)chart;
    return fail(path, error, error_size);
}
