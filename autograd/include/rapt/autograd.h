/* Everything of the folder autograd, in one header. */
#ifndef RAPT_AUTOGRAD_H
#define RAPT_AUTOGRAD_H

#include <rapt/derivatives.h>
#include <rapt/gradcheck.h>
#include <rapt/graph.h>
#include <rapt/op.h>
#include <rapt/ops.h>
#include <rapt/packing.h>
#include <rapt/profile.h>
#include <rapt/recompute.h>

#endif
