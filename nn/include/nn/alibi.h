/* ALiBi's slopes, and how far a table of relative positions may reach. */
#ifndef RAPT_NN_ALIBI_H
#define RAPT_NN_ALIBI_H

#include <stdbool.h>
#include <stdint.h>

/* 2^(−8 (head + 1) / heads) for a power of 2; the heads past the largest power take the 1st, 3rd, … slope of the
 * next. */
double rapt_alibi_slope(int64_t head, int64_t heads);

/* False and an error unless the size of a table of 2 reach + 1 positions can be counted. */
bool rapt_check_reach(const char *op, int64_t reach);

#endif
