/* Backward of fused additive attention: chunks of queries, whose scores' gradients are kept only until the next chunk. */
#include <string.h>

#include <rapt/ops.h>

#include "nn/additive_inputs.h"
#include "tensor/kernels.h"
#include "tensor/parallel.h"

static const char *const name = "additive_attention_backward";

/* What the tasks of one chunk work on. */
typedef struct work {
    const rapt_additive *a;
    const rapt_additive_gradient *g;
    rapt_dtype dtype;
    rapt_additive_chunk chunk;
    int64_t blocks, slices, tiles; /* of a head's queries in the chunk, of the hidden units, of a group's keys */
} work;

/* Blocks of queries of one head, then heads. */
static void run_scores(void *context, int64_t first, int64_t last)
{
    const work *w = context;
    for (int64_t i = first; i < last; i++) {
        const int64_t head = i / w->blocks, query = w->chunk.first + i % w->blocks * rapt_additive_block;
        const int64_t end = query + rapt_additive_block;
        const rapt_additive_piece piece = {.item = head / w->a->mask.heads,
                                           .head = head % w->a->mask.heads,
                                           .first_query = query,
                                           .last_query = end < w->chunk.last ? end : w->chunk.last,
                                           .last_key = w->a->mask.keys};
        rapt_kernel.additive.scores_backward[w->dtype](w->a, w->g, &w->chunk, &piece);
    }
}

/* The slices and tiles of one group, then groups. */
static void run_sums(void *context, int64_t first, int64_t last)
{
    const work *w = context;
    for (int64_t i = first; i < last; i++) {
        const int64_t part = i % (w->slices + w->tiles), group = i / (w->slices + w->tiles);
        const int64_t item = group / w->a->groups, in_item = group % w->a->groups;
        if (part < w->slices)
            rapt_kernel.additive.hidden_backward[w->dtype](w->a, w->g, &w->chunk, item, in_item,
                                                           part * rapt_additive_slice);
        else
            rapt_kernel.additive.values_backward[w->dtype](w->a, w->g, &w->chunk, item, in_item,
                                                           (part - w->slices) * rapt_additive_tile);
    }
}

static void run_chunk(work *w)
{
    const rapt_kernel_mask *m = &w->a->mask;
    const int64_t queries = w->chunk.last - w->chunk.first, parts = w->slices + w->tiles;
    const int64_t in_block = queries < rapt_additive_block ? queries : rapt_additive_block;
    w->blocks = (queries + rapt_additive_block - 1) / rapt_additive_block;
    rapt_parallel(m->batch * m->heads * w->blocks, rapt_grain(in_block * m->keys * (w->a->value_size / 8 + 16)),
                  run_scores, w);
    const int64_t work_of_part = m->heads / w->a->groups * queries * m->keys * rapt_additive_slice;
    if (parts > 0) rapt_parallel(m->batch * w->a->groups * parts, rapt_grain(work_of_part), run_sums, w);
}

/* As many queries at once as keep the one or two matrices of a chunk smaller than half the projected queries and keys. */
static int64_t choose_chunk(const rapt_additive *a, int64_t matrices)
{
    const rapt_kernel_mask *m = &a->mask;
    const int64_t budget = (m->heads * m->queries + a->groups * m->keys) * a->hidden / 2,
                  row = matrices * m->heads * m->keys;
    const int64_t rows = row > 0 ? budget / row / rapt_additive_block * rapt_additive_block : m->queries;
    const int64_t least = rows > rapt_additive_block ? rows : rapt_additive_block;
    return least < m->queries ? least : m->queries;
}

/* In (batch, heads, rows, keys), dense; first: where the chunk's first row is. */
static rapt_additive_rows_of_chunk rows_of_chunk(const rapt_additive *a, char *first, int64_t rows)
{
    return (rapt_additive_rows_of_chunk){first, a->mask.heads * rows * a->mask.keys, rows * a->mask.keys};
}

