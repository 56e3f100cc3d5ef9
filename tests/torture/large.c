/* Tensors of more than 2³¹ elements: each op is compared with what it gives for a row, of which the tensor has many, or
 * at places beyond 2³¹.
 *
 *     large [case ...]
 *
 * Prints a line for each case: its name, how many elements, and what was wrong. Takes up to 18 GB of memory. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <rapt.h>

/* (rows, columns) numbers are more than 2³¹, and so are those before the last row. */
static const int64_t rows = 32770, columns = 65537, last = 32769;
#define COUNT (rows * columns)
#define WHOLE RAPT_SHAPE(rows, columns)
#define FLAT RAPT_SHAPE(COUNT)

static const char *wrong;

static void expect(bool holds, const char *what)
{
    if (!holds && !wrong) wrong = what;
}

#define EXPECT(condition) expect(condition, #condition)

static bool near(double a, double b, double tolerance)
{
    return fabs(a - b) <= tolerance * (1 + fabs(b));
}

static double at(const rapt_tensor *x, int64_t row, int64_t column)
{
    return rapt_at(x, (const int64_t[]){row, column});
}

/* Numbers from −1 to 1, each other than its neighbours. */
static rapt_tensor *row_of(rapt_dtype dtype)
{
    rapt_tensor *ramp = rapt_linspace(RAPT_FLOAT64, 0, 1000, columns);
    return rapt_reshape(rapt_cast(rapt_sin(ramp), dtype), RAPT_SHAPE(1, columns));
}

/* A row again and again, which takes no memory. */
static rapt_tensor *rows_of(rapt_tensor *row)
{
    return rapt_expand(row, WHOLE);
}

/* The same in memory, but the last number, which is 3. */
static rapt_tensor *matrix(void)
{
    rapt_tensor *x = rapt_contiguous(rows_of(row_of(RAPT_FLOAT32)));
    rapt_set_at(x, (const int64_t[]){last, columns - 1}, 3);
    return x;
}

/* Are the first rows, one about 2³¹ and the last those of another tensor? */
static bool has_rows(rapt_tensor *x, rapt_tensor *row)
{
    RAPT_SCOPE;
    const int64_t places[] = {0, 1, ((int64_t)1 << 31) / columns, last - 1, last};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        rapt_tensor *found = rapt_contiguous(rapt_slice(x, 0, places[i], places[i] + 1, 1));
        const size_t bytes = (size_t)columns * rapt_dtype_size(rapt_get_dtype(x));
        if (!found || memcmp(rapt_data(found), rapt_data(row), bytes) != 0) return false;
    }
    return true;
}

/* --- float32, 8.6 GB --- */

static void elementwise(void)
{
    rapt_tensor *row = row_of(RAPT_FLOAT32);
    EXPECT(has_rows(rapt_exp(rows_of(row)), rapt_exp(row)));
}

static void broadcast(void)
{
    rapt_tensor *row = row_of(RAPT_FLOAT32),
                *column = rapt_reshape(rapt_arange(RAPT_FLOAT32, 0, rows, 1), 2, (int64_t[]){rows, 1});
    rapt_tensor *y = rapt_mul(row, column);
    EXPECT(at(y, last, 7) == (double)((float)at(row, 0, 7) * (float)last));
    EXPECT(at(y, last, columns - 1) == (double)((float)at(row, 0, columns - 1) * (float)last));
    EXPECT(
        near(rapt_item(rapt_sum(y, RAPT_ALL_AXES, false)),
             rapt_item(rapt_sum(rapt_cast(row, RAPT_FLOAT64), RAPT_ALL_AXES, false)) * (double)rows * (double)last / 2,
             1e-6));
}

static void in_place(void)
{
    rapt_tensor *x = matrix(), *row = row_of(RAPT_FLOAT32);
    EXPECT(rapt_add_in_place(x, rows_of(row), 2));
    EXPECT(at(x, last, 5) == (double)((float)at(row, 0, 5) + 2 * (float)at(row, 0, 5)));
    EXPECT(rapt_scale_in_place(x, 0.5));
    EXPECT(near(at(x, last, columns - 1), (3 + 2 * at(row, 0, columns - 1)) / 2, 1e-6));
    EXPECT(rapt_fill(x, 7) && at(x, 0, 0) == 7 && at(x, last, columns - 1) == 7);
}

