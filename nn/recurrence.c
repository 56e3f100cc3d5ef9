/* The fused recurrences of GRU and LSTM: one template, two cells. */
#include "recurrence.h"

#include <string.h>

#include "tensor/core.h"
#include "tensor/kernels.h"
#include "tensor/map.h"
#include "tensor/matmul.h"
#include "tensor/parallel.h"

/* What distinguishes the cells. Inputs of the op: from_input, `states` states, weight_hh, bias_hh. Its backward gets
 * the gradients of the `states` outputs, those outputs, the initial states, kept, weight_hh and, or NULL, the
 * gradient of weight_hh so far; and gives the gradients of from_input, of the projected hidden state, of the states,
 * of weight_hh. */
typedef struct cell {
    const char *name;
    int gates, states;
    rapt_cell_loop *const *forward, *const *backward;
    const rapt_op *backward_op;
} cell;

typedef struct sizes {
    rapt_dtype dtype;
    int64_t steps, batch, hidden, width; /* width: gates · hidden */
    int64_t bytes;                       /* of an element */
} sizes;

enum { kept_width = 4 };

static char *at(const sizes *s, const rapt_tensor *tensor, int64_t step, int64_t width)
{
    return tensor ? tensor->data + step * s->batch * width * s->bytes : NULL;
}

/* The rows of a sequence that step t starts from: those of step t − 1, or the initial ones. */
static char *before(const sizes *s, const rapt_tensor *sequence, const rapt_tensor *initial, int64_t step)
{
    return step > 0 ? at(s, sequence, step - 1, s->hidden) : initial ? initial->data : NULL;
}

typedef struct task {
    rapt_cell_loop *loop;
    const sizes *s;
    rapt_cell_data data;
} task;

static void run_rows(void *context, int64_t first, int64_t last)
{
    const task *t = context;
    t->loop(first, last, t->s->hidden, &t->data);
}

static void run_step(rapt_cell_loop *loop, const sizes *s, const rapt_cell_data *data)
{
    enum { cost = 32 }; /* of an element, in additions: two or three exponentials */
    task t = {.loop = loop, .s = s, .data = *data};
    rapt_parallel(s->batch, rapt_grain(s->hidden * cost), run_rows, &t);
}

static bool check_state(const char *op, const sizes *s, const rapt_tensor *state)
{
    if (state->rank == 2 && state->shape[0] == s->batch && state->shape[1] == s->hidden) return true;
    char text[RAPT_SHAPE_TEXT];
    return rapt_fail(RAPT_ERROR_SHAPE, op, "a state of shape [%lld, %lld] expected, not %s", (long long)s->batch,
                     (long long)s->hidden, rapt_shape_text(state->rank, state->shape, text));
}

static bool check(const cell *c, sizes *s, const rapt_tensor *const *inputs)
{
    const rapt_tensor *from_input = inputs[0], *weight = inputs[1 + c->states], *bias = inputs[2 + c->states];
    bool fits = from_input->rank == 3 && weight->rank == 2 && weight->shape[0] == c->gates * weight->shape[1] &&
                from_input->shape[2] == weight->shape[0] &&
                (!bias || (bias->rank == 1 && bias->count == weight->shape[0]));
    if (!fits) {
        char a[RAPT_SHAPE_TEXT], b[RAPT_SHAPE_TEXT];
        return rapt_fail(RAPT_ERROR_SHAPE, c->name,
                         "input (T, B, %d·hidden) and weight_hh (%d·hidden, hidden) expected, not %s and %s", c->gates,
                         c->gates, rapt_shape_text(from_input->rank, from_input->shape, a),
                         rapt_shape_text(weight->rank, weight->shape, b));
    }
    for (int i = 0; i < 3 + c->states; i++)
        if (inputs[i] && (inputs[i]->dtype != from_input->dtype || !rapt_is_floating(inputs[i])))
            return rapt_fail(RAPT_ERROR_DTYPE, c->name, "input %d is %s, input 0 is %s; one floating dtype expected", i,
                             rapt_dtype_name(inputs[i]->dtype), rapt_dtype_name(from_input->dtype));
    *s = (sizes){.dtype = from_input->dtype,
                 .steps = from_input->shape[0],
                 .batch = from_input->shape[1],
                 .hidden = weight->shape[1],
                 .width = weight->shape[0],
                 .bytes = (int64_t)rapt_dtype_size(from_input->dtype)};
    for (int i = 0; i < c->states; i++)
        if (!check_state(c->name, s, inputs[1 + i])) return false;
    return true;
}

