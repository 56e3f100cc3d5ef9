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

/* Writes the items of the rest of the epoch, a −1 behind each batch; returns how many numbers that is. */
static inline int rest_of_epoch(rapt_loader *loader, int64_t *list)
{
    int count = 0;
    rapt_batch batch;
    while (rapt_loader_next(loader, &batch)) {
        cr_expect_eq(rapt_count(batch.tensors[0]), batch.count);
        for (int64_t i = 0; i < batch.count; i++) {
            list[count++] = batch.items[i];
            cr_expect_eq(element(batch.tensors[0], i), (double)(10 * batch.items[i]));
        }
        list[count++] = -1;
    }
    expect_no_error();
    return count;
}

#endif
