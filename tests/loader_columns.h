/* Columns for loaders whose items are known. */
#ifndef RAPT_TESTS_LOADER_COLUMNS_H
#define RAPT_TESTS_LOADER_COLUMNS_H

#include "optimizing.h"

enum { items = 23 };

/* Item i is the number 10 i. */
static inline rapt_column numbers(void)
{
    return (rapt_column){.values = rapt_arange(RAPT_INT64, 0, 10 * items, 10)};
}

/* Item i is the sequence i, i, ... of length 7 i mod 9. */
static inline rapt_column sequences(bool packed)
{
    int64_t rows[items * 9], starts[items + 1] = {0};
    for (int64_t i = 0; i < items; i++) {
        const int64_t length = 7 * i % 9;
        for (int64_t j = 0; j < length; j++) rows[starts[i] + j] = i;
        starts[i + 1] = starts[i] + length;
    }
    return (rapt_column){.values = rapt_from(RAPT_INT64, RAPT_SHAPE(starts[items]), rows),
                         .starts = rapt_from(RAPT_INT64, RAPT_SHAPE(items + 1), starts),
                         .padding = -1,
                         .packed = packed};
}

static inline rapt_loader *loader_of(rapt_loader_config config)
{
    rapt_loader *loader = rapt_loader_new(&config);
    cr_assert_not_null(loader, "%s", rapt_error());
    return loader;
}

#endif
