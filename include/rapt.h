/* rapt: tensors, gradients, attention and training, in C. This header includes all the others but
 * <rapt/mpi.h>, which belongs to a library of its own. */
#ifndef RAPT_H
#define RAPT_H

#include <rapt/tensor.h>

#include <rapt/autograd.h>

#include <rapt/nn.h>

#include <rapt/optim.h>

#endif
