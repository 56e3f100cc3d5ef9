/* Printing: the texts are numpy 1.24's, with what we add behind them. */
#include "expect.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "comma_locale.h"
#include "tensor/core.h"
#include "text_stream.h"

#define NOT_A_NUMBER ((double)NAN)
#define INFINITE ((double)INFINITY)

typedef struct sample {
    rapt_dtype dtype;
    int rank;
    int64_t shape[RAPT_MAX_RANK];
    const double *numbers; /* NULL: 0, 1, 2 … */
    rapt_print_options options;
    const char *text;
} sample;

/* clang-format off */
static const sample samples[] = {
    {RAPT_FLOAT32, 1, {3}, (double[]){1, 2, 3}, {0},
     "[1. 2. 3.]\n"},
    {RAPT_FLOAT32, 1, {3}, (double[]){0.1, 0.25, -3}, {0},
     "[ 0.1   0.25 -3.  ]\n"},
    {RAPT_FLOAT32, 2, {2, 2}, (double[]){1.5, 2, 3, -4.25}, {0},
     "[[ 1.5   2.  ]\n"
     " [ 3.   -4.25]]\n"},
    {RAPT_FLOAT32, 1, {3}, (double[]){0.12345, 0.99999, 9.99995}, {0},
     "[ 0.1235  1.     10.    ]\n"},
    {RAPT_FLOAT32, 1, {3}, (double[]){-0.0, 0, 1}, {0},
     "[-0.  0.  1.]\n"},
    {RAPT_FLOAT32, 1, {2}, (double[]){0.3333333333333333, 0.6666666666666666}, {0},
     "[0.3333 0.6667]\n"},
    {RAPT_FLOAT64, 1, {2}, (double[]){0.3333333333333333, 0.6666666666666666}, {.precision = 8},
     "[0.33333333 0.66666667] float64\n"},
    {RAPT_FLOAT64, 1, {2}, (double[]){0.3333333333333333, 0.6666666666666666}, {.precision = 17},
     "[0.3333333333333333 0.6666666666666666] float64\n"},
    {RAPT_FLOAT32, 1, {1}, (double[]){0.1}, {.precision = 20},
     "[0.1]\n"},
    {RAPT_FLOAT32, 1, {2}, (double[]){0.5, 1000}, {0},
     "[5.e-01 1.e+03]\n"},
    {RAPT_FLOAT32, 1, {2}, (double[]){0.5, 500}, {0},
     "[  0.5 500. ]\n"},
    {RAPT_FLOAT32, 1, {2}, (double[]){0.5, 501}, {0},
     "[5.00e-01 5.01e+02]\n"},
    {RAPT_FLOAT32, 1, {1}, (double[]){99999999}, {0},
     "[1.e+08]\n"},
    {RAPT_FLOAT32, 1, {1}, (double[]){99999992}, {0},
     "[99999992.]\n"},
    {RAPT_FLOAT32, 1, {1}, (double[]){100000000}, {0},
     "[1.e+08]\n"},
    {RAPT_FLOAT64, 1, {1}, (double[]){99999999}, {0},
     "[99999999.] float64\n"},
    {RAPT_FLOAT32, 1, {2}, (double[]){0.00012, 0.01}, {0},
     "[0.0001 0.01  ]\n"},
    {RAPT_FLOAT64, 1, {2}, (double[]){0.0001, 0.05}, {0},
     "[0.0001 0.05  ] float64\n"},
    {RAPT_FLOAT32, 1, {2}, (double[]){0.0001, 0.05}, {0},
     "[0.0001 0.05  ]\n"},
    {RAPT_FLOAT64, 1, {2}, (double[]){9e-05, 0.05}, {0},
     "[9.e-05 5.e-02] float64\n"},
    {RAPT_FLOAT32, 1, {2}, (double[]){0.00025, 0.5}, {0},
     "[2.5e-04 5.0e-01]\n"},
    {RAPT_FLOAT64, 1, {2}, (double[]){1e-300, 2}, {0},
     "[1.e-300 2.e+000] float64\n"},
    {RAPT_FLOAT64, 1, {2}, (double[]){1e+100, -1e-100}, {0},
     "[ 1.e+100 -1.e-100] float64\n"},
    {RAPT_FLOAT32, 1, {2}, (double[]){1e-40, -3e-41}, {0},
     "[ 1.e-40 -3.e-41]\n"},
    {RAPT_FLOAT32, 1, {2}, (double[]){3.4028234663852886e+38, 1.17549435e-38}, {0},
     "[3.4028e+38 1.1755e-38]\n"},
    {RAPT_FLOAT64, 1, {1}, (double[]){-1.7976931348623157e+308}, {0},
     "[-1.7977e+308] float64\n"},
    {RAPT_FLOAT32, 1, {1}, (double[]){NOT_A_NUMBER}, {0},
     "[nan]\n"},
    {RAPT_FLOAT32, 1, {3}, (double[]){NOT_A_NUMBER, INFINITE, -INFINITE}, {0},
     "[ nan  inf -inf]\n"},
    {RAPT_FLOAT32, 1, {2}, (double[]){INFINITE, 1}, {0},
     "[inf  1.]\n"},
    {RAPT_FLOAT32, 1, {3}, (double[]){-INFINITE, 1.5, NOT_A_NUMBER}, {0},
     "[-inf  1.5  nan]\n"},
    {RAPT_FLOAT64, 1, {3}, (double[]){NOT_A_NUMBER, 10000000000.0, -INFINITE}, {0},
     "[   nan 1.e+10   -inf] float64\n"},
    {RAPT_FLOAT32, 1, {2}, (double[]){NOT_A_NUMBER, 100.25}, {0},
     "[   nan 100.25]\n"},
    {RAPT_FLOAT32, 1, {2}, (double[]){0, 0}, {0},
     "[0. 0.]\n"},
    {RAPT_FLOAT32, 1, {2}, (double[]){16777216, 33554432}, {0},
     "[16777216. 33554432.]\n"},
    {RAPT_FLOAT32, 1, {3}, (double[]){0.03125, 0.09375, 0.15625}, {0},
     "[0.0312 0.0938 0.1562]\n"},
    {RAPT_FLOAT32, 1, {1}, (double[]){7.5}, {.precision = 1},
     "[7.5]\n"},
    {RAPT_FLOAT32, 3, {2, 2, 2}, (double[]){1, 2, 3, 4, 5, 6, 7, 8}, {0},
     "[[[1. 2.]\n"
     "  [3. 4.]]\n"
     "\n"
     " [[5. 6.]\n"
     "  [7. 8.]]]\n"},
    {RAPT_FLOAT32, 0, {0}, (double[]){5}, {0},
     "5.\n"},
    {RAPT_FLOAT32, 0, {0}, (double[]){-0.125}, {0},
     "-0.125\n"},
    {RAPT_FLOAT64, 0, {0}, (double[]){3e-09}, {0},
     "3.e-09 float64\n"},
    {RAPT_INT64, 0, {0}, (double[]){7}, {0},
     "7\n"},
    {RAPT_BOOL, 0, {0}, (double[]){1}, {0},
     "True\n"},
    {RAPT_BOOL, 0, {0}, (double[]){0}, {0},
     "False\n"},
    {RAPT_FLOAT32, 0, {0}, (double[]){NOT_A_NUMBER}, {0},
     "nan\n"},
    {RAPT_INT64, 1, {3}, (double[]){1, -20, 300}, {0},
     "[  1 -20 300]\n"},
    {RAPT_INT64, 2, {1, 2}, (double[]){-9.223372036854776e+18, 5}, {0},
     "[[-9223372036854775808                    5]]\n"},
    {RAPT_INT32, 2, {2, 2}, (double[]){1, 2, -3, 40}, {0},
     "[[ 1  2]\n"
     " [-3 40]] int32\n"},
    {RAPT_UINT8, 1, {3}, (double[]){0, 255, 7}, {0},
     "[  0 255   7] uint8\n"},
    {RAPT_BOOL, 2, {2, 2}, (double[]){1, 0, 0, 1}, {0},
     "[[ True False]\n"
     " [False  True]]\n"},
    {RAPT_BOOL, 1, {2}, (double[]){1, 1}, {0},
     "[ True  True]\n"},
    {RAPT_INT64, 4, {1, 1, 1, 1}, (double[]){1}, {0},
     "[[[[1]]]]\n"},
    {RAPT_FLOAT32, 8, {1, 1, 1, 1, 1, 1, 1, 2}, (double[]){1, 2}, {0},
     "[[[[[[[[1. 2.]]]]]]]]\n"},
    {RAPT_FLOAT32, 1, {0}, NULL, {0},
     "[] float32 [0]\n"},
    {RAPT_INT64, 3, {2, 0, 3}, NULL, {0},
     "[] int64 [2, 0, 3]\n"},
    {RAPT_INT64, 1, {30}, NULL, {0},
     "[ 0  1  2  3  4  5  6  7  8  9 10 11 12 13 14 15 16 17 18 19 20 21 22 23\n"
     " 24 25 26 27 28 29]\n"},
    {RAPT_FLOAT32, 1, {30}, NULL, {.line_width = 20},
     "[ 0.  1.  2.  3.\n"
     "  4.  5.  6.  7.\n"
     "  8.  9. 10. 11.\n"
     " 12. 13. 14. 15.\n"
     " 16. 17. 18. 19.\n"
     " 20. 21. 22. 23.\n"
     " 24. 25. 26. 27.\n"
     " 28. 29.]\n"},
    {RAPT_INT64, 1, {4}, NULL, {.line_width = 3},
     "[0\n"
     " 1\n"
     " 2\n"
     " 3]\n"},
    {RAPT_FLOAT32, 3, {2, 3, 7}, NULL, {.line_width = 20},
     "[[[ 0.  1.  2.\n"
     "    3.  4.  5.\n"
     "    6.]\n"
     "  [ 7.  8.  9.\n"
     "   10. 11. 12.\n"
     "   13.]\n"
     "  [14. 15. 16.\n"
     "   17. 18. 19.\n"
     "   20.]]\n"
     "\n"
     " [[21. 22. 23.\n"
     "   24. 25. 26.\n"
     "   27.]\n"
     "  [28. 29. 30.\n"
     "   31. 32. 33.\n"
     "   34.]\n"
     "  [35. 36. 37.\n"
     "   38. 39. 40.\n"
     "   41.]]]\n"},
    {RAPT_FLOAT32, 1, {1001}, NULL, {0},
     "[   0.    1.    2. ...  998.  999. 1000.] float32 [1001]\n"},
    {RAPT_FLOAT32, 1, {1000}, NULL, {.threshold = 999, .edge_items = 1},
     "[  0. ... 999.] float32 [1000]\n"},
    {RAPT_INT64, 2, {50, 40}, NULL, {0},
     "[[   0    1    2 ...   37   38   39]\n"
     " [  40   41   42 ...   77   78   79]\n"
     " [  80   81   82 ...  117  118  119]\n"
     " ...\n"
     " [1880 1881 1882 ... 1917 1918 1919]\n"
     " [1920 1921 1922 ... 1957 1958 1959]\n"
     " [1960 1961 1962 ... 1997 1998 1999]] int64 [50, 40]\n"},
    {RAPT_UINT8, 2, {3, 4}, NULL, {.threshold = 5, .edge_items = 1},
     "[[ 0 ...  3]\n"
     " ...\n"
     " [ 8 ... 11]] uint8 [3, 4]\n"},
    {RAPT_INT64, 3, {7, 2, 8}, NULL, {.threshold = 100},
     "[[[  0   1   2 ...   5   6   7]\n"
     "  [  8   9  10 ...  13  14  15]]\n"
     "\n"
     " [[ 16  17  18 ...  21  22  23]\n"
     "  [ 24  25  26 ...  29  30  31]]\n"
     "\n"
     " [[ 32  33  34 ...  37  38  39]\n"
     "  [ 40  41  42 ...  45  46  47]]\n"
     "\n"
     " ...\n"
     "\n"
     " [[ 64  65  66 ...  69  70  71]\n"
     "  [ 72  73  74 ...  77  78  79]]\n"
     "\n"
     " [[ 80  81  82 ...  85  86  87]\n"
     "  [ 88  89  90 ...  93  94  95]]\n"
     "\n"
     " [[ 96  97  98 ... 101 102 103]\n"
     "  [104 105 106 ... 109 110 111]]] int64 [7, 2, 8]\n"},
    {RAPT_FLOAT64, 2, {3, 9}, NULL, {.threshold = 10, .edge_items = 2, .line_width = 12},
     "[[ 0.  1.\n"
     "  ...  7.\n"
     "   8.]\n"
     " [ 9. 10.\n"
     "  ... 16.\n"
     "  17.]\n"
     " [18. 19.\n"
     "  ... 25.\n"
     "  26.]] float64 [3, 9]\n"},
    {RAPT_BOOL, 1, {20}, NULL, {.threshold = 19},
     "[False  True  True ...  True  True  True] bool [20]\n"},
    {RAPT_INT64, 1, {6}, NULL, {.threshold = 5},
     "[0 1 2 3 4 5] int64 [6]\n"},
    {RAPT_INT64, 1, {7}, NULL, {.threshold = 5},
     "[0 1 2 ... 4 5 6] int64 [7]\n"},
    {RAPT_FLOAT32, 2, {2, 2}, (double[]){1e-05, 1, -2, NOT_A_NUMBER}, {.precision = 2},
     "[[ 1.e-05  1.e+00]\n"
     " [-2.e+00     nan]]\n"},
    {RAPT_FLOAT64, 1, {2}, (double[]){123456.789, 0.5}, {.precision = 6},
     "[1.234568e+05 5.000000e-01] float64\n"},
    {RAPT_FLOAT32, 2, {2, 2}, (double[]){1, 10, 100, 1000.5}, {0},
     "[[1.0000e+00 1.0000e+01]\n"
     " [1.0000e+02 1.0005e+03]]\n"},
};
/* clang-format on */