static bool run_chunks(work *w, rapt_additive_gradient *g)
{
    const rapt_kernel_mask *m = &w->a->mask;
    g->stores_pooled = !g->weights || m->keep < 1;
    const int64_t rows = choose_chunk(w->a, g->stores_pooled ? 2 : 1), bytes = (int64_t)rapt_dtype_size(w->dtype);
    rapt_tensor *scores = rapt_new(name, w->dtype, RAPT_SHAPE(m->batch, m->heads, rows, m->keys));
    rapt_tensor *pooled =
        g->stores_pooled ? rapt_new(name, w->dtype, RAPT_SHAPE(m->batch, m->heads, rows, m->keys)) : scores;
    if (!scores || !pooled) return false;
    g->scores = rows_of_chunk(w->a, scores->data, rows);
    int64_t first = 0;
    do { /* once even for no queries: there are zeros to write */
        w->chunk = (rapt_additive_chunk){first, first + rows < m->queries ? first + rows : m->queries};
        g->pooled = g->stores_pooled ? rows_of_chunk(w->a, pooled->data, rows)
                                     : rows_of_chunk(w->a, (char *)g->weights + first * m->keys * bytes, m->queries);
        run_chunk(w);
        first += rows;
    } while (first < m->queries);
    return true;
}

/* Where that gradient goes: one like the input, or nothing where it is not wanted. */
static rapt_tensor *gradient_like(const rapt_tensor *input, bool wanted)
{
    const int64_t none = 0;
    return wanted ? rapt_new(name, (rapt_dtype)input->dtype, input->rank, input->shape)
                  : rapt_new(name, RAPT_FLOAT32, 1, &none);
}

static rapt_tensor *forward(rapt_call *call)
{
    const rapt_additive_backward_options *o = rapt_call_options(call);
    const rapt_additive_inputs in = rapt_additive_inputs_of(call);
    rapt_tensor *out[rapt_additive_gradient_count];
    rapt_additive a;
    RAPT_SCOPE;
    const rapt_tensor *sums = rapt_call_input(call, rapt_additive_at_sums);
    const rapt_tensor *weights = rapt_call_input(call, rapt_additive_at_weights);
    const rapt_tensor *gradient = rapt_as_dense_rows(rapt_call_input(call, rapt_additive_at_gradient));
    rapt_tensor *so_far[rapt_additive_gradient_count] = {[1] = rapt_call_input(call, rapt_additive_at_keys_so_far),
                                                         [3] = rapt_call_input(call, rapt_additive_at_values_so_far)};
    if (!gradient || !rapt_additive_describe(&a, &in, &o->forward, !weights, true)) return NULL;
    const bool hidden = o->wants[0] || o->wants[1] || o->wants[2];
    rapt_tensor *each = rapt_new(name, (rapt_dtype)in.queries->dtype, RAPT_SHAPE(a.mask.batch * a.groups, a.hidden));
    for (int i = 0; i < rapt_additive_gradient_count; i++) {
        const bool writes = o->wants[i] || (i < 3 && hidden);
        out[i] = so_far[i] ? so_far[i] : rapt_keep(gradient_like(rapt_call_input(call, i), writes));
        if (!out[i]) return NULL;
    }
    if (!each) return NULL;
    rapt_additive_gradient g = {.gradient = rapt_grid_of(gradient),
                                .sums = sums->data,
                                .weights = weights ? weights->data : NULL,
                                .queries = out[0]->data,
                                .keys = out[1]->data,
                                .values = out[3]->data,
                                .adds_keys = so_far[1] != NULL,
                                .adds_values = so_far[3] != NULL,
                                .raw_weight = each->data,
                                .bias = o->wants[4] ? out[4]->data : NULL,
                                .nearby = o->wants[5] ? out[5]->data : NULL};
    if (o->wants[5]) memset(out[5]->data, 0, (size_t)out[5]->count * rapt_dtype_size((rapt_dtype)out[5]->dtype));
    work w = {.a = &a, .g = &g, .dtype = (rapt_dtype)in.queries->dtype};
    w.slices = hidden ? (a.hidden + rapt_additive_slice - 1) / rapt_additive_slice : 0;
    w.tiles = o->wants[3] ? (a.mask.keys + rapt_additive_tile - 1) / rapt_additive_tile : 0;
    if (!run_chunks(&w, &g)) return NULL;
    if (hidden)
        out[2] = rapt_keep(rapt_reshape(rapt_sum(each, RAPT_AXES(0), false), in.weight->rank, in.weight->shape));
    for (int i = 1; i < rapt_additive_gradient_count; i++) rapt_call_set_output(call, i, out[i]);
    return out[0];
}

const rapt_op rapt_additive_backward = {
    .name = "additive_attention_backward",
    .forward = forward,
    .options_size = sizeof(rapt_additive_backward_options),
    .optional = 15u << 4 | 1u << rapt_additive_at_weights | 1u << rapt_additive_at_keys_so_far |
                1u << rapt_additive_at_values_so_far,
    .outputs = rapt_additive_gradient_count,
    .no_gradient = "fused additive attention has no second derivative; set the attention's `plain` for one",
};
