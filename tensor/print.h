/* How a number of an array is written: a format is fitted to all numbers that show, so that they line up. */
#ifndef RAPT_TENSOR_PRINT_H
#define RAPT_TENSOR_PRINT_H

#include <rapt/base.h>

/* The longest text of one number: sign, 309 digits, point and RAPT_MAX_PRECISION decimals. */
#define RAPT_MAX_PRECISION 64
#define RAPT_NUMBER_TEXT 384

typedef struct rapt_number_format {
    rapt_dtype dtype;
    int precision; /* decimals at most */

    /* what was seen of the numbers */
    double smallest, largest; /* magnitudes of finite numbers other than 0; largest 0 when there are none */
    bool any_special, any_minus_infinity;

    /* what they need; left and right of the point, without it */
    bool scientific;
    int left, right, exponent_digits;
} rapt_number_format;

/* Three passes over the numbers: first `see` each one, then `choose` once and `fit` each one, then `close` once. */
void rapt_number_see(rapt_number_format *format, const void *element);
void rapt_number_choose(rapt_number_format *format);
void rapt_number_fit(rapt_number_format *format, const void *element);
void rapt_number_close(rapt_number_format *format);

/* The text of an element in the fitted format; returns text. */
char *rapt_number_write(const rapt_number_format *format, const void *element, char text[RAPT_NUMBER_TEXT]);

#endif
