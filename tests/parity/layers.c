/* The cases of layers.py: basic and recurrent layers, activations. */
#include "parity.h"

static void linear(parity *p)
{
    rapt_linear *layer = parity_module(p, rapt_linear_new(5, 3, p->option));
    parity_output(p, "y", rapt_linear_forward(layer, parity_input(p, "x")));
}

static void embedding(parity *p)
{
    rapt_embedding *layer = parity_module(p, rapt_embedding_new(7, 4));
    parity_output(p, "y", rapt_embedding_forward(layer, parity_input(p, "tokens")));
}

static void layer_norm(parity *p)
{
    rapt_layer_norm *layer = parity_module(p, rapt_layer_norm_new(6, RAPT_BIAS));
    parity_output(p, "y", rapt_layer_norm_forward(layer, parity_input(p, "x")));
}

static void batch_norm(parity *p)
{
    rapt_batch_norm *layer = parity_module(p, rapt_batch_norm_new(3));
    if (!layer) return;
    rapt_module_train(&layer->module, p->option);
    parity_output(p, "y", rapt_batch_norm_forward(layer, parity_input(p, "x")));
    parity_output(p, "running_mean", layer->running_mean);
    parity_output(p, "running_var", layer->running_var);
    parity_output(p, "batches", layer->batches);
}

static void conv1d(parity *p)
{
    static const rapt_convolution options = {.stride = {2}, .padding = {3}, .dilation = {2}, .groups = 2};
    rapt_convolution_layer *layer = parity_module(p, rapt_conv1d_layer_new(4, 6, 3, &options, RAPT_BIAS));
    parity_output(p, "y", rapt_convolution_layer_forward(layer, parity_input(p, "x")));
}

static void conv2d(parity *p)
{
    static const rapt_convolution options = {.stride = {1, 2}, .padding = {1, 2}, .dilation = {2, 1}};
    rapt_convolution_layer *layer =
        parity_module(p, rapt_conv2d_layer_new(3, 5, (int64_t[]){2, 3}, &options, RAPT_NO_BIAS));
    parity_output(p, "y", rapt_convolution_layer_forward(layer, parity_input(p, "x")));
}

static void pools(parity *p)
{
    const rapt_pool largest = {.size = {3, 2}, .stride = {2, 2}, .padding = {1, 1}, .dilation = {1, 2}, .ceil = true};
    const rapt_pool mean = {.size = {3, 2}, .stride = {2, 1}, .padding = {1, 0}, .ceil = true};
    rapt_pool inside = mean;
    inside.leaves_padding_out = true;
    rapt_tensor *x = parity_input(p, "x");
    parity_output(p, "max", rapt_max_pool2d(x, &largest));
    parity_output(p, "mean", rapt_avg_pool2d(x, &mean));
    parity_output(p, "inside", rapt_avg_pool2d(x, &inside));
}

static void sequential(parity *p)
{
    rapt_module *first = (rapt_module *)rapt_linear_new(4, 6, RAPT_BIAS);
    rapt_module *last = (rapt_module *)rapt_linear_new(6, 2, RAPT_BIAS);
    rapt_sequential *net = parity_module(p, RAPT_SEQUENTIAL(first, rapt_activation_new("Tanh", rapt_tanh), last));
    parity_output(p, "y", rapt_sequential_forward(net, parity_input(p, "x")));
}

static void rms_norm(parity *p)
{
    rapt_rms_norm *layer = parity_module(p, rapt_rms_norm_new(6));
    parity_output(p, "y", rapt_rms_norm_forward(layer, parity_input(p, "x")));
}

/* Activations get 2x, for their far ends. */
static rapt_tensor *twice(parity *p)
{
    return rapt_mul_scalar(parity_input(p, "x"), 2);
}

#define ACTIVATION(name, ...)                                                                                          \
    static void name(parity *p)                                                                                        \
    {                                                                                                                  \
        parity_output(p, "y", __VA_ARGS__);                                                                            \
    }
