/* The steps of Bahdanau's decoder over raw numbers. Rows of a batch do not meet in it: a task takes some of them
 * through all steps, while the weights that they are multiplied with stay packed. */
#include "bahdanau_rows.h"

#include <string.h>

#include "recurrence_rows.h"
#include "tensor/flops.h"
#include "tensor/kernels.h"
#include "tensor/parallel.h"

/* Row `row` of step t of a sequence (…, width), or of layer l in a list of them. */
static char *at(const rapt_bahdanau_run *r, const char *sequence, int layer, int64_t step, int64_t row, int64_t width)
{
    const rapt_bahdanau_sizes *s = &r->s;
    return (char *)(uintptr_t)sequence +
           (layer * s->steps.rows + rapt_step_first_row(&s->steps, step) + row) * width * s->bytes;
}

char *rapt_bahdanau_states(const rapt_bahdanau_run *r, int layer, int64_t step)
{
    const rapt_bahdanau_sizes *s = &r->s;
    if (step < 0) return (char *)(uintptr_t)r->initial + layer * s->steps.batch * s->hidden * s->bytes;
    return layer == s->layers - 1 ? at(r, r->sequence, 0, step, 0, s->hidden)
                                  : at(r, r->below, layer, step, 0, s->hidden);
}

static char *state_at(const rapt_bahdanau_run *r, int layer, int64_t step, int64_t row)
{
    return rapt_bahdanau_states(r, layer, step) + row * r->s.hidden * r->s.bytes;
}

/* The call of attention at a step. */
static rapt_additive_attention call_of(const rapt_bahdanau_run *r, int64_t step)
{
    const int64_t blocks = rapt_divide_up(r->s.steps.batch * r->s.keys, 4); /* of random numbers */
    rapt_additive_attention call = r->attention;
    call.mask.random.offset += (uint64_t)(step * blocks);
    call.queries.rows = at(r, r->queries, 0, step, 0, r->s.units);
    call.queries.largest = r->largest;
    return call;
}

static rapt_attention_piece piece_of(const rapt_bahdanau_run *r, int64_t row)
{
    return (rapt_attention_piece){.item = row, .last_row = 1, .last_key = r->s.keys};
}

/* The exponentials of the queries of some rows. */
static void make_powers(const rapt_bahdanau_run *r, int64_t step, int64_t row, int64_t rows, double factor,
                        const void *factors)
{
    const rapt_bahdanau_sizes *s = &r->s;
    rapt_kernel.additive[s->dtype].powers(rows, s->units, at(r, r->queries, 0, step, row, s->units), factor, factors,
                                          r->powers + row * r->attention.padded * s->bytes,
                                          r->largest + row * s->bytes);
}

static void attend(const rapt_bahdanau_run *r, int64_t step, int64_t row, int64_t rows)
{
    const rapt_bahdanau_sizes *s = &r->s;
    rapt_additive_attention call = call_of(r, step);
    make_powers(r, step, row, rows, 1, call.constants.offset);
    call.folded = r->powers;
    for (int64_t item = row; item < row + rows; item++) {
        const rapt_attention_piece piece = piece_of(r, item);
        const rapt_additive_output output = {.out = at(r, r->contexts, 0, step, item, s->hidden),
                                             .statistics = at(r, r->statistics, 0, step, item, 2),
                                             .weights = at(r, r->weights, 0, step, item, s->keys)};
        rapt_kernel.additive[s->dtype].forward(&call, &piece, &output);
    }
}

/* to = from · drops, element by element */
static void drop(const rapt_bahdanau_run *r, int layer, int64_t step, int64_t row, int64_t rows, char *to,
                 const char *from)
{
    char *data[] = {to, (char *)(uintptr_t)from, at(r, r->drops, layer, step, row, r->s.hidden)};
    const int64_t strides[] = {r->s.bytes, r->s.bytes, r->s.bytes};
    rapt_kernel.elementwise.mul[r->s.dtype](rows * r->s.hidden, data, strides, NULL);
}

