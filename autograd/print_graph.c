/* The graph behind a tensor, as text or for Graphviz. Nodes carry their sequence numbers and come from the last to
 * the first. */
#include <rapt/graph.h>

#include "node.h"
#include "walk.h"

static void print_outputs(FILE *stream, const rapt_node *node)
{
    char text[RAPT_SHAPE_TEXT];
    for (int k = 0; k < node->output_count; k++) {
        const rapt_output *output = &node->outputs[k];
        fprintf(stream, "%s%s", k ? ", " : "", rapt_dtype_name(output->dtype));
        if (rapt_dtype_is_floating(output->dtype))
            fprintf(stream, " %s", rapt_shape_text(output->rank, output->shape, text));
    }
}

static const char *name_of(const rapt_node *node)
{
    return node->op ? node->op->name : "leaf";
}

/* "12 mul float32 [2, 3] of 10, 11.1, -": output 1 of node 11; a dash for an input without a graph. */
static void print_line(FILE *stream, const rapt_node *node)
{
    fprintf(stream, "%llu %s ", (unsigned long long)node->sequence, name_of(node));
    print_outputs(stream, node);
    if (node->used) fprintf(stream, ", freed by backward");
    for (int i = 0; i < node->edge_count && !node->used; i++) {
        const rapt_edge *edge = &node->edges[i];
        fprintf(stream, "%s", i ? ", " : " of ");
        if (!edge->node)
            fprintf(stream, "-");
        else
            fprintf(stream, "%llu", (unsigned long long)edge->node->sequence);
        if (edge->output > 0) fprintf(stream, ".%d", edge->output);
    }
    fprintf(stream, "\n");
}

static void print_dot(FILE *stream, const rapt_node *node)
{
    fprintf(stream, "    n%llu [label=\"%s\\n", (unsigned long long)node->sequence, name_of(node));
    print_outputs(stream, node);
    fprintf(stream, "\"%s];\n", node->op ? "" : ", shape=box");
    for (int i = 0; i < node->edge_count; i++)
        if (node->edges[i].node)
            fprintf(stream, "    n%llu -> n%llu;\n", (unsigned long long)node->edges[i].node->sequence,
                    (unsigned long long)node->sequence);
}

bool rapt_print_graph(FILE *stream, const rapt_tensor *tensor, bool dot)
{
    const char *op = "print_graph";
    if (!stream || !tensor) return rapt_fail_null(op, stream ? "tensor" : "stream");
    char text[RAPT_SHAPE_TEXT];
    rapt_walk walk = {.op = op};
    bool good = !tensor->link || (rapt_walk_add_root(&walk, rapt_node_of(tensor)) && rapt_walk_reach(&walk));
    if (dot) fprintf(stream, "digraph rapt {\n");
    for (int64_t i = 0; good && i < walk.order.count; i++) (dot ? print_dot : print_line)(stream, walk.order.nodes[i]);
    rapt_walk_end(&walk);
    if (!tensor->link && !dot)
        fprintf(stream, "no graph: %s %s\n", rapt_dtype_name(tensor->dtype),
                rapt_shape_text(tensor->rank, tensor->shape, text));
    if (dot) fprintf(stream, "}\n");
    if (good && (fflush(stream) != 0 || ferror(stream)))
        return rapt_fail(RAPT_ERROR_FILE, op, "the stream cannot be written to");
    return good;
}
