/* All steps of Bahdanau's decoder as an op, and its backward as another. */
#include "bahdanau_steps.h"

#include <string.h>

#include "attention/fused/additive_powers.h"
#include "attention/fused_additive.h"
#include "bahdanau.h"
#include "bahdanau_rows.h"
#include "nn/mask.h"
#include "tensor/core.h"
#include "tensor/matmul.h"
#include "tensor/random.h"

static const char *const name = "bahdanau_steps";

/* The inputs of the op, and, from at_layers on, four of each layer: of layer 0 the weight of the context and no bias
 * of the input, which are in the embedding's projection. The gradients that backward gives have the same numbers. */
enum { at_ranges, at_drops, at_embedding, at_initial, at_keys, at_values, at_query, at_unit, at_layers };
enum { layer_hidden, layer_input, layer_hidden_bias, layer_input_bias, layer_inputs };
enum { most_inputs = at_layers + layer_inputs * rapt_bahdanau_layers };

/* Forward saves its inputs but the embedding and the biases: those before at_layers, the states, all that the loops
 * kept, and the weights. Backward gets the gradients of the two outputs in place of what it does not read. */
enum { saved_states = at_layers - 1, saved_kept, saved_weights, most_saved = saved_weights + 2 * rapt_bahdanau_layers };
_Static_assert(most_saved <= RAPT_MAX_SAVED, "what the largest decoder saves");
enum { at_last_gradient = at_embedding, at_saved_states = at_layers, at_kept, at_gradient, at_weights };

typedef struct steps_options {
    int layers;
    double dropout; /* of attention */
    rapt_random_state random;
    uint32_t wants; /* backward: bit i, of input i */
} steps_options;

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
    return rapt_new(name, r->s.dtype, RAPT_SHAPE(r->s.steps, r->s.batch, width));
}

static void find_pieces(rapt_bahdanau_run *r, const rapt_tensor *kept)
{
    piece pieces[piece_count];
    char *data = kept->data;
    list_pieces(r, pieces);
    for (int i = 0; i < piece_count; data += pieces[i++].width * r->s.steps * r->s.batch * r->s.bytes)
        *pieces[i].data = data;
    if (!r->drops) r->inputs = r->below;
}

static rapt_tensor *take(char **data, rapt_dtype dtype, int rank, const int64_t *shape)
{
    rapt_tensor *tensor = rapt_new(name, dtype, rank, shape);
    *data = tensor ? tensor->data : NULL;
    return tensor;
}

/* Inputs as the loops read them, by forward's numbers; the others may be NULL. The tensors belong to the innermost
 * scope. */
static bool describe(rapt_bahdanau_run *r, rapt_bahdanau_weights *weights, const steps_options *o,
                     const rapt_tensor *const *in)
{
    const rapt_tensor *keys = in[at_keys], *initial = rapt_as_contiguous(in[at_initial]);
    const rapt_tensor *query = rapt_as_dense_rows(in[at_query]);
    const int64_t *state = in[at_initial]->shape;
    if (!initial || !query) return false;
    r->s = (rapt_bahdanau_sizes){.dtype = keys->dtype,
                                 .layers = o->layers,
                                 .bytes = (int64_t)rapt_dtype_size(keys->dtype),
                                 .steps = r->s.steps,
                                 .batch = state[1],
                                 .hidden = state[2],
                                 .units = keys->shape[2],
                                 .keys = keys->shape[1]};
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
    rapt_raw_mask mask = {.batch = r->s.batch,
                          .heads = 1,
                          .queries = 1,
                          .keys = r->s.keys,
                          .range_item = ranges && ranges->shape[0] > 1 ? 2 : 0,
                          .keep = 1 - o->dropout,
                          .random = o->random};
    if (ranges) mask.ranges = (const int64_t *)(const void *)ranges->data;
    const rapt_additive_inputs asked = {.keys = keys, .weight = in[at_unit], .values = in[at_values], .ranges = ranges};
    return rapt_additive_describe(&r->attention, &mask, &asked) &&
           take(&r->powers, r->s.dtype, RAPT_SHAPE(r->s.batch, r->attention.padded)) &&
           take(&r->largest, r->s.dtype, RAPT_SHAPE(r->s.batch));
}

