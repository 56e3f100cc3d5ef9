/* A walk's visit of one node: its vjp is called, and what it gives goes to the inputs. */
#include <string.h>

#include <rapt/ops.h>

#include "recording.h"
#include "tensor/memory.h"
#include "walk.h"

/* sum + gradient: in place where nobody else can see the sum, else a new tensor. */
static bool add_to(rapt_tensor **sum, rapt_tensor *gradient, bool create_graph)
{
    if (rapt_grows_in_place(*sum, create_graph)) return rapt_add_in_place(*sum, gradient, 1);
    rapt_tensor *total = rapt_retain(rapt_add(*sum, gradient));
    if (!total) return false;
    rapt_release(*sum);
    *sum = total;
    return true;
}

bool rapt_walk_deliver(rapt_walk *walk, rapt_node *node, int output, rapt_tensor *gradient)
{
    rapt_tensor **sum = rapt_places_sum(&walk->places, node, output);
    if (*sum) return add_to(sum, gradient, walk->create_graph);
    *sum = rapt_retain(gradient);
    return true;
}

static __attribute__((noinline)) rapt_tensor *fit_another_shape(const rapt_op *op, int input, const rapt_output *output,
                                                                rapt_tensor *gradient)
{
    char a[RAPT_SHAPE_TEXT], b[RAPT_SHAPE_TEXT];
    if (gradient->dtype == output->dtype && rapt_sums_to_shape(gradient, output->rank, output->shape))
        return rapt_sum_to_shape(gradient, output->rank, output->shape);
    rapt_fail(gradient->dtype == output->dtype ? RAPT_ERROR_SHAPE : RAPT_ERROR_DTYPE, op->name,
              "its vjp gave %s %s as the gradient of input %d, which is %s %s", rapt_dtype_name(gradient->dtype),
              rapt_shape_text(gradient->rank, gradient->shape, a), input, rapt_dtype_name(output->dtype),
              rapt_shape_text(output->rank, output->shape, b));
    return NULL;
}

/* What a vjp gave for an input, summed over the axes along which the input was broadcast. */
static inline rapt_tensor *fit(const rapt_op *op, int input, const rapt_edge *edge, rapt_tensor *gradient)
{
    const rapt_output *output = &edge->node->outputs[edge->output];
    const bool is_fit = gradient->dtype == output->dtype && rapt_has_shape(gradient, output->rank, output->shape);
    return is_fit ? gradient : fit_another_shape(op, input, output, gradient);
}

static bool is_zero(rapt_tensor *gradient)
{
    rapt_tensor *zero = rapt_scalar(gradient->dtype, 0);
    rapt_tensor *others = rapt_sum(rapt_not_equal(gradient, zero), RAPT_ALL_AXES, false);
    return others && rapt_item(others) == 0;
}

/* A gradient is linear in those of the outputs. Where they are part of a graph and it is not, it was not made of
 * recorded ops, and its own derivative would be lost. */
static bool check_linked(const rapt_node *node, int input, rapt_tensor *gradient)
{
    if (gradient->link) return true;
    for (int k = 0; k < node->output_count; k++)
        if (node->outputs[k].gradient && !node->outputs[k].gradient->link) return true;
    return is_zero(gradient) ||
           rapt_fail(
               RAPT_ERROR_GRAPH, node->op->name,
               "its vjp did not make the gradient of input %d of recorded ops, so that one has no derivative; write "
               "it with ops, give the op a definition, or say in no_second_gradient why not",
               input);
}

/* So many gradients have room on the stack, and among so many the same one is looked for: a search among those of all
 * inputs of a stack of thousands takes longer than all else. */
enum { few_edges = 8, searched_edges = 64 };

