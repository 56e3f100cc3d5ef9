/* What normalisations ask of their inputs. */
#ifndef RAPT_OPS_NORMALIZE_H
#define RAPT_OPS_NORMALIZE_H

#include "tensor/core.h"

/* A parameter of x's dtype with a number for each place of that axis, called `axis` in words; NULL is good. */
bool rapt_check_normalize_parameter(const char *op, const char *name, const rapt_tensor *x,
                                    const rapt_tensor *parameter, int number, const char *axis);

#endif
