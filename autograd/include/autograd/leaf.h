/* What the folders above do with leaves. */
#ifndef RAPT_AUTOGRAD_LEAF_H
#define RAPT_AUTOGRAD_LEAF_H

#include "tensor/core.h"

/* rapt_exchange for tensors that may be leaves: each keeps its place in the graph. */
void rapt_leaves_exchange(rapt_tensor *a, rapt_tensor *b);

#endif
