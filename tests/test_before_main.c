/* A program's own constructor may call the library, though it is linked statically and stands first. */
#include <criterion/criterion.h>
#include <math.h>

#include <rapt.h>

static double exponential, product;
static const char *level;

static __attribute__((constructor)) void compute(void)
{
    RAPT_SCOPE;
    level = rapt_get_level();
    rapt_tensor *ones = rapt_ones(RAPT_FLOAT32, 2, (const int64_t[]){40, 40});
    exponential = rapt_item(rapt_max(rapt_exp(ones), RAPT_ALL_AXES, false));
    product = rapt_item(rapt_min(rapt_matmul(ones, ones), RAPT_ALL_AXES, false));
}

Test(before_main, library_is_ready)
{
    cr_assert_not_null(level);
    cr_expect_str_eq(level, rapt_get_level());
    cr_expect_float_eq(exponential, exp(1), 1e-6);
    cr_expect_eq(product, 40);
}