/* to = state Wᵀ + b, for the rows of one step */
static bool project(const char *op, const sizes *s, const char *state, const rapt_tensor *weight,
                    const rapt_tensor *bias, char *to)
{
    size_t row_bytes = (size_t)(s->width * s->bytes);
    for (int64_t row = 0; bias && row < s->batch; row++) memcpy(to + (size_t)row * row_bytes, bias->data, row_bytes);
    return rapt_gemm(op, s->dtype, s->batch, s->width, s->hidden, state, s->hidden, 1, weight->data, 1, s->hidden, to,
                     s->width, bias != NULL);
}

static rapt_tensor *forward(const cell *c, rapt_call *call)
{
    RAPT_SCOPE;
    const rapt_tensor *inputs[5] = {0}, *dense[5] = {0};
    sizes s;
    for (int i = 0; i < 3 + c->states; i++) inputs[i] = rapt_call_input(call, i);
    if (!check(c, &s, inputs)) return NULL;
    for (int i = 0; i < 3 + c->states; i++)
        if ((dense[i] = rapt_as_contiguous(inputs[i])) == NULL && inputs[i]) return NULL;
    const rapt_tensor *weight = dense[1 + c->states], *bias = dense[2 + c->states];
    rapt_tensor *outputs[2] = {0};
    for (int i = 0; i < c->states; i++)
        if (!(outputs[i] = rapt_keep(rapt_new(c->name, s.dtype, RAPT_SHAPE(s.steps, s.batch, s.hidden))))) return NULL;
    rapt_tensor *kept = rapt_new(c->name, s.dtype, RAPT_SHAPE(s.steps, s.batch, kept_width * s.hidden));
    rapt_tensor *projected = rapt_new(c->name, s.dtype, RAPT_SHAPE(s.batch, s.width));
    if (!kept || !projected) return NULL;
    for (int64_t t = 0; t < s.steps; t++) {
        rapt_cell_data data = {.from_input = at(&s, dense[0], t, s.width),
                               .from_hidden = projected->data,
                               .state = before(&s, outputs[0], dense[1], t),
                               .next_state = at(&s, outputs[0], t, s.hidden),
                               .cell = c->states > 1 ? before(&s, outputs[1], dense[2], t) : NULL,
                               .next_cell = at(&s, outputs[1], t, s.hidden),
                               .kept = at(&s, kept, t, kept_width * s.hidden)};
        if (!project(c->name, &s, data.state, weight, bias, projected->data)) return NULL;
        run_step(c->forward[s.dtype], &s, &data);
    }
    for (int i = 0; i < c->states; i++) rapt_call_save(call, outputs[i]);
    for (int i = 0; i < c->states; i++) rapt_call_save(call, inputs[1 + i] ? rapt_call_input(call, 1 + i) : NULL);
    rapt_call_save_constant(call, kept);
    rapt_call_save(call, rapt_call_input(call, 1 + c->states));
    for (int i = 1; i < c->states; i++) rapt_call_set_output(call, i, outputs[i]);
    return outputs[0];
}

/* d weight = Σ over steps (gradient of the projection)ᵀ · (state before the step): one product for all but the first
 * step. What is added to comes last, when nothing can fail any more. */