static void reduce(void)
{
    rapt_tensor *x = matrix(), *row = rapt_cast(row_of(RAPT_FLOAT32), RAPT_FLOAT64);
    const double sum = rapt_item(rapt_sum(row, RAPT_ALL_AXES, false)), end = at(row, 0, columns - 1);
    EXPECT(near(rapt_item(rapt_sum(x, RAPT_ALL_AXES, false)), sum * (double)rows - end + 3, 1e-6));
    EXPECT(rapt_item(rapt_max(x, RAPT_ALL_AXES, false)) == 3);
    EXPECT(rapt_item_int64(rapt_argmax(rapt_reshape(x, FLAT), 0, false)) == COUNT - 1);
    rapt_tensor *of_rows = rapt_sum(x, RAPT_AXES(1), true), *of_columns = rapt_mean(x, RAPT_AXES(0), true);
    EXPECT(at(of_rows, last - 1, 0) == at(of_rows, 0, 0) && near(at(of_rows, last, 0), sum - end + 3, 1e-5));
    EXPECT(near(at(of_columns, 0, 9), at(row, 0, 9), 1e-6));
    EXPECT(near(at(of_columns, 0, columns - 1), end + (3 - end) / (double)rows, 1e-6));
    EXPECT(near(rapt_item(rapt_norm(x, 2, RAPT_ALL_AXES, false)),
                sqrt(pow(rapt_item(rapt_norm(row, 2, RAPT_ALL_AXES, false)), 2) * (double)rows + 9 - end * end), 1e-6));
}

static void index_rows(void)
{
    rapt_tensor *x = matrix(), *row = row_of(RAPT_FLOAT32);
    rapt_tensor *picked =
        rapt_index_select(x, 0, rapt_from(RAPT_INT64, RAPT_SHAPE(3), (const int64_t[]){last, 0, last - 1}));
    EXPECT(at(picked, 0, columns - 1) == 3 && at(picked, 1, columns - 1) == at(row, 0, columns - 1));
    EXPECT(at(picked, 2, 3) == at(row, 0, 3));
    rapt_tensor *flat = rapt_reshape(x, FLAT),
                *end = rapt_from(RAPT_INT64, RAPT_SHAPE(2), (const int64_t[]){COUNT - 1, COUNT - 2});
    rapt_tensor *gathered = rapt_gather(flat, 0, end);
    EXPECT(rapt_at(gathered, (const int64_t[]){0}) == 3);
    EXPECT(rapt_at(gathered, (const int64_t[]){1}) == at(row, 0, columns - 2));
    rapt_tensor *sliced = rapt_contiguous(rapt_slice(flat, 0, COUNT - columns, COUNT, columns - 1));
    EXPECT(rapt_count(sliced) == 2 && rapt_at(sliced, (const int64_t[]){1}) == 3);
}

static void products(void)
{
    rapt_tensor *x = matrix(), *row = rapt_cast(row_of(RAPT_FLOAT32), RAPT_FLOAT64);
    const double squares = pow(rapt_item(rapt_norm(row, 2, RAPT_ALL_AXES, false)), 2), end = at(row, 0, columns - 1);
    rapt_tensor *y = rapt_matmul(x, rapt_transpose(rapt_cast(row, RAPT_FLOAT32), 0, 1));
    EXPECT(near(at(y, 0, 0), squares, 1e-5) && near(at(y, last - 1, 0), squares, 1e-5));
    EXPECT(near(at(y, last, 0), squares + (3 - end) * end, 1e-5));
    y = rapt_matmul(rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(1, rows)), x);
    EXPECT(near(at(y, 0, 11), at(row, 0, 11) * (double)rows, 1e-5));
    EXPECT(near(at(y, 0, columns - 1), end * (double)last + 3, 1e-4));
}

