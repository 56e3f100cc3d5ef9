/* What the ops that run along an axis give to others. */
#ifndef RAPT_OPS_SCAN_H
#define RAPT_OPS_SCAN_H

#include <rapt/op.h>

/* For each element the product of all others along the axis, 1 where there are none. Made of recorded ops. */
rapt_tensor *rapt_product_of_others(rapt_tensor *x, int axis);

#endif
