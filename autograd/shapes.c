/* Dtypes and shapes of what goes into ops and comes out, as text. */
#include <stdio.h>

#include "observe.h"

typedef struct listing {
    char *text;
    int used, count, left_out;
} listing;

/* shape NULL: there is none. */
static void list(listing *l, rapt_dtype dtype, int rank, const int64_t *shape)
{
    enum { of_one = RAPT_SHAPE_TEXT + 16, of_rest = 32 };
    char text[RAPT_SHAPE_TEXT];
    const int room = rapt_shapes_size - l->used;
    if (room < of_one + of_rest)
        l->left_out++;
    else
        l->used += snprintf(l->text + l->used, (size_t)room, "%s%s%s%s", l->count ? ", " : "",
                            shape ? rapt_dtype_name(dtype) : "-", shape ? " " : "",
                            shape ? rapt_shape_text(rank, shape, text) : "");
    l->count++;
}

static void end(listing *l)
{
    if (l->left_out > 0)
        snprintf(l->text + l->used, (size_t)(rapt_shapes_size - l->used), ", and %d more", l->left_out);
}

static void list_tensors(char *text, int count, rapt_tensor *const *tensors)
{
    listing l = {.text = text};
    *text = '\0';
    for (int i = 0; i < count; i++)
        list(&l, tensors[i] ? tensors[i]->dtype : RAPT_FLOAT32, tensors[i] ? tensors[i]->rank : 0,
             tensors[i] ? tensors[i]->shape : NULL);
    end(&l);
}

void rapt_shapes_of_call(rapt_shapes *shapes, const rapt_call *call, bool good)
{
    list_tensors(shapes->in, call->count, call->inputs);
    list_tensors(shapes->out, good ? call->output_count : 0, call->outputs);
}

static void list_output(listing *l, const rapt_output *output)
{
    list(l, output->dtype, output->rank, rapt_dtype_is_floating(output->dtype) ? output->shape : NULL);
}

void rapt_shapes_of_vjp(rapt_shapes *shapes, const rapt_walk *walk, const rapt_node *node)
{
    listing in = {.text = shapes->in}, out = {.text = shapes->out};
    shapes->in[0] = shapes->out[0] = '\0';
    for (int k = 0; k < node->output_count; k++) list_output(&in, &node->outputs[k]);
    for (int i = 0; i < node->edge_count; i++) {
        const rapt_edge *edge = &node->edges[i];
        if (rapt_walk_wants(walk, edge))
            list_output(&out, &edge->node->outputs[edge->output]);
        else
            list(&out, RAPT_FLOAT32, 0, NULL);
    }
    end(&in);
    end(&out);
}
