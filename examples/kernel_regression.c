/* Attention pooling as kernel regression (Nadaraya 1964, Watson 1964; Dive into Deep Learning, 11.2): the queries
   are new inputs, the keys are known ones, and the values their outputs. Four kernels, four widths, and a width that
   is learned, which needs that no point may look at itself. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rapt.h>

#include "claim.h"
#include "command_line.h"
#include "files.h"
#include "picture.h"

enum { POINTS = 40, QUERIES = 50, FITS = 4, WIDTHS = 41 };

static const char *out_directory;
static const char *const picture_names[] =
    {"kernel_shapes.svg",   "kernel_shapes.png", "kernels.svg", "kernels.png",        "kernels_weights.svg",
     "kernels_weights.png", "widths.svg",        "widths.png",  "widths_weights.svg", "widths_weights.png",
     "learned_width.svg",   "learned_width.png", NULL};

/* y = 2 sin x + x, and with noise of variance 1 what was measured of it. */
static struct {
    rapt_tensor *keys, *values; /* (1, POINTS, 1): sorted inputs and noisy outputs */
    rapt_tensor *queries;       /* (1, QUERIES, 1) */
    double x[POINTS], y[POINTS], query[QUERIES], truth[QUERIES];
} data;

static double curve(double x)
{
    return 2 * sin(x) + x;
}