static rapt_tensor *weight_gradient(const char *op, const sizes *s, const rapt_tensor *projection,
                                    const rapt_tensor *states, const rapt_tensor *initial, rapt_tensor *so_far)
{
    rapt_tensor *gradient = rapt_new(op, s->dtype, RAPT_SHAPE(s->width, s->hidden));
    const int64_t first = s->steps > 0 ? s->batch : 0, others = (s->steps - 1) * s->batch;
    if (!gradient || !rapt_gemm(op, s->dtype, s->width, s->hidden, first, projection->data, 1, s->width, initial->data,
                                s->hidden, 1, gradient->data, s->hidden, false))
        return NULL;
    rapt_tensor *sum = so_far && others > 0 ? so_far : gradient;
    if (others > 0 && !rapt_gemm(op, s->dtype, s->width, s->hidden, others, at(s, projection, 1, s->width), 1, s->width,
                                 states->data, s->hidden, 1, sum->data, s->hidden, true))
        return NULL;
    if (!so_far) return gradient;
    rapt_map(rapt_kernel.elementwise.add[s->dtype], NULL, 1, 3, (const rapt_tensor *[]){so_far, so_far, gradient});
    return so_far;
}

/* Walks the steps backwards; results as `cell` lists them. A missing gradient of an output is NULL. */
static rapt_tensor *backward(const cell *c, rapt_call *call)
{
    int n = c->states;
    const rapt_tensor *in[8] = {0};
    rapt_tensor *so_far = rapt_call_input(call, 3 * n + 2);
    for (int i = 0; i < 3 * n + 2; i++) in[i] = rapt_call_input(call, i);
    const rapt_tensor *states = in[n], *cells = n > 1 ? in[n + 1] : NULL, *kept = in[3 * n], *weight = in[3 * n + 1];
    sizes s = {.dtype = states->dtype,
               .steps = states->shape[0],
               .batch = states->shape[1],
               .hidden = states->shape[2],
               .width = weight->shape[0],
               .bytes = (int64_t)rapt_dtype_size(states->dtype)};
    for (int i = 0; i < 3 * n + 2; i++) {
        if (!in[i]) in[i] = rapt_zeros(s.dtype, RAPT_SHAPE(s.steps, s.batch, s.hidden));
        if (!(in[i] = rapt_as_contiguous(in[i]))) return NULL;
    }
    weight = in[3 * n + 1];
    rapt_tensor *projection = rapt_new(c->name, s.dtype, RAPT_SHAPE(s.steps, s.batch, s.width));
    rapt_tensor *from_input = n > 1 ? projection : rapt_new(c->name, s.dtype, RAPT_SHAPE(s.steps, s.batch, s.width));
    rapt_tensor *carry = rapt_zeros(s.dtype, RAPT_SHAPE(s.batch, s.hidden));
    rapt_tensor *cell_carry = n > 1 ? rapt_zeros(s.dtype, RAPT_SHAPE(s.batch, s.hidden)) : NULL;
    if (!projection || !from_input || !carry || (n > 1 && !cell_carry)) return NULL;
    for (int64_t t = s.steps - 1; t >= 0; t--) {
        rapt_cell_data data = {.from_input = at(&s, from_input, t, s.width),
                               .from_hidden = at(&s, projection, t, s.width),
                               .state = before(&s, states, in[2 * n], t),
                               .cell = n > 1 ? before(&s, cells, in[2 * n + 1], t) : NULL,
                               .next_cell = at(&s, cells, t, s.hidden),
                               .kept = at(&s, kept, t, kept_width * s.hidden),
                               .gradient = at(&s, in[0], t, s.hidden),
                               .cell_gradient = n > 1 ? at(&s, in[1], t, s.hidden) : NULL,
                               .carry = carry->data,
                               .cell_carry = cell_carry ? cell_carry->data : NULL};
        run_step(c->backward[s.dtype], &s, &data);
        if (!rapt_gemm(c->name, s.dtype, s.batch, s.hidden, s.width, data.from_hidden, s.width, 1, weight->data,
                       s.hidden, 1, carry->data, s.hidden, true))
            return NULL;
    }
    rapt_tensor *d_weight = weight_gradient(c->name, &s, projection, states, in[2 * n], so_far);
    if (!d_weight) return NULL;
    rapt_call_set_output(call, 1, projection);
    rapt_call_set_output(call, 2, carry);
    if (n > 1) rapt_call_set_output(call, 3, cell_carry);
    rapt_call_set_output(call, 2 + n, d_weight);
    return from_input;
}

