/* What a mask adds to scores: its bias, and its relative bias. */
#include "nn/mask.h"

#include "relative_position.h"
#include "tensor/core.h"

/* (B, heads, Q, last) as it goes with the scores: without the axis of heads where they have none. */
static rapt_tensor *like(const rapt_tensor *scores, rapt_tensor *tensor)
{
    return scores && scores->rank == 3 ? rapt_squeeze(tensor, 1) : tensor;
}

rapt_tensor *rapt_add_resolved_biases(const rapt_resolved_mask *r, rapt_tensor *scores)
{
    if (r->bias) scores = rapt_add(scores, like(scores, r->bias));
    if (r->relative_bias) scores = rapt_add(scores, rapt_by_place(like(scores, r->relative_bias), r));
    return scores;
}

rapt_tensor *rapt_mask_add_biases(const rapt_mask *mask, rapt_tensor *scores)
{
    rapt_resolved_mask r;
    if (!mask || !scores || (!mask->bias && !mask->relative_bias)) return scores;
    RAPT_SCOPE;
    if (!rapt_resolve_mask_for("mask_add_biases", mask, scores, &r)) return NULL;
    return rapt_keep(rapt_add_resolved_biases(&r, scores));
}