/* What goes into a layer: the context, or the states of the layer below after dropout. */
static char *input_at(const rapt_bahdanau_run *r, int layer, int64_t step, int64_t row)
{
    return layer == 0 ? at(r, r->contexts, 0, step, row, r->s.hidden)
                      : at(r, r->inputs, layer - 1, step, row, r->s.hidden);
}

static void step_forward(const rapt_bahdanau_run *r, int layer, int64_t step, int64_t row, int64_t rows, char *scratch)
{
    const rapt_bahdanau_sizes *s = &r->s;
    const int64_t width = 3 * s->hidden, bytes = rows * width * s->bytes;
    char *from_input = scratch, *from_hidden = scratch + bytes, *packing = from_hidden + bytes;
    const rapt_cell_data data = {.from_input = from_input,
                                 .from_hidden = from_hidden,
                                 .state = state_at(r, layer, step - 1, row),
                                 .next_state = state_at(r, layer, step, row),
                                 .kept = at(r, r->cells, layer, step, row, 4 * s->hidden)};
    const rapt_rows known = layer == 0 ? (rapt_rows){at(r, r->from_embedding, 0, step, row, width), width}
                                       : (rapt_rows){(char *)(uintptr_t)r->bias_ih[layer], 0};
    rapt_packed_matrix_multiply(&r->input[layer], rows, (rapt_rows){input_at(r, layer, step, row), s->hidden}, known,
                                (rapt_rows){from_input, width}, false,
                                rapt_ahead_at(data.kept, rows * 4 * s->hidden * s->bytes), packing);
    rapt_packed_matrix_multiply(&r->hidden[layer], rows, (rapt_rows){data.state, s->hidden},
                                (rapt_rows){(char *)(uintptr_t)r->bias_hh[layer], 0}, (rapt_rows){from_hidden, width},
                                false, rapt_ahead_at(data.next_state, rows * s->hidden * s->bytes), packing);
    rapt_kernel.recurrent.gru_forward[s->dtype](0, rows, s->hidden, &data);
    if (r->drops && layer < s->layers - 1)
        drop(r, layer, step, row, rows, input_at(r, layer + 1, step, row), data.next_state);
}

static void forward_rows(const rapt_bahdanau_run *r, int64_t row, int64_t rows, char *scratch)
{
    const rapt_bahdanau_sizes *s = &r->s;
    for (int64_t t = 0; t < s->steps.count && (rows = rapt_step_rows_left(&s->steps, t, row, rows)) > 0; t++) {
        const char *known = at(r, r->from_embedding, 0, t, row, 3 * s->hidden);
        rapt_packed_matrix_multiply(&r->query, rows, (rapt_rows){state_at(r, s->layers - 1, t - 1, row), s->hidden},
                                    (rapt_rows){0}, (rapt_rows){at(r, r->queries, 0, t, row, s->units), s->units},
                                    false, rapt_ahead_at(known, rows * 3 * s->hidden * s->bytes), scratch);
        attend(r, t, row, rows);
        for (int layer = 0; layer < s->layers; layer++) step_forward(r, layer, t, row, rows, scratch);
    }
}

