/* Rows: the recurrences of GRU and LSTM, fused and plain, through their layers. */
#include <math.h>
#include <string.h>

#include "nn/entry.h"
#include "ops.h"

/* variant: 0 the outputs, 1 the outputs and final states, 2 the final state (LSTM: cell) alone; plus `plain`. */
enum { outputs, all, final, plain = 4 };

static rapt_recurrent recurrent_of(rapt_tensor *const *parameters, const rapt_module_class *kind, int gates,
                                   const op_sample *s, struct rapt_recurrent_layer *layer)
{
    *layer = (struct rapt_recurrent_layer){parameters[0], parameters[1], parameters[2], parameters[3]};
    return (rapt_recurrent){.module = {.kind = kind, .training = true},
                            .in = s->number[0],
                            .hidden = s->number[1],
                            .layers = 1,
                            .gates = gates,
                            .directions = 1,
                            .plain = s->variant & plain,
                            .layer = layer};
}

static rapt_tensor *chosen(const op_sample *s, int count, rapt_tensor *const *results)
{
    switch (s->variant & 3) {
    case outputs:
        return results[0];
    case final:
        return results[count - 1];
    default:
        return rapt_concat(count, results, 0);
    }
}

static rapt_tensor *call_gru_forward(rapt_tensor *const *in, const op_sample *s)
{
    static const rapt_module_class kind = {.name = "GRU"};
    struct rapt_recurrent_layer layer;
    rapt_gru gru = {recurrent_of(in + 2, &kind, 3, s, &layer)};
    rapt_tensor *results[2] = {0};
    results[0] = rapt_gru_forward(&gru, in[0], in[1], s->variant & 3 ? &results[1] : NULL);
    rapt_module_forget_paths(&gru.recurrent.module);
    return results[0] ? chosen(s, 2, results) : NULL;
}

static rapt_tensor *call_lstm_forward(rapt_tensor *const *in, const op_sample *s)
{
    static const rapt_module_class kind = {.name = "LSTM"};
    struct rapt_recurrent_layer layer;
    rapt_lstm lstm = {recurrent_of(in + 3, &kind, 4, s, &layer)};
    rapt_tensor *results[3] = {0};
    bool states = s->variant & 3;
    results[0] =
        rapt_lstm_forward(&lstm, in[0], in[1], in[2], states ? &results[1] : NULL, states ? &results[2] : NULL);
    rapt_module_forget_paths(&lstm.recurrent.module);
    return results[0] ? chosen(s, 3, results) : NULL;
}

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

/* row `row` of W x + b */
static double affine(const array *weight, const array *bias, int64_t row, const double *x)
{
    double sum = bias->data ? bias->data[row] : 0;
    for (int64_t i = 0; i < weight->shape[1]; i++) sum += weight->data[row * weight->shape[1] + i] * x[i];
    return sum;
}

typedef struct step {
    const array *parameters;
    int64_t hidden;
    const double *x;
    double *h, *c; /* before, then after */
} step;

static double from_input(const step *t, int64_t gate, int64_t j)
{
    return affine(&t->parameters[0], &t->parameters[2], gate * t->hidden + j, t->x);
}

static double from_hidden(const step *t, int64_t gate, int64_t j)
{
    return affine(&t->parameters[1], &t->parameters[3], gate * t->hidden + j, t->h);
}

enum { most_hidden = 64 };

static void gru_step(step *t)
{
    double next[most_hidden];
    for (int64_t j = 0; j < t->hidden; j++) {
        double r = sigmoid(from_input(t, 0, j) + from_hidden(t, 0, j));
        double z = sigmoid(from_input(t, 1, j) + from_hidden(t, 1, j));
        double n = tanh(from_input(t, 2, j) + r * from_hidden(t, 2, j));
        next[j] = (1 - z) * n + z * t->h[j];
    }
    memcpy(t->h, next, (size_t)t->hidden * sizeof *next);
}

static void lstm_step(step *t)
{
    double next[most_hidden];
    for (int64_t j = 0; j < t->hidden; j++) {
        double gate[4];
        for (int k = 0; k < 4; k++) gate[k] = from_input(t, k, j) + from_hidden(t, k, j);
        t->c[j] = sigmoid(gate[1]) * t->c[j] + sigmoid(gate[0]) * tanh(gate[2]);
        next[j] = sigmoid(gate[3]) * tanh(t->c[j]);
    }
    memcpy(t->h, next, (size_t)t->hidden * sizeof *next);
}

/* The outputs, then the final hidden state, then the final cell state; of these what the sample wants. */
static array run(const array *in, const op_sample *s, int states, void (*advance)(step *))
{
    int64_t steps = in[0].shape[0], batch = in[0].shape[1], width = in[0].shape[2], hidden = s->number[1];
    int64_t first = (s->variant & 3) == final ? steps + states - 1 : 0;
    int64_t rows = (s->variant & 3) == outputs ? steps : steps + states;
    array full = array_new(3, (int64_t[]){steps + states, batch, hidden});
    for (int64_t b = 0; b < batch; b++) {
        double h[most_hidden] = {0}, c[most_hidden] = {0};
        double *state[] = {h, c};
        for (int k = 0; k < states && in[1].data; k++)
            memcpy(state[k], in[1 + k].data + b * hidden, (size_t)hidden * sizeof *h);
        for (int64_t t = 0; t < steps; t++) {
            step at = {in + 1 + states, hidden, in[0].data + (t * batch + b) * width, h, c};
            advance(&at);
            memcpy(full.data + (t * batch + b) * hidden, h, (size_t)hidden * sizeof *h);
        }
        for (int k = 0; k < states; k++)
            memcpy(full.data + ((steps + k) * batch + b) * hidden, state[k], (size_t)hidden * sizeof *h);
    }
    array y = array_new(3, (int64_t[]){rows - first, batch, hidden});
    memcpy(y.data, full.data + first * batch * hidden, (size_t)y.count * sizeof *y.data);
    array_free(&full);
    return y;
}

