/* Structs as other languages fill them in. */
#include <string.h>

#include <rapt.h>

#include "expect.h"

static const rapt_field *find(const char *name, const char *field)
{
    size_t size;
    const rapt_field *f = rapt_fields_of(name, &size);
    while (f && f->name && strcmp(f->name, field) != 0) f++;
    return f && f->name ? f : NULL;
}

Test(fields, a_struct_filled_by_its_fields_is_the_struct)
{
    RAPT_SCOPE;
    rapt_mask mask = {0};
    size_t size = 0;
    cr_expect_not_null(rapt_fields_of("rapt_mask", &size));
    cr_expect_eq(size, sizeof mask);
    const rapt_field *causal = find("rapt_mask", "causal"), *window = find("rapt_mask", "window");
    const rapt_field *bias = find("rapt_mask", "bias"), *dropout = find("rapt_multi_head_attention_config", "dropout");
    cr_assert(causal && window && bias && dropout);
    cr_expect(causal->kind == 'b' && window->kind == 'l' && bias->kind == 't' && dropout->kind == 'd');
    *(bool *)((char *)&mask + causal->offset) = true;
    *(int64_t *)(void *)((char *)&mask + window->offset) = 3;
    cr_expect(mask.causal && mask.window == 3 && !mask.bias);
    cr_expect_eq(find("rapt_multi_head_attention_config", "pooling")->kind, 'p');
    cr_expect_eq(find("rapt_mask", "fills_million")->kind, 'b');
    cr_expect_eq(find("rapt_multi_head_attention_config", "names")->kind, 'i');
    expect_no_error();
}

Test(fields, misuse)
{
    size_t size;
    cr_expect_null(rapt_fields_of("rapt_tensor", &size));
    expect_error(RAPT_ERROR_VALUE, "the fields of 'rapt_tensor' are not listed");
    cr_expect_null(rapt_fields_of(NULL, &size));
    expect_error(RAPT_ERROR_NULL, "name is NULL");
    cr_expect_null(rapt_fields_of("rapt_mask", NULL));
    expect_error(RAPT_ERROR_NULL, "size is NULL");
}
