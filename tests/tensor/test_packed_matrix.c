/* Products with a matrix that is packed once have the bits of those that pack it themselves. */
#include <rapt.h>

#include "modules.h"
#include "tensor/core.h"
#include "tensor/matmul.h"
#include "tensor/memory.h"
#include "tensor/packed_matrix.h"
#include "tensor/scratch.h"

static void expect_near(rapt_tensor *c, rapt_tensor *expected)
{
    cr_expect_lt(rapt_item(rapt_max(rapt_abs(rapt_sub(c, expected)), RAPT_ALL_AXES, false)), 1e-4);
}

/* Some rows at a time. */
static void multiply_parts(const rapt_packed_matrix *packed, int64_t rows, rapt_rows a, rapt_rows bias, rapt_rows c,
                           bool accumulate, rapt_ahead next)
{
    const int64_t most = 48, size = (int64_t)rapt_dtype_size(packed->dtype);
    void *scratch = rapt_scratch_list("test", 1, rapt_packed_matrix_scratch(packed, most) + 1);
    for (int64_t row = 0; row < rows; row += most) {
        const int64_t count = rows - row < most ? rows - row : most;
        rapt_packed_matrix_multiply(packed, count, a, bias, c, accumulate, next, scratch);
        a.data += count * a.stride * size, c.data += count * c.stride * size;
        if (bias.data) bias.data += count * bias.stride * size;
    }
}

/* a (rows, k) · b (k, n), or b as the transpose of (n, k), added to itself once more; and plus one bias for all rows,
 * or one for each. */
static void expect_bits_of_gemm(rapt_dtype dtype, int64_t rows, int64_t k, int64_t n, bool transposed, int64_t in_all)
{
    RAPT_SCOPE;
    const rapt_tensor *a = rapt_randn(dtype, RAPT_SHAPE(rows, k)), *b = rapt_randn(dtype, RAPT_SHAPE(k, n));
    rapt_tensor *bias = rapt_randn(dtype, RAPT_SHAPE(n)), *biases = rapt_randn(dtype, RAPT_SHAPE(rows, n));
    const rapt_tensor *zeros = rapt_zeros(dtype, RAPT_SHAPE(n));
    const int64_t row = transposed ? 1 : n, column = transposed ? k : 1;
    rapt_tensor *expected = rapt_zeros(dtype, RAPT_SHAPE(rows, n)), *c = rapt_ones(dtype, RAPT_SHAPE(rows, n));
    for (int i = 0; i < 2; i++)
        cr_assert(rapt_gemm("test", dtype, rows, n, k, a->data, k, 1, b->data, row, column, expected->data, n, i > 0));
    rapt_packed_matrix packed;
    cr_assert(rapt_packed_matrix_make("test", &packed, dtype, k, n, b->data, row, column, in_all, rows));
    const rapt_rows from = {a->data, k}, to = {c->data, n};
    for (int i = 0; i < 2; i++)
        multiply_parts(&packed, rows, from, (rapt_rows){i > 0 ? NULL : zeros->data, 0}, to, i > 0, (rapt_ahead){0});
    cr_expect(same_bits(c, expected), "%lld x %lld x %lld", (long long)rows, (long long)k, (long long)n);

    multiply_parts(&packed, rows, from, (rapt_rows){bias->data, 0}, to, false, (rapt_ahead){0});
    rapt_tensor *product = rapt_zeros(dtype, RAPT_SHAPE(rows, n));
    cr_assert(rapt_gemm("test", dtype, rows, n, k, a->data, k, 1, b->data, row, column, product->data, n, false));
    expect_near(c, rapt_add(product, bias));

    multiply_parts(&packed, rows, from, (rapt_rows){biases->data, n}, to, false, rapt_ahead_at(biases->data, rows * n));
    expect_near(c, rapt_add(product, biases));
    rapt_packed_matrix_free(&packed);
    expect_no_error();
}

Test(packed_matrix, has_the_bits_of_other_products)
{
    const int64_t sizes[][3] = {{1, 1, 1},     {1, 40, 300},  {5, 7, 3},      {13, 256, 33},
                                {32, 257, 96}, {70, 600, 41}, {150, 300, 200}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int kind = 0; kind < (sizes[i][0] < 128 ? 8 : 4); kind++) /* large ones are never of one row */
            expect_bits_of_gemm(kind & 1 ? RAPT_FLOAT64 : RAPT_FLOAT32, sizes[i][0], sizes[i][1], sizes[i][2], kind & 2,
                                kind & 4 ? 1 : 1000);
}

Test(packed_matrix, by_openblas_too)
{
    const bool before = rapt_matmul_set_blas(true);
    expect_bits_of_gemm(RAPT_FLOAT64, 9, 20, 30, true, 1000);
    rapt_matmul_set_blas(before);
}

Test(packed_matrix, without_memory)
{
    const float b[4] = {1, 2, 3, 4};
    rapt_packed_matrix packed;
    rapt_memory_fail_after(0);
    cr_expect_not(rapt_packed_matrix_make("test", &packed, RAPT_FLOAT32, 2, 2, b, 2, 1, 1000, 1000));
    rapt_memory_fail_after(-1);
    expect_error(RAPT_ERROR_MEMORY, "test: no memory");
    rapt_packed_matrix_free(&packed);
}

Test(packed_matrix, of_no_terms_there_is_the_bias)
{
    const float bias[2] = {3, 4};
    float c[2] = {0};
    rapt_packed_matrix packed;
    cr_assert(rapt_packed_matrix_make("test", &packed, RAPT_FLOAT32, 0, 2, NULL, 2, 1, 1000, 1000));
    rapt_packed_matrix_multiply(&packed, 1, (rapt_rows){NULL, 0}, (rapt_rows){(char *)bias, 0},
                                (rapt_rows){(char *)c, 2}, false, (rapt_ahead){0}, NULL);
    cr_expect(c[0] == 3 && c[1] == 4);
}
