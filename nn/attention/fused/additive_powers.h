/* The exponentials that stand for tanh in fused additive attention. */
#ifndef RAPT_NN_ADDITIVE_POWERS_H
#define RAPT_NN_ADDITIVE_POWERS_H

#include <rapt/tensor.h>

/* Of projected keys b, row by row: e^{2b}, padded, and the largest |b|. */
typedef struct rapt_key_powers {
    rapt_tensor *powers, *largest;
} rapt_key_powers;

/* Those that the keys carry, or made now; false after an error (no memory). */
bool rapt_key_powers_of(const rapt_tensor *keys, rapt_key_powers *powers);

/* factors · e^{2x} of the rows of x, padded; factors NULL: factor for all. largest, if not NULL, gets the largest |x|
 * of each row. NULL after an error (no memory). */
rapt_tensor *rapt_make_powers(const rapt_tensor *x, double factor, const void *factors, rapt_tensor *largest);

#endif
