/* The common part of all elementwise ops. */
#include "autograd/elementwise.h"

#include <string.h>

static bool check_dtypes(const char *op, const rapt_loops loops, int count, rapt_tensor *const *inputs)
{
    rapt_dtype dtype = (rapt_dtype)inputs[0]->dtype;
    for (int i = 1; i < count; i++)
        if (inputs[i]->dtype != dtype)
            return rapt_fail(RAPT_ERROR_DTYPE, op, "input 0 is %s, input %d is %s; one dtype expected (rapt_cast converts)",
                             rapt_dtype_name(dtype), i, rapt_dtype_name((rapt_dtype)inputs[i]->dtype));
    if (!loops[dtype]) return rapt_fail(RAPT_ERROR_DTYPE, op, "not defined for %s", rapt_dtype_name(dtype));
    return true;
}

rapt_tensor *rapt_elementwise(const char *op, const rapt_loops loops, int result, const void *options, int64_t cost, int count,
                              rapt_tensor *const *inputs)
{
    if (!check_dtypes(op, loops, count, inputs)) return NULL;
    rapt_tensor shaped = *inputs[0]; /* the shape so far; broadcasting reads nothing else */
    for (int i = 1; i < count; i++) {
        int64_t shape[RAPT_MAX_RANK];
        int rank = rapt_broadcast(op, &shaped, inputs[i], shape);
        if (rank < 0) return NULL;
        shaped.rank = (uint8_t)rank;
        memcpy(shaped.shape, shape, (size_t)rank * sizeof *shape);
    }
    const rapt_tensor *operands[RAPT_MAX_OPERANDS];
    rapt_tensor *output = rapt_new(op, result < 0 ? (rapt_dtype)inputs[0]->dtype : (rapt_dtype)result, shaped.rank, shaped.shape);
    if (!output) return NULL;
    operands[0] = output;
    for (int i = 0; i < count; i++) operands[i + 1] = inputs[i];
    rapt_map(loops[inputs[0]->dtype], options, cost, count + 1, operands);
    return output;
}
