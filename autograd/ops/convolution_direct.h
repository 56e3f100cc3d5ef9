/* Convolutions of few channels a group, without columns. */
#ifndef RAPT_OPS_CONVOLUTION_DIRECT_H
#define RAPT_OPS_CONVOLUTION_DIRECT_H

#include "convolution_products.h"

/* True where this way is the faster one; sizes of one image decide. */
bool rapt_convolution_is_direct(const rapt_convolution_sizes *sizes);

/* The same as rapt_convolution_…; of x only for weights that are finite: they are multiplied with zeros around g. */
bool rapt_convolution_direct_forward(const rapt_convolution_sizes *sizes, const char *x, const char *weight,
                                     const char *bias, char *y);
bool rapt_convolution_direct_of_x(const rapt_convolution_sizes *sizes, const char *g, const char *weight, char *dx);
bool rapt_convolution_direct_of_weight(const rapt_convolution_sizes *sizes, const char *g, const char *x,
                                       char *dweight);

bool rapt_convolution_finite(const rapt_convolution_sizes *sizes, const char *weight);

#endif