static void losses(void)
{
    RAPT_NO_GRADIENT;
    rapt_tensor *x = matrix(), *row = row_of(RAPT_FLOAT32),
                *targets = rapt_full(RAPT_INT64, RAPT_SHAPE(rows), (double)columns - 2);
    const rapt_cross_entropy_options each = {.reduction = RAPT_REDUCE_NONE};
    rapt_tensor *loss = rapt_cross_entropy(x, targets, &each);
    const double expected = -at(rapt_log_softmax(rapt_cast(row, RAPT_FLOAT64), -1), 0, columns - 2);
    EXPECT(near(rapt_at(loss, (const int64_t[]){0}), expected, 1e-6));
    EXPECT(near(rapt_at(loss, (const int64_t[]){last - 1}), expected, 1e-6));
    EXPECT(rapt_at(loss, (const int64_t[]){last}) > expected);
    EXPECT(near(rapt_at(rapt_logsumexp(x, RAPT_AXES(-1), false), (const int64_t[]){last - 1}),
                expected + at(row, 0, columns - 2), 1e-6));
}

static void rows_normalized(void)
{
    RAPT_NO_GRADIENT;
    rapt_tensor *row = row_of(RAPT_FLOAT32);
    EXPECT(has_rows(rapt_softmax(rows_of(row), -1), rapt_softmax(row, -1)));
}

static void random_numbers(void)
{
    rapt_seed(1);
    rapt_tensor *x = rapt_rand(RAPT_FLOAT32, FLAT);
    const float *u = rapt_data(x);
    const double mean = rapt_item(rapt_mean(x, RAPT_ALL_AXES, false));
    EXPECT(near(mean, 0.5, 6 * sqrt(1. / 12 / (double)COUNT)));
    /* whose numbers must not begin anew */
    const int64_t places[] = {(int64_t)1 << 30, (int64_t)1 << 31};
    for (int i = 0; i < 2; i++) EXPECT(memcmp(u, u + places[i], 64) != 0);
}

/* The sines are gone before backward, which has two tensors of 8.6 GB, begins. */
static rapt_tensor *sum_of_sines(rapt_tensor *row)
{
    RAPT_SCOPE;
    return rapt_keep(rapt_sum(rapt_sin(rows_of(row)), RAPT_ALL_AXES, false));
}

static void gradient(void)
{
    rapt_tensor *row = rapt_require_gradient(row_of(RAPT_FLOAT32));
    rapt_backward(sum_of_sines(row));
    EXPECT(near(at(rapt_gradient(row), 0, columns - 1), (double)rows * cos(at(row, 0, columns - 1)), 1e-5));
}

/* --- views, which take no memory, and what is true of them, 2.1 GB --- */

static void views(void)
{
    rapt_tensor *row = row_of(RAPT_FLOAT32), *x = rows_of(row), *exact = rapt_cast(row, RAPT_FLOAT64);
    EXPECT(near(rapt_item(rapt_sum(x, RAPT_ALL_AXES, false)),
                rapt_item(rapt_sum(exact, RAPT_ALL_AXES, false)) * (double)rows, 1e-6));
    EXPECT(rapt_item(rapt_max(x, RAPT_ALL_AXES, false)) == rapt_item(rapt_max(row, RAPT_ALL_AXES, false)));
    EXPECT(near(rapt_item(rapt_norm(x, 2, RAPT_ALL_AXES, false)),
                rapt_item(rapt_norm(exact, 2, RAPT_ALL_AXES, false)) * sqrt((double)rows), 1e-6));
    EXPECT(near(at(rapt_mean(x, RAPT_AXES(0), true), 0, 9), at(row, 0, 9), 1e-6));
    EXPECT(has_rows(rapt_greater_scalar(x, 0), rapt_greater_scalar(row, 0)));
}

/* --- bool and bytes, 2.1 GB --- */

static void truths(void)
{
    rapt_tensor *x = rapt_zeros(RAPT_BOOL, FLAT);
    rapt_set_at(x, (const int64_t[]){COUNT - 1}, 1);
    EXPECT(rapt_item(rapt_any(x, RAPT_ALL_AXES, false)) == 1);
    EXPECT(rapt_item_int64(rapt_sum(x, RAPT_ALL_AXES, false)) == 1);
    x = rapt_logical_not(x);
    EXPECT(rapt_item_int64(rapt_sum(x, RAPT_ALL_AXES, false)) == COUNT - 1);
    EXPECT(rapt_item(rapt_all(x, RAPT_ALL_AXES, false)) == 0);
}

