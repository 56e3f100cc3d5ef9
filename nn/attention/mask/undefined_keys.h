/* Keys that are infinite or undefined before it is known which of them some query sees. */
#ifndef RAPT_NN_UNDEFINED_KEYS_H
#define RAPT_NN_UNDEFINED_KEYS_H

#include <rapt/autograd.h>

/* bool (B, groups, K, 1): are all elements of a row of x (B, groups, K, size), or (B, K, size) for one group, finite?
 * NULL, without an error, when all rows are. False after an error. */
bool rapt_find_finite(rapt_tensor *x, rapt_tensor **finite);

/* prepared (B, groups, K, size), or (B, K, size), with NaN in the rows that are in seen_keys (NULL: all are) and not in
 * `finite`: whoever sees them is to know. */
rapt_tensor *rapt_spoil_undefined(rapt_tensor *prepared, rapt_tensor *seen_keys, rapt_tensor *finite);

#endif
