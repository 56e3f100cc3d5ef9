/* The fields of structs that other languages fill in. */
#include <rapt/fields.h>

#include <string.h>

#include <rapt/multi_head.h>

#define KIND(member)                                                                                                   \
    _Generic((member), bool: 'b', int: 'i', unsigned: 'i', int64_t: 'l', double: 'd', rapt_tensor *: 't', default: 'p')
#define FIELD(type, field)                                                                                             \
    {                                                                                                                  \
        .name = #field, .kind = KIND(((type *)NULL)->field), .offset = offsetof(type, field)                           \
    }

#define MASK(field) FIELD(rapt_mask, field)
static const rapt_field mask[] = {
    MASK(valid_lengths), MASK(first_keys),   MASK(causal),       MASK(dilation), MASK(prefix_lengths),
    MASK(window),        MASK(window_left),  MASK(window_right), MASK(block),    MASK(blocks_before),
    MASK(documents),     MASK(query_places), MASK(offset),       MASK(seen),     MASK(bias),
    MASK(relative_bias), MASK(starts),       MASK(key_starts),   {NULL, 0, 0},
};

#define HEADS(field) FIELD(rapt_multi_head_attention_config, field)
static const rapt_field heads[] = {
    HEADS(hidden),     HEADS(heads),        HEADS(groups),      HEADS(query_size), HEADS(key_size),
    HEADS(value_size), HEADS(value_hidden), HEADS(output_size), HEADS(bias),       HEADS(dropout),
    HEADS(pooling),    HEADS(sinks),        HEADS(rotary),      HEADS(names),      {NULL, 0, 0},
};

static const struct {
    const char *name;
    const rapt_field *fields;
    size_t size;
} structs[] = {
    {"rapt_mask", mask, sizeof(rapt_mask)},
    {"rapt_multi_head_attention_config", heads, sizeof(rapt_multi_head_attention_config)},
};

const rapt_field *rapt_fields_of(const char *name, size_t *size)
{
    for (size_t i = 0; name && size && i < sizeof structs / sizeof *structs; i++) {
        if (strcmp(structs[i].name, name) != 0) continue;
        *size = structs[i].size;
        return structs[i].fields;
    }
    if (!name || !size)
        rapt_fail(RAPT_ERROR_NULL, "fields_of", "%s is NULL", name ? "size" : "name");
    else
        rapt_fail(RAPT_ERROR_VALUE, "fields_of", "the fields of '%.100s' are not listed", name);
    return NULL;
}
