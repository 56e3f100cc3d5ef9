/* ALiBi's slopes. */
#ifndef RAPT_NN_ALIBI_H
#define RAPT_NN_ALIBI_H

/* 2^(−8 (head + 1) / heads) for a power of 2; the heads past the largest power take the 1st, 3rd, … slope of the
 * next. */
double rapt_alibi_slope(int head, int heads);

#endif
