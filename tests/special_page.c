/* Prints docs/special-values.md: what each op gives, and its gradient, where numbers are not ordinary. */
#include <float.h>
#include <stdio.h>

#include "special_functions.h"

enum { most = 16 };

/* 1e-41f is subnormal. */
static const float ones[] = {NAN, -INFINITY, -FLT_MAX, -1, -0.0f, 0, 1e-41f, 1, FLT_MAX, INFINITY},
                   pairs[] = {NAN, -INFINITY, -1, -0.0f, 0, 2, FLT_MAX, INFINITY};
enum { one_count = sizeof ones / sizeof *ones, pair_count = sizeof pairs / sizeof *pairs };

static const char *text_of(double number, char text[24])
{
    const char *sign = signbit(number) ? "−" : "";
    const double size = fabs(number);
    if (isnan(number))
        return "NaN";
    else if (isinf(number))
        snprintf(text, 24, "%s∞", sign);
    else if (size == (double)FLT_MAX)
        snprintf(text, 24, "%smax", sign);
    else if (size == (double)1e-41f)
        snprintf(text, 24, "%stiny", sign);
    else if (size > 1e-30 && size < 1e-4)
        return "≈ 0"; /* what rounding leaves */
    else
        snprintf(text, 24, "%s%.3g", sign, size);
    return text;
}

static void print_number(const rapt_tensor *x, int64_t i)
{
    char text[24];
    printf("%s", text_of(rapt_at(x, &i), text));
}

static void print_heading(const char *corner, const float *numbers, int count, int columns)
{
    char text[24];
    printf("\n%s", corner);
    for (int i = 0; i < count; i++) printf(" %s |", text_of((double)numbers[i], text));
    printf("\n|");
    for (int i = 0; i < count + columns; i++) printf("---|");
    printf("\n");
}

/* The gradients that backward from there gives; NULL where there is none. */
static void differentiate(rapt_tensor *y, rapt_tensor *start, int count, rapt_tensor *const *inputs,
                          rapt_tensor **gradients)
{
    for (int i = 0; i < count; i++) gradients[i] = NULL;
    if (rapt_requires_gradient(y)) rapt_gradients(1, &y, &start, count, inputs, gradients, 0);
}

static rapt_tensor *leaf(int rank, const int64_t *shape, const float *numbers)
{
    return rapt_require_gradient(rapt_from(RAPT_FLOAT32, rank, shape, numbers));
}

/* All results in one row, all gradients in the next. */
static void print_of_one(const function *f)
{
    RAPT_SCOPE;
    rapt_tensor *x = leaf(RAPT_SHAPE(one_count), ones), *y = f->call(x, NULL), *gradient;
    differentiate(y, rapt_ones_like(y), 1, &x, &gradient);
    printf("| `%s` |", f->name);
    for (int i = 0; i < one_count; i++) printf(" "), print_number(y, i), printf(" |");
    printf("\n| gradient |");
    for (int i = 0; i < one_count; i++) {
        printf(" ");
        if (gradient) print_number(gradient, i);
        printf(gradient ? " |" : "0 |");
    }
    printf("\n");
}

/* A table of the results, each with its gradients by x and by y. */
static void print_of_two(const function *f)
{
    RAPT_SCOPE;
    float a[pair_count * pair_count], b[pair_count * pair_count];
    for (int i = 0; i < pair_count * pair_count; i++) {
        a[i] = pairs[i / pair_count];
        b[i] = pairs[i % pair_count];
    }
    rapt_tensor *inputs[] = {leaf(RAPT_SHAPE(pair_count * pair_count), a),
                             leaf(RAPT_SHAPE(pair_count * pair_count), b)};
    rapt_tensor *y = f->call(inputs[0], inputs[1]), *gradients[2];
    char text[24];
    differentiate(y, rapt_ones_like(y), 2, inputs, gradients);
    printf("\n### %s\n", f->name);
    print_heading("| x, and y = |", pairs, pair_count, 1);
    for (int i = 0; i < pair_count; i++) {
        printf("| %s |", text_of((double)pairs[i], text));
        for (int k = i * pair_count; k < (i + 1) * pair_count; k++) {
            printf(" ");
            print_number(y, k);
            for (int g = 0; g < 2 && (gradients[0] || gradients[1]); g++) {
                printf(g ? ", " : " (");
                if (gradients[g]) print_number(gradients[g], k);
                printf("%s%s", gradients[g] ? "" : "0", g ? ")" : "");
            }
            printf(" |");
        }
        printf("\n");
    }
}

/* Rows of the number, 1 and −2. */
static void print_of_rows(const function *f)
{
    RAPT_SCOPE;
    printf("| `%s` |", f->name);
    rapt_tensor *targets = rapt_zeros(RAPT_INT64, RAPT_SHAPE(1)), *results[2 * most];
    for (int i = 0; i < one_count; i++) {
        rapt_tensor *x = leaf(RAPT_SHAPE(1, 3), (float[]){ones[i], 1, -2}), *gradient;
        rapt_tensor *y = f->call(x, targets), *along = rapt_arange(RAPT_FLOAT32, 1, 1 + (double)rapt_size(y, -1), 1);
        differentiate(y, rapt_expand(along, rapt_rank(y), rapt_shape(y)), 1, &x, &gradient);
        results[i] = rapt_reshape(y, RAPT_SHAPE(rapt_count(y)));
        results[most + i] = gradient ? rapt_reshape(gradient, RAPT_SHAPE(3)) : rapt_zeros(RAPT_FLOAT32, RAPT_SHAPE(3));
    }
    for (int part = 0; part < 2 * most; part += most) {
        if (part) printf("| gradient |");
        for (int i = 0; i < one_count; i++) {
            for (int64_t k = 0; k < rapt_count(results[part + i]); k++)
                printf(k ? ", " : " "), print_number(results[part + i], k);
            printf(" |");
        }
        printf("\n");
    }
}

static void print_family(input_kind kind, void (*print)(const function *f))
{
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (functions[i].of == kind) print(&functions[i]);
}

int main(void)
{
    rapt_set_threads(1);
    printf(
        "# Numbers that are not ordinary\n\n"
        "What ops give where their inputs are NaN, infinite, zeros of either sign, subnormal (tiny, 1e-41) or the\n"
        "largest (max, 3.4e38), and their gradients: in float32, to three digits. In float64 it is the same with that\n"
        "type's own tiny and max, but that squares of max are infinite in `std` and the norms. Both types, and\n"
        "second derivatives, are compared with PyTorch by the test `special_values`, this page with the library by "
        "the\n"
        "tests `special_page_...`; `tests/test_special_values.c` says where rapt gives something else on purpose.\n\n"
        "## Functions of one number\n");
    print_heading("| op |", ones, one_count, 1);
    print_family(one, print_of_one);
    printf("\n## Functions of two numbers\n\n"
           "Each place has the result, then the gradients by x and by y.\n");
    print_family(two, print_of_two);
    printf("\n## Functions of rows\n\n"
           "The row is the number at the top, 1 and −2; where there are classes, the first is the right one. Backward\n"
           "starts from 1, 2, 3.\n");
    print_heading("| op |", ones, one_count, 1);
    print_family(rows, print_of_rows);
    if (rapt_error()) fprintf(stderr, "special_page: %s\n", rapt_error());
    return rapt_error() != NULL;
}
