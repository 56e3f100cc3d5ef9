/* Functions at their inputs: the cases of an op, laid out in one of the ways. */
#include "catalogue.h"

#include <stdio.h>
#include <stdlib.h>

static rapt_tensor *must_be_there(rapt_tensor *tensor, const char *name)
{
    if (tensor) return tensor;
    fprintf(stderr, "no input for %s: %s\n", name, rapt_error());
    abort();
}

static rapt_tensor *turn_round(rapt_tensor *x)
{
    int axes[RAPT_MAX_RANK], rank = rapt_rank(x);
    for (int axis = 0; axis < rank; axis++) axes[axis] = axis;
    return rank ? rapt_flip(x, rank, axes) : x;
}

static bool is_repeated(const rapt_tensor *x)
{
    return rapt_rank(x) > 0 && rapt_size(x, 0) > 1;
}

/* The leaf from which the function makes its input again. */
static rapt_tensor *leaf_of(rapt_tensor *input, int way)
{
    if (way == flipped) input = turn_round(input);
    if (way == expanded && is_repeated(input)) input = rapt_clone(rapt_slice(input, 0, 0, 1, 1));
    return rapt_require_gradient(input);
}

static rapt_tensor *input_of(rapt_tensor *leaf, const rapt_tensor *input, int way)
{
    if (way == flipped) return turn_round(leaf);
    if (way == expanded && is_repeated(input)) return rapt_expand(leaf, rapt_rank(input), rapt_shape(input));
    return leaf;
}

subject subject_of_op(const op_row *row, const op_sample *sample, rapt_dtype dtype, int way, int draw)
{
    subject s = {.way = way};
    s.c = op_case_draw(row, sample, dtype, way == flipped ? dense : (op_layout)way, false, draw);
    for (int i = 0; i < s.c.count && rapt_dtype_is_floating(dtype); i++)
        if (op_case_differentiable(&s.c, i))
            s.leaves[s.count++] = must_be_there(leaf_of(s.c.inputs[i], way), row->name);
    return s;
}

void subject_free(subject *s)
{
    op_case_free(&s->c);
}

bool sample_has_way(const op_sample *sample, int way)
{
    bool has = way == dense;
    for (int i = 0; i < most_inputs; i++) {
        const op_shape *in = &sample->in[i];
        if (in->state != given) continue;
        if (way == transposed)
            has |= in->rank > 1;
        else if (way == expanded)
            has |= in->rank > 0 && in->shape[0] > 1;
        else
            has |= in->rank > 0;
    }
    return has;
}

rapt_tensor *subject_call(const subject *s)
{
    rapt_tensor *inputs[most_inputs];
    const rapt_random_state before = rapt_random_get_state();
    rapt_random_set_state((rapt_random_state){.seed = 5});
    for (int i = 0, leaf = 0; i < s->c.count; i++)
        inputs[i] = s->count && op_case_differentiable(&s->c, i) ? input_of(s->leaves[leaf++], s->c.inputs[i], s->way)
                                                                 : s->c.inputs[i];
    rapt_tensor *y = s->c.row->call(inputs, s->c.sample);
    rapt_random_set_state(before);
    return y;
}
