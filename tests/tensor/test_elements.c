/* Single elements, read and set, and integers beyond what a double holds; tensors like others. */
#include "expect.h"

#include <math.h>

#include <rapt.h>

#include "tensor/core.h"

static const rapt_dtype integer_dtypes[] = {RAPT_INT64, RAPT_INT32, RAPT_UINT8, RAPT_BOOL};

static rapt_tensor *matrix(void)
{
    const double numbers[] = {0, 1, 2, 3, 4, 5};
    return rapt_from(RAPT_FLOAT64, RAPT_SHAPE(2, 3), numbers);
}

/* The same elements, (3, 2). */
static rapt_tensor *transposed(const rapt_tensor *x)
{
    return rapt_new_view(x, x->data, 2, (int64_t[]){x->shape[1], x->shape[0]},
                         (int64_t[]){x->strides[1], x->strides[0]});
}

Test(elements, are_read_by_their_indices)
{
    rapt_tensor *x = matrix();
    cr_expect_eq(rapt_at(x, (int64_t[]){1, 0}), 3);
    cr_expect_eq(rapt_at(x, (int64_t[]){-1, -1}), 5);
    cr_expect_eq(rapt_at(transposed(x), (int64_t[]){0, 1}), 3);
    cr_expect_eq(rapt_item(rapt_scalar(RAPT_INT64, 9)), 9);
    cr_expect_eq(rapt_at(rapt_scalar(RAPT_INT64, 9), NULL), 9);
    expect_no_error();
    cr_expect(isnan(rapt_at(x, (int64_t[]){0, 3})));
    expect_error(RAPT_ERROR_VALUE, "at: index 3 of axis 1, which has size 3");
    cr_expect(isnan(rapt_at(x, (int64_t[]){-3, 0})));
    expect_error(RAPT_ERROR_VALUE, "index -3 of axis 0, which has size 2");
    cr_expect(isnan(rapt_item(x)));
    expect_error(RAPT_ERROR_SHAPE, "item: a tensor of one element expected, not shape [2, 3]");
}

/* 2⁵³ + 1 is the first whole number that a double does not hold. */
Test(elements, integers_are_exact)
{
    const int64_t odd = ((int64_t)1 << 53) + 1, numbers[] = {odd, INT64_MIN, INT64_MAX};
    rapt_tensor *x = rapt_from(RAPT_INT64, RAPT_SHAPE(3), numbers);
    for (int64_t i = 0; i < 3; i++) cr_expect_eq(rapt_at_int64(x, &i), numbers[i]);
    cr_expect_eq(rapt_item_int64(rapt_from(RAPT_INT64, RAPT_SHAPE(1, 1), &odd)), odd);
    cr_expect(rapt_set_at_int64(x, (int64_t[]){1}, odd + 2));
    cr_expect_eq(rapt_at_int64(x, (int64_t[]){1}), odd + 2);
    for (int k = 0; k < 4; k++) {
        rapt_tensor *y = rapt_zeros(integer_dtypes[k], RAPT_SHAPE(2));
        cr_expect(rapt_set_at_int64(y, (int64_t[]){-1}, 1));
        cr_expect_eq(rapt_at_int64(y, (int64_t[]){0}), 0);
        cr_expect_eq(rapt_at_int64(y, (int64_t[]){1}), 1);
    }
    rapt_tensor *z = rapt_zeros(RAPT_FLOAT64, RAPT_SHAPE(1));
    cr_expect(rapt_set_at_int64(z, (int64_t[]){0}, 7));
    cr_expect_eq(rapt_item(z), 7);
    expect_no_error();

    cr_expect_eq(rapt_item_int64(z), 0);
    expect_error(RAPT_ERROR_DTYPE, "item_int64: the tensor is float64; an integer dtype or bool expected");
    cr_expect_eq(rapt_at_int64(z, (int64_t[]){0}), 0);
    expect_error(RAPT_ERROR_DTYPE, "at_int64: the tensor is float64");
    cr_expect_eq(rapt_item_int64(x), 0);
    expect_error(RAPT_ERROR_SHAPE, "item_int64: a tensor of one element expected, not shape [3]");
    cr_expect_eq(rapt_at_int64(x, (int64_t[]){3}), 0);
    expect_error(RAPT_ERROR_VALUE, "at_int64: index 3 of axis 0, which has size 3");
}

