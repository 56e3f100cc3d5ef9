/* Running the normalisation kernels over all rows of a tensor. */
#ifndef RAPT_AUTOGRAD_NORMALIZE_H
#define RAPT_AUTOGRAD_NORMALIZE_H

#include "tensor/core.h"

/* Fills y, and scale and mean, which are float64 (mean NULL: rows are not centered). False after an error. */
bool rapt_normalize_rows(double epsilon, const rapt_tensor *x, const rapt_tensor *weight, const rapt_tensor *bias,
                         rapt_tensor *mean, rapt_tensor *scale, rapt_tensor *y);

/* inputs: g, x, weight or NULL, scale, mean or NULL. Fills dx and, unless they are NULL, dweight and dbias. False after an
 * error. */
bool rapt_normalize_rows_backward(const rapt_tensor *const inputs[5], rapt_tensor *dx, rapt_tensor *dweight,
                                  rapt_tensor *dbias);

#endif
