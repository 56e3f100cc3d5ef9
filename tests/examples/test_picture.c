/* Tests of examples/common/picture.h: what is drawn of heatmaps and charts. */
#include "picture_file.h"

#include <math.h>

#ifdef HAVE_CAIRO
#include <cairo.h>

TestSuite(picture, .init = enter, .fini = leave);

/* How many strokes have this width, which cairo writes as stroke-width:0.8 or stroke-width="0.8". */
static int count_strokes(const char *svg, const char *width)
{
    int count = 0;
    for (const char *at = svg; (at = strstr(at, "stroke-width")) != NULL; at++)
        count += strncmp(at + strcspn(at, "0123456789"), width, strlen(width)) == 0;
    return count;
}

/* How many shapes are filled with a colour whose green and blue lie within a percent of these (in percent). */
static int count_fills(const char *svg, double red, double green, double blue)
{
    int count = 0;
    for (const char *at = svg; (at = strstr(at, "fill")) != NULL; at += 4) {
        double r, g, b;
        const char *colour = at + 4 + strspn(at + 4, ":=\" ");
        if (sscanf(colour, "rgb(%lf%%,%lf%%,%lf%%)", &r, &g, &b) != 3 &&
            sscanf(colour, "rgb(%lf%%, %lf%%, %lf%%)", &r, &g, &b) != 3)
            continue;
        count += fabs(r - red) < 1 && fabs(g - green) < 1 && fabs(b - blue) < 1;
    }
    return count;
}

Test(picture, identity_has_ten_full_cells_and_ninety_empty_ones)
{
    struct heatmap heatmap = eye();
    cr_assert(picture_heatmaps(path, &heatmap, error, sizeof error), "%s", error);
    char *svg = read_picture();
    cr_expect_eq(count_fills(svg, 42, 0, 6), 10);
    cr_expect_eq(count_fills(svg, 100, 96.5, 94.5), 90);
    free(svg);
}

static bool is_near(unsigned pixel, int red, int green, int blue)
{
    return abs((int)(pixel >> 16 & 0xff) - red) <= 1 && abs((int)(pixel >> 8 & 0xff) - green) <= 1 &&
           abs((int)(pixel & 0xff) - blue) <= 1;
}

Test(picture, png_shows_the_matrix)
{
    float values[] = {0, 1, NAN, 0.5f};
    struct heatmap heatmap = {.values = values, .rows = 1, .columns = 1, .queries = 2, .keys = 2};
    strcpy(path + strlen(path) - 3, "png");
    cr_assert(picture_heatmaps(path, &heatmap, error, sizeof error), "%s", error);
    cairo_surface_t *surface = cairo_image_surface_create_from_png(path);
    cr_assert_eq(cairo_surface_status(surface), CAIRO_STATUS_SUCCESS);
    int width = cairo_image_surface_get_width(surface), stride = cairo_image_surface_get_stride(surface);
    int height = cairo_image_surface_get_height(surface), dark = 0, light = 0, grey = 0;
    const unsigned char *pixels = cairo_image_surface_get_data(surface);
    for (int y = 0; y < height; y++) {
        for (int x = 0; x < width; x++) {
            unsigned pixel;
            memcpy(&pixel, pixels + y * stride + 4 * x, 4);
            dark += is_near(pixel, 0x6b, 0x00, 0x0f);
            light += is_near(pixel, 0xff, 0xf6, 0xf1);
            grey += is_near(pixel, 0xcc, 0xcc, 0xcc);
        }
    }
    cairo_surface_destroy(surface);
    /* A cell is 56 x 56 pixels, of which the frame takes a few. */
    cr_expect(dark > 54 * 54 && dark < 58 * 58, "%d", dark);
    cr_expect(light > 54 * 54 && light < 58 * 58, "%d", light);
    cr_expect(grey > 54 * 54 && grey < 58 * 58, "%d", grey);
}

Test(picture, one_scale_for_all_matrices)
{
    float values[] = {0, 1, 2, 4};
    struct heatmap heatmap = {.values = values, .rows = 2, .columns = 2, .queries = 1, .keys = 1};
    cr_assert(picture_heatmaps(path, &heatmap, error, sizeof error), "%s", error);
    char *svg = read_picture();
    cr_expect_eq(count_fills(svg, 42, 0, 6), 1);
    cr_expect_eq(count_fills(svg, 97.5, 48, 35), 1, "2 of 4 is the middle of the scale");
    cr_expect_eq(count_fills(svg, 100, 96.5, 94.5), 1);
    free(svg);
}