static rapt_tensor *forward(rapt_call *call)
{
    const steps_options *o = rapt_call_options(call);
    rapt_tensor *const *in = rapt_call_inputs(call);
    rapt_bahdanau_run r = {.s.steps = in[at_embedding]->shape[0]};
    rapt_bahdanau_weights weights;
    RAPT_SCOPE;
    const rapt_tensor *from_embedding = rapt_as_contiguous(in[at_embedding]);
    if (!from_embedding || !describe(&r, &weights, o, (const rapt_tensor *const *)in)) return NULL;
    const rapt_bahdanau_sizes *s = &r.s;
    r.from_embedding = from_embedding->data;
    for (int l = 0; l < s->layers; l++)
        for (int kind = layer_hidden_bias; kind <= layer_input_bias; kind++) {
            const rapt_tensor *given = in[at_layers + layer_inputs * l + kind], *bias = rapt_as_contiguous(given);
            if (given && !bias) return NULL;
            (kind == layer_input_bias ? r.bias_ih : r.bias_hh)[l] = bias ? bias->data : NULL;
        }
    rapt_tensor *sequence = rapt_new(name, s->dtype, RAPT_SHAPE(s->steps, s->batch, s->hidden));
    rapt_tensor *last = rapt_new(name, s->dtype, RAPT_SHAPE(s->layers, s->batch, s->hidden)), *kept = new_kept(&r);
    if (!sequence || !last || !kept || !rapt_additive_make_constants(&r.attention)) return NULL;
    r.sequence = sequence->data;
    find_pieces(&r, kept);
    if (!rapt_bahdanau_run_steps(name, &r, &weights)) return NULL;
    const size_t state_bytes = (size_t)(s->batch * s->hidden * s->bytes);
    for (int l = 0; l < s->layers; l++)
        memcpy(last->data + (size_t)l * state_bytes, rapt_bahdanau_states(&r, l, s->steps - 1), state_bytes);
    rapt_call_set_output(call, 1, rapt_keep(last));
    for (int i = 0; i < at_layers; i++)
        if (i != at_embedding) rapt_call_save(call, in[i]);
    rapt_call_save(call, rapt_keep(sequence));
    rapt_call_save_constant(call, kept);
    for (int l = 0; l < s->layers; l++)
        for (int kind = layer_hidden; kind <= layer_input; kind++)
            rapt_call_save(call, in[at_layers + layer_inputs * l + kind]);
    return sequence;
}

/* --- backward --- */

static rapt_tensor *nothing(const rapt_bahdanau_sizes *s)
{
    const int64_t none = 0;
    return rapt_new(name, s->dtype, 1, &none);
}

/* The gradient of a weight: Σ leftᵀ right over all steps. `first`, if not NULL, are the rows of `right` at the first
 * step, those of the others follow at `right`. */
static rapt_tensor *product(const rapt_bahdanau_sizes *s, const char *left, int64_t width, const char *first,
                            const char *right)
{
    const int64_t skipped = first ? s->batch : 0;
    rapt_tensor *to = rapt_new(name, s->dtype, RAPT_SHAPE(width, s->hidden));
    const bool good =
        to &&
        rapt_gemm(name, s->dtype, width, s->hidden, skipped, left, 1, width, first, s->hidden, 1, to->data, s->hidden,
                  false) &&
        rapt_gemm(name, s->dtype, width, s->hidden, s->steps * s->batch - skipped, left + skipped * width * s->bytes, 1,
                  width, right, s->hidden, 1, to->data, s->hidden, skipped > 0);
    return good ? to : NULL;
}

/* Where the loops put gradients. */
static bool take_gradients(rapt_bahdanau_run *r, rapt_tensor **to)
{
    const rapt_bahdanau_sizes *s = &r->s;
    const rapt_dtype dtype = s->dtype;
    bool good = (to[at_keys] = take(&r->key_gradients, dtype, RAPT_SHAPE(s->batch, s->keys, s->units))) &&
                (to[at_values] = take(&r->value_gradients, dtype, RAPT_SHAPE(s->batch, s->keys, s->hidden))) &&
                (to[at_query] = take(&r->query_gradients, dtype, RAPT_SHAPE(s->steps, s->batch, s->units))) &&
                (to[at_unit] = take(&r->unit_gradients, dtype, RAPT_SHAPE(s->batch, s->units))) &&
                take(&r->context_gradient, dtype, RAPT_SHAPE(s->batch, s->hidden)) &&
                take(&r->scores, dtype, RAPT_SHAPE(s->batch, s->keys)) &&
                take(&r->pooled, dtype, RAPT_SHAPE(s->batch, s->keys));
    for (int l = 0; l < s->layers && good; l++) {
        rapt_tensor **layer = to + at_layers + layer_inputs * l;
        const int64_t *shape = (const int64_t[]){s->steps, s->batch, 3 * s->hidden};
        good = (layer[layer_input_bias] = take(&r->input_gradients[l], dtype, 3, shape)) &&
               (layer[layer_hidden_bias] = take(&r->hidden_gradients[l], dtype, 3, shape));
    }
    to[at_embedding] = to[at_layers + layer_input_bias];
    return good;
}

