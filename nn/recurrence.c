/* The fused recurrences of GRU and LSTM: one template, two cells. */
#include "recurrence.h"

#include "recurrence_rows.h"
#include "tensor/core.h"
#include "tensor/kernels.h"

static bool check_state(const char *op, const rapt_recurrence_sizes *s, const rapt_tensor *state)
{
    if (!state || (state->rank == 2 && state->shape[0] == s->steps.batch && state->shape[1] == s->hidden)) return true;
    char text[RAPT_SHAPE_TEXT];
    return rapt_fail(RAPT_ERROR_SHAPE, op, "a state of shape [%lld, %lld] expected, not %s", (long long)s->steps.batch,
                     (long long)s->hidden, rapt_shape_text(state->rank, state->shape, text));
}

static bool check(const rapt_cell *c, rapt_recurrence_sizes *s, const rapt_tensor *const *inputs)
{
    const rapt_tensor *from_input = inputs[0], *weight = inputs[1 + c->states], *bias = inputs[2 + c->states],
                      *starts = inputs[3 + c->states];
    const int rank = starts ? 2 : 3;
    bool fits = from_input->rank == rank && weight->rank == 2 && weight->shape[0] == c->gates * weight->shape[1] &&
                from_input->shape[rank - 1] == weight->shape[0] &&
                (!bias || (bias->rank == 1 && bias->count == weight->shape[0]));
    if (!fits) {
        char a[RAPT_SHAPE_TEXT], b[RAPT_SHAPE_TEXT];
        return rapt_fail(RAPT_ERROR_SHAPE, c->name,
                         "input (%s, %d·hidden) and weight_hh (%d·hidden, hidden) expected, not %s and %s",
                         starts ? "rows" : "T, B", c->gates, c->gates,
                         rapt_shape_text(from_input->rank, from_input->shape, a),
                         rapt_shape_text(weight->rank, weight->shape, b));
    }
    for (int i = 0; i < 3 + c->states; i++)
        if (inputs[i] && (inputs[i]->dtype != from_input->dtype || !rapt_is_floating(inputs[i])))
            return rapt_fail(RAPT_ERROR_DTYPE, c->name,
                             "input %d is %s, input 0 is %s; one floating dtype expected " RAPT_CAST_CURE, i,
                             rapt_dtype_name(inputs[i]->dtype), rapt_dtype_name(from_input->dtype));
    *s = (rapt_recurrence_sizes){.dtype = from_input->dtype,
                                 .hidden = weight->shape[1],
                                 .width = weight->shape[0],
                                 .bytes = (int64_t)rapt_dtype_size(from_input->dtype)};
    if (!rapt_step_rows_read(c->name, from_input, starts, &s->steps)) return false;
    for (int i = 0; i < c->states; i++)
        if (!check_state(c->name, s, inputs[1 + i])) return false;
    return true;
}

static rapt_tensor *forward(const rapt_cell *c, rapt_call *call)
{
    RAPT_SCOPE;
    const rapt_tensor *inputs[6] = {0}, *dense[5] = {0};
    rapt_recurrence_sizes s;
    for (int i = 0; i < 4 + c->states; i++) inputs[i] = rapt_call_input(call, i);
    if (!check(c, &s, inputs)) return NULL;
    for (int i = 0; i < 3 + c->states; i++)
        if ((dense[i] = rapt_as_contiguous(inputs[i])) == NULL && inputs[i]) return NULL;
    const rapt_tensor *bias = dense[2 + c->states];
    rapt_recurrence_run r = {.cell = c, .s = &s, .from_input = dense[0], .bias = bias ? bias->data : NULL};
    for (int i = 0; i < c->states; i++) {
        r.initial[i] = dense[1 + i];
        r.states[i] = rapt_keep(rapt_step_rows_new(c->name, &s.steps, s.dtype, s.hidden));
        if (!r.states[i]) return NULL;
    }
    r.kept = rapt_step_rows_new(c->name, &s.steps, s.dtype, RAPT_RECURRENCE_KEPT * s.hidden);
    if (!r.kept || !rapt_recurrence_run_all(&r, dense[1 + c->states], s.hidden, s.width, 1, s.hidden)) return NULL;
    for (int i = 0; i < 4 + c->states; i++) rapt_call_save(call, rapt_call_input(call, i));
    for (int i = 0; i < c->states; i++) rapt_call_save(call, r.states[i]);
    rapt_call_save(call, r.kept);
    for (int i = 1; i < c->states; i++) rapt_call_set_output(call, i, r.states[i]);
    return r.states[0];
}