Test(picture, values_without_a_range)
{
    float equal[] = {0.25f, 0.25f}, zero[] = {0, 0}, nothing[] = {NAN, INFINITY}, negative[] = {-2, -2};
    float *all[] = {equal, zero, nothing, negative};
    int dark[] = {2, 0, 1, 0}, light[] = {0, 2, 0, 2};
    for (int i = 0; i < 4; i++) {
        struct heatmap heatmap = {.values = all[i], .rows = 1, .columns = 1, .queries = 2, .keys = 1};
        cr_assert(picture_heatmaps(path, &heatmap, error, sizeof error), "%s", error);
        char *svg = read_picture();
        cr_expect_eq(count_fills(svg, 42, 0, 6), dark[i], "values %d", i);
        cr_expect_eq(count_fills(svg, 100, 96.5, 94.5), light[i], "values %d", i);
        free(svg);
    }
}

Test(picture, long_accented_labels_are_shortened_to_whole_characters)
{
    char word[401] = "";
    for (int i = 0; i < 200; i++) strcat(word, "é");
    const char *labels[] = {word, "quatre-vingt-dix-neuf"}, *titles[] = {"Œuvre"};
    float values[4] = {0, 1, 2, 3};
    struct heatmap heatmap = {values, 1, 1, 2, 2, titles, labels, labels, "clés", "requêtes", NULL};
    cr_assert(picture_heatmaps(path, &heatmap, error, sizeof error), "%s", error);
    char *svg = read_picture();
    double width = 0;
    cr_assert_eq(sscanf(strstr(svg, "width=\""), "width=\"%lf", &width), 1);
    cr_expect(width > 200 && width < 500, "%g", width);
    free(svg);
}

Test(picture, noncharacters_are_replaced)
{
    const char *labels[] = {"a\xef\xbf\xbe", "\xef\xb7\x90z", "\xf0\x9f\xbf\xbf"},
               *replaced[] = {"a\xef\xbf\xbd", "\xef\xbf\xbdz", "\xef\xbf\xbd"};
    float values[9] = {0, 1};
    struct heatmap heatmap = {values, 1, 1, 3, 3, NULL, labels, labels, NULL, NULL, NULL};
    cr_assert(picture_heatmaps(path, &heatmap, error, sizeof error), "%s", error);
    char *svg = read_picture();
    heatmap.query_labels = heatmap.key_labels = replaced;
    cr_assert(picture_heatmaps(path, &heatmap, error, sizeof error), "%s", error);
    char *expected = read_picture();
    cr_expect_str_eq(svg, expected);
    free(svg);
    free(expected);
}

static double width_of_picture(const struct heatmap *heatmap)
{
    double width = 0;
    cr_assert(picture_heatmaps(path, heatmap, error, sizeof error), "%s", error);
    char *svg = read_picture();
    cr_assert_eq(sscanf(strstr(svg, "width=\""), "width=\"%lf", &width), 1);
    free(svg);
    return width;
}

Test(picture, titles_of_rows_take_room_at_the_side)
{
    float values[2] = {0, 1};
    const char *rows[] = {"Layer 1", "Layer 2"}, *broken[] = {"Layer 1", "\xc3"};
    struct heatmap heatmap = {values, 2, 1, 1, 1, NULL, NULL, NULL, NULL, "queries", NULL};
    const double without = width_of_picture(&heatmap);
    heatmap.row_titles = rows;
    cr_expect_geq(width_of_picture(&heatmap), without + 12);
    heatmap.row_titles = broken;
    expect_error(picture_heatmaps(path, &heatmap, error, sizeof error), "row_titles[1] of the picture is not UTF-8");
}

