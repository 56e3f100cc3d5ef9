/* Steps of the folders autograd and nn that are no op of the op table: layers, recurrent layers, positions. */
#include "compare.h"

static void detach(run *r)
{
    step_give(r, rapt_detach(step_input(r, 0)));
}

/* To another float and back. */
static void cast_through(run *r)
{
    rapt_dtype other = step_integer(r, "wide") ? RAPT_FLOAT64 : RAPT_FLOAT32;
    step_give(r, rapt_cast(rapt_cast(step_input(r, 0), other), r->dtype));
}

static void split(run *r)
{
    int64_t sizes[8];
    rapt_tensor *pieces[8];
    int count = record_integers(r->step, "sizes", sizes, 8);
    if (rapt_split(step_input(r, 0), (int)step_integer(r, "axis"), count, sizes, pieces))
        for (int i = 0; i < count; i++) step_give(r, pieces[i]);
}

/* Changes in place; the value given is the target itself. */
static void fill(run *r)
{
    rapt_fill(step_input(r, 0), step_real(r, "real"));
    step_give(r, step_input(r, 0));
}

static void copy(run *r)
{
    rapt_copy(step_input(r, 0), step_input(r, 1));
    step_give(r, step_input(r, 0));
}

static void add_in_place(run *r)
{
    rapt_add_in_place(step_input(r, 0), step_input(r, 1), step_real(r, "real"));
    step_give(r, step_input(r, 0));
}

static void scale_in_place(run *r)
{
    rapt_scale_in_place(step_input(r, 0), step_real(r, "real"));
    step_give(r, step_input(r, 0));
}

static void linear(run *r)
{
    rapt_linear *layer = step_module(r, rapt_linear_new(step_integer(r, "in_size"), step_integer(r, "out_size"),
                                                        (int)step_integer(r, "bias")));
    step_give(r, rapt_linear_forward(layer, step_input(r, 0)));
}

static void embedding(run *r)
{
    rapt_embedding *layer = step_module(r, rapt_embedding_new(step_integer(r, "count"), step_integer(r, "size")));
    step_give(r, rapt_embedding_forward(layer, step_input(r, 0)));
}

static void layer_norm(run *r)
{
    rapt_layer_norm *layer = step_module(r, rapt_layer_norm_new(step_integer(r, "size"), (int)step_integer(r, "bias")));
    if (layer) layer->epsilon = step_real(r, "epsilon");
    step_give(r, rapt_layer_norm_forward(layer, step_input(r, 0)));
}

static void rms_norm(run *r)
{
    rapt_rms_norm *layer = step_module(r, rapt_rms_norm_new(step_integer(r, "size")));
    if (layer) layer->epsilon = step_real(r, "epsilon");
    step_give(r, rapt_rms_norm_forward(layer, step_input(r, 0)));
}

static void dropout(run *r)
{
    rapt_dropout *layer = step_module(r, rapt_dropout_new(step_real(r, "probability")));
    if (layer) rapt_module_train(&layer->module, step_integer(r, "training"));
    step_give(r, rapt_dropout_forward(layer, step_input(r, 0)));
}

static void sequential(run *r)
{
    int64_t in = step_integer(r, "in_size"), inner = step_integer(r, "inner"), out = step_integer(r, "out_size");
    rapt_module *first = (rapt_module *)rapt_linear_new(in, inner, RAPT_BIAS);
    rapt_module *last = (rapt_module *)rapt_linear_new(inner, out, RAPT_NO_BIAS);
    rapt_module *activation = rapt_activation_new("Tanh", rapt_tanh);
    rapt_sequential *layer = step_module(r, rapt_sequential_new(3, (rapt_module *[]){first, activation, last}));
    step_give(r, rapt_sequential_forward(layer, step_input(r, 0)));
}

static void gru_forward(run *r)
{
    rapt_tensor *final = NULL;
    rapt_gru *layer = step_module(r, rapt_gru_new(step_integer(r, "in_size"), step_integer(r, "hidden"),
                                                  (int)step_integer(r, "layers"), 0));
    bool wants_final = step_integer(r, "final");
    step_give(r, rapt_gru_forward(layer, step_input(r, 0), step_input(r, 1), wants_final ? &final : NULL));
    if (wants_final) step_give(r, final);
}

static void lstm_forward(run *r)
{
    rapt_tensor *final[2] = {NULL, NULL};
    rapt_lstm *layer = step_module(r, rapt_lstm_new(step_integer(r, "in_size"), step_integer(r, "hidden"),
                                                    (int)step_integer(r, "layers"), 0));
    bool wants_final = step_integer(r, "final");
    step_give(r, rapt_lstm_forward(layer, step_input(r, 0), step_input(r, 1), step_input(r, 2),
                                   wants_final ? &final[0] : NULL, wants_final ? &final[1] : NULL));
    for (int i = 0; i < 2 && wants_final; i++) step_give(r, final[i]);
}

static void sinusoidal_positions(run *r)
{
    rapt_sinusoidal_positions *layer = step_module(r, rapt_sinusoidal_positions_new(step_integer(r, "size"), 0));
    step_give(r, rapt_sinusoidal_positions_forward(layer, step_input(r, 0), step_integer(r, "offset")));
}

static void learned_positions(run *r)
{
    rapt_learned_positions *layer =
        step_module(r, rapt_learned_positions_new(step_integer(r, "count"), step_integer(r, "size"), 0));
    step_give(r, rapt_learned_positions_forward(layer, step_input(r, 0), step_integer(r, "offset")));
}

static void rotate(run *r)
{
    step_give(r, rapt_rotate(step_input(r, 0), step_integer(r, "offset"), step_real(r, "base"),
                             step_integer(r, "halves")));
}

static void rotary(run *r)
{
    rapt_rotary *layer = step_module(r, rapt_rotary_new());
    if (layer) layer->base = step_real(r, "base");
    if (layer) layer->halves = step_integer(r, "halves");
    step_give(r, rapt_rotary_forward(layer, step_input(r, 0), step_integer(r, "offset")));
}

static void alibi(run *r)
{
    rapt_alibi *layer = step_module(r, rapt_alibi_new((int)step_integer(r, "heads")));
    step_give(r, rapt_alibi_forward(layer, r->dtype, step_integer(r, "reach")));
}

static void relative_bias(run *r)
{
    rapt_relative_bias *layer =
        step_module(r, rapt_relative_bias_new((int)step_integer(r, "heads"), step_integer(r, "reach")));
    step_give(r, rapt_relative_bias_forward(layer));
}

const step_row steps_basic[] = {
    {"detach", detach},
    {"cast_through", cast_through},
    {"split", split},
    {"fill", fill},
    {"copy", copy},
    {"add_in_place", add_in_place},
    {"scale_in_place", scale_in_place},
    {"linear", linear},
    {"embedding", embedding},
    {"layer_norm", layer_norm},
    {"rms_norm", rms_norm},
    {"dropout", dropout},
    {"sequential", sequential},
    {"gru_forward", gru_forward},
    {"lstm_forward", lstm_forward},
    {"sinusoidal_positions", sinusoidal_positions},
    {"learned_positions", learned_positions},
    {"rotate", rotate},
    {"rotary", rotary},
    {"alibi", alibi},
    {"relative_bias", relative_bias},
    {NULL, NULL},
};
