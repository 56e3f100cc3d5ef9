/* The masks under which the layer table tries attention. */
#ifndef RAPT_TESTS_MASKS_H
#define RAPT_TESTS_MASKS_H

#include <rapt/nn.h>
#include <rapt/packing.h>

#include "layers.h"

/* What a sample's variant may be, of attention; scores_alone: no attention around a scoring function. */
enum mask_kind { unmasked, causal, by_lengths, in_window, in_documents, biased, packed, scores_alone };

/* Two sequences that share the rows. */
static inline rapt_tensor *two_starts(int64_t rows)
{
    return rapt_packing_starts(rapt_from(RAPT_INT64, RAPT_SHAPE(2), (int64_t[]){(rows + 1) / 2, rows / 2}));
}

/* Keys 0 … half − 1, and those behind them. */
static inline rapt_tensor *two_documents(int64_t keys)
{
    return rapt_cast(rapt_greater_equal_scalar(rapt_arange(RAPT_INT64, 0, (double)keys, 1), (double)(keys / 2)),
                     RAPT_INT64);
}

/* For queries and keys whose places are their last axis but one. `lengths` may be NULL. */
static inline rapt_mask mask_of(int variant, const rapt_tensor *queries, const rapt_tensor *keys, rapt_tensor *lengths)
{
    switch (variant) {
    case causal:
        return (rapt_mask){.causal = true, .offset = 1};
    case by_lengths:
        return (rapt_mask){.valid_lengths = lengths};
    case in_window:
        return (rapt_mask){.window_left = 2, .window_right = 3};
    case in_documents:
        return (rapt_mask){.documents = two_documents(rapt_size(keys, -2))};
    case biased:
        return (rapt_mask){
            .relative_bias =
                rapt_cast(rapt_from(RAPT_FLOAT32, RAPT_SHAPE(3), (float[]){-0.5f, 0.25f, 1}), rapt_get_dtype(queries))};
    case packed:
        return (rapt_mask){.starts = two_starts(rapt_size(queries, -2)), .key_starts = two_starts(rapt_size(keys, -2))};
    default:
        return (rapt_mask){0};
    }
}

#endif
