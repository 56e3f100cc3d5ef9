/* All steps of Bahdanau's decoder by recorded ops, one step after the other: the definition of the op. */
#include "attention/fused_additive.h"
#include "bahdanau_op.h"
#include "nn/mask.h"
#include "recurrence.h"
#include "tensor/scratch.h"

/* What goes from step to step. */
typedef struct run {
    const rapt_bahdanau_options *o;
    rapt_tensor *const *in;
    rapt_step_rows rows;
    rapt_tensor *states[rapt_bahdanau_layers]; /* (rows of the last step, hidden) */
    rapt_random_state random;                  /* of the next step's attention */
    rapt_tensor *weights;                      /* of the last step, (rows, K), where gives_weights */
    bool gives_weights;
} run;

static rapt_tensor *first_of(rapt_tensor *x, int64_t count)
{
    return x && rapt_size(x, 0) > count ? rapt_slice(x, 0, 0, count, 1) : x;
}

/* What attention gives the query (rows, units): (rows, hidden). */
static rapt_tensor *ask(run *r, rapt_tensor *query, int64_t rows)
{
    rapt_tensor *keys = first_of(r->in[at_keys], rows), *values = first_of(r->in[at_values], rows);
    if (!query || !keys || !values) return NULL;
    rapt_resolved_mask mask = {.batch = rows, .heads = 1, .queries = 1, .keys = rapt_size(keys, 1)};
    if (r->in[at_ranges] && !(mask.ranges = first_of(r->in[at_ranges], rows))) return NULL;
    rapt_tensor *weights = NULL;
    const rapt_attention_call call = {.values = values,
                                      .mask = &mask,
                                      .dropout = r->o->dropout,
                                      .weights = r->gives_weights ? &weights : NULL};
    const rapt_random_state before = rapt_random_get_state();
    rapt_random_set_state(r->random);
    rapt_tensor *context = rapt_fused_additive(rapt_unsqueeze(query, 1), keys, r->in[at_unit], &call);
    rapt_random_set_state(r->random);
    if (r->o->dropout > 0 && r->o->dropout < 1) rapt_random_reserve(r->rows.batch * mask.keys);
    r->random = rapt_random_get_state();
    rapt_random_set_state(before);
    if (weights) r->weights = rapt_reshape(weights, RAPT_SHAPE(rows, mask.keys));
    return rapt_squeeze(context, 1);
}

/* The rows of a step, of what is of all steps. */
static rapt_tensor *rows_of(const run *r, rapt_tensor *x, int64_t step, int64_t rows)
{
    const int64_t first = rapt_step_first_row(&r->rows, step);
    return rapt_slice(x, 0, first, first + rows, 1);
}

static bool run_step(run *r, rapt_tensor *from_embedding, int64_t step, int64_t rows)
{
    rapt_tensor *const *in = r->in, *up = NULL;
    for (int l = 0; l < r->o->layers; l++)
        if (!(r->states[l] = first_of(r->states[l], rows))) return false;
    up = ask(r, rapt_affine(r->states[r->o->layers - 1], in[at_query], NULL), rows);
    for (int l = 0; l < r->o->layers && up; l++) {
        rapt_tensor *const *layer = in + at_layers + layer_inputs * l;
        if (l > 0 && in[at_drops]) up = rapt_mul(up, rows_of(r, rapt_select(in[at_drops], 0, l - 1), step, rows));
        rapt_tensor *projected = rapt_affine(up, layer[layer_input], layer[layer_input_bias]);
        if (l == 0) projected = rapt_add(projected, rows_of(r, from_embedding, step, rows));
        rapt_tensor *from_state = rapt_affine(r->states[l], layer[layer_hidden], layer[layer_hidden_bias]);
        up = r->states[l] = rapt_gru_step(projected, from_state, r->states[l]);
    }
    return up != NULL;
}

/* ended[l · steps + steps − 1 − t]: the states of layer l of the sequences that step t is the last of, the longest
 * sequences first. */
static bool run_steps(run *r, rapt_tensor *from_embedding, rapt_tensor **sequence, rapt_tensor **ended,
                      rapt_tensor **weights)
{
    const int64_t steps = r->rows.count;
    for (int64_t t = 0; t < steps; t++) {
        const int64_t rows = rapt_step_rows_left(&r->rows, t, 0, r->rows.batch),
                      going_on = rapt_step_rows_left(&r->rows, t + 1, 0, r->rows.batch);
        if (!run_step(r, from_embedding, t, rows)) return false;
        sequence[t] = r->states[r->o->layers - 1];
        weights[t] = r->weights;
        for (int l = 0; l < r->o->layers; l++)
            if (!(ended[(l + 1) * steps - 1 - t] = rapt_slice(r->states[l], 0, going_on, rows, 1))) return false;
    }
    return true;
}

rapt_tensor *rapt_bahdanau_definition(rapt_call *call)
{
    run r = {.o = rapt_call_options(call),
             .in = rapt_call_inputs(call),
             .gives_weights = rapt_call_output_count(call) > rapt_bahdanau_weights_given};
    rapt_tensor *embedding = r.in[at_embedding], *last[rapt_bahdanau_layers];
    r.random = r.o->random;
    if (!rapt_step_rows_read("bahdanau_steps", embedding, r.in[at_starts], &r.rows)) return NULL;
    if (!r.in[at_starts] && !(embedding = rapt_reshape(embedding, RAPT_SHAPE(r.rows.rows, rapt_size(embedding, 2)))))
        return NULL;
    rapt_tensor **sequence = rapt_scratch_list("bahdanau_steps", (2 + r.o->layers) * r.rows.count, sizeof *sequence);
    if (!sequence) return NULL;
    rapt_tensor **weights = sequence + r.rows.count, **ended = weights + r.rows.count;
    for (int l = 0; l < r.o->layers; l++)
        if (!(r.states[l] = rapt_select(r.in[at_initial], 0, l))) return NULL;
    if (!run_steps(&r, embedding, sequence, ended, weights)) return NULL;
    for (int l = 0; l < r.o->layers; l++)
        if (!(last[l] = rapt_concat((int)r.rows.count, ended + l * r.rows.count, 0))) return NULL;
    rapt_tensor *(*const join)(int, rapt_tensor *const *, int) = r.in[at_starts] ? rapt_concat : rapt_stack;
    rapt_call_set_output(call, rapt_bahdanau_last, rapt_stack(r.o->layers, last, 0));
    if (r.gives_weights) rapt_call_set_output(call, rapt_bahdanau_weights_given, join((int)r.rows.count, weights, 0));
    return join((int)r.rows.count, sequence, 0);
}