static array reference_gru_forward(const array *in, const op_sample *s)
{
    return run(in, s, 1, gru_step);
}

static array reference_lstm_forward(const array *in, const op_sample *s)
{
    return run(in, s, 2, lstm_step);
}

#define GRU(T, B, I, H)                                                                                                \
    .in = {SHAPE(T, B, I), SHAPE(1, B, H), SHAPE(3 * (H), I), SHAPE(3 * (H), H), SHAPE(3 * (H)), SHAPE(3 * (H))},      \
    .number = {I, H}
#define GRU_BARE(T, B, I, H)                                                                                           \
    .in = {SHAPE(T, B, I), ABSENT, SHAPE(3 * (H), I), SHAPE(3 * (H), H), ABSENT, ABSENT}, .number = {I, H}
#define LSTM(T, B, I, H)                                                                                               \
    .in = {SHAPE(T, B, I),    SHAPE(1, B, H), SHAPE(1, B, H), SHAPE(4 * (H), I),                                       \
           SHAPE(4 * (H), H), SHAPE(4 * (H)), SHAPE(4 * (H))},                                                         \
    .number = {I, H}
#define LSTM_BARE(T, B, I, H)                                                                                          \
    .in = {SHAPE(T, B, I), ABSENT, ABSENT, SHAPE(4 * (H), I), SHAPE(4 * (H), H), ABSENT, ABSENT}, .number = {I, H}
#define FAIL .error = RAPT_ERROR_SHAPE

static const op_sample grus[] = {{GRU(3, 2, 2, 3)},
                                 {GRU(3, 2, 2, 2), .variant = all},
                                 {GRU(2, 2, 3, 2), .variant = final},
                                 {GRU_BARE(2, 3, 2, 2)},
                                 {GRU(1, 1, 1, 1)},
                                 {GRU(2, 0, 2, 2)},
                                 {GRU(5, 65, 9, 32), .variant = all, .large = true}};
static const op_sample lstms[] = {{LSTM(3, 2, 2, 2)},
                                  {LSTM(2, 2, 2, 2), .variant = all},
                                  {LSTM(2, 2, 3, 2), .variant = final},
                                  {LSTM_BARE(2, 3, 2, 2)},
                                  {LSTM(1, 1, 1, 1)},
                                  {LSTM(2, 0, 2, 2)},
                                  {LSTM(5, 65, 9, 32), .variant = all, .large = true}};
static const op_sample plain_grus[] = {{GRU(3, 2, 2, 2), .variant = all | plain},
                                       {GRU_BARE(2, 3, 2, 2), .variant = plain}};
static const op_sample plain_lstms[] = {{LSTM(2, 2, 2, 2), .variant = all | plain},
                                        {LSTM_BARE(2, 3, 2, 2), .variant = plain}};

static const op_sample bad_grus[] =
    {{.in = {SHAPE(3, 2, 2), ABSENT, SHAPE(9, 5), SHAPE(9, 3), ABSENT, ABSENT}, .number = {5, 3}, FAIL},
     {GRU(0, 2, 2, 3), FAIL},
     {.in = {SHAPE(3, 2), ABSENT, SHAPE(6, 2), SHAPE(6, 2), ABSENT, ABSENT}, .number = {2, 2}, FAIL},
     {.in = {SHAPE(3, 2, 2), SHAPE(1, 3, 2), SHAPE(6, 2), SHAPE(6, 2), ABSENT, ABSENT}, .number = {2, 2}, FAIL}};
static const op_sample bad_lstms[] =
    {{.in = {SHAPE(3, 2, 2), ABSENT, ABSENT, SHAPE(12, 5), SHAPE(12, 3), ABSENT, ABSENT}, .number = {5, 3}, FAIL},
     {.in = {SHAPE(3, 2, 2), SHAPE(1, 2, 2), ABSENT, SHAPE(8, 2), SHAPE(8, 2), ABSENT, ABSENT},
      .number = {2, 2},
      .error = RAPT_ERROR_NULL},
     {.in = {SHAPE(3, 2, 2), SHAPE(1, 2, 2), SHAPE(2, 2), SHAPE(8, 2), SHAPE(8, 2), ABSENT, ABSENT},
      .number = {2, 2},
      FAIL}};

#define ROW(op, ERROR) .name = #op, .error = ERROR, .call = call_##op, .reference = reference_##op, .is_combined = true
#define GRU_ROW                                                                                                        \
    ROW(gru_forward, "GRU"), .domain = {any_value, small, small, small, small, small}, .differentiable = 63,           \
                             .optional = 50
#define LSTM_ROW                                                                                                       \
    ROW(lstm_forward, "LSTM"), .domain = {any_value, small, small, small, small, small, small}, .differentiable = 127, \
                               .optional = 102

static const op_row rows[] = {
    {GRU_ROW, SAMPLES(grus), FAILURES(bad_grus)},
    {LSTM_ROW, SAMPLES(lstms), FAILURES(bad_lstms)},
    {GRU_ROW, .is_view = true, SAMPLES(plain_grus)},
    {LSTM_ROW, .is_view = true, SAMPLES(plain_lstms)},
};

const op_family ops_sequence = {rows, sizeof rows / sizeof *rows};
