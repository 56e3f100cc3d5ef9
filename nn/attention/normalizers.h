/* The library's normalisers under a mask that is resolved for the scores already. */
#ifndef RAPT_NN_NORMALIZERS_H
#define RAPT_NN_NORMALIZERS_H

#include "nn/mask.h"

/* Scores, as rapt_check_scores wants them, to weights. */
typedef rapt_tensor *rapt_resolved_normalizer(rapt_tensor *scores, const rapt_resolved_mask *mask);

rapt_resolved_normalizer rapt_masked_softmax_resolved;

/* Head terms, called `what` in a message, are (heads) or (1), of that dtype. False after an error. */
bool rapt_check_head_terms(const char *op, const char *what, const rapt_tensor *head_terms, rapt_dtype dtype,
                           int64_t heads);

/* Weights from scores under a mask that is resolved as `resolved`: a normaliser of one's own gets the mask itself.
 * head_terms: the sinks of softmax or the biases of sigmoid, as rapt_check_head_terms wants them; NULL: none. */
rapt_tensor *rapt_normalize(rapt_normalizer *normalizer, rapt_tensor *scores, const rapt_mask *mask,
                            const rapt_resolved_mask *resolved, rapt_tensor *head_terms);

#endif
