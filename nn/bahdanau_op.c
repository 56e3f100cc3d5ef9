/* All steps of Bahdanau's decoder as an op, and its backward as another. */
#include "bahdanau_op.h"

#include <string.h>

#include <rapt/ops.h>

#include "attention/fused/additive_powers.h"
#include "tensor/core.h"
#include "tensor/matmul.h"

static const char *const name = "bahdanau_steps";

/* Forward saves its inputs, behind them the states and all that the loops kept. Backward reads the inputs before
 * at_layers, those two and the weights, with the gradients of the outputs in place of what it does not need and behind
 * it. */
_Static_assert(most_inputs + 2 <= RAPT_MAX_SAVED, "what the largest decoder saves");
enum {
    at_last_gradient = at_embedding,
    at_saved_states = at_layers,
    at_kept,
    at_gradient,
    at_weights_gradient,
    at_weights
};

/* What backward reads of forward, one piece behind the other in one tensor. */
typedef struct piece {
    char **data;
    int64_t width; /* of a row of a step */
} piece;

enum { piece_count = 7 };

static void list_pieces(rapt_bahdanau_run *r, piece pieces[piece_count])
{
    const rapt_bahdanau_sizes *s = &r->s;
    const int64_t below = (s->layers - 1) * s->hidden;
    memcpy(pieces,
           (const piece[]){{&r->cells, s->layers * 4 * s->hidden},
                           {&r->below, below},
                           {&r->inputs, r->drops ? below : 0},
                           {&r->queries, s->units},
                           {&r->contexts, s->hidden},
                           {&r->weights, s->keys},
                           {&r->statistics, 2}},
           piece_count * sizeof *pieces);
}

static rapt_tensor *new_kept(rapt_bahdanau_run *r)
{
    piece pieces[piece_count];
    int64_t width = 0;
    list_pieces(r, pieces);
    for (int i = 0; i < piece_count; i++) width += pieces[i].width;
    return rapt_new(name, r->s.dtype, RAPT_SHAPE(r->s.steps.rows, width));
}

static void find_pieces(rapt_bahdanau_run *r, const rapt_tensor *kept)
{
    piece pieces[piece_count];
    char *data = kept->data;
    list_pieces(r, pieces);
    for (int i = 0; i < piece_count; data += pieces[i++].width * r->s.steps.rows * r->s.bytes) *pieces[i].data = data;
    if (!r->drops) r->inputs = r->below;
}

static rapt_tensor *take(char **data, rapt_dtype dtype, int rank, const int64_t *shape)
{
    rapt_tensor *tensor = rapt_new(name, dtype, rank, shape);
    *data = tensor ? tensor->data : NULL;
    return tensor;
}

/* Inputs as the loops read them, by forward's numbers; the others may be NULL. sequence: a tensor of all steps. The
 * tensors belong to the innermost scope. */
static bool describe(rapt_bahdanau_run *r, rapt_bahdanau_weights *weights, const rapt_bahdanau_options *o,
                     const rapt_tensor *const *in, const rapt_tensor *sequence)
{
    const rapt_tensor *keys = in[at_keys], *initial = rapt_as_contiguous(in[at_initial]);
    const rapt_tensor *query = rapt_as_dense_rows(in[at_query]);
    if (!initial || !query) return false;
    r->s = (rapt_bahdanau_sizes){.dtype = keys->dtype,
                                 .layers = o->layers,
                                 .bytes = (int64_t)rapt_dtype_size(keys->dtype),
                                 .hidden = in[at_initial]->shape[2],
                                 .units = keys->shape[2],
                                 .keys = keys->shape[1]};
    if (!rapt_step_rows_read(name, sequence, in[at_starts], &r->s.steps)) return false;
    r->initial = initial->data;
    r->drops = in[at_drops] ? in[at_drops]->data : NULL;
    weights->query = (rapt_rows){query->data, query->strides[0]};
    for (int l = 0; l < o->layers; l++)
        for (int kind = layer_hidden; kind <= layer_input; kind++) {
            const rapt_tensor *weight = rapt_as_dense_rows(in[at_layers + layer_inputs * l + kind]);
            if (!weight) return false;
            (kind == layer_input ? weights->input : weights->hidden)[l] = (rapt_rows){weight->data, weight->strides[0]};
        }
    const rapt_tensor *ranges = in[at_ranges];
    rapt_raw_mask mask = {.batch = r->s.steps.batch,
                          .heads = 1,
                          .queries = 1,
                          .keys = r->s.keys,
                          .range_item = ranges && ranges->shape[0] > 1 ? 2 : 0,
                          .keep = 1 - o->dropout,
                          .random = o->random};
    if (ranges) mask.ranges = (const int64_t *)(const void *)ranges->data;
    const rapt_resolved_mask resolved = {.batch = r->s.steps.batch,
                                         .heads = 1,
                                         .queries = 1,
                                         .keys = r->s.keys,
                                         .ranges = (rapt_tensor *)(uintptr_t)ranges};
    const rapt_additive_inputs asked = {.keys = keys,
                                        .weight = in[at_unit],
                                        .values = in[at_values],
                                        .mask = &resolved};
    return rapt_additive_describe(&r->attention, &mask, &asked) &&
           take(&r->powers, r->s.dtype, RAPT_SHAPE(r->s.steps.batch, r->attention.padded)) &&
           take(&r->largest, r->s.dtype, RAPT_SHAPE(r->s.steps.batch));
}