static void bytes(void)
{
    rapt_tensor *parts[] = {rapt_full(RAPT_UINT8, RAPT_SHAPE(COUNT - 5), 1), rapt_full(RAPT_UINT8, RAPT_SHAPE(5), 2)};
    rapt_tensor *x = rapt_concat(2, parts, 0);
    EXPECT(rapt_item_int64(rapt_sum(rapt_equal_scalar(x, 2), RAPT_ALL_AXES, false)) == 5);
    rapt_tensor *y = rapt_roll(x, 0, 5);
    EXPECT(rapt_at(y, (const int64_t[]){4}) == 2 && rapt_at(y, (const int64_t[]){5}) == 1);
    EXPECT(rapt_at(y, (const int64_t[]){COUNT - 1}) == 1);
}

static void flipped(void)
{
    rapt_tensor *x = rapt_zeros(RAPT_UINT8, FLAT);
    rapt_set_at(x, (const int64_t[]){COUNT - 3}, 9);
    rapt_tensor *y = rapt_contiguous(rapt_flip(x, 1, (const int[]){0}));
    EXPECT(rapt_at(y, (const int64_t[]){2}) == 9);
}

static void transposed(void)
{
    rapt_tensor *x = rapt_zeros(RAPT_UINT8, WHOLE);
    rapt_set_at(x, (const int64_t[]){last, columns - 2}, 9);
    rapt_tensor *y = rapt_contiguous(rapt_transpose(x, 0, 1));
    EXPECT(at(y, columns - 2, last) == 9 && at(y, columns - 1, last) == 0);
}

static void file(void)
{
    static const char path[] = "large.safetensors";
    rapt_archive *archive = rapt_archive_new();
    rapt_tensor *x = rapt_zeros(RAPT_UINT8, FLAT);
    rapt_set_at(x, (const int64_t[]){COUNT - 1}, 9);
    EXPECT(rapt_archive_add(archive, "x", x) && rapt_save_safetensors(path, archive));
    rapt_archive_free(archive);
    rapt_archive *again[] = {rapt_load_safetensors(path), rapt_map_safetensors(path)};
    for (int i = 0; i < 2; i++) {
        const rapt_tensor *y = again[i] ? rapt_archive_find(again[i], "x") : NULL;
        EXPECT(y && rapt_count(y) == COUNT && rapt_at(y, (const int64_t[]){COUNT - 1}) == 9);
        rapt_archive_free(again[i]);
    }
    remove(path);
}

static const struct {
    const char *name;
    void (*run)(void);
} cases[] = {
    {"truths", truths},
    {"bytes", bytes},
    {"flipped", flipped},
    {"transposed", transposed},
    {"views", views},
    {"file", file},
    {"elementwise", elementwise},
    {"broadcast", broadcast},
    {"in_place", in_place},
    {"reduce", reduce},
    {"index_rows", index_rows},
    {"products", products},
    {"losses", losses},
    {"rows_normalized", rows_normalized},
    {"random", random_numbers},
    {"gradient", gradient},
};

static bool is_wanted(const char *name, int count, char **names)
{
    for (int i = 1; i < count; i++)
        if (strcmp(names[i], name) == 0) return true;
    return count == 1;
}

int main(int argc, char **argv)
{
    int failures = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (!is_wanted(cases[i].name, argc, argv)) continue;
        wrong = NULL;
        {
            RAPT_SCOPE;
            cases[i].run();
        }
        expect(!rapt_error(), "an error");
        printf("%s\t%lld\t%s%s%s\n", cases[i].name, (long long)COUNT, wrong ? wrong : "", rapt_error() ? ": " : "",
               rapt_error() ? rapt_error() : "");
        fflush(stdout);
        failures += wrong != NULL;
        rapt_clear_error();
        rapt_memory_trim();
    }
    return failures > 0;
}