Test(elements, are_set_by_their_indices)
{
    rapt_tensor *x = matrix(), *view = transposed(x);
    const uint64_t version = rapt_version(x);
    cr_expect(rapt_set_at(x, (int64_t[]){1, -1}, 7.5));
    cr_expect(rapt_set_at(view, (int64_t[]){1, 0}, -2));
    cr_expect_eq(rapt_at(x, (int64_t[]){1, 2}), 7.5);
    cr_expect_eq(rapt_at(x, (int64_t[]){0, 1}), -2);
    cr_expect_eq(rapt_version(x), version + 2, "backward would notice");
    rapt_tensor *number = rapt_scalar(RAPT_FLOAT32, 1);
    cr_expect(rapt_set_at(number, NULL, 0.1));
    cr_expect_eq(rapt_item(number), (double)0.1f);
    for (int k = 0; k < 4; k++) {
        rapt_tensor *y = rapt_zeros(integer_dtypes[k], RAPT_SHAPE(2));
        cr_expect(rapt_set_at(y, (int64_t[]){0}, 1.9));
        cr_expect_eq(rapt_at(y, (int64_t[]){0}), 1, "as C converts");
        cr_expect_eq(rapt_at(y, (int64_t[]){1}), 0);
    }
    expect_no_error();
}

Test(elements, are_not_set_by_bad_ones)
{
    rapt_tensor *x = matrix();
    const uint64_t version = rapt_version(x);
    cr_expect_not(rapt_set_at(x, (int64_t[]){2, 0}, 1));
    expect_error(RAPT_ERROR_VALUE, "set_at: index 2 of axis 0, which has size 2");
    cr_expect_not(rapt_set_at(x, NULL, 1));
    expect_error(RAPT_ERROR_NULL, "set_at: indices is NULL");
    cr_expect_not(rapt_set_at(NULL, (int64_t[]){0}, 1));
    expect_error(RAPT_ERROR_NULL, "set_at: tensor is NULL");
    cr_expect_not(rapt_set_at_int64(NULL, (int64_t[]){0}, 1));
    expect_error(RAPT_ERROR_NULL, "set_at_int64: tensor is NULL");
    cr_expect_not(rapt_set_at(rapt_expand(rapt_zeros(RAPT_FLOAT32, RAPT_SHAPE(1)), RAPT_SHAPE(4)), (int64_t[]){0}, 1));
    expect_error(RAPT_ERROR_SHAPE, "set_at: ");
    rapt_tensor *result = rapt_neg(rapt_require_gradient(rapt_zeros(RAPT_FLOAT32, RAPT_SHAPE(2))));
    cr_expect_not(rapt_set_at(result, (int64_t[]){0}, 1));
    expect_error(RAPT_ERROR_GRAPH, "set_at: ");
    cr_expect_eq(rapt_version(x), version);
    cr_expect_eq(rapt_item_int64(NULL), 0);
    expect_error(RAPT_ERROR_NULL, "item_int64: tensor is NULL");
    cr_expect_eq(rapt_at_int64(NULL, (int64_t[]){0}), 0);
    expect_error(RAPT_ERROR_NULL, "at_int64: tensor is NULL");
    cr_expect(isnan(rapt_at(x, NULL)));
    expect_error(RAPT_ERROR_NULL, "at: indices is NULL");
}

static void expect_like(const rapt_tensor *got, const rapt_tensor *model, double value)
{
    cr_assert(got, "%s", rapt_error());
    cr_expect_eq(rapt_get_dtype(got), rapt_get_dtype(model));
    cr_expect(rapt_same_shape(got, model) && rapt_is_contiguous(got) && !rapt_requires_gradient(got));
    for (int64_t i = 0; i < rapt_count(got); i++)
        cr_expect_eq(rapt_at(got, (int64_t[]){i / rapt_size(got, 1), i % rapt_size(got, 1)}), value);
}

