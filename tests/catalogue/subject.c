/* Functions at their inputs: the cases of an op or a layer, laid out in one of the ways. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rapt/nn.h>

#include "catalogue.h"

static void *must_be_there(void *thing, const char *name)
{
    if (thing) return thing;
    fprintf(stderr, "no input or module for %s: %s\n", name, rapt_error());
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

static const char *const ways[way_count] = {"dense", "transposed", "stepped", "offset", "expanded", "flipped"};

subject subject_of_op(const op_row *row, const op_sample *sample, rapt_dtype dtype, int way, int draw)
{
    subject s = {.way = way};
    s.c = op_case_draw(row, sample, dtype, way == flipped ? dense : (op_layout)way, false, draw);
    const size_t named = strlen(s.c.name);
    snprintf(s.c.name + named, sizeof s.c.name - named, ", %s, draw %d", ways[way], draw);
    for (int i = 0; i < s.c.count && rapt_dtype_is_floating(dtype); i++)
        if (op_case_differentiable(&s.c, i))
            s.leaves[s.count++] = must_be_there(leaf_of(s.c.inputs[i], way), row->name);
    return s;
}

static bool move_parameter(const char *name, rapt_tensor *tensor, void *context)
{
    (void)name, (void)context;
    return rapt_add_in_place(tensor, rapt_randn(rapt_get_dtype(tensor), rapt_rank(tensor), rapt_shape(tensor)), 0.25);
}

static rapt_module *module_of(const layer_row *layer, const op_sample *sample, rapt_dtype dtype, int draw)
{
    rapt_seed((uint64_t)draw + 1);
    rapt_module *module = must_be_there(layer->make(sample), layer->row.name);
    const bool good =
        rapt_module_visit(module, RAPT_PARAMETERS, move_parameter, NULL) && rapt_module_cast(module, dtype);
    rapt_module_train(module, draw % 2 == 0);
    return must_be_there(good ? module : NULL, layer->row.name);
}

subject subject_of_layer(const layer_row *layer, const op_sample *sample, rapt_dtype dtype, int way, int draw)
{
    subject s = subject_of_op(&layer->row, sample, dtype, way, draw);
    s.layer = layer;
    if (!layer->make) return s;
    s.module = module_of(layer, sample, dtype, draw);
    s.parameters = must_be_there(rapt_module_list(s.module, RAPT_PARAMETERS), layer->row.name);
    must_be_there(s.count + s.parameters->count <= most_leaves ? &s : NULL, layer->row.name);
    for (int i = 0; i < s.parameters->count; i++) s.leaves[s.count++] = s.parameters->tensors[i];
    return s;
}

void subject_free(subject *s)
{
    op_case_free(&s->c);
    rapt_tensor_list_free(s->parameters);
    rapt_module_free(s->module);
}

int64_t subject_width(const subject *s)
{
    int64_t width = 0;
    for (int i = 0; i < s->count; i++) width += rapt_count(s->leaves[i]);
    return width;
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

static rapt_tensor *run(const subject *s, layer_call *function)
{
    rapt_tensor *inputs[most_inputs];
    const rapt_random_state before = rapt_random_get_state();
    rapt_random_set_state((rapt_random_state){.seed = 5});
    for (int i = 0, leaf = 0; i < s->c.count; i++)
        inputs[i] = s->count && op_case_differentiable(&s->c, i) ? input_of(s->leaves[leaf++], s->c.inputs[i], s->way)
                                                                 : s->c.inputs[i];
    rapt_tensor *y = function ? function(s->module, inputs, s->c.sample) : s->c.row->call(inputs, s->c.sample);
    rapt_random_set_state(before);
    return y;
}

rapt_tensor *subject_call(const subject *s)
{
    return run(s, s->layer ? s->layer->call : NULL);
}

rapt_tensor *subject_define(const subject *s)
{
    return run(s, s->layer->definition);
}
