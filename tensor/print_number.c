/* Numbers as text by numpy's rules: the fewest decimals that show all of them, scientific when they span too much. */
#include "print.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static double floating_of(const rapt_number_format *format, const void *element)
{
    return format->dtype == RAPT_FLOAT32 ? (double)*(const float *)element : *(const double *)element;
}

static long long integer_of(const rapt_number_format *format, const void *element)
{
    if (format->dtype == RAPT_INT64) return *(const int64_t *)element;
    return format->dtype == RAPT_INT32 ? *(const int32_t *)element : *(const uint8_t *)element;
}

/* The width of what stands to the right of the digits before the point. */
static int behind_left(const rapt_number_format *format)
{
    return 1 + format->right + (format->scientific ? 2 + format->exponent_digits : 0);
}

static int longer(int a, int b)
{
    return a > b ? a : b;
}

static const char *conversion_of(const rapt_number_format *format)
{
    return format->scientific ? "%#.*e" : "%#.*f";
}

/* The parts of a number's text: digits, point, digits, exponent. */
typedef struct number_parts {
    int left, right;
    const char *exponent; /* "" or "e", a sign and digits */
} number_parts;

static number_parts parts_of(const char *text)
{
    const int left = (int)strcspn(text, ".");
    int right = (int)strcspn(text + left + 1, "e");
    const char *exponent = text + left + 1 + right;
    while (right > 0 && text[left + right] == '0') right--;
    return (number_parts){left, right, exponent};
}

/* The shortest text, at most `precision` decimals long, that reads back as the number; with that many when none
 * does. */
static void write_shortest(const rapt_number_format *format, double number, char *text)
{
    for (int decimals = 0;; decimals++) {
        snprintf(text, RAPT_NUMBER_TEXT, conversion_of(format), decimals, number);
        const double back = format->dtype == RAPT_FLOAT32 ? (double)strtof(text, NULL) : strtod(text, NULL);
        if (back == number || decimals >= format->precision) break;
    }
}

void rapt_number_see(rapt_number_format *format, const void *element)
{
    if (!rapt_dtype_is_floating(format->dtype)) return;
    const double number = floating_of(format, element), magnitude = fabs(number);
    format->any_special |= !isfinite(number);
    format->any_minus_infinity |= isinf(number) && number < 0;
    if (!isfinite(number) || number == 0) return;
    if (format->largest == 0 || magnitude < format->smallest) format->smallest = magnitude;
    if (magnitude > format->largest) format->largest = magnitude;
}

void rapt_number_choose(rapt_number_format *format)
{
    if (format->largest == 0) return;
    const bool is_float32 = format->dtype == RAPT_FLOAT32;
    const double least = is_float32 ? (double)1e-4f : 1e-4;
    const double ratio =
        is_float32 ? (double)((float)format->largest / (float)format->smallest) : format->largest / format->smallest;
    format->scientific = format->largest >= 1e8 || format->smallest < least || ratio > 1000;
}

void rapt_number_fit(rapt_number_format *format, const void *element)
{
    char text[RAPT_NUMBER_TEXT];
    if (format->dtype == RAPT_BOOL) {
        format->left = 5;
    } else if (!rapt_dtype_is_floating(format->dtype)) {
        format->left = longer(format->left, snprintf(text, sizeof text, "%lld", integer_of(format, element)));
    } else {
        const double number = floating_of(format, element);
        if (!isfinite(number)) return;
        write_shortest(format, number, text);
        const number_parts parts = parts_of(text);
        format->left = longer(format->left, parts.left);
        format->right = longer(format->right, parts.right);
        format->exponent_digits = longer(format->exponent_digits, (int)strlen(parts.exponent) - 2);
    }
}

void rapt_number_close(rapt_number_format *format)
{
    if (!rapt_dtype_is_floating(format->dtype)) return;
    const int special = !format->any_special ? 0 : format->any_minus_infinity ? 4 : 3;
    format->left = longer(format->left, special - behind_left(format));
}

static void write_floating(const rapt_number_format *format, double number, char *text)
{
    if (!isfinite(number)) {
        const char *name = isnan(number) ? "nan" : number < 0 ? "-inf" : "inf";
        snprintf(text, RAPT_NUMBER_TEXT, "%*s", format->left + behind_left(format), name);
        return;
    }
    char digits[RAPT_NUMBER_TEXT];
    if (format->scientific)
        snprintf(digits, sizeof digits, conversion_of(format), format->right, number);
    else
        write_shortest(format, number, digits);
    const number_parts parts = parts_of(digits);
    if (format->scientific)
        snprintf(text, RAPT_NUMBER_TEXT, "%*.*se%c%0*d", format->left + 1 + format->right,
                 parts.left + 1 + format->right, digits, parts.exponent[1], format->exponent_digits,
                 atoi(parts.exponent + 2));
    else
        snprintf(text, RAPT_NUMBER_TEXT, "%*.*s%-*.*s", format->left + 1, parts.left + 1, digits, format->right,
                 parts.right, digits + parts.left + 1);
}

char *rapt_number_write(const rapt_number_format *format, const void *element, char text[RAPT_NUMBER_TEXT])
{
    if (format->dtype == RAPT_BOOL)
        snprintf(text, RAPT_NUMBER_TEXT, "%*s", format->left, *(const uint8_t *)element ? "True" : "False");
    else if (!rapt_dtype_is_floating(format->dtype))
        snprintf(text, RAPT_NUMBER_TEXT, "%*lld", format->left, integer_of(format, element));
    else
        write_floating(format, floating_of(format, element), text);
    return text;
}
