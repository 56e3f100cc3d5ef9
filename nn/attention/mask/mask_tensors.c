/* All tensors that a mask is made of: they must be there, and a call that is made again later has shares in them. */
#include "nn/mask.h"
#include "tensor/debug.h"

#define FIELD(field)                                                                                                   \
    {                                                                                                                  \
        "the mask's " #field, offsetof(rapt_mask, field)                                                               \
    }

static const struct {
    const char *what;
    size_t offset;
} fields[] = {
    FIELD(valid_lengths),
    FIELD(first_keys),
    FIELD(prefix_lengths),
    FIELD(documents),
    FIELD(query_places),
    FIELD(seen),
    FIELD(bias),
    FIELD(relative_bias),
    FIELD(starts),
    FIELD(key_starts),
    {"what the mask's rule captured", offsetof(rapt_mask, rule.captured[0])},
    {"what the mask's rule captured", offsetof(rapt_mask, rule.captured[1])},
};
enum { field_count = sizeof fields / sizeof *fields };

static rapt_tensor *tensor_of(const rapt_mask *mask, int field)
{
    rapt_tensor *tensor;
    memcpy(&tensor, (const char *)mask + fields[field].offset, sizeof tensor);
    return tensor;
}

bool rapt_mask_check_alive(const char *op, const rapt_mask *mask)
{
    for (int i = 0; i < field_count; i++)
        if (!rapt_check_alive(op, fields[i].what, tensor_of(mask, i))) return false;
    return true;
}

rapt_mask rapt_mask_retain(const rapt_mask *mask)
{
    for (int i = 0; i < field_count; i++) rapt_retain(tensor_of(mask, i));
    return *mask;
}

void rapt_mask_release(const rapt_mask *mask)
{
    for (int i = 0; i < field_count; i++) rapt_release(tensor_of(mask, i));
}
