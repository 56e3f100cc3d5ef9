/* The graph behind a tensor, as text or for Graphviz. Nodes are numbered and come from the last to the first, leaves
 * behind the ops. */
#include <rapt/graph.h>

#include "autograd/print_graph.h"
#include "node.h"
#include "tensor/debug.h"
#include "tensor/pointer_set.h"
#include "walk.h"

typedef struct printing {
    FILE *stream;
    rapt_pointer_set nodes;
    rapt_leaf_name *name;
    void *context;
} printing;

static int64_t number_of(const rapt_pointer_set *nodes, const rapt_node *node)
{
    return nodes->count - rapt_pointer_set_find(nodes, node);
}

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

static const char *name_of(const printing *p, const rapt_node *node)
{
    if (node->op) return node->op->name;
    const char *name = p->name ? p->name(&node->link, p->context) : NULL;
    return name ? name : "leaf";
}

/* Within quotation marks of Graphviz. */
static void print_quoted(FILE *stream, const char *text)
{
    for (; *text; text++) {
        if (*text == '"' || *text == '\\') fputc('\\', stream);
        fputc(*text, stream);
    }
}

/* "12 mul float32 [2, 3] of 10, 11.1, -": output 1 of node 11; a dash for an input without a graph. */
static void print_line(const printing *p, const rapt_node *node)
{
    FILE *stream = p->stream;
    fprintf(stream, "%lld %s ", (long long)number_of(&p->nodes, node), name_of(p, node));
    print_outputs(stream, node);
    if (node->used) fprintf(stream, ", freed by backward");
    for (int i = 0; i < node->edge_count && !node->used; i++) {
        const rapt_edge *edge = &node->edges[i];
        fprintf(stream, "%s", i ? ", " : " of ");
        if (!edge->node)
            fprintf(stream, "-");
        else
            fprintf(stream, "%lld", (long long)number_of(&p->nodes, edge->node));
        if (edge->output > 0) fprintf(stream, ".%d", edge->output);
    }
    fprintf(stream, "\n");
}

static void print_dot(const printing *p, const rapt_node *node)
{
    FILE *stream = p->stream;
    fprintf(stream, "    n%lld [label=\"", (long long)number_of(&p->nodes, node));
    print_quoted(stream, name_of(p, node));
    fputs("\\n", stream);
    print_outputs(stream, node);
    if (node->op && node->path) {
        fputs("\\n", stream);
        print_quoted(stream, node->path);
    }
    fprintf(stream, "\"%s];\n", node->op ? "" : ", shape=box");
    for (int i = 0; i < node->edge_count; i++)
        if (node->edges[i].node)
            fprintf(stream, "    n%lld -> n%lld;\n", (long long)number_of(&p->nodes, node),
                    (long long)number_of(&p->nodes, node->edges[i].node));
}

/* The nodes behind a tensor in the order in which they are printed. */
static bool collect(const rapt_walk *walk, rapt_pointer_set *nodes)
{
    rapt_set_result result = RAPT_SET_NEW;
    for (int64_t i = 0; i < walk->order.count && result != RAPT_SET_NO_MEMORY; i++)
        result = rapt_pointer_set_add(nodes, walk->order.nodes[i]);
    for (int64_t i = 0; i < walk->places.count && result != RAPT_SET_NO_MEMORY; i++)
        result = rapt_pointer_set_add(nodes, walk->places.list[i].node);
    return result != RAPT_SET_NO_MEMORY || rapt_fail(RAPT_ERROR_MEMORY, walk->op, "no memory for a list of the nodes");
}

bool rapt_print_named_graph(const char *op, FILE *stream, const rapt_tensor *tensor, bool dot, rapt_leaf_name *name,
                            void *context)
{
    char text[RAPT_SHAPE_TEXT];
    if (!rapt_check_alive(op, "the tensor", tensor)) return false;
    rapt_walk walk = {.op = op};
    printing p = {.stream = stream, .name = name, .context = context};
    bool good = !tensor->link || (rapt_walk_add_root(&walk, rapt_node_of(tensor), tensor->output) &&
                                  rapt_walk_reach(&walk) && collect(&walk, &p.nodes));
    if (dot) fprintf(stream, "digraph rapt {\n");
    for (int64_t i = 0; good && i < p.nodes.count; i++) (dot ? print_dot : print_line)(&p, p.nodes.pointers[i]);
    rapt_pointer_set_free(&p.nodes);
    rapt_walk_end(&walk);
    if (!tensor->link && !dot)
        fprintf(stream, "no graph: %s %s\n", rapt_dtype_name(tensor->dtype),
                rapt_shape_text(tensor->rank, tensor->shape, text));
    if (dot) fprintf(stream, "}\n");
    if (good && (fflush(stream) != 0 || ferror(stream)))
        return rapt_fail(RAPT_ERROR_FILE, op, "the stream cannot be written to");
    return good;
}

bool rapt_print_graph(FILE *stream, const rapt_tensor *tensor, bool dot)
{
    const char *op = "print_graph";
    if (!stream || !tensor) return rapt_fail_null(op, stream ? "tensor" : "stream");
    return rapt_print_named_graph(op, stream, tensor, dot, NULL, NULL);
}
