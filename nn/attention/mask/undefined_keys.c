/* Keys that are infinite or undefined: found, and marked again after they were prepared. */
#include "undefined_keys.h"

#include <math.h>

#include "tensor/core.h"

bool rapt_find_finite(rapt_tensor *x, rapt_tensor **finite)
{
    RAPT_NO_GRADIENT;
    *finite = NULL;
    rapt_tensor *sum = rapt_sum(x, RAPT_ALL_AXES, false);
    if (!sum) return false;
    if (isfinite(rapt_item(sum))) return true; /* only if every element is */
    /* 0 · x is NaN where x is not finite */
    rapt_tensor *zeros = rapt_sum(rapt_mul_scalar(x, 0), RAPT_AXES(-1), true);
    rapt_tensor *rows = rapt_equal(zeros, zeros), *count = rapt_sum(rows, RAPT_ALL_AXES, false);
    if (!count) return false;
    if ((int64_t)rapt_item(count) < rows->count) *finite = rows->rank == 3 ? rapt_unsqueeze(rows, 1) : rows;
    return *finite || (int64_t)rapt_item(count) == rows->count;
}

rapt_tensor *rapt_spoil_undefined(rapt_tensor *prepared, rapt_tensor *seen_keys, rapt_tensor *finite)
{
    if (!prepared || !finite) return prepared;
    rapt_tensor *good = seen_keys ? rapt_logical_or(finite, rapt_logical_not(seen_keys)) : finite;
    if (good && prepared->rank == 3) good = rapt_squeeze(good, 1);
    return rapt_where(good, prepared, rapt_scalar(prepared->dtype, (double)NAN));
}