/* Those of each row's own last step. */
static void copy_last_states(const rapt_bahdanau_run *r, char *to)
{
    const rapt_bahdanau_sizes *s = &r->s;
    const int64_t row = s->hidden * s->bytes;
    for (int l = 0; l < s->layers; l++, to += s->steps.batch * row)
        for (int64_t t = 0; t < s->steps.count; t++) {
            const int64_t rows = rapt_step_rows_left(&s->steps, t, 0, s->steps.batch),
                          going_on = rapt_step_rows_left(&s->steps, t + 1, 0, s->steps.batch);
            memcpy(to + going_on * row, rapt_bahdanau_states(r, l, t) + going_on * row,
                   (size_t)((rows - going_on) * row));
        }
}

static rapt_tensor *forward(rapt_call *call)
{
    const rapt_bahdanau_options *o = rapt_call_options(call);
    rapt_tensor *const *in = rapt_call_inputs(call);
    rapt_bahdanau_run r = {0};
    rapt_bahdanau_weights weights;
    RAPT_SCOPE;
    const rapt_tensor *from_embedding = rapt_as_contiguous(in[at_embedding]);
    if (!from_embedding || !describe(&r, &weights, o, (const rapt_tensor *const *)in, from_embedding)) return NULL;
    const rapt_bahdanau_sizes *s = &r.s;
    r.from_embedding = from_embedding->data;
    for (int l = 0; l < s->layers; l++)
        for (int kind = layer_hidden_bias; kind <= layer_input_bias; kind++) {
            const rapt_tensor *given = in[at_layers + layer_inputs * l + kind], *bias = rapt_as_contiguous(given);
            if (given && !bias) return NULL;
            (kind == layer_input_bias ? r.bias_ih : r.bias_hh)[l] = bias ? bias->data : NULL;
        }
    rapt_tensor *sequence = rapt_step_rows_new(name, &s->steps, s->dtype, s->hidden), *kept = new_kept(&r);
    rapt_tensor *last = rapt_new(name, s->dtype, RAPT_SHAPE(s->layers, s->steps.batch, s->hidden));
    if (!sequence || !last || !kept || !rapt_additive_make_constants(&r.attention)) return NULL;
    r.sequence = sequence->data;
    find_pieces(&r, kept);
    if (!rapt_bahdanau_run_steps(name, &r, &weights)) return NULL;
    copy_last_states(&r, last->data);
    rapt_call_set_output(call, rapt_bahdanau_last, rapt_keep(last));
    if (rapt_call_output_count(call) > rapt_bahdanau_weights_given) {
        rapt_tensor *given = rapt_step_rows_new(name, &s->steps, s->dtype, s->keys);
        if (!given) return NULL;
        memcpy(given->data, r.weights, (size_t)(s->steps.rows * s->keys * s->bytes));
        rapt_call_set_output(call, rapt_bahdanau_weights_given, rapt_keep(given));
    }
    for (int i = 0; i < rapt_call_count(call); i++) rapt_call_save(call, in[i]);
    rapt_call_save(call, rapt_keep(sequence));
    rapt_call_save(call, kept);
    return sequence;
}

/* --- backward --- */

static rapt_tensor *nothing(const rapt_bahdanau_sizes *s)
{
    const int64_t none = 0;
    return rapt_new(name, s->dtype, 1, &none);
}

