/* What the folders above do with leaves. */
#ifndef RAPT_AUTOGRAD_LEAF_H
#define RAPT_AUTOGRAD_LEAF_H

#include "tensor/core.h"

/* rapt_exchange for tensors that may be leaves: each keeps its place in the graph. */
void rapt_leaves_exchange(rapt_tensor *a, rapt_tensor *b);

/* Drops the gradient of a leaf that is part of a graph itself, and whatever that graph holds with it. Of any other
 * tensor, and of a leaf that somebody else has a share of, nothing. */
void rapt_drop_linked_gradient(rapt_tensor *tensor);

#endif
