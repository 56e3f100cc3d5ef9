/* einsum: errors that name the letter. */
#include <criterion/criterion.h>

#include <rapt.h>

#include "expect.h"

#define EINSUM(text, ...)                                                                                              \
    rapt_einsum(text, RAPT_LENGTH_OF(rapt_tensor *, __VA_ARGS__), RAPT_ARRAY_OF(rapt_tensor *, __VA_ARGS__))
#define FAILS(code, message, text, ...)                                                                                \
    do {                                                                                                               \
        cr_expect_null(EINSUM(text, __VA_ARGS__));                                                                     \
        expect_error(RAPT_ERROR_##code, "einsum: " message);                                                           \
    } while (0)

Test(einsum, errors_name_the_letter)
{
    RAPT_SCOPE;
    rapt_tensor *a = rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(2, 3)), *b = rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(4, 2));
    FAILS(SHAPE, "'j' names axes of the sizes 3 and 4, the latter of tensor 1", "ij,jk->ik", a, b);
    FAILS(SHAPE, "'i' names axes of the sizes 2 and 3 of tensor 0", "ii", a);
    FAILS(VALUE, "the result has 'z', which names no axis", "ij->iz", a);
    FAILS(VALUE, "the result has 'i' twice", "ij->ii", a);
    FAILS(VALUE, "'+' in the equation", "i+j", a);
    FAILS(VALUE, "'-' in the equation", "i-j", a);
    FAILS(VALUE, "'ä' in the equation", "iä", a);
    FAILS(VALUE, "'𝜇' in the equation", "𝜇j", a);
    FAILS(VALUE, "0xc3 in the equation", "i\xc3", a);
    FAILS(VALUE, "0x01 in the equation", "i\x01", a);
    FAILS(VALUE, "2 tensors given for \"ij->ij\", which names 1", "ij->ij", a, b);
    FAILS(SHAPE, "the equation names 3 axes of tensor 0, which has shape [2, 3]", "ijk->k", a);
    FAILS(SHAPE, "the equation names 1 axes of tensor 0, which has shape [2, 3]", "i", a);
    FAILS(VALUE, "\"...\" stands twice", "......", a);
    FAILS(VALUE, "',' behind the axes of the result", "ij->i,j", a, rapt_scalar(RAPT_FLOAT32, 1));
    FAILS(DTYPE, "tensor 0 is float32, tensor 1 is float64", "ij,ij", a, rapt_cast(a, RAPT_FLOAT64));
    FAILS(DTYPE, "not defined for int64", "ij", rapt_cast(a, RAPT_INT64));
    cr_expect_null(rapt_einsum(NULL, 1, &a));
    expect_error(RAPT_ERROR_NULL, "einsum: equation is NULL");
    cr_expect_null(rapt_einsum("i", 1, NULL));
    expect_error(RAPT_ERROR_NULL, "einsum: tensors is NULL");
    cr_expect_null(rapt_einsum("ij,ij", 2, (rapt_tensor *[]){a, NULL}));
    expect_error(RAPT_ERROR_NULL, "einsum: a tensor is NULL");
    FAILS(SHAPE, "more than 8 axes are named for one tensor", "abcdefghi", a);
    cr_expect_null(rapt_einsum("", 0, NULL));
    expect_error(RAPT_ERROR_VALUE, "0 tensors given");
}

Test(einsum, too_many_axes)
{
    RAPT_SCOPE;
    rapt_tensor *x = rapt_ones(RAPT_FLOAT32, RAPT_SHAPE(1, 2, 1, 2, 1)), *y = NULL;
    cr_expect_null(EINSUM("abcde,fghij->abcdefghij", x, x));
    expect_error(RAPT_ERROR_SHAPE, "the product of tensors 0 to 1 has 10 axes; 8 at most expected");
    cr_expect((y = EINSUM("abcde,fghij->bg", x, x)), "%s", rapt_error());
    cr_expect_eq(rapt_item(rapt_sum(y, RAPT_ALL_AXES, false)), 16);
}
