/* Tests of the op of examples/layer.c. */
#include <criterion/criterion.h>

int layer_main(int argc, char **argv);

#define main layer_main
#include "../../examples/layer.c"
#undef main

Test(layer, snake_of_both_floating_types)
{
    const rapt_dtype dtypes[] = {RAPT_FLOAT32, RAPT_FLOAT64};
    for (int i = 0; i < 2; i++) {
        RAPT_SCOPE;
        rapt_tensor *y = RAPT_APPLY(&snake, NULL, rapt_scalar(dtypes[i], 0.5), rapt_scalar(dtypes[i], 2));
        cr_expect_float_eq(rapt_item(y), 0.5 + sin(1) * sin(1) / 2, 1e-7);
    }
}

Test(layer, snake_refuses_what_is_not_floating)
{
    const rapt_dtype dtypes[] = {RAPT_INT64, RAPT_INT32, RAPT_UINT8, RAPT_BOOL};
    for (int i = 0; i < 4; i++) {
        RAPT_SCOPE;
        rapt_tensor *x = rapt_ones(dtypes[i], RAPT_SHAPE(100)), *alpha = rapt_ones(dtypes[i], RAPT_SHAPE(1));
        cr_expect_null(RAPT_APPLY(&snake, NULL, x, alpha));
        cr_expect_eq(rapt_error_get_code(), RAPT_ERROR_DTYPE);
        cr_expect_not_null(strstr(rapt_error(), rapt_dtype_name(dtypes[i])), "%s", rapt_error());
        rapt_clear_error();
    }
}

Test(layer, snake_refuses_alphas_of_another_kind)
{
    rapt_tensor *x = rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(3));
    cr_expect_null(RAPT_APPLY(&snake, NULL, x, rapt_scalar(RAPT_FLOAT64, 1)));
    cr_expect_eq(rapt_error_get_code(), RAPT_ERROR_VALUE);
    rapt_clear_error();
    cr_expect_null(RAPT_APPLY(&snake, NULL, x, rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(3))));
    cr_expect_eq(rapt_error_get_code(), RAPT_ERROR_VALUE);
}