Test(elements, tensors_like_others)
{
    for (rapt_dtype dtype = RAPT_FLOAT32; dtype <= RAPT_BOOL; dtype++) {
        rapt_tensor *model = transposed(rapt_full(dtype, RAPT_SHAPE(2, 3), 1));
        expect_like(rapt_zeros_like(model), model, 0);
        expect_like(rapt_ones_like(model), model, 1);
        expect_like(rapt_full_like(model, dtype == RAPT_BOOL ? 1 : 5), model, dtype == RAPT_BOOL ? 1 : 5);
    }
    expect_like(rapt_zeros_like(rapt_require_gradient(matrix())), matrix(), 0);
    expect_like(rapt_ones_like(rapt_empty(RAPT_FLOAT32, RAPT_SHAPE(0, 4))), rapt_empty(RAPT_FLOAT32, RAPT_SHAPE(0, 4)),
                1);
    expect_no_error();
    cr_expect_null(rapt_zeros_like(NULL));
    expect_error(RAPT_ERROR_NULL, "zeros_like: tensor is NULL");
    cr_expect_null(rapt_ones_like(NULL));
    expect_error(RAPT_ERROR_NULL, "ones_like: tensor is NULL");
    cr_expect_null(rapt_full_like(NULL, 2));
    expect_error(RAPT_ERROR_NULL, "full_like: tensor is NULL");
}

/* The numbers of rapt_rand and rapt_randn, and the generator left where they leave it. */
Test(elements, random_tensors_like_others)
{
    for (rapt_dtype dtype = RAPT_FLOAT32; dtype <= RAPT_FLOAT64; dtype++) {
        rapt_tensor *model = transposed(rapt_zeros(dtype, RAPT_SHAPE(5, 3))), *results[4];
        rapt_seed(3);
        results[0] = rapt_rand(dtype, RAPT_SHAPE(3, 5));
        results[1] = rapt_randn(dtype, RAPT_SHAPE(3, 5));
        const rapt_random_state state = rapt_random_get_state();
        rapt_seed(3);
        results[2] = rapt_rand_like(model);
        results[3] = rapt_randn_like(model);
        cr_expect_eq(rapt_random_get_state().offset, state.offset);
        for (int k = 0; k < 2; k++) {
            cr_assert(results[k + 2], "%s", rapt_error());
            cr_expect(rapt_same_shape(results[k], results[k + 2]) && rapt_is_contiguous(results[k + 2]));
            cr_expect_eq(rapt_get_dtype(results[k + 2]), dtype);
            rapt_tensor *same = rapt_equal(results[k], results[k + 2]);
            cr_expect_eq(rapt_item(rapt_sum(same, RAPT_ALL_AXES, false)), 15);
        }
    }
    expect_no_error();
    const rapt_random_state state = rapt_random_get_state();
    cr_expect_null(rapt_rand_like(NULL));
    expect_error(RAPT_ERROR_NULL, "rand_like: tensor is NULL");
    cr_expect_null(rapt_randn_like(NULL));
    expect_error(RAPT_ERROR_NULL, "randn_like: tensor is NULL");
    cr_expect_null(rapt_rand_like(rapt_zeros(RAPT_INT64, RAPT_SHAPE(2))));
    expect_error(RAPT_ERROR_DTYPE, "rand_like: dtype is int64; float32 or float64 expected");
    cr_expect_null(rapt_randn_like(rapt_zeros(RAPT_BOOL, RAPT_SHAPE(2))));
    expect_error(RAPT_ERROR_DTYPE, "randn_like: dtype is bool; float32 or float64 expected");
    cr_expect_eq(rapt_random_get_state().offset, state.offset);
}

Test(elements, none_are_copied_from_nowhere)
{
    RAPT_SCOPE;
    cr_expect_not_null(rapt_from(RAPT_FLOAT32, RAPT_SHAPE(2, 0), NULL), "%s", rapt_error());
    cr_expect_null(rapt_from(RAPT_FLOAT32, RAPT_SHAPE(2, 1), NULL));
    expect_error(RAPT_ERROR_NULL, "from: data is NULL");
}

Test(elements, scaled_by_nothing_and_by_next_to_nothing)
{
    RAPT_SCOPE;
    const rapt_dtype dtypes[] = {RAPT_FLOAT32, RAPT_FLOAT64};
    for (int i = 0; i < 2; i++) {
        rapt_tensor *x = rapt_full(dtypes[i], RAPT_SHAPE(3), 1e30);
        cr_expect(rapt_scale_in_place(x, -1e-42), "%s", rapt_error());
        cr_expect_float_eq(rapt_at(x, (int64_t[]){1}), -1e-12, 1e-18);
        cr_expect(rapt_scale_in_place(x, 0), "%s", rapt_error());
        cr_expect_eq(rapt_at(x, (int64_t[]){1}), 0);
    }
}