/* The gradient of the weight of a projection of a layer's states, and of another one: Σ leftᵀ right over all rows. */
static rapt_tensor *from_states(const rapt_bahdanau_run *r, const char *left, int64_t width, int layer)
{
    const rapt_state_projection projection = {.dtype = r->s.dtype,
                                              .width = width,
                                              .hidden = r->s.hidden,
                                              .gradient = left,
                                              .initial = rapt_bahdanau_states(r, layer, -1),
                                              .states = rapt_bahdanau_states(r, layer, 0)};
    return rapt_state_projection_gradient(name, &r->s.steps, &projection, NULL);
}

static rapt_tensor *from_rows(const rapt_bahdanau_sizes *s, const char *left, int64_t width, const char *right)
{
    rapt_tensor *to = rapt_new(name, s->dtype, RAPT_SHAPE(width, s->hidden));
    const bool good = to && rapt_gemm(name, s->dtype, width, s->hidden, s->steps.rows, left, 1, width, right, s->hidden,
                                      1, to->data, s->hidden, false);
    return good ? to : NULL;
}

static rapt_tensor *take_rows(const rapt_bahdanau_run *r, char **data)
{
    rapt_tensor *tensor = rapt_step_rows_new(name, &r->s.steps, r->s.dtype, 3 * r->s.hidden);
    *data = tensor ? tensor->data : NULL;
    return tensor;
}

/* Where the loops put gradients. */
static bool take_gradients(rapt_bahdanau_run *r, rapt_tensor **to)
{
    const rapt_bahdanau_sizes *s = &r->s;
    const rapt_dtype dtype = s->dtype;
    const int64_t batch = s->steps.batch;
    bool good = (to[at_keys] = take(&r->key_gradients, dtype, RAPT_SHAPE(batch, s->keys, s->units))) &&
                (to[at_values] = take(&r->value_gradients, dtype, RAPT_SHAPE(batch, s->keys, s->hidden))) &&
                (to[at_query] = take(&r->query_gradients, dtype, RAPT_SHAPE(s->steps.rows, s->units))) &&
                (to[at_unit] = take(&r->unit_gradients, dtype, RAPT_SHAPE(batch, s->units))) &&
                take(&r->context_gradient, dtype, RAPT_SHAPE(batch, s->hidden)) &&
                take(&r->scores, dtype, RAPT_SHAPE(batch, s->keys)) &&
                take(&r->pooled, dtype, RAPT_SHAPE(batch, s->keys));
    for (int l = 0; l < s->layers && good; l++) {
        rapt_tensor **layer = to + at_layers + layer_inputs * l;
        good = (layer[layer_input_bias] = take_rows(r, &r->input_gradients[l])) &&
               (layer[layer_hidden_bias] = take_rows(r, &r->hidden_gradients[l]));
    }
    to[at_embedding] = to[at_layers + layer_input_bias];
    return good;
}

/* From the gradients of projections, which stand in the places of biases, those of weights and biases. */
static bool sum_gradients(const rapt_bahdanau_run *r, const rapt_bahdanau_options *o, const rapt_tensor *unit,
                          rapt_tensor **to)
{
    const rapt_bahdanau_sizes *s = &r->s;
    const bool wants_query = o->wants >> at_query & 1;
    to[at_query] = wants_query ? from_states(r, r->query_gradients, s->units, s->layers - 1) : nothing(s);
    to[at_unit] = rapt_reshape(rapt_sum(to[at_unit], RAPT_AXES(0), false), unit->rank, unit->shape);
    bool good = to[at_query] && to[at_unit];
    for (int i = at_layers; i < at_layers + layer_inputs * s->layers && good; i++) {
        const int l = (i - at_layers) / layer_inputs, kind = (i - at_layers) % layer_inputs;
        if (!(o->wants >> i & 1))
            to[i] = nothing(s);
        else if (kind == layer_hidden)
            to[i] = from_states(r, r->hidden_gradients[l], 3 * s->hidden, l);
        else if (kind == layer_input)
            to[i] = from_rows(s, r->input_gradients[l], 3 * s->hidden,
                              l == 0 ? r->contexts : r->inputs + (l - 1) * s->steps.rows * s->hidden * s->bytes);
        else
            to[i] = rapt_sum(to[i], rapt_rank(to[i]) - 1, (const int[]){0, 1}, false);
        good = to[i] != NULL;
    }
    return good;
}

