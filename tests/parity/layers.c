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

enum { no_state, from_state };

static void gru(parity *p)
{
    rapt_gru *layer = parity_module(p, rapt_gru_new(3, 5, 2, 0));
    rapt_tensor *final = NULL, *h = p->option == from_state ? parity_input(p, "h") : NULL;
    parity_output(p, "y", rapt_gru_forward(layer, parity_input(p, "x"), h, &final));
    parity_output(p, "final", final);
}

static void lstm(parity *p)
{
    rapt_lstm *layer = parity_module(p, rapt_lstm_new(3, 5, 2, 0));
    rapt_tensor *final = NULL, *final_cell = NULL;
    rapt_tensor *h = p->option == from_state ? parity_input(p, "h") : NULL;
    rapt_tensor *c = p->option == from_state ? parity_input(p, "c") : NULL;
    parity_output(p, "y", rapt_lstm_forward(layer, parity_input(p, "x"), h, c, &final, &final_cell));
    parity_output(p, "final", final);
    parity_output(p, "final_cell", final_cell);
}

const parity_case parity_recurrent[] = {
    PARITY_AS(gru, gru, no_state),
    PARITY_AS(gru_state, gru, from_state),
    PARITY_AS(lstm, lstm, no_state),
    PARITY_AS(lstm_state, lstm, from_state),
    {0},
};
