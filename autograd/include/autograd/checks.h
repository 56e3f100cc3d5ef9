/* What ops read from their options and check of them, and layers before an op does. */
#ifndef RAPT_AUTOGRAD_CHECKS_H
#define RAPT_AUTOGRAD_CHECKS_H

#include <stdbool.h>
#include <stdint.h>

/* Strides, dilations and groups of 0 are 1. */
static inline int64_t rapt_or_one(int64_t number)
{
    return number ? number : 1;
}

/* A finite number of at least 0? False and an error of op when not. */
bool rapt_check_epsilon(const char *op, double epsilon);

/* Is it a window of one axis? False and an error of op when not. */
bool rapt_check_window(const char *op, int64_t size, int64_t stride, int64_t padding, int64_t dilation);

#endif
