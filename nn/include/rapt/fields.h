/* What the fields of structs are, for languages that cannot read C's headers: the Python package fills masks and
 * configurations by these. */
#ifndef RAPT_FIELDS_H
#define RAPT_FIELDS_H

#include <rapt/base.h>

RAPT_BEGIN_DECLS

/* One field: its name, what it is, and where it stands in the struct. */
typedef struct rapt_field {
    const char *name;
    char kind; /* b bool, i int or an enumeration, l int64_t, d double, t tensor, p any other pointer */
    size_t offset;
} rapt_field;

/* The fields of the struct of that name, "rapt_mask", "rapt_multi_head_attention_config", "rapt_transformer_config",
 * "rapt_gpt_config" or "rapt_generation"; the last has no name. Functions are left out, and what is theirs: a mask's
 * rule, and the scoring and context of rapt_transformer_config. A struct of *size zeros is one with the defaults. NULL
 * and an error for a name that is not known. */
RAPT_API const rapt_field *rapt_fields_of(const char *name, size_t *size);

RAPT_END_DECLS

#endif
