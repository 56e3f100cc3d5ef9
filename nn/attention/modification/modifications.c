/* What the library's own score modifications share. */
#include "modifications.h"

#include "tensor/core.h"

bool rapt_check_modified_heads(const char *op, int64_t heads)
{
    return heads > 0 || rapt_fail(RAPT_ERROR_VALUE, op, "%lld heads; 1 or more expected", (long long)heads);
}

bool rapt_capture_by_head(rapt_tensor *by_head, rapt_tensor **captured)
{
    *captured = rapt_reshape(by_head, RAPT_SHAPE(1, rapt_size(by_head, 0), 1, 1));
    return *captured != NULL;
}

rapt_tensor *rapt_relative_places(rapt_tensor *queries, rapt_tensor *keys, rapt_dtype dtype)
{
    rapt_tensor *relative = rapt_sub(keys, queries);
    return relative ? rapt_cast(relative, dtype) : NULL;
}

rapt_tensor *rapt_look_up_biases(rapt_tensor *table, rapt_tensor *numbers)
{
    if (!table || !numbers) return NULL;
    const int64_t *shape = numbers->shape + numbers->rank - 2;
    rapt_tensor *biases = rapt_index_select(table, 2, rapt_reshape(numbers, RAPT_SHAPE(numbers->count)));
    if (numbers->rank == 2) return rapt_reshape(biases, RAPT_SHAPE(table->shape[1], shape[0], shape[1]));
    biases = rapt_reshape(biases, RAPT_SHAPE(table->shape[1], numbers->shape[0], shape[0], shape[1]));
    return rapt_permute(biases, RAPT_AXES(1, 0, 2, 3));
}