Test(picture, heatmaps_that_cannot_be_drawn)
{
    struct heatmap good = eye(), bad = good;
    const char *labels[10] = {"a", "b"}, *broken[10];
    for (int i = 0; i < 10; i++) broken[i] = "\xc3";
    expect_error(picture_heatmaps(NULL, &good, error, sizeof error), "NULL");
    expect_error(picture_heatmaps(path, NULL, error, sizeof error), "NULL");
    bad.values = NULL;
    expect_error(picture_heatmaps(path, &bad, error, sizeof error), "no values");
    bad = good, bad.keys = 0;
    expect_error(picture_heatmaps(path, &bad, error, sizeof error), "(1, 1, 10, 0)");
    bad = good, bad.keys = -1, bad.queries = -1;
    expect_error(picture_heatmaps(path, &bad, error, sizeof error), "at least 1");
    bad = good, bad.rows = bad.columns = INT64_MAX;
    expect_error(picture_heatmaps(path, &bad, error, sizeof error), "100,000,000");
    bad = good, bad.key_labels = labels;
    expect_error(picture_heatmaps(path, &bad, error, sizeof error), "key_labels[2]");
    bad = good, bad.query_labels = broken;
    expect_error(picture_heatmaps(path, &bad, error, sizeof error), "UTF-8");
    cr_expect_not(picture_heatmaps(path, NULL, NULL, 0));
    cr_expect_eq(count_files(), 0);
}

Test(picture, pictures_too_large)
{
    float *values = calloc(9000, sizeof *values);
    struct heatmap heatmap = {.values = values, .rows = 1, .columns = 1, .queries = 1, .keys = 9000};
    expect_error(picture_heatmaps(path, &heatmap, error, sizeof error), "more than 8000");
    free(values);
}

Test(picture, chart_has_a_line_for_each_run_of_points)
{
    double x[] = {1, 2, 3, 4, 5, 6}, y[] = {1, 2, NAN, 3, INFINITY, -1};
    struct chart_series series[] = {{.x = x, .y = y, .count = 6}, {.x = x, .y = x, .count = 6}, {.name = NULL}};
    struct chart chart = {.series = series, .num_series = 3, .x_label = "epoch", .y_label = "perte"};
    cr_assert(picture_chart(path, &chart, error, sizeof error), "%s", error);
    char *svg = read_picture();
    cr_expect_eq(count_strokes(svg, "1.6"), 2);
    cr_expect_eq(count_fills(svg, 0, 35, 70), 2, "the points 4 and 6 stand alone");
    free(svg);
    chart.logarithmic_y = true;
    cr_assert(picture_chart(path, &chart, error, sizeof error), "%s", error);
    svg = read_picture();
    cr_expect_eq(count_fills(svg, 0, 35, 70), 1, "-1 has no logarithm");
    free(svg);
}

Test(picture, points_are_half_transparent_dots)
{
    double x[] = {1, 2, NAN, 4}, y[] = {1, 2, 3, -1};
    struct chart_series series = {"data", x, y, 4, true};
    struct chart chart = {.series = &series, .num_series = 1};
    cr_assert(picture_chart(path, &chart, error, sizeof error), "%s", error);
    char *svg = read_picture();
    cr_expect_eq(count_fills(svg, 0, 35, 70), 3 + 1, "three points, and one in the legend");
    cr_expect_eq(count_strokes(svg, "1.6"), 0);
    int half = 0;
    for (const char *at = svg; (at = strstr(at, "fill-opacity")) != NULL; at++)
        half += strncmp(at + strcspn(at, "0123456789"), "0.5", 3) == 0;
    cr_expect_eq(half, 4);
    free(svg);
    chart.logarithmic_x = chart.logarithmic_y = true;
    cr_assert(picture_chart(path, &chart, error, sizeof error), "%s", error);
    svg = read_picture();
    cr_expect_eq(count_fills(svg, 0, 35, 70), 2 + 1, "-1 has no logarithm");
    free(svg);
}

