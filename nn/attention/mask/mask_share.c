/* Shares of all that a mask is made of, for a call that is made again later. */
#include "nn/mask.h"

/* Where its tensors stand. */
static const size_t fields[] =
    {offsetof(rapt_mask, valid_lengths), offsetof(rapt_mask, first_keys),       offsetof(rapt_mask, seen),
     offsetof(rapt_mask, bias),          offsetof(rapt_mask, relative_bias),    offsetof(rapt_mask, starts),
     offsetof(rapt_mask, key_starts),    offsetof(rapt_mask, prefix_lengths),   offsetof(rapt_mask, documents),
     offsetof(rapt_mask, query_places),  offsetof(rapt_mask, rule.captured[0]), offsetof(rapt_mask, rule.captured[1])};
enum { field_count = sizeof fields / sizeof *fields };

static rapt_tensor *tensor_of(const rapt_mask *mask, int field)
{
    rapt_tensor *tensor;
    memcpy(&tensor, (const char *)mask + fields[field], sizeof tensor);
    return tensor;
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
