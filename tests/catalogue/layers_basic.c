/* Rows: the basic layers. */
#include <rapt/nn.h>

#include "layers.h"

LAYER_MAKE(linear, rapt_linear_new(3, 2, s->variant ? RAPT_NO_BIAS : RAPT_BIAS))
LAYER_MAKE(embedding, rapt_embedding_new(5, 3))
LAYER_MAKE(layer_norm, rapt_layer_norm_new(4, s->variant ? RAPT_NO_BIAS : RAPT_BIAS))
LAYER_MAKE(rms_norm, rapt_rms_norm_new(4))
LAYER_MAKE(batch_norm, rapt_batch_norm_new(3))
LAYER_MAKE(conv1d_layer,
           rapt_conv1d_layer_new(4, 2, 3, s->variant ? &(rapt_convolution){.padding = {1}, .groups = 2} : NULL,
                                 s->variant == 2 ? RAPT_NO_BIAS : RAPT_BIAS))
LAYER_MAKE(conv2d_layer, rapt_conv2d_layer_new(2, 4, (int64_t[]){3, 2},
                                               s->variant ? &(rapt_convolution){.padding = {1, 1}, .groups = 2} : NULL,
                                               s->variant == 2 ? RAPT_NO_BIAS : RAPT_BIAS))
LAYER_MAKE(dropout, rapt_dropout_new(0.25))
LAYER_MAKE(activation, rapt_activation_new("GELU", rapt_gelu))

static void *make_sequential(const op_sample *s)
{
    (void)s;
    rapt_linear *twice = rapt_linear_new(3, 3, RAPT_BIAS);
    return RAPT_SEQUENTIAL(&twice->module, rapt_activation_new("tanh", rapt_tanh), &twice->module,
                           (rapt_module *)rapt_dropout_new(0.25));
}

LAYER_FUNCTION(forward, rapt_module_forward(m, in[0]))
LAYER_FUNCTION(call_embedding, rapt_embedding_forward(m, in[0]))

static rapt_tensor *with_bias(rapt_tensor *y, rapt_tensor *bias)
{
    return bias ? rapt_add(y, bias) : y;
}

static rapt_tensor *linear_by_product(void *m, rapt_tensor *const *in, const op_sample *s)
{
    const rapt_linear *linear = m;
    (void)s;
    rapt_tensor *x = rapt_rank(in[0]) > 1 ? in[0] : rapt_unsqueeze(in[0], 0);
    rapt_tensor *y = with_bias(rapt_matmul(x, rapt_transpose(linear->weight, 0, 1)), linear->bias);
    return x == in[0] ? y : rapt_squeeze(y, 0);
}

static rapt_tensor *embedding_by_one_hot(void *m, rapt_tensor *const *in, const op_sample *s)
{
    const rapt_embedding *embedding = m;
    (void)s;
    rapt_tensor *indices = rapt_rank(in[0]) ? in[0] : rapt_unsqueeze(in[0], 0);
    rapt_tensor *y = rapt_matmul(rapt_one_hot(indices, 5, rapt_get_dtype(embedding->weight)), embedding->weight);
    return indices == in[0] ? y : rapt_squeeze(y, 0);
}

/* (x − mean) / √(variance + ε) along those axes */
static rapt_tensor *standardized(rapt_tensor *x, int axis_count, const int *axes, double epsilon)
{
    rapt_tensor *centered = rapt_sub(x, rapt_mean(x, axis_count, axes, true));
    rapt_tensor *variance = rapt_mean(rapt_mul(centered, centered), axis_count, axes, true);
    return rapt_div(centered, rapt_sqrt(rapt_add_scalar(variance, epsilon)));
}

static rapt_tensor *layer_norm_by_ops(void *m, rapt_tensor *const *in, const op_sample *s)
{
    const rapt_layer_norm *norm = m;
    (void)s;
    return with_bias(rapt_mul(standardized(in[0], RAPT_AXES(-1), norm->epsilon), norm->weight), norm->bias);
}

static rapt_tensor *rms_norm_by_ops(void *m, rapt_tensor *const *in, const op_sample *s)
{
    const rapt_rms_norm *norm = m;
    (void)s;
    rapt_tensor *square = rapt_mean(rapt_mul(in[0], in[0]), RAPT_AXES(-1), true);
    return rapt_mul(rapt_div(in[0], rapt_sqrt(rapt_add_scalar(square, norm->epsilon))), norm->weight);
}

/* By the batch's own numbers in training, by the running ones, 0 and 1 here, in evaluation. */
static rapt_tensor *batch_norm_by_ops(void *m, rapt_tensor *const *in, const op_sample *s)
{
    const rapt_batch_norm *norm = m;
    (void)s;
    rapt_tensor *x = rapt_transpose(in[0], 1, -1), *y;
    int axes[RAPT_MAX_RANK], count = rapt_rank(x) - 1;
    for (int axis = 0; axis < count; axis++) axes[axis] = axis;
    if (norm->module.training)
        y = standardized(x, count, axes, norm->epsilon);
    else
        y = rapt_div(rapt_sub(x, norm->running_mean), rapt_sqrt(rapt_add_scalar(norm->running_var, norm->epsilon)));
    return rapt_transpose(with_bias(rapt_mul(y, norm->weight), norm->bias), 1, -1);
}