static int compare(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static void draw_data(void)
{
    rapt_tensor *uniform = rapt_rand(RAPT_FLOAT64, RAPT_SHAPE(POINTS)),
                *noise = rapt_randn(RAPT_FLOAT64, RAPT_SHAPE(POINTS));
    for (int64_t i = 0; i < POINTS; i++) data.x[i] = 5 * rapt_at(uniform, &i);
    qsort(data.x, POINTS, sizeof *data.x, compare);
    for (int64_t i = 0; i < POINTS; i++) data.y[i] = curve(data.x[i]) + rapt_at(noise, &i);
    for (int i = 0; i < QUERIES; i++) data.query[i] = 0.1 * i, data.truth[i] = curve(data.query[i]);
    data.keys = rapt_from(RAPT_FLOAT64, RAPT_SHAPE(1, POINTS, 1), data.x);
    data.values = rapt_from(RAPT_FLOAT64, RAPT_SHAPE(1, POINTS, 1), data.y);
    data.queries = rapt_from(RAPT_FLOAT64, RAPT_SHAPE(1, QUERIES, 1), data.query);
}

/* What a scoring function and a normaliser make of the data. */
struct fit {
    double y[QUERIES], weights[QUERIES][POINTS];
};

static void pool(rapt_scoring *scoring, rapt_normalizer *normalizer, struct fit *fit)
{
    RAPT_SCOPE;
    rapt_attention *attention = rapt_attention_new(scoring, 0);
    attention->normalizer = normalizer;
    attention->keep_weights = true;
    rapt_tensor *y = rapt_attention_forward(attention, data.queries, data.keys, data.values, NULL);
    memcpy(fit->y, rapt_data(y), sizeof fit->y);
    memcpy(fit->weights, rapt_data(attention->weights), sizeof fit->weights);
    rapt_module_free(&attention->module);
}

static double mean_square(const double *a, const double *b, int count)
{
    double sum = 0;
    for (int i = 0; i < count; i++) sum += (a[i] - b[i]) * (a[i] - b[i]);
    return sum / count;
}

static double largest_difference(const double *a, const double *b, int count)
{
    double largest = 0;
    for (int i = 0; i < count; i++) largest = fmax(largest, fabs(a[i] - b[i]));
    return largest;
}

static void give_up(const char *error)
{
    fprintf(stderr, "kernel_regression: %s\n", error);
    exit(EXIT_FAILURE);
}

/* The picture as NAME.svg and NAME.png, if there is a folder for it. */
static void draw(const char *name, const struct heatmap *heatmap, const struct chart *charts, int64_t count)
{
    static const char *const kinds[] = {"svg", "png"};
    char path[4096], error[512];
    for (int i = 0; out_directory && i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s.%s", out_directory, name, kinds[i]);
        if (heatmap ? picture_heatmaps(path, heatmap, error, sizeof error)
                    : picture_charts(path, charts, count, error, sizeof error))
            continue;
        give_up(error);
    }
}

/* Fits beside each other, and their weights, those in the terminal as well if `prints`. */
static void draw_fits(const char *name, const char *const titles[FITS], const struct fit fits[FITS], bool prints)
{
    static float weights[FITS][QUERIES][POINTS];
    struct chart_series series[FITS][3];
    struct chart charts[FITS];
    for (int f = 0; f < FITS; f++) {
        series[f][0] = (struct chart_series){"fit", data.query, fits[f].y, QUERIES, false};
        series[f][1] = (struct chart_series){"truth", data.query, data.truth, QUERIES, false};
        series[f][2] = (struct chart_series){"data", data.x, data.y, POINTS, true};
        charts[f] = (struct chart){series[f], 3, titles[f], "x", "y", false, false};
        for (int q = 0; q < QUERIES; q++)
            for (int k = 0; k < POINTS; k++) weights[f][q][k] = (float)fits[f].weights[q][k];
    }
    struct heatmap heatmap = {.values = weights[0][0],
                              .rows = 1,
                              .columns = FITS,
                              .queries = QUERIES,
                              .keys = POINTS,
                              .titles = titles,
                              .x_label = "sorted known inputs",
                              .y_label = "sorted new inputs"};
    char file[64], error[512];
    snprintf(file, sizeof file, "%s_weights", name);
    draw(name, NULL, charts, FITS);
    draw(file, &heatmap, NULL, 0);
    if (prints) putchar('\n');
    if (prints && !picture_print_heatmaps(stdout, &heatmap, error, sizeof error)) give_up(error);
}

static void check_sums(const struct fit *fit, const char *title)
{
    double worst = 0;
    for (int q = 0; q < QUERIES; q++) {
        double sum = 0;
        for (int k = 0; k < POINTS; k++) sum += fit->weights[q][k];
        worst = fmax(worst, fabs(sum - 1));
    }
    if (worst > 1e-12) claim(false, "%s: the weights of each query sum to 1, but for %.1e", title, worst);
}

static const char *const kernel_names[] = {"Gaussian", "Boxcar", "Constant", "Epanechnikov"};

/* The kernels themselves: the scores of keys around a query at 0. */
static void draw_kernels(void)
{
    enum { PLACES = 101 };
    double places[PLACES], scores[FITS][PLACES];
    struct chart_series series[FITS];
    struct chart charts[FITS];
    rapt_tensor *keys = rapt_reshape(rapt_linspace(RAPT_FLOAT64, -2.5, 2.5, PLACES), RAPT_SHAPE(PLACES, 1));
    memcpy(places, rapt_data(keys), sizeof places);
    for (int shape = 0; shape < FITS; shape++) {
        rapt_scoring *scoring = rapt_regression_kernel_scoring_new((rapt_regression_kernel)shape, 1, false);
        memcpy(scores[shape], rapt_data(rapt_score(scoring, rapt_zeros(RAPT_FLOAT64, RAPT_SHAPE(1, 1)), keys)),
               sizeof scores[shape]);
        rapt_module_free(&scoring->module);
        series[shape] = (struct chart_series){NULL, places, scores[shape], PLACES, false};
        charts[shape] = (struct chart){&series[shape], 1, kernel_names[shape], "distance", "score", false, false};
    }
    draw("kernel_shapes", NULL, charts, FITS);
}

static void compare_kernels(void)
{
    static struct fit fits[FITS], softmax;
    printf("four kernels, width 1       mean square error to the truth   keys that a query weighs\n");
    for (int shape = 0; shape < FITS; shape++) {
        pool(rapt_regression_kernel_scoring_new((rapt_regression_kernel)shape, 1, false), rapt_masked_sum,
             &fits[shape]);
        int used = 0;
        for (int i = 0; i < QUERIES * POINTS; i++) used += fits[shape].weights[i / POINTS][i % POINTS] > 0;
        printf("  %-26s%-33.4f%.1f of %d\n", kernel_names[shape], mean_square(fits[shape].y, data.truth, QUERIES),
               (double)used / QUERIES, POINTS);
        check_sums(&fits[shape], kernel_names[shape]);
    }
    double mean[QUERIES] = {0};
    for (int i = 0; i < QUERIES * POINTS; i++) mean[i / POINTS] += data.y[i % POINTS] / POINTS;
    double difference = largest_difference(fits[RAPT_REGRESSION_KERNEL_CONSTANT].y, mean, QUERIES);
    claim(difference < 1e-6, "the constant kernel gives the mean of y for every query (but for %.0e)", difference);
    pool(rapt_gaussian_scoring_new(1, false), rapt_masked_softmax, &softmax);
    difference =
        largest_difference(fits[RAPT_REGRESSION_KERNEL_GAUSSIAN].weights[0], softmax.weights[0], QUERIES * POINTS);
    claim(difference < 1e-12, "softmax of the scores -(q - k)^2 / 2 is the Gaussian kernel (but for %.0e)", difference);
    draw_kernels();
    draw_fits("kernels", kernel_names, fits, false);
}

static void compare_widths(void)
{
    static const double widths[] = {0.1, 0.2, 0.5, 1};
    static const char *const titles[] = {"width 0.1", "width 0.2", "width 0.5", "width 1"};
    static struct fit fits[FITS], narrow;
    printf("\nGaussian, four widths       mean square error to the truth   largest weight, on average\n");
    double largest[FITS] = {0};
    for (int f = 0; f < FITS; f++) {
        pool(rapt_regression_kernel_scoring_new(RAPT_REGRESSION_KERNEL_GAUSSIAN, widths[f], false), rapt_masked_sum,
             &fits[f]);
        for (int q = 0; q < QUERIES; q++) {
            double top = 0;
            for (int k = 0; k < POINTS; k++) top = fmax(top, fits[f].weights[q][k]);
            largest[f] += top / QUERIES;
        }
        printf("  %-26s%-33.4f%.3f\n", titles[f], mean_square(fits[f].y, data.truth, QUERIES), largest[f]);
        check_sums(&fits[f], titles[f]);
    }
    claim(largest[0] > largest[1] && largest[1] > largest[2] && largest[2] > largest[3],
          "the narrower the kernel, the sharper the weights");
    pool(rapt_gaussian_scoring_new(1e-6, false), rapt_masked_softmax, &narrow);
    double nearest[QUERIES];
    for (int q = 0; q < QUERIES; q++) {
        int best = 0;
        for (int k = 1; k < POINTS; k++)
            if (fabs(data.x[k] - data.query[q]) < fabs(data.x[best] - data.query[q])) best = k;
        nearest[q] = data.y[best];
    }
    double difference = largest_difference(narrow.y, nearest, QUERIES);
    claim(difference == 0, "width 1e-6 is the nearest neighbour (but for %.0e)", difference);
    pool(rapt_regression_kernel_scoring_new(RAPT_REGRESSION_KERNEL_BOXCAR, 1e-12, false), rapt_masked_sum, &narrow);
    double zeros[QUERIES] = {0};
    claim(largest_difference(narrow.y, zeros, QUERIES) == 0, "a query with no key within the kernel gives 0, not 0/0");
    draw_fits("widths", titles, fits, true);
}

/* The mean square error of predicting the known outputs from each other. */
static rapt_tensor *loss_of(rapt_attention *attention, bool leaves_one_out)
{
    /* what a mask says true to is seen: all but the point itself */
    rapt_tensor *others = rapt_equal(rapt_eye(RAPT_INT64, POINTS), rapt_scalar(RAPT_INT64, 0));
    rapt_tensor *y = rapt_attention_forward(attention, data.keys, data.keys, data.values,
                                            leaves_one_out ? RAPT_MASK(.seen = others) : NULL);
    return rapt_mse_loss(y, data.values, RAPT_REDUCE_MEAN);
}

static double loss_at(double width, bool leaves_one_out)
{
    RAPT_SCOPE;
    rapt_attention *attention = rapt_attention_new(rapt_gaussian_scoring_new(width, false), 0);
    double loss = rapt_item(loss_of(attention, leaves_one_out));
    rapt_module_free(&attention->module);
    return loss;
}

/* The width, from 1 on, after so many steps of Adam, or when it is so narrow that the next one may overshoot 0. */
static double learn(bool leaves_one_out, int steps, double *loss)
{
    double width = 1;
    rapt_attention *attention = rapt_attention_new(rapt_gaussian_scoring_new(1, true), 0);
    rapt_module_cast(&attention->module, RAPT_FLOAT64);
    rapt_optimizer *adam = rapt_adam_new(&attention->module, &(rapt_adam_config){.learning_rate = 0.01});
    for (int step = 0; step < steps && width > 0.05; step++) {
        RAPT_SCOPE;
        rapt_tensor *now = loss_of(attention, leaves_one_out);
        rapt_backward(now);
        rapt_optimizer_step(adam);
        *loss = rapt_item(now);
        width = rapt_item(rapt_module_find(&attention->module, "width"));
    }
    rapt_optimizer_free(adam);
    rapt_module_free(&attention->module);
    return width;
}

static void learn_width(void)
{
    double width[WIDTHS], with[WIDTHS], without[WIDTHS], loss;
    int best = 0;
    for (int i = 0; i < WIDTHS; i++) {
        width[i] = pow(10, -3 + 4.0 * i / (WIDTHS - 1));
        with[i] = loss_at(width[i], true), without[i] = loss_at(width[i], false);
        if (with[i] < with[best]) best = i;
    }
    printf("\nlearned width               width       loss of the known points   error to the truth\n");
    struct fit fit;
    double errors[2], learned[2], losses[2];
    for (int out = 0; out < 2; out++) {
        learned[out] = learn(out, 400, &loss);
        losses[out] = loss;
        pool(rapt_gaussian_scoring_new(learned[out], false), rapt_masked_softmax, &fit);
        errors[out] = mean_square(fit.y, data.truth, QUERIES);
        printf("  %-26s%-12.4f%-27.4f%.4f\n", out ? "each point left out" : "each point sees itself", learned[out],
               loss, errors[out]);
    }
    double narrowest = loss_at(1e-6, false);
    claim(narrowest < 1e-12 && losses[0] < losses[1] && learned[0] < learned[1] / 2,
          "what sees itself learns to copy itself: the loss goes to 0 with the width (%.0e at 1e-6)", narrowest);
    claim(losses[1] < loss_at(0.8 * learned[1], true) && losses[1] < loss_at(1.25 * learned[1], true),
          "left out, it learns a width that is neither too sharp nor too flat (best of %d: %.3f)", WIDTHS, width[best]);
    claim(errors[1] < errors[0], "and its curve is nearer to the truth");
    const struct chart_series series[] = {{"each point sees itself", width, without, WIDTHS, false},
                                          {"each point left out", width, with, WIDTHS, false}};
    const struct chart chart = {series, 2,    "loss of the known points", "width of the kernel", "mean square error",
                                true,   false};
    char error[512];
    draw("learned_width", NULL, &chart, 1);
    putchar('\n');
    if (!picture_print_chart(stdout, &chart, error, sizeof error)) give_up(error);
}

int main(int argc, char **argv)
{
    int64_t seed = 1;
    const struct command_option options[] =
        {{.name = "--out",
          .metavar = "DIR",
          .help = "folder for the pictures, made if it is not there; without it only the terminal has them",
          .string = &out_directory},
         {.name = "--seed",
          .help = "of the data; with a rare one, noise breaks a claim",
          .integer = &seed,
          .integer_range = {0, INT64_MAX}},
         {0}};
    const struct command_line line =
        {.program = "kernel_regression",
         .summary = "Attention pooling as kernel regression: four kernels, four widths, a learned width.",
         .options = options};
    enum command_line_result result = command_line_parse(&line, argc, argv);
    if (result != COMMAND_LINE_RUN) return result;
    if (out_directory && !picture_has_files) give_up("--out: this build draws no files: it has no cairo");
    if (out_directory && !folder_can_be_saved("kernel_regression", out_directory, picture_names)) return EXIT_FAILURE;
    rapt_on_error(rapt_exit_on_error);
    rapt_seed((uint64_t)seed);
    draw_data();
    compare_kernels();
    compare_widths();
    learn_width();
    return claim_status("kernel_regression");
}