static void attend_backward(const rapt_bahdanau_run *r, int64_t step, int64_t row, int64_t rows)
{
    const rapt_bahdanau_sizes *s = &r->s;
    const rapt_additive_kernels *kernels = &rapt_kernel.additive[s->dtype];
    const rapt_additive_chunk chunk = {0, 1};
    const int64_t later = row + rapt_step_rows_left(&s->steps, step + 1, row, rows); /* of rows that have been here */
    const bool drops = r->attention.mask.keep < 1;
    rapt_additive_attention call = call_of(r, step);
    make_powers(r, step, row, rows, 0.5, NULL);
    call.queries.powers = r->powers;
    char *weights = at(r, r->weights, 0, step, 0, s->keys);
    rapt_additive_gradient g = {.gradient = {r->context_gradient, {s->hidden, s->hidden, s->hidden, 1}},
                                .statistics = at(r, r->statistics, 0, step, 0, 2),
                                .weights = weights,
                                .pooled = {drops ? r->pooled : weights, s->keys, s->keys},
                                .stores_pooled = drops,
                                .scores = {r->scores, s->keys, s->keys},
                                .queries = at(r, r->query_gradients, 0, step, 0, s->units),
                                .keys = r->key_gradients,
                                .values = r->value_gradients,
                                .raw_weight = r->unit_gradients};
    if (r->weights_gradient)
        g.d_weights = (rapt_raw_grid){at(r, r->weights_gradient, 0, step, 0, s->keys), {s->keys, s->keys, s->keys, 1}};
    for (int64_t item = row; item < row + rows; item++) {
        const rapt_attention_piece piece = piece_of(r, item);
        g.adds_keys = g.adds_values = g.adds_raw_weight = item < later;
        kernels->scores_backward(&call, &g, &chunk, &piece);
        for (int64_t unit = 0; unit < s->units; unit += rapt_additive_slice)
            kernels->hidden_backward(&call, &g, &chunk, item, 0, unit);
        for (int64_t key = 0; key < s->keys; key += rapt_additive_tile)
            kernels->values_backward(&call, &g, &chunk, item, 0, key);
    }
}

/* What a cell reads on its way back, and where the gradients of both projections go; nothing before the first step. */
typedef struct cell_ahead {
    rapt_ahead kept, gradients;
} cell_ahead;

static cell_ahead cell_ahead_at(const rapt_bahdanau_run *r, int layer, int64_t step, int64_t row, int64_t rows)
{
    if (step < 0) return (cell_ahead){0};
    const rapt_bahdanau_sizes *s = &r->s;
    const char *of_input = at(r, r->input_gradients[layer], 0, step, row, 3 * s->hidden);
    const char *of_hidden = at(r, r->hidden_gradients[layer], 0, step, row, 3 * s->hidden);
    const int64_t number = rows * s->hidden * s->bytes;
    return (cell_ahead){
        .kept = rapt_ahead_at(at(r, r->cells, layer, step, row, 4 * s->hidden), 4 * number),
        .gradients = {.from = of_input,
                      .rows = 2,
                      .step = (int64_t)((uintptr_t)of_hidden - (uintptr_t)of_input),
                      .bytes = 3 * number},
    };
}

/* above: the gradient of the layer's states at this step from what is above it. It becomes that of what is below. */
static void step_backward(const rapt_bahdanau_run *r, int layer, int64_t step, int64_t row, int64_t rows, char *above,
                          char *packing)
{
    const rapt_bahdanau_sizes *s = &r->s;
    const int64_t width = 3 * s->hidden;
    const bool is_last = layer == s->layers - 1;
    const rapt_cell_data data = {
        .from_input = at(r, r->input_gradients[layer], 0, step, row, width),
        .from_hidden = at(r, r->hidden_gradients[layer], 0, step, row, width),
        .state = state_at(r, layer, step - 1, row),
        .kept = at(r, r->cells, layer, step, row, 4 * s->hidden),
        .gradient = is_last ? at(r, r->gradient, 0, step, row, s->hidden) : above,
        .carry = r->carry + (layer * s->steps.batch + row) * s->hidden * s->bytes,
    };
    const cell_ahead soon =
        layer > 0 ? cell_ahead_at(r, layer - 1, step, row, rows) : cell_ahead_at(r, s->layers - 1, step - 1, row, rows);
    rapt_kernel.recurrent.gru_backward[s->dtype](0, rows, s->hidden, &data);
    rapt_packed_matrix_multiply(&r->hidden[layer], rows, (rapt_rows){data.from_hidden, width}, (rapt_rows){0},
                                (rapt_rows){data.carry, s->hidden}, true, soon.kept, packing);
    char *below = layer > 0 ? above : r->context_gradient + row * s->hidden * s->bytes;
    rapt_packed_matrix_multiply(&r->input[layer], rows, (rapt_rows){data.from_input, width}, (rapt_rows){0},
                                (rapt_rows){below, s->hidden}, false, soon.gradients, packing);
    if (r->drops && layer > 0) drop(r, layer - 1, step, row, rows, above, above);
}

