/* What the losses share: class numbers that are checked, and the reduction of one loss for each row or element. */
#ifndef RAPT_AUTOGRAD_LOSS_H
#define RAPT_AUTOGRAD_LOSS_H

#include <rapt/ops.h>

#include "tensor/core.h"

/* The targets of (…, classes) as a new contiguous int64 tensor, with −1 in the rows that are left out; counted is how many
 * are not. NULL after an error: bad options, dtypes or shapes, or a target that is no class. */
rapt_tensor *rapt_check_targets(const char *op, const rapt_cross_entropy_options *options, const rapt_tensor *x,
                                rapt_tensor *targets, int64_t *counted);

/* The losses themselves, their sum, or the sum over `counted` (0 when that is 0). Made of recorded ops. */
rapt_tensor *rapt_reduce_counted(rapt_tensor *losses, rapt_reduction reduction, int64_t counted);

/* False and an error for a value that is no reduction. */
bool rapt_check_reduction(const char *op, rapt_reduction reduction);

#endif
