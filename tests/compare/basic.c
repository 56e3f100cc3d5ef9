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

/* In training, then in evaluation. */
static void batch_norm(run *r)
{
    rapt_batch_norm *layer = step_module(r, rapt_batch_norm_new(step_integer(r, "size")));
    if (!layer) return;
    layer->epsilon = step_real(r, "epsilon");
    layer->momentum = step_real(r, "momentum");
    step_give(r, rapt_batch_norm_forward(layer, step_input(r, 0)));
    rapt_module_train(&layer->module, false);
    step_give(r, rapt_batch_norm_forward(layer, step_input(r, 0)));
}

static rapt_convolution convolution_of(run *r)
{
    int64_t first[5], second[5];
    record_integers(r->step, "number", first, 5);
    record_integers(r->step, "axes", second, 5);
    return (rapt_convolution){.stride = {first[0], second[0]},
                              .padding = {first[1], second[1]},
                              .dilation = {first[2], second[2]},
                              .groups = step_integer(r, "axis")};
}

static void conv1d_layer(run *r)
{
    int64_t size[2];
    const rapt_convolution options = convolution_of(r);
    record_integers(r->step, "sizes", size, 2);
    rapt_convolution_layer *layer =
        step_module(r, rapt_conv1d_layer_new(step_integer(r, "in_size"), step_integer(r, "out_size"), size[0], &options,
                                             (int)step_integer(r, "bias")));
    step_give(r, rapt_convolution_layer_forward(layer, step_input(r, 0)));
}

static void conv2d_layer(run *r)
{
    int64_t size[2];
    const rapt_convolution options = convolution_of(r);
    record_integers(r->step, "sizes", size, 2);
    rapt_convolution_layer *layer =
        step_module(r, rapt_conv2d_layer_new(step_integer(r, "in_size"), step_integer(r, "out_size"), size, &options,
                                             (int)step_integer(r, "bias")));
    step_give(r, rapt_convolution_layer_forward(layer, step_input(r, 0)));
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

/* The step's lengths, one for each item of the batch; NULL where it has none. */
static rapt_tensor *lengths_of(run *r)
{
    int64_t lengths[8];
    const int count = record_integers(r->step, "lengths", lengths, 8);
    return count > 0 ? rapt_from(RAPT_INT64, RAPT_SHAPE(count), lengths) : NULL;
}

static void gru_forward(run *r)
{
    const int64_t in = step_integer(r, "in_size"), hidden = step_integer(r, "hidden");
    const int layers = (int)step_integer(r, "layers");
    rapt_gru *layer =
        step_module(r, step_integer(r, "bidirectional") ? rapt_bidirectional_gru_new(in, hidden, layers, 0)
                                                        : rapt_gru_new(in, hidden, layers, 0));
    rapt_tensor *final = NULL, **end = step_integer(r, "final") ? &final : NULL, *lengths = lengths_of(r);
    rapt_tensor *x = step_input(r, 0), *h = step_input(r, 1);
    step_give(r, lengths ? rapt_gru_forward_padded(layer, x, lengths, h, end) : rapt_gru_forward(layer, x, h, end));
    if (end) step_give(r, final);
}

static void lstm_forward(run *r)
{
    const int64_t in = step_integer(r, "in_size"), hidden = step_integer(r, "hidden");
    const int layers = (int)step_integer(r, "layers");
    rapt_lstm *layer =
        step_module(r, step_integer(r, "bidirectional") ? rapt_bidirectional_lstm_new(in, hidden, layers, 0)
                                                        : rapt_lstm_new(in, hidden, layers, 0));
    const bool wants_final = step_integer(r, "final");
    rapt_tensor *final[2] = {NULL, NULL}, **end[2] = {wants_final ? &final[0] : NULL, wants_final ? &final[1] : NULL};
    rapt_tensor *x = step_input(r, 0), *h = step_input(r, 1), *c = step_input(r, 2), *lengths = lengths_of(r);
    step_give(r, lengths ? rapt_lstm_forward_padded(layer, x, lengths, h, c, end[0], end[1])
                         : rapt_lstm_forward(layer, x, h, c, end[0], end[1]));
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
    {"batch_norm", batch_norm},
    {"conv1d_layer", conv1d_layer},
    {"conv2d_layer", conv2d_layer},
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