/* A share of what begins a sum: where nobody needs it again, that of the node or of the scope. */
static rapt_tensor *share_of(const rapt_walk *walk, rapt_node *node, int input, rapt_tensor **given,
                             rapt_tensor *gradient)
{
    if (node->edge_count > searched_edges) return rapt_retain(gradient);
    for (int later = input + 1; later < node->edge_count; later++)
        if (given[later] == gradient) return rapt_retain(gradient);
    for (int k = 0; k < node->output_count && !walk->create_graph; k++) {
        if (node->outputs[k].gradient != gradient) continue;
        node->outputs[k].gradient = NULL;
        return gradient;
    }
    return rapt_scope_take(gradient);
}

/* A gradient so far is only to be added to by the vjp, and never given. */
static bool check_other(const rapt_walk *walk, const rapt_node *node, int input, const rapt_tensor *so_far,
                        const rapt_tensor *gradient)
{
    return gradient != so_far || !rapt_grows_in_place(so_far, walk->create_graph) ||
           rapt_fail(RAPT_ERROR_GRAPH, node->op->name,
                     "its vjp gave the gradient so far of input %d, which is only to be added to", input);
}

static bool deliver_given(rapt_walk *walk, rapt_node *node, rapt_tensor **given)
{
    for (int i = 0; i < node->edge_count; i++) {
        const rapt_edge *edge = &node->edges[i];
        if (!given[i]) continue;
        if (walk->create_graph && !check_linked(node, i, given[i])) return false;
        rapt_tensor *gradient = fit(node->op, i, edge, given[i]);
        if (!gradient) return false;
        rapt_tensor **sum = rapt_places_sum(&walk->places, edge->node, edge->output);
        if (*sum) {
            if (!check_other(walk, node, i, *sum, gradient) || !add_to(sum, gradient, walk->create_graph)) return false;
        } else if (!(*sum = share_of(walk, node, i, given, gradient))) {
            return false; /* it is gone, as the debugging mode tells */
        }
    }
    return true;
}

static inline bool call_vjp(rapt_walk *walk, rapt_node *node, rapt_tensor **given)
{
    const rapt_op *op = node->op;
    rapt_call call;
    call.op = op;
    call.options = node->options;
    call.count = node->edge_count;
    call.output_count = node->output_count;
    call.node = node;
    call.given = given;
    call.walk = walk;
    call.scopes = rapt_open_scopes;
    call.failed = false;
    if (!rapt_node_get_saved(node, call.saved)) return false;
    const bool off_before = rapt_recording_is_off;
    const bool good = op->vjp(&call);
    rapt_recording_is_off = off_before;
    rapt_spare_gradient = NULL;
    return (good && !call.failed) || rapt_fail(RAPT_ERROR_GRAPH, op->name, "its vjp failed without a reason");
}

/* What a vjp that cannot be differentiated gives, made part of the graph by the op's definition. */
static __attribute__((noinline)) bool call_fused_vjp(rapt_walk *walk, rapt_node *node, rapt_tensor **given)
{
    RAPT_NO_GRADIENT;
    if (!call_vjp(walk, node, given)) return false;
    for (int i = 0; i < node->edge_count; i++)
        if (given[i] && !(given[i] = fit(node->op, i, &node->edges[i], given[i]))) return false;
    return rapt_record_vjp(node, given);
}

bool rapt_walk_visit(rapt_walk *walk, rapt_node *node)
{
    const bool is_wide = node->edge_count > few_edges;
    rapt_tensor *few_given[few_edges] = {0}, **given = few_given;
    size_t capacity, bytes = (size_t)node->edge_count * sizeof(rapt_tensor *);
    if (is_wide) {
        given = rapt_block_take(node->op->name, bytes, &capacity);
        if (!given) return false;
        memset(given, 0, bytes);
    }
    const bool is_fused = walk->create_graph && node->op->definition;
    bool good = is_fused ? call_fused_vjp(walk, node, given) : call_vjp(walk, node, given);
    good = good && deliver_given(walk, node, given);
    if (is_wide) rapt_block_give(given, capacity);
    return good;
}
