/* The library's normalisers under a mask that is resolved for the scores already. */
#ifndef RAPT_NN_NORMALIZERS_H
#define RAPT_NN_NORMALIZERS_H

#include "nn/mask.h"

/* Scores, as rapt_check_scores wants them, to weights. */
typedef rapt_tensor *rapt_resolved_normalizer(rapt_tensor *scores, const rapt_resolved_mask *mask);

rapt_resolved_normalizer rapt_masked_softmax_resolved;

/* Weights from scores under a mask that is resolved as `resolved`: a normaliser of one's own gets the mask itself. */
rapt_tensor *rapt_normalize(rapt_normalizer *normalizer, rapt_tensor *scores, const rapt_mask *mask,
                            const rapt_resolved_mask *resolved);

#endif