static rapt_tensor *make(const sample *s)
{
    rapt_tensor *tensor = rapt_empty(s->dtype, s->rank, s->shape);
    rapt_tensor *numbers = rapt_empty(RAPT_FLOAT64, s->rank, s->shape);
    cr_assert(tensor && numbers);
    double *number = rapt_data_for_writing(numbers);
    for (int64_t i = 0; i < rapt_count(tensor); i++) number[i] = s->numbers ? s->numbers[i] : (double)i;
    cr_assert(rapt_copy(tensor, numbers));
    return tensor;
}

/* What is printed; to be freed. */
static char *printed(const rapt_tensor *tensor, const rapt_print_options *options)
{
    FILE *stream = open_text();
    cr_expect(rapt_print_to(stream, tensor, options));
    return close_text(stream);
}

static void check(const rapt_tensor *tensor, const rapt_print_options *options, const char *expected)
{
    char *text = printed(tensor, options);
    cr_expect(strcmp(text, expected) == 0, "expected:\n%sgot:\n%s", expected, text);
    free(text);
}

Test(print, numpys_layout)
{
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++)
        check(make(&samples[i]), &samples[i].options, samples[i].text);
    expect_no_error();
}

Test(print, any_strides)
{
    rapt_tensor *matrix = rapt_arange(RAPT_INT64, 0, 6, 1);
    check(rapt_new_view(matrix, matrix->data, 2, (int64_t[]){3, 2}, (int64_t[]){1, 3}), NULL,
          "[[0 3]\n [1 4]\n [2 5]]\n");
    check(rapt_new_view(matrix, matrix->data + 16, 2, (int64_t[]){2, 2}, (int64_t[]){0, 1}), NULL, "[[2 3]\n [2 3]]\n");
}

