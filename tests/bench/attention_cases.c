/* What the measurements of attention share. */
#include "attention_cases.h"

#include <stdlib.h>

#include "rows.h"

enum { largest_batch = 128 };

/* A case made ready. */
typedef struct trial {
    const attention_kind *kind;
    const attention_case *sizes;
    rapt_attention *attention;
    rapt_tensor *inputs[3], *gradient;
    rapt_mask mask;
    int64_t lengths[largest_batch]; /* of keys that are no padding */
    double pairs;                   /* of a query and a key that it sees, of all heads */
} trial;

static rapt_tensor *draw(const attention_case *c, int64_t heads, int64_t length, const int64_t *lengths)
{
    int64_t rows = 0;
    for (int64_t b = 0; b < c->batch; b++) rows += lengths[b];
    if (c->layout == PACKED) return rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(heads, rows, c->size));
    if (heads == 0) return rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(c->batch, length, c->size));
    if (c->layout == DENSE) return rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(c->batch, heads, length, c->size));
    return rapt_randn(RAPT_FLOAT32, RAPT_SHAPE(c->batch, length, heads, c->size));
}

static rapt_tensor *swap_heads(rapt_tensor *x)
{
    return rapt_transpose(x, -3, -2);
}

static rapt_tensor *attend(const trial *t)
{
    rapt_tensor *heads[3];
    for (int i = 0; i < 3; i++) heads[i] = t->sizes->layout == SPLIT ? swap_heads(t->inputs[i]) : t->inputs[i];
    return rapt_attention_forward(t->attention, heads[0], heads[1], heads[2], &t->mask);
}

/* A gradient for the output, in memory as the output is: dense, or as heads that were split. */
static rapt_tensor *draw_gradient(const trial *t)
{
    RAPT_NO_GRADIENT;
    RAPT_SCOPE;
    rapt_tensor *pooled = attend(t), *like = rapt_is_contiguous(pooled) ? pooled : swap_heads(pooled);
    rapt_tensor *drawn = rapt_randn(RAPT_FLOAT32, rapt_rank(like), rapt_shape(like));
    return rapt_keep(like == pooled ? drawn : swap_heads(drawn));
}

/* Of a query and a key that it sees, of all heads; packed queries are no padding either. */
static double count_pairs(const trial *t)
{
    const attention_case *c = t->sizes;
    double pairs = 0;
    for (int64_t b = 0; b < c->batch; b++) {
        const int64_t length = t->lengths[b], queries = c->layout == PACKED ? length : c->queries;
        for (int64_t i = 0; i < queries; i++) {
            const int64_t before = i + t->mask.offset + 1;
            pairs += (double)(c->causal && before < length ? before : length);
        }
    }
    return pairs * (double)(c->heads ? c->heads : 1);
}

static trial prepare(const attention_kind *kind, const attention_case *c)
{
    trial t = {.kind = kind, .sizes = c, .attention = kind->make(c->size), .mask = {.causal = c->causal}};
    if (c->modify) rapt_attention_modify(t.attention, "modification", c->modify(c->heads));
    t.mask.offset = c->keys - c->queries;
    for (int64_t b = 0; b < c->batch; b++) t.lengths[b] = c->has_lengths ? 1 + (7919 * b + 13) % c->keys : c->keys;
    rapt_tensor *lengths = c->has_lengths ? rapt_from(RAPT_INT64, RAPT_SHAPE(c->batch), t.lengths) : NULL;
    if (c->layout == PACKED)
        t.mask.starts = rapt_packing_starts(lengths);
    else
        t.mask.valid_lengths = lengths;
    t.inputs[0] = rapt_require_gradient(draw(c, c->heads, c->queries, t.lengths));
    for (int i = 1; i < 3; i++) t.inputs[i] = rapt_require_gradient(draw(c, c->groups, c->keys, t.lengths));
    t.pairs = count_pairs(&t);
    t.gradient = draw_gradient(&t);
    return t;
}

static void forward(void *context)
{
    RAPT_NO_GRADIENT;
    RAPT_SCOPE;
    attend(context);
}

static void forward_and_backward(void *context)
{
    RAPT_SCOPE;
    trial *t = context;
    for (int i = 0; i < 3; i++) rapt_clear_gradient(t->inputs[i]);
    rapt_module_clear_gradients(&t->attention->module);
    rapt_tensor *pooled = attend(t);
    rapt_backward_from(1, &pooled, &t->gradient, 0);
}

static void *make(const void *row, const void *kind)
{
    trial *t = malloc(sizeof *t);
    if (!t) exit(EXIT_FAILURE);
    *t = prepare(kind, row);
    return t;
}

static void end(void *made)
{
    trial *t = made;
    rapt_module_free(&t->attention->module);
    free(t);
}

static double cost(const void *made, int phase)
{
    const trial *t = made;
    return t->kind->cost(t->sizes->size, phase == 1) * t->pairs;
}

int attention_cases_main(int count, char **arguments, const attention_kind *kind, const attention_case *cases,
                         int num_cases)
{
    const row_family family = {.rows = cases,
                               .row_size = sizeof *cases,
                               .row_count = num_cases,
                               .phases = {"fwd", "fwd_bwd"},
                               .work = {forward, forward_and_backward},
                               .make = make,
                               .end = end,
                               .cost = cost,
                               .context = kind,
                               .note = kind->note};
    return rows_main(count, arguments, &family, 1);
}