static rapt_tensor *sequential_by_ops(void *m, rapt_tensor *const *in, const op_sample *s)
{
    rapt_tensor *weight = rapt_module_find(m, "0.weight"), *bias = rapt_module_find(m, "0.bias");
    rapt_linear twice = {.weight = weight, .bias = bias};
    rapt_tensor *inner = rapt_tanh(linear_by_product(&twice, in, s)), *y = linear_by_product(&twice, &inner, s);
    return ((rapt_module *)m)->training ? rapt_drop(y, 0.25) : y;
}

LAYER_FUNCTION(activation_by_op, rapt_gelu(in[0]))
LAYER_FUNCTION(dropout_by_op, ((rapt_module *)m)->training ? rapt_drop(in[0], 0.25) : rapt_clone(in[0]))
LAYER_FUNCTION(conv1d_by_op, rapt_conv1d(in[0], ((rapt_convolution_layer *)m)->weight,
                                         ((rapt_convolution_layer *)m)->bias, &((rapt_convolution_layer *)m)->options))
LAYER_FUNCTION(conv2d_by_op, rapt_conv2d(in[0], ((rapt_convolution_layer *)m)->weight,
                                         ((rapt_convolution_layer *)m)->bias, &((rapt_convolution_layer *)m)->options))

static const op_sample of_three[] = {{.in = {SHAPE(2, 3)}},
                                     {.in = {SHAPE(3)}},
                                     {.in = {SHAPE(2, 2, 3)}},
                                     {.in = {SHAPE(0, 3)}},
                                     {.in = {SHAPE(5, 3)}, .variant = 1},
                                     {.in = {SHAPE(211, 3)}, .large = true}};
static const op_sample of_four[] = {{.in = {SHAPE(2, 4)}},
                                    {.in = {SHAPE(4)}},
                                    {.in = {SHAPE(2, 2, 4)}},
                                    {.in = {SHAPE(0, 4)}},
                                    {.in = {SHAPE(5, 4)}, .variant = 1},
                                    {.in = {SHAPE(211, 4)}, .large = true}};
static const op_sample tokens[] = {{.in = {SHAPE(2, 3)}, .limit = 5},
                                   {.in = {SCALAR}, .limit = 5},
                                   {.in = {SHAPE(7)}, .limit = 5},
                                   {.in = {SHAPE(0)}, .limit = 5},
                                   {.in = {SHAPE(4, 1, 2)}, .limit = 5}};
static const op_sample channels[] = {{.in = {SHAPE(4, 3)}},
                                     {.in = {SHAPE(2, 3, 5)}},
                                     {.in = {SHAPE(3, 3, 2, 2)}},
                                     {.in = {SHAPE(5, 3)}},
                                     {.in = {SHAPE(61, 3, 17)}, .large = true}};
static const op_sample lines[] = {{.in = {SHAPE(2, 4, 5)}},
                                  {.in = {SHAPE(1, 4, 3)}},
                                  {.in = {SHAPE(2, 4, 4)}, .variant = 1},
                                  {.in = {SHAPE(0, 4, 4)}},
                                  {.in = {SHAPE(3, 4, 3)}, .variant = 2},
                                  {.in = {SHAPE(3, 4, 97)}, .large = true}};
static const op_sample planes[] = {{.in = {SHAPE(2, 2, 4, 3)}},
                                   {.in = {SHAPE(1, 2, 3, 2)}},
                                   {.in = {SHAPE(2, 2, 3, 2)}, .variant = 1},
                                   {.in = {SHAPE(0, 2, 3, 3)}},
                                   {.in = {SHAPE(1, 2, 2, 3)}, .variant = 2},
                                   {.in = {SHAPE(2, 2, 31, 17)}, .large = true}};

#define ROW(id, sample_array, definition_of)                                                                           \
    .row = {.name = #id, .differentiable = 1, SAMPLES(sample_array)}, .make = make_##id, .call = forward,              \
    .definition = definition_of

static const layer_row rows[] = {
    {ROW(linear, of_three, linear_by_product)},
    {.row = {.name = "embedding", .domain = {index64}, SAMPLES(tokens)},
     .make = make_embedding,
     .call = call_embedding,
     .definition = embedding_by_one_hot},
    {ROW(layer_norm, of_four, layer_norm_by_ops), .needs_spread = true},
    {ROW(rms_norm, of_four, rms_norm_by_ops), .needs_spread = true},
    {ROW(batch_norm, channels, batch_norm_by_ops), .needs_spread = true},
    {ROW(conv1d_layer, lines, conv1d_by_op)},
    {ROW(conv2d_layer, planes, conv2d_by_op)},
    {ROW(dropout, of_three, dropout_by_op)},
    {ROW(activation, of_four, activation_by_op)},
    {ROW(sequential, of_three, sequential_by_ops)},
};

LAYER_FAMILY(layers_basic, rows);