/* Walks the steps backwards; results as `cell` lists them. A missing gradient of an output is NULL. */
static rapt_tensor *backward(const rapt_cell *c, rapt_call *call)
{
    int n = c->states;
    const rapt_tensor *in[8] = {0}, *starts = rapt_call_input(call, 3 * n + 3);
    for (int i = 0; i < 3 * n + 2; i++) in[i] = rapt_call_input(call, i);
    const rapt_tensor *states = in[n], *weight = in[3 * n + 1];
    rapt_recurrence_sizes s = {.dtype = states->dtype,
                               .hidden = states->shape[states->rank - 1],
                               .width = weight->shape[0],
                               .bytes = (int64_t)rapt_dtype_size(states->dtype)};
    if (!rapt_step_rows_read(c->name, states, starts, &s.steps)) return NULL;
    for (int i = 0; i < 3 * n + 2; i++) {
        if (!in[i] && i < n) in[i] = rapt_zeros_like(states);
        if ((in[i] || i < n) && !(in[i] = rapt_as_contiguous(in[i]))) return NULL;
    }
    rapt_recurrence_run r = {.cell = c, .s = &s, .kept = (rapt_tensor *)(uintptr_t)in[3 * n]};
    for (int i = 0; i < n; i++) {
        r.gradients[i] = in[i];
        r.states[i] = (rapt_tensor *)(uintptr_t)in[n + i];
        r.initial[i] = in[2 * n + i];
        r.carry[i] = rapt_zeros(s.dtype, RAPT_SHAPE(s.steps.batch, s.hidden));
        if (!r.carry[i]) return NULL;
    }
    r.hidden_gradient = rapt_step_rows_new(c->name, &s.steps, s.dtype, s.width);
    r.input_gradient = n > 1 ? r.hidden_gradient : rapt_step_rows_new(c->name, &s.steps, s.dtype, s.width);
    if (!r.hidden_gradient || !r.input_gradient) return NULL;
    if (!rapt_recurrence_run_all(&r, in[3 * n + 1], s.width, s.hidden, s.hidden, 1)) return NULL;
    const rapt_state_projection projection = {.dtype = s.dtype,
                                              .width = s.width,
                                              .hidden = s.hidden,
                                              .gradient = r.hidden_gradient->data,
                                              .initial = r.initial[0] ? r.initial[0]->data : NULL,
                                              .states = r.states[0]->data};
    rapt_tensor *d_weight =
        rapt_state_projection_gradient(c->name, &s.steps, &projection, rapt_call_input(call, 3 * n + 2));
    if (!d_weight) return NULL;
    rapt_call_set_output(call, 1, r.hidden_gradient);
    for (int i = 0; i < n; i++) rapt_call_set_output(call, 2 + i, r.carry[i]);
    rapt_call_set_output(call, 2 + n, d_weight);
    return r.input_gradient;
}

static bool vjp(const rapt_cell *c, rapt_call *call)
{
    int n = c->states;
    rapt_tensor *inputs[10], *results[5], *so_far = rapt_call_gradient_so_far(call, 1 + n);
    for (int i = 0; i < n; i++) {
        inputs[i] = rapt_call_gradient(call, i);
        inputs[n + i] = rapt_call_saved(call, 4 + n + i);
        inputs[2 * n + i] = rapt_call_saved(call, 1 + i);
    }
    inputs[3 * n] = rapt_call_saved(call, 4 + 2 * n);
    inputs[3 * n + 1] = rapt_call_saved(call, 1 + n);
    inputs[3 * n + 2] = so_far;
    inputs[3 * n + 3] = rapt_call_saved(call, 3 + n);
    if (!rapt_apply_many(c->backward_op, NULL, 3 * n + 4, inputs, results)) return false;
    for (int i = 0; i < n; i++) rapt_call_give(call, 1 + i, results[2 + i]);
    rapt_call_give(call, 0, results[0]);
    if (!so_far) rapt_call_give(call, 1 + n, results[2 + n]);
    if (!rapt_call_wants(call, 2 + n)) return true;
    return rapt_call_give(call, 2 + n, rapt_sum(results[1], rapt_rank(results[1]) - 1, (const int[]){0, 1}, false));
}

static rapt_tensor *definition(const rapt_cell *c, rapt_call *call)
{
    rapt_tensor *const *given = rapt_call_inputs(call), *const *behind = given + 1 + c->states, *outputs[2];
    const rapt_recurrence_inputs in = {given[0],
                                       {given[1], c->states > 1 ? given[2] : NULL},
                                       behind[0],
                                       behind[1],
                                       behind[2]};
    if (!rapt_recurrence_plainly(c->gates, &in, outputs)) return NULL;
    for (int i = 1; i < c->states; i++) rapt_call_set_output(call, i, outputs[i]);
    return outputs[0];
}

#define CELL(kind, gate_count, state_count)                                                                            \
    static const rapt_cell kind;                                                                                       \
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
    static rapt_tensor *kind##_definition(rapt_call *call)                                                             \
    {                                                                                                                  \
        return definition(&kind, call);                                                                                \
    }                                                                                                                  \
    static const rapt_op kind##_backward_op = {                                                                        \
        .name = #kind "_backward",                                                                                     \
        .forward = kind##_backward,                                                                                    \
        .optional = ((1u << state_count) - 1) * (1 + (1u << 2 * state_count)) | 3u << (3 * state_count + 2),           \
        .outputs = 3 + state_count,                                                                                    \
    };                                                                                                                 \
    static const rapt_op kind##_op = {                                                                                 \
        .name = #kind,                                                                                                 \
        .forward = kind##_forward,                                                                                     \
        .vjp = kind##_vjp,                                                                                             \
        .definition = kind##_definition,                                                                               \
        .optional = ((1u << state_count) - 1) << 1 | 3u << (2 + state_count),                                          \
        .outputs = state_count,                                                                                        \
    };                                                                                                                 \
    static const rapt_cell kind = {.name = #kind,                                                                      \
                                   .gates = gate_count,                                                                \
                                   .states = state_count,                                                              \
                                   .forward = rapt_kernel.recurrent.kind##_forward,                                    \
                                   .backward = rapt_kernel.recurrent.kind##_backward,                                  \
                                   .backward_op = &kind##_backward_op}

CELL(gru, 3, 1);
CELL(lstm, 4, 2);

bool rapt_recurrence(int gates, const rapt_recurrence_inputs *in, rapt_tensor **outputs)
{
    rapt_tensor *const of_gru[] = {in->from_input, in->states[0], in->weight_hh, in->bias_hh, in->step_starts},
                       *const of_lstm[] = {in->from_input, in->states[0], in->states[1],
                                           in->weight_hh,  in->bias_hh,   in->step_starts};
    return gates == 3 ? rapt_apply_many(&gru_op, NULL, 5, of_gru, outputs)
                      : rapt_apply_many(&lstm_op, NULL, 6, of_lstm, outputs);
}
