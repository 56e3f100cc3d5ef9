/* Which weights of attention dropout leaves, for all fused kernels of a level. */
#ifndef RAPT_KERNELS_ATTENTION_DROPOUT_H
#define RAPT_KERNELS_ATTENTION_DROPOUT_H

#include "attention_mask.h"

/* Of `rows` rows of a head, from `row` on: kept[i · stride + j − keys.first] = 1 where dropout leaves the weight of
 * key j, else 0. Of short rows all keys are drawn, since their draws follow one another. */
void RAPT_AT_LEVEL(rapt_rows_dropout)(const rapt_raw_mask *mask, rapt_score_row row, int64_t rows, rapt_key_range keys,
                                      uint8_t *kept, int64_t stride);

#endif
