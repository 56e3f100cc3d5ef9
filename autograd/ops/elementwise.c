/* The common part of all elementwise ops. */
#include "elementwise.h"

#include <math.h>
#include <string.h>

#include "../node.h"
#include "../recording.h"
#include "tensor/debug.h"

bool rapt_check_number(const char *op, const rapt_tensor *x, double value)
{
    static const double low[RAPT_DTYPE_COUNT] = {[RAPT_INT64] = INT64_MIN, [RAPT_INT32] = INT32_MIN};
    static const double beyond[RAPT_DTYPE_COUNT] =
        {[RAPT_INT64] = 0x1p63, [RAPT_INT32] = 0x1p31, [RAPT_UINT8] = 256, [RAPT_BOOL] = 2};
    if (rapt_is_floating(x)) return true;
    if (value == floor(value) && value >= low[x->dtype] && value < beyond[x->dtype]) return true;
    return rapt_fail(RAPT_ERROR_VALUE, op, "%g is not a number of type %s, which the tensor has", value,
                     rapt_dtype_name(x->dtype));
}

rapt_tensor *rapt_number_like(const char *op, const rapt_tensor *x, double value)
{
    if (!x) rapt_fail_null(op, "x");
    if (!x || !rapt_check_alive(op, "x", x) || !rapt_check_number(op, x, value)) return NULL;
    return rapt_scalar(x->dtype, value);
}

static bool check_dtypes(const char *op, const rapt_loops loops, int count, rapt_tensor *const *inputs)
{
    rapt_dtype dtype = inputs[0]->dtype;
    for (int i = 1; i < count; i++)
        if (inputs[i]->dtype != dtype)
            return rapt_fail(RAPT_ERROR_DTYPE, op,
                             "input 0 is %s, input %d is %s; one dtype expected (rapt_cast converts)",
                             rapt_dtype_name(dtype), i, rapt_dtype_name(inputs[i]->dtype));
    if (!loops[dtype])
        return rapt_fail(RAPT_ERROR_DTYPE, op, "not defined for %s (rapt_cast converts)", rapt_dtype_name(dtype));
    return true;
}

static bool same_shapes(int count, rapt_tensor *const *inputs)
{
    for (int i = 1; i < count; i++)
        if (!rapt_has_shape(inputs[i], inputs[0]->rank, inputs[0]->shape)) return false;
    return true;
}

/* The shape all inputs broadcast to, its rank or −1 and an error. */
static int common_shape(const char *op, int count, rapt_tensor *const *inputs, int64_t shape[RAPT_MAX_RANK])
{
    rapt_tensor shaped = rapt_header_of(inputs[0]); /* the shape so far; broadcasting reads nothing else */
    for (int i = 1; i < count; i++) {
        int rank = rapt_broadcast(op, &shaped, inputs[i], shape);
        if (rank < 0) return -1;
        shaped.rank = (uint8_t)rank;
        memcpy(shaped.shape, shape, (size_t)rank * sizeof *shape);
    }
    return shaped.rank;
}

/* A new tensor like the first input, or that one itself where its elements are read here for the last time. */
static inline rapt_tensor *output_like(const char *op, rapt_dtype dtype, rapt_tensor *input)
{
    if (input != rapt_spare_gradient || input->dtype != dtype || !rapt_is_unique(input))
        return rapt_new_shaped(op, dtype, input);
    rapt_spare_gradient = NULL;
    return input;
}

rapt_tensor *rapt_elementwise_loop(const char *op, rapt_loop *loop, rapt_dtype result, const void *options,
                                   int64_t cost, int count, rapt_tensor *const *inputs)
{
    rapt_tensor *output;
    if (same_shapes(count, inputs)) {
        output = output_like(op, result, inputs[0]);
    } else {
        int64_t shape[RAPT_MAX_RANK];
        int rank = common_shape(op, count, inputs, shape);
        output = rank < 0 ? NULL : rapt_new(op, result, rank, shape);
    }
    if (!output) return NULL;
    const rapt_tensor *operands[RAPT_MAX_OPERANDS] = {output};
    for (int i = 0; i < count; i++) operands[i + 1] = inputs[i];
    rapt_map(loop, options, cost, count + 1, operands);
    return output;
}

rapt_tensor *rapt_elementwise(const char *op, const rapt_loops loops, int result, const void *options, int64_t cost,
                              int count, rapt_tensor *const *inputs)
{
    if (!check_dtypes(op, loops, count, inputs)) return NULL;
    rapt_dtype dtype = inputs[0]->dtype;
    return rapt_elementwise_loop(op, loops[dtype], result < 0 ? dtype : (rapt_dtype)result, options, cost, count,
                                 inputs);
}

/* Few elements, of one dtype and in one order in all inputs: what the checks above and rapt_map would find out, at a
 * glance. If so, operands 1 to `count` are filled in. */
static inline bool are_few_and_alike(int count, rapt_tensor *const *inputs, char **data, int64_t *strides)
{
    enum { few = 1024 };
    const rapt_tensor *first = inputs[0];
    if (!first->contiguous || first->count == 0 || first->count > few) return false;
    for (int i = 0; i < count; i++) {
        const rapt_tensor *input = inputs[i];
        if (i > 0 &&
            !(input->contiguous && input->dtype == first->dtype && rapt_has_shape(input, first->rank, first->shape)))
            return false;
        data[i + 1] = input->data;
        strides[i + 1] = rapt_element_bytes[first->dtype];
    }
    return true;
}

rapt_tensor *rapt_elementwise_call(const rapt_call *call, const rapt_loops loops, int64_t cost)
{
    const int count = call->count;
    rapt_tensor *const *inputs = call->inputs;
    char *data[RAPT_MAX_OPERANDS];
    int64_t strides[RAPT_MAX_OPERANDS];
    rapt_loop *loop = loops[inputs[0]->dtype];
    if (!loop || !are_few_and_alike(count, inputs, data, strides))
        return rapt_elementwise(call->op->name, loops, -1, call->options, cost, count, inputs);
    rapt_tensor *output = output_like(call->op->name, inputs[0]->dtype, inputs[0]);
    if (!output) return NULL;
    data[0] = output->data;
    strides[0] = strides[1];
    loop(output->count, data, strides, call->options);
    return output;
}
