/* What one process does where there are no ranks. */
#ifndef EXAMPLES_ALONE_H
#define EXAMPLES_ALONE_H

#include "ranks.h"

static inline bool alone_backward(int64_t items, ranks_loss *loss_of, void *context, double *loss)
{
    double weight;
    rapt_tensor *mean = loss_of(context, 0, items, &weight);
    if (!rapt_backward(mean)) return false;
    *loss = rapt_item(mean);
    return true;
}

#endif