static bool vjp(const cell *c, rapt_call *call)
{
    int n = c->states;
    rapt_tensor *inputs[9], *results[5], *so_far = rapt_call_gradient_so_far(call, 1 + n);
    for (int i = 0; i < n; i++) inputs[i] = rapt_call_gradient(call, i);
    for (int i = 0; i < 2 * n + 2; i++)
        if (!(inputs[n + i] = rapt_call_saved(call, i))) return false;
    inputs[3 * n + 2] = so_far;
    if (!rapt_apply_many(c->backward_op, NULL, 3 * n + 3, inputs, results)) return false;
    for (int i = 0; i < n; i++) rapt_call_give(call, 1 + i, results[2 + i]);
    rapt_call_give(call, 0, results[0]);
    if (!so_far) rapt_call_give(call, 1 + n, results[2 + n]);
    if (!rapt_call_wants(call, 2 + n)) return true;
    return rapt_call_give(call, 2 + n, rapt_sum(results[1], RAPT_AXES(0, 1), false));
}

#define CELL(kind, gate_count, state_count)                                                                            \
    static const cell kind;                                                                                            \
    static rapt_tensor *kind##_forward(rapt_call *call)                                                                \
    {                                                                                                                  \
        return forward(&kind, call);                                                                                   \
    }                                                                                                                  \
    static rapt_tensor *kind##_backward(rapt_call *call)                                                               \
    {                                                                                                                  \
        return backward(&kind, call);                                                                                  \
    }                                                                                                                  \
    static bool kind##_vjp(rapt_call *call)                                                                            \
    {                                                                                                                  \
        return vjp(&kind, call);                                                                                       \
    }                                                                                                                  \
    static const rapt_op kind##_backward_op = {                                                                        \
        .name = #kind "_backward",                                                                                     \
        .forward = kind##_backward,                                                                                    \
        .optional = ((1u << state_count) - 1) | 1u << (3 * state_count + 2),                                           \
        .outputs = 3 + state_count,                                                                                    \
        .no_gradient = "for second derivatives set `plain` of the recurrent layer",                                    \
    };                                                                                                                 \
    static const rapt_op kind##_op = {                                                                                 \
        .name = #kind,                                                                                                 \
        .forward = kind##_forward,                                                                                     \
        .vjp = kind##_vjp,                                                                                             \
        .optional = 1u << (2 + state_count),                                                                           \
        .outputs = state_count,                                                                                        \
    };                                                                                                                 \
    static const cell kind = {.name = #kind,                                                                           \
                              .gates = gate_count,                                                                     \
                              .states = state_count,                                                                   \
                              .forward = rapt_kernel.recurrent.kind##_forward,                                         \
                              .backward = rapt_kernel.recurrent.kind##_backward,                                       \
                              .backward_op = &kind##_backward_op}

CELL(gru, 3, 1);
CELL(lstm, 4, 2);

rapt_tensor *rapt_gru_recurrence(rapt_tensor *from_input, rapt_tensor *state, rapt_tensor *weight_hh,
                                 rapt_tensor *bias_hh)
{
    return RAPT_APPLY(&gru_op, NULL, from_input, state, weight_hh, bias_hh);
}

bool rapt_lstm_recurrence(rapt_tensor *from_input, rapt_tensor *state, rapt_tensor *cell_state, rapt_tensor *weight_hh,
                          rapt_tensor *bias_hh, rapt_tensor **outputs)
{
    rapt_tensor *inputs[] = {from_input, state, cell_state, weight_hh, bias_hh};
    return rapt_apply_many(&lstm_op, NULL, 5, inputs, outputs);
}
