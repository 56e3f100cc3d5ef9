/* The layer table put together. */
#include "layers.h"

#include <stdio.h>
#include <stdlib.h>

static const layer_family *const families[] = {&layers_basic,  &layers_recurrent, &layers_attention, &layers_scoring,
                                               &layers_models, &layers_tokens,    &layers_functions};

enum { most_added = 64 };
static const layer_row *added[most_added];
static int added_count;

const layer_row *layer_at(int i)
{
    for (size_t family = 0; family < sizeof families / sizeof *families; i -= families[family++]->count)
        if (i < families[family]->count) return &families[family]->rows[i];
    return i < added_count ? added[i] : NULL;
}

void layer_add(const layer_row *row)
{
    if (added_count == most_added) {
        fprintf(stderr, "catalogue: more than %d layers are added\n", most_added);
        abort();
    }
    added[added_count++] = row;
}