static rapt_tensor *backward_forward(rapt_call *call)
{
    const rapt_bahdanau_options *o = rapt_call_options(call);
    rapt_tensor *const *given = rapt_call_inputs(call);
    const rapt_tensor *in[most_inputs] = {0};
    rapt_tensor *gradients[most_inputs] = {0};
    rapt_bahdanau_run r = {0};
    rapt_bahdanau_weights weights;
    RAPT_SCOPE;
    for (int i = 0; i < at_layers; i++) in[i] = i == at_embedding ? NULL : given[i];
    for (int i = 0; i < 2 * o->layers; i++) in[at_layers + layer_inputs * (i / 2) + i % 2] = given[at_weights + i];
    const rapt_tensor *gradient = rapt_as_contiguous(given[at_gradient]), *of_weights = NULL;
    if (given[at_weights_gradient] && !(of_weights = rapt_as_contiguous(given[at_weights_gradient]))) return NULL;
    if (!gradient || !describe(&r, &weights, o, in, given[at_saved_states]) || !take_gradients(&r, gradients))
        return NULL;
    rapt_tensor *carry =
        given[at_last_gradient] ? rapt_clone(given[at_last_gradient]) : rapt_zeros_like(in[at_initial]);
    if (!carry) return NULL;
    r.sequence = given[at_saved_states]->data;
    r.gradient = gradient->data;
    r.weights_gradient = of_weights ? of_weights->data : NULL;
    r.carry = carry->data;
    find_pieces(&r, given[at_kept]);
    if (!rapt_bahdanau_run_steps(name, &r, &weights) || !sum_gradients(&r, o, in[at_unit], gradients)) return NULL;
    gradients[at_initial] = carry;
    if (!(gradients[at_ranges] = gradients[at_starts] = gradients[at_drops] = nothing(&r.s))) return NULL;
    for (int i = 1; i < at_layers + layer_inputs * o->layers; i++)
        rapt_call_set_output(call, i, rapt_keep(gradients[i]));
    return rapt_keep(gradients[0]);
}

static const rapt_op backward = {
    .name = "bahdanau_steps_backward",
    .forward = backward_forward,
    .options_size = sizeof(rapt_bahdanau_options),
    .optional = 1u << at_ranges | 1u << at_starts | 1u << at_drops | 1u << at_last_gradient | 1u << at_weights_gradient,
};

static bool vjp(rapt_call *call)
{
    rapt_bahdanau_options o = *(const rapt_bahdanau_options *)rapt_call_options(call);
    rapt_tensor *in[at_weights + 2 * rapt_bahdanau_layers], *gradients[most_inputs];
    const int count = at_layers + layer_inputs * o.layers;
    for (int i = 0; i < at_layers; i++)
        in[i] = i == at_embedding ? rapt_call_gradient(call, rapt_bahdanau_last) : rapt_call_saved(call, i);
    in[at_saved_states] = rapt_call_saved(call, count);
    in[at_kept] = rapt_call_saved(call, count + 1);
    in[at_gradient] = rapt_call_gradient_or_zeros(call, rapt_bahdanau_sequence);
    in[at_weights_gradient] = rapt_call_output_count(call) > rapt_bahdanau_weights_given
                                  ? rapt_call_gradient(call, rapt_bahdanau_weights_given)
                                  : NULL;
    for (int i = 0; i < 2 * o.layers; i++)
        in[at_weights + i] = rapt_call_saved(call, at_layers + layer_inputs * (i / 2) + i % 2);
    for (int i = 0; i < count; i++) o.wants |= (uint32_t)rapt_call_wants(call, i) << i;
    if (!rapt_apply_counted(&backward, &o, at_weights + 2 * o.layers, in, count, gradients)) return false;
    for (int i = 0; i < count; i++)
        if (rapt_call_wants(call, i) && !rapt_call_give(call, i, gradients[i])) return false;
    return true;
}

static const rapt_op op = {
    .name = "bahdanau_steps",
    .forward = forward,
    .vjp = vjp,
    .definition = rapt_bahdanau_definition,
    .options_size = sizeof(rapt_bahdanau_options),
    .optional = 1u << at_ranges | 1u << at_starts | 1u << at_drops | 1u << (at_layers + layer_input_bias),
};

bool rapt_bahdanau_apply(const rapt_bahdanau_options *options, rapt_tensor *const *inputs, int count,
                         rapt_tensor **outputs)
{
    return rapt_apply_counted(&op, options, at_layers + layer_inputs * options->layers, inputs, count, outputs);
}