/* From the gradients of projections, which stand in the places of biases, those of weights and biases. */
static bool sum_gradients(const rapt_bahdanau_run *r, const steps_options *o, const rapt_tensor *unit, rapt_tensor **to)
{
    const rapt_bahdanau_sizes *s = &r->s;
    const int last = s->layers - 1;
    const bool wants_query = o->wants >> at_query & 1;
    to[at_query] = wants_query
                       ? product(s, r->query_gradients, s->units, rapt_bahdanau_states(r, last, -1), r->sequence)
                       : nothing(s);
    to[at_unit] = rapt_reshape(rapt_sum(to[at_unit], RAPT_AXES(0), false), unit->rank, unit->shape);
    bool good = to[at_query] && to[at_unit];
    for (int i = at_layers; i < at_layers + layer_inputs * s->layers && good; i++) {
        const int l = (i - at_layers) / layer_inputs, kind = (i - at_layers) % layer_inputs;
        if (!(o->wants >> i & 1))
            to[i] = nothing(s);
        else if (kind == layer_hidden)
            to[i] = product(s, r->hidden_gradients[l], 3 * s->hidden, rapt_bahdanau_states(r, l, -1),
                            rapt_bahdanau_states(r, l, 0));
        else if (kind == layer_input)
            to[i] = product(s, r->input_gradients[l], 3 * s->hidden, NULL,
                            l == 0 ? r->contexts : r->inputs + (l - 1) * s->steps * s->batch * s->hidden * s->bytes);
        else
            to[i] = rapt_sum(to[i], RAPT_AXES(0, 1), false);
        good = to[i] != NULL;
    }
    return good;
}

static rapt_tensor *backward_forward(rapt_call *call)
{
    const steps_options *o = rapt_call_options(call);
    rapt_tensor *const *given = rapt_call_inputs(call);
    const rapt_tensor *in[most_inputs] = {0};
    rapt_tensor *gradients[most_inputs] = {0};
    rapt_bahdanau_run r = {.s.steps = given[at_saved_states]->shape[0]};
    rapt_bahdanau_weights weights;
    RAPT_SCOPE;
    for (int i = 0; i < at_layers; i++) in[i] = i == at_embedding ? NULL : given[i];
    for (int i = 0; i < 2 * o->layers; i++) in[at_layers + layer_inputs * (i / 2) + i % 2] = given[at_weights + i];
    const rapt_tensor *gradient = rapt_as_contiguous(given[at_gradient]);
    if (!gradient || !describe(&r, &weights, o, in) || !take_gradients(&r, gradients)) return NULL;
    rapt_tensor *carry =
        given[at_last_gradient] ? rapt_clone(given[at_last_gradient]) : rapt_zeros_like(in[at_initial]);
    if (!carry) return NULL;
    r.sequence = given[at_saved_states]->data;
    r.gradient = gradient->data;
    r.carry = carry->data;
    find_pieces(&r, given[at_kept]);
    if (!rapt_bahdanau_run_steps(name, &r, &weights) || !sum_gradients(&r, o, in[at_unit], gradients)) return NULL;
    gradients[at_initial] = carry;
    if (!(gradients[at_ranges] = gradients[at_drops] = nothing(&r.s))) return NULL;
    for (int i = 1; i < at_layers + layer_inputs * o->layers; i++)
        rapt_call_set_output(call, i, rapt_keep(gradients[i]));
    return rapt_keep(gradients[0]);
}

static const rapt_op backward = {
    .name = "bahdanau_steps_backward",
    .forward = backward_forward,
    .options_size = sizeof(steps_options),
    .optional = 1u << at_ranges | 1u << at_drops | 1u << at_last_gradient,
    .no_gradient = "for second derivatives set `plain` of the decoder's recurrent layer or attention",
};

static bool vjp(rapt_call *call)
{
    steps_options o = *(const steps_options *)rapt_call_options(call);
    rapt_tensor *in[at_weights + 2 * rapt_bahdanau_layers], *gradients[most_inputs];
    const int count = at_layers + layer_inputs * o.layers;
    for (int i = 0; i < at_layers; i++)
        in[i] = i == at_embedding ? rapt_call_gradient(call, 1) : rapt_call_saved(call, i < at_embedding ? i : i - 1);
    in[at_saved_states] = rapt_call_saved(call, saved_states);
    in[at_kept] = rapt_call_saved(call, saved_kept);
    in[at_gradient] = rapt_call_gradient_or_zeros(call, 0);
    for (int i = 0; i < 2 * o.layers; i++) in[at_weights + i] = rapt_call_saved(call, saved_weights + i);
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
    .options_size = sizeof(steps_options),
    .optional = 1u << at_ranges | 1u << at_drops | 1u << (at_layers + layer_input_bias),
    .outputs = 2,
};

/* --- the decoder --- */