Test(print, points_in_any_locale)
{
    set_comma_locale();
    check(rapt_scalar(RAPT_FLOAT32, 1.5), NULL, "1.5\n");
}

Test(print, huge_tensors_are_summarised_at_once)
{
    rapt_tensor *one = rapt_zeros(RAPT_FLOAT32, RAPT_SHAPE(1));
    const int64_t size = (int64_t)1 << 40;
    check(rapt_new_view(one, one->data, 2, (int64_t[]){size, 2}, (int64_t[]){0, 0}), NULL,
          "[[0. 0.]\n [0. 0.]\n [0. 0.]\n ...\n [0. 0.]\n [0. 0.]\n [0. 0.]] float32 [1099511627776, 2]\n");
}

Test(print, null_and_bad_options)
{
    rapt_tensor *tensor = rapt_scalar(RAPT_FLOAT32, 1);
    check(NULL, NULL, "NULL\n");
    cr_expect_not(rapt_print_to(NULL, tensor, NULL));
    expect_error(RAPT_ERROR_NULL, "print: stream is NULL");
    const rapt_print_options bad[] = {{.precision = -1},
                                      {.precision = 65},
                                      {.threshold = -1},
                                      {.edge_items = -1},
                                      {.line_width = -1}};
    for (int i = 0; i < 5; i++) {
        cr_expect_not(rapt_print_to(stdout, tensor, &bad[i]));
        expect_error(RAPT_ERROR_VALUE, "none below 0 expected");
    }
}

Test(print, a_full_disk_is_an_error)
{
    FILE *full = fopen("/dev/full", "w");
    if (!full) cr_skip_test("no /dev/full here");
    setvbuf(full, NULL, _IONBF, 0);
    cr_expect_not(rapt_print_to(full, rapt_scalar(RAPT_FLOAT32, 1), NULL));
    expect_error(RAPT_ERROR_FILE, "print: the stream cannot be written");
    fclose(full);
}

Test(print, descriptions)
{
    char text[40];
    cr_expect_str_eq(rapt_describe(rapt_zeros(RAPT_FLOAT32, RAPT_SHAPE(2, 3)), text, sizeof text), "float32 [2, 3]");
    cr_expect_str_eq(rapt_describe(rapt_scalar(RAPT_BOOL, 1), text, sizeof text), "bool []");
    cr_expect_str_eq(rapt_describe(NULL, text, sizeof text), "NULL");
    cr_expect_str_eq(rapt_describe(rapt_zeros(RAPT_FLOAT32, RAPT_SHAPE(2, 3)), text, 6), "float");
    cr_expect_null(rapt_describe(NULL, NULL, 0));
    expect_no_error();
}