Test(picture, charts_in_a_row_share_their_axes)
{
    double x[] = {1, 2, 3}, low[] = {0, 1, 0}, high[] = {10, 9, 8};
    struct chart_series series[] = {{"low", x, low, 3, false}, {"high", x, high, 3, false}};
    struct chart charts[] = {{.series = series, .num_series = 1, .title = "A", .y_label = "y"},
                             {.series = series + 1, .num_series = 1, .title = "B"},
                             {.series = series, .num_series = 2, .title = "C"}};
    cr_assert(picture_charts(path, charts, 3, error, sizeof error), "%s", error);
    char *svg = read_picture();
    cr_expect_eq(count_strokes(svg, "1.6"), 4 + 1, "four lines, and one in the legend of the first chart");
    double width = 0, height = 0;
    cr_assert_eq(sscanf(strstr(svg, "width=\""), "width=\"%lf", &width), 1);
    cr_assert_eq(sscanf(strstr(svg, "height=\""), "height=\"%lf", &height), 1);
    cr_expect(width > 3 * 230 && width < 3 * 230 + 200 && height > 170 && height < 250, "%g x %g", width, height);
    free(svg);
    charts[1].logarithmic_y = true;
    expect_error(picture_charts(path, charts, 3, error, sizeof error), "charts 0 and 1");
    charts[1].logarithmic_y = false, charts[2].num_series = 0;
    expect_error(picture_charts(path, charts, 3, error, sizeof error), "no series");
    expect_error(picture_charts(path, charts, 0, error, sizeof error), "no series");
    expect_error(picture_charts(NULL, charts, 2, error, sizeof error), "NULL");
}

Test(picture, charts_of_extreme_values)
{
    static const double pairs[][2] = {{0, 0},           {5, 5},       {1e280, -1e280}, {1e-280, 2e-300},
                                      {1e16, 1e16 + 2}, {-1e-9, 1e9}, {1e-280, 1e280}, {1e7, 1e7 + 1},
                                      {0.1, 0.11},      {-3, -3}};
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        for (int logarithmic = 0; logarithmic < 2; logarithmic++) {
            struct chart_series series = {"a name", pairs[i], pairs[i], 2, false};
            struct chart chart = {.series = &series, .num_series = 1, .logarithmic_y = logarithmic};
            bool possible = !logarithmic || pairs[i][0] > 0 || pairs[i][1] > 0;
            bool drawn = picture_chart(path, &chart, error, sizeof error);
            cr_expect_eq(drawn, possible, "%zu: %s", i, error);
            if (!drawn) continue;
            char *svg = read_picture();
            cr_expect_geq(count_strokes(svg, "0.8"), 2 + 8 * 2, "%zu: two frames, and 8 ticks with lines", i);
            free(svg);
        }
    }
}

Test(picture, charts_that_cannot_be_drawn)
{
    double x[] = {1, 2}, nothing[] = {NAN, INFINITY}, negative[] = {0, -1};
    struct chart_series series = {"loss", x, x, 2, false};
    struct chart chart = {.series = &series, .num_series = 1};
    expect_error(picture_chart(NULL, &chart, error, sizeof error), "NULL");
    expect_error(picture_chart(path, NULL, error, sizeof error), "no series");
    series.y = NULL;
    expect_error(picture_chart(path, &chart, error, sizeof error), "y is NULL");
    series.y = nothing;
    expect_error(picture_chart(path, &chart, error, sizeof error), "finite point");
    series.y = negative, chart.logarithmic_y = true;
    expect_error(picture_chart(path, &chart, error, sizeof error), "positive point");
    series.count = 0;
    expect_error(picture_chart(path, &chart, error, sizeof error), "not a single");
    series.count = -1;
    expect_error(picture_chart(path, &chart, error, sizeof error), "-1 points");
    chart.num_series = 0;
    expect_error(picture_chart(path, &chart, error, sizeof error), "no series");
    cr_expect_eq(count_files(), 0);
}

#else

Test(picture, a_build_without_cairo_says_so)
{
    float value = 1;
    double number = 1;
    struct heatmap heatmap = {.values = &value, .rows = 1, .columns = 1, .queries = 1, .keys = 1};
    struct chart_series series = {"loss", &number, &number, 1, false};
    struct chart chart = {.series = &series, .num_series = 1};
    cr_expect_not(picture_heatmaps("a.svg", &heatmap, error, sizeof error));
    cr_expect(strstr(error, "'a.svg'") && strstr(error, "no pictures"), "%s", error);
    error[0] = '\0';
    cr_expect_not(picture_chart("b.png", &chart, error, sizeof error));
    cr_expect(strstr(error, "'b.png'") && strstr(error, "no pictures"), "%s", error);
    cr_expect_not(picture_chart(NULL, NULL, NULL, 0));
    cr_expect_not(picture_charts("c.png", &chart, 1, error, sizeof error));
    cr_expect_eq(access("a.svg", F_OK), -1);
}

#endif
