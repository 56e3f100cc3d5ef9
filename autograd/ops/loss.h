/* What all losses share. */
#ifndef RAPT_OPS_LOSS_H
#define RAPT_OPS_LOSS_H

#include <rapt/ops.h>

/* False and an error for a value that is no reduction. */
bool rapt_check_reduction(const char *op, rapt_reduction reduction);

#endif