static void backward_rows(const rapt_bahdanau_run *r, int64_t row, int64_t all_rows, char *scratch)
{
    const rapt_bahdanau_sizes *s = &r->s;
    char *packing = scratch + all_rows * s->hidden * s->bytes;
    const rapt_rows last_carry = {r->carry + ((s->layers - 1) * s->steps.batch + row) * s->hidden * s->bytes,
                                  s->hidden};
    for (int64_t t = s->steps.count - 1; t >= 0; t--) {
        const int64_t rows = rapt_step_rows_left(&s->steps, t, row, all_rows);
        if (rows <= 0) continue;
        for (int layer = s->layers - 1; layer >= 0; layer--) step_backward(r, layer, t, row, rows, scratch, packing);
        attend_backward(r, t, row, rows);
        rapt_packed_matrix_multiply(&r->query, rows,
                                    (rapt_rows){at(r, r->query_gradients, 0, t, row, s->units), s->units},
                                    (rapt_rows){0}, last_carry, true, (rapt_ahead){0}, packing);
    }
}

static void run_rows(const void *run, int64_t row, int64_t rows, char *scratch)
{
    const rapt_bahdanau_run *r = run;
    (r->carry ? backward_rows : forward_rows)(r, row, rows, scratch);
}

/* The weight (n, k), transposed for forward: rows · weightᵀ; or as it is for backward. */
static bool pack(const char *op, const rapt_bahdanau_run *r, rapt_packed_matrix *to, rapt_rows weight, int64_t n,
                 int64_t k)
{
    const int64_t rows = r->s.steps.rows, together = rapt_step_rows_mean(&r->s.steps);
    if (r->carry)
        return rapt_packed_matrix_make(op, to, r->s.dtype, n, k, weight.data, weight.stride, 1, rows, together);
    return rapt_packed_matrix_make(op, to, r->s.dtype, k, n, weight.data, 1, weight.stride, rows, together);
}

static bool pack_all(const char *op, rapt_bahdanau_run *r, const rapt_bahdanau_weights *weights)
{
    const rapt_bahdanau_sizes *s = &r->s;
    bool good = pack(op, r, &r->query, weights->query, s->units, s->hidden);
    for (int l = 0; l < s->layers && good; l++)
        good = pack(op, r, &r->input[l], weights->input[l], 3 * s->hidden, s->hidden) &&
               pack(op, r, &r->hidden[l], weights->hidden[l], 3 * s->hidden, s->hidden);
    return good;
}

static size_t scratch_bytes(const rapt_bahdanau_run *r, int64_t rows)
{
    const size_t query = rapt_packed_matrix_scratch(&r->query, rows),
                 hidden = rapt_packed_matrix_scratch(&r->hidden[0], rows);
    return (size_t)(6 * rows * r->s.hidden * r->s.bytes) + (query > hidden ? query : hidden);
}

/* Of the products; what attention computes is not counted. */
static void count_flops(const rapt_bahdanau_sizes *s)
{
    const int64_t of_row = s->hidden * (s->units + 6 * s->layers * s->hidden);
    rapt_count_flops(2 * (double)s->steps.rows * (double)of_row);
}

bool rapt_bahdanau_run_steps(const char *op, rapt_bahdanau_run *r, const rapt_bahdanau_weights *weights)
{
    const rapt_bahdanau_sizes *s = &r->s;
    const int64_t rows = rapt_recurrence_task_rows(&s->steps);
    const bool good =
        pack_all(op, r, weights) &&
        rapt_recurrence_run_tasks(op, &s->steps, &r->hidden[0], s->steps.count * rows * s->hidden * s->hidden / 8,
                                  scratch_bytes(r, rows), run_rows, r);
    count_flops(s);
    rapt_packed_matrix_free(&r->query);
    for (int l = 0; l < s->layers; l++) {
        rapt_packed_matrix_free(&r->input[l]);
        rapt_packed_matrix_free(&r->hidden[l]);
    }
    return good;
}