ACTIVATION(relu, rapt_relu(twice(p)))
ACTIVATION(gelu, rapt_gelu(twice(p)))
ACTIVATION(gelu_tanh, rapt_gelu_tanh(twice(p)))
ACTIVATION(silu, rapt_silu(twice(p)))
ACTIVATION(hyperbolic_tangent, rapt_tanh(twice(p)))
ACTIVATION(sigmoid, rapt_sigmoid(twice(p)))
ACTIVATION(error_function, rapt_erf(twice(p)))
ACTIVATION(softmax, rapt_softmax(twice(p), -1))
ACTIVATION(log_softmax, rapt_log_softmax(twice(p), -1))

const parity_case parity_layers[] = {
    PARITY_AS(linear, linear, RAPT_BIAS),
    PARITY_AS(linear_no_bias, linear, RAPT_NO_BIAS),
    PARITY(embedding),
    PARITY(layer_norm),
    PARITY(rms_norm),
    PARITY(conv1d),
    PARITY(conv2d),
    PARITY(pools),
    PARITY_AS(batch_norm, batch_norm, true),
    PARITY_AS(batch_norm_images, batch_norm, true),
    PARITY_AS(batch_norm_evaluation, batch_norm, false),
    PARITY(sequential),
    PARITY(relu),
    PARITY(gelu),
    PARITY(gelu_tanh),
    PARITY(silu),
    PARITY_AS(tanh, hyperbolic_tangent, 0),
    PARITY(sigmoid),
    PARITY_AS(erf, error_function, 0),
    PARITY(softmax),
    PARITY(log_softmax),
    {0},
};

enum { bidirectional = 1, from_state = 2, with_lengths = 4 };

static void gru(parity *p)
{
    rapt_tensor *final = NULL, *x = parity_input(p, "x"), *h = p->option & from_state ? parity_input(p, "h") : NULL;
    rapt_gru *layer =
        parity_module(p, p->option & bidirectional ? rapt_bidirectional_gru_new(3, 5, 2, 0) : rapt_gru_new(3, 5, 2, 0));
    parity_output(p, "y",
                  p->option & with_lengths ? rapt_gru_forward_padded(layer, x, parity_input(p, "lengths"), h, &final)
                                           : rapt_gru_forward(layer, x, h, &final));
    parity_output(p, "final", final);
}

static void lstm(parity *p)
{
    rapt_tensor *final = NULL, *final_cell = NULL, *x = parity_input(p, "x");
    rapt_tensor *h = p->option & from_state ? parity_input(p, "h") : NULL;
    rapt_tensor *c = p->option & from_state ? parity_input(p, "c") : NULL;
    rapt_lstm *layer = parity_module(p, p->option & bidirectional ? rapt_bidirectional_lstm_new(3, 5, 2, 0)
                                                                  : rapt_lstm_new(3, 5, 2, 0));
    parity_output(p, "y",
                  p->option & with_lengths
                      ? rapt_lstm_forward_padded(layer, x, parity_input(p, "lengths"), h, c, &final, &final_cell)
                      : rapt_lstm_forward(layer, x, h, c, &final, &final_cell));
    parity_output(p, "final", final);
    parity_output(p, "final_cell", final_cell);
}

const parity_case parity_recurrent[] = {
    PARITY_AS(gru, gru, 0),
    PARITY_AS(gru_state, gru, from_state),
    PARITY_AS(gru_bidirectional, gru, bidirectional | from_state),
    PARITY_AS(gru_padded, gru, with_lengths),
    PARITY_AS(gru_bidirectional_padded, gru, bidirectional | from_state | with_lengths),
    PARITY_AS(lstm, lstm, 0),
    PARITY_AS(lstm_state, lstm, from_state),
    PARITY_AS(lstm_bidirectional, lstm, bidirectional),
    PARITY_AS(lstm_bidirectional_padded, lstm, bidirectional | from_state | with_lengths),
    {0},
};