static bool is_shape(const rapt_tensor *tensor, rapt_dtype dtype, int64_t a, int64_t b, int64_t c)
{
    return tensor && tensor->dtype == dtype && tensor->rank == 3 && tensor->shape[0] == a && tensor->shape[1] == b &&
           tensor->shape[2] == c;
}

bool rapt_bahdanau_steps_fit(const rapt_bahdanau_decoder *decoder, const rapt_bahdanau_state *state,
                             const rapt_tensor *tokens)
{
    const rapt_attention *attention = decoder->attention;
    const rapt_recurrent *rnn = &decoder->rnn->recurrent;
    rapt_tensor *query, *unit;
    if (attention->plain || attention->keep_weights || attention->normalizer != rapt_masked_softmax || rnn->plain ||
        rnn->layers > rapt_bahdanau_layers || !rapt_additive_scoring_weights(attention->scoring, &query, &unit))
        return false;
    const rapt_dtype dtype = decoder->embedding->weight->dtype;
    const int64_t batch = tokens->shape[1], keys = state->keys->rank == 3 ? state->keys->shape[1] : 0;
    return dtype <= RAPT_FLOAT64 && keys > 0 && batch > 0 && query->dtype == dtype && unit->dtype == dtype &&
           rnn->layer[0].weight_ih->dtype == dtype && query->shape[1] == rnn->hidden &&
           is_shape(state->keys, dtype, batch, keys, query->shape[0]) &&
           is_shape(state->values, dtype, batch, keys, rnn->in - decoder->embedding->weight->shape[1]) &&
           rnn->in - decoder->embedding->weight->shape[1] == rnn->hidden &&
           is_shape(state->hidden, dtype, rnn->layers, batch, rnn->hidden);
}

/* Factors of dropout between the layers; *drops is NULL, without an error, where there is none. */
static bool draw_drops(const rapt_recurrent *rnn, const rapt_tensor *sequence, rapt_tensor **drops)
{
    *drops = NULL;
    if (!rnn->module.training || rnn->dropout == 0 || rnn->layers == 1) return true;
    const int64_t shape[] = {rnn->layers - 1, sequence->shape[0], sequence->shape[1], rnn->hidden};
    *drops = rapt_drop(rapt_ones(sequence->dtype, 4, shape), rnn->dropout);
    return *drops != NULL;
}

static bool resolve(const rapt_bahdanau_state *state, rapt_tensor **ranges)
{
    const rapt_tensor *keys = state->keys;
    rapt_resolved_mask resolved;
    const bool good = rapt_resolve_mask("Attention", RAPT_MASK(.valid_lengths = state->valid_lengths), keys->dtype,
                                        keys->shape[0], 1, 1, keys->shape[1], &resolved);
    *ranges = resolved.ranges;
    return good;
}

rapt_tensor *rapt_bahdanau_steps(rapt_bahdanau_decoder *decoder, rapt_tensor *tokens, rapt_bahdanau_state *state)
{
    const rapt_attention *attention = decoder->attention;
    const rapt_recurrent *rnn = &decoder->rnn->recurrent;
    const int64_t sizes[] = {rnn->hidden, rnn->in - rnn->hidden};
    steps_options o = {.layers = rnn->layers, .dropout = attention->module.training ? attention->dropout : 0};
    rapt_tensor *in[most_inputs] = {[at_initial] = state->hidden, [at_keys] = state->keys, [at_values] = state->values};
    rapt_tensor *parts[2], *outputs[2];
    if (!rapt_split(rnn->layer[0].weight_ih, 1, 2, sizes, parts)) return NULL;
    in[at_embedding] = rapt_bahdanau_project(decoder->embedding, tokens, parts[1], rnn->layer[0].bias_ih);
    if (!in[at_embedding] || !resolve(state, &in[at_ranges]) || !draw_drops(rnn, in[at_embedding], &in[at_drops]))
        return NULL;
    rapt_additive_scoring_weights(attention->scoring, &in[at_query], &in[at_unit]);
    for (int l = 0; l < rnn->layers; l++) {
        rapt_tensor **layer = in + at_layers + layer_inputs * l;
        layer[layer_hidden] = rnn->layer[l].weight_hh;
        layer[layer_hidden_bias] = rnn->layer[l].bias_hh;
        layer[layer_input] = l == 0 ? parts[0] : rnn->layer[l].weight_ih;
        layer[layer_input_bias] = l == 0 ? NULL : rnn->layer[l].bias_ih;
    }
    o.random = rapt_random_get_state();
    for (int64_t t = 0; t < tokens->shape[0] && o.dropout > 0 && o.dropout < 1; t++)
        rapt_random_reserve(state->keys->shape[0] * state->keys->shape[1]);
    if (!rapt_apply_many(&op, &o, at_layers + layer_inputs * rnn->layers, in, outputs)) return NULL;
    state->hidden = outputs[1];
    return outputs[0];
}
