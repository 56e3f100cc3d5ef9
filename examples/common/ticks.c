/* Round numbers for the axes of pictures. */
#include "figure.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>

/* The smallest of 1, 2, 5, 10, 20, ... times a power of ten that is not below x. */
static double round_step(double x)
{
    double power = pow(10, floor(log10(x))), mantissa = x / power;
    return power * (mantissa <= 1 ? 1 : mantissa <= 2 ? 2 : mantissa <= 5 ? 5 : 10);
}

void figure_ticks(struct ticks *ticks, double low, double high, int wanted)
{
    double step = round_step((high - low) / wanted), largest = fmax(fabs(low), fabs(high));
    int exponent = (int)floor(log10(step) + 1e-9);
    int decimals = exponent < 0 ? -exponent : 0;
    int digits = (int)floor(log10(largest / step)) + 2;
    bool fixed = largest < 1e7 && largest >= 1e-3 && decimals <= 8;
    ticks->count = 0;
    double end = floor(high / step + 1e-9);
    for (double k = ceil(low / step - 1e-9); k <= end && ticks->count < MAX_TICKS; k++) {
        double value = k == 0 ? 0 : k * step; /* no minus before zero */
        ticks->values[ticks->count] = value;
        char *label = ticks->labels[ticks->count++];
        if (fixed)
            snprintf(label, sizeof ticks->labels[0], "%.*f", decimals, value);
        else
            snprintf(label, sizeof ticks->labels[0], "%.*g", digits, value);
    }
}

/* Adds mantissa * 10^exponent for every stride-th exponent. */
static void add_powers(struct ticks *ticks, double low, double high, const double *mantissas, int num_mantissas,
                       int stride)
{
    ticks->count = 0;
    for (int exponent = (int)floor(log10(low)); exponent <= (int)ceil(log10(high)); exponent++) {
        if (exponent % stride != 0) continue;
        for (int i = 0; i < num_mantissas && ticks->count < MAX_TICKS; i++) {
            double value = mantissas[i] * pow(10, exponent);
            if (value < low * (1 - 1e-9) || value > high * (1 + 1e-9)) continue;
            ticks->values[ticks->count] = value;
            snprintf(ticks->labels[ticks->count++], sizeof ticks->labels[0], "%g", value);
        }
    }
}

void figure_logarithmic_ticks(struct ticks *ticks, double low, double high, int wanted)
{
    static const double mantissas[] = {1, 2, 5};
    double decades = log10(high) - log10(low);
    if (decades >= 2) {
        add_powers(ticks, low, high, mantissas, 1, (int)ceil(decades / wanted));
        return;
    }
    add_powers(ticks, low, high, mantissas, 3, 1);
    if (ticks->count < 3) figure_ticks(ticks, low, high, wanted);
}

void figure_axis_ticks(struct ticks *ticks, const struct axis *axis, int wanted)
{
    if (axis->logarithmic)
        figure_logarithmic_ticks(ticks, pow(10, axis->low), pow(10, axis->high), wanted);
    else
        figure_ticks(ticks, axis->low, axis->high, wanted);
}
