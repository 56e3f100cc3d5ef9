/* Recurrent layers over time-major sequences (T, B, …), with PyTorch's equations, names and weight layout. */
#ifndef RAPT_RECURRENT_H
#define RAPT_RECURRENT_H

#include <rapt/module.h>

RAPT_BEGIN_DECLS

/* What a stack of recurrent layers holds: weight_ih_l0 (gates·hidden, in), weight_hh_l0 (gates·hidden, hidden),
 * bias_ih_l0 and bias_hh_l0 (gates·hidden), and so on for each layer; uniform within ±1/√hidden at first. Of two
 * directions each layer has four more behind its own, weight_ih_l0_reverse and so on, for the run from a sequence's end
 * to its beginning, and the layers after the first take 2·hidden numbers. */
typedef struct rapt_recurrent {
    rapt_module module;
    int64_t in, hidden;
    int layers, gates, directions;
    double dropout; /* between the layers, in training */
    bool plain;     /* made of small ops instead of one fused op a layer: the definition, slower, a check */
    struct rapt_recurrent_layer {
        rapt_tensor *weight_ih, *weight_hh, *bias_ih, *bias_hh;
    } * layer; /* layers·directions of them, those of one layer side by side */
} rapt_recurrent;

/* Gates r, z, n (Cho et al. 2014, the variant of cuDNN and PyTorch, whose reset gate acts after the product):
 * r = σ(W_ir x + b_ir + W_hr h + b_hr), z = σ(W_iz x + b_iz + W_hz h + b_hz),
 * n = tanh(W_in x + b_in + r·(W_hn h + b_hn)), h' = (1 − z)·n + z·h. */
typedef struct rapt_gru {
    rapt_recurrent recurrent;
} rapt_gru;

/* A stack of 1 or more layers, the first of which reads vectors of `in` numbers; dropout between them. */
RAPT_API rapt_gru *rapt_gru_new(int64_t in, int64_t hidden, int layers, double dropout);

/* Each layer runs in both directions, and has the outputs of both side by side: the first half of 2·hidden is
 * forward. */
RAPT_API rapt_gru *rapt_bidirectional_gru_new(int64_t in, int64_t hidden, int layers, double dropout);

/* x (T, B, in), T of 1 or more, state (layers·directions, B, hidden) or NULL for zeros → outputs of the last layer
 * (T, B, directions·hidden). The last state of each layer and direction (of a reverse one: that after the first step)
 * goes to *final_state (layers·directions, B, hidden) unless that is NULL; after an error NULL goes there, and comes
 * out. */
RAPT_API rapt_tensor *rapt_gru_forward(rapt_gru *gru, rapt_tensor *x, rapt_tensor *state, rapt_tensor **final_state);

/* The same of sequences with padding behind them: x (T, B, in), of which sequence b has its first lengths[b] steps;
 * lengths (B), int64 or int32, from 1 to T; of no sequence, B = 0, an error. Padding is not read, outputs there are
 * zeros, a reverse run starts at the sequence's own end, and the last states are those after its own steps. */
RAPT_API rapt_tensor *rapt_gru_forward_padded(rapt_gru *gru, rapt_tensor *x, rapt_tensor *lengths, rapt_tensor *state,
                                              rapt_tensor **final_state);

/* The same of packed sequences (rapt/packing.h), without work on padding: rows (N, in) → (N, directions·hidden); the
 * last state of a sequence is that after its own last row. Each sequence gets, up to rounding, what it gets alone. A
 * sequence of no rows is an error, and so is no sequence. */
RAPT_API rapt_tensor *rapt_gru_forward_packed(rapt_gru *gru, rapt_tensor *rows, rapt_tensor *starts, rapt_tensor *state,
                                              rapt_tensor **final_state);

/* Gates i, f, g, o (Hochreiter & Schmidhuber 1997, with Gers's forget gate):
 * i, f, o = σ(W x + b + W h + b), g = tanh(W x + b + W h + b), c' = f·c + i·g, h' = o·tanh(c'). */
typedef struct rapt_lstm {
    rapt_recurrent recurrent;
} rapt_lstm;

/* As rapt_gru_new. */
RAPT_API rapt_lstm *rapt_lstm_new(int64_t in, int64_t hidden, int layers, double dropout);

/* As rapt_bidirectional_gru_new. */
RAPT_API rapt_lstm *rapt_bidirectional_lstm_new(int64_t in, int64_t hidden, int layers, double dropout);

/* As rapt_gru_forward, with a hidden state and a cell state; both or neither are given. */
RAPT_API rapt_tensor *rapt_lstm_forward(rapt_lstm *lstm, rapt_tensor *x, rapt_tensor *hidden, rapt_tensor *cell,
                                        rapt_tensor **final_hidden, rapt_tensor **final_cell);

/* As rapt_gru_forward_padded. */
RAPT_API rapt_tensor *rapt_lstm_forward_padded(rapt_lstm *lstm, rapt_tensor *x, rapt_tensor *lengths,
                                               rapt_tensor *hidden, rapt_tensor *cell, rapt_tensor **final_hidden,
                                               rapt_tensor **final_cell);

/* As rapt_gru_forward_packed. */
RAPT_API rapt_tensor *rapt_lstm_forward_packed(rapt_lstm *lstm, rapt_tensor *rows, rapt_tensor *starts,
                                               rapt_tensor *hidden, rapt_tensor *cell, rapt_tensor **final_hidden,
                                               rapt_tensor **final_cell);

RAPT_END_DECLS

#endif
