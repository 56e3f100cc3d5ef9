/* Second derivatives of ops with a fused vjp: that is one node of the graph, which differentiates the op's definition
 * twice when its own derivative is asked for. */
#include <string.h>

#include "node.h"
#include "tensor/memory.h"
#include "walk.h"

/* Of such a node, in front of the options of the call. Its inputs, all saved, are those of the call, then the gradients
 * of its outputs; its outputs are the gradients that the vjp gave, in the order of the inputs. */
typedef struct vjp_options {
    const rapt_op *op;
    int inputs, outputs; /* of the call */
    uint32_t given;      /* bit i: there is a gradient of input i */
    _Alignas(16) char options[];
} vjp_options;

static bool vjp_vjp(rapt_call *call);

static const rapt_op vjp_op = {.name = "vjp", .vjp = vjp_vjp};

/* An input: of the node when the call has an edge there. */
static bool save(rapt_node *node, int input, rapt_tensor *tensor, bool connects)
{
    rapt_saved_tensor *saved = &node->saved[input];
    saved->output = -1;
    saved->is_lost = false;
    if (!tensor) return true;
    saved->version = rapt_version_of(tensor);
    saved->tensor = rapt_node_share(tensor);
    if (saved->tensor && connects) rapt_node_connect(node, input, tensor);
    return saved->tensor != NULL;
}

static rapt_node *new_vjp_node(const rapt_node *of, uint32_t given)
{
    const rapt_op *op = of->op;
    const int inputs = of->edge_count, all = inputs + of->output_count, outputs = __builtin_popcount(given);
    rapt_node *node = rapt_node_new(&vjp_op, all, all, outputs, sizeof(vjp_options) + op->options_size);
    if (!node) return NULL;
    vjp_options *o = node->options;
    *o = (vjp_options){.op = op, .inputs = inputs, .outputs = of->output_count, .given = given};
    if (op->options_size) memcpy(o->options, of->options, op->options_size);
    bool good = true;
    for (int i = 0; i < inputs && good; i++) good = save(node, i, of->saved[i].tensor, of->edges[i].node);
    for (int k = 0; k < of->output_count && good; k++) {
        rapt_tensor *gradient = of->outputs[k].gradient;
        good = save(node, inputs + k, gradient, gradient && gradient->link);
    }
    if (good) return node;
    rapt_node_release(node);
    return NULL;
}

bool rapt_record_vjp(const rapt_node *of, rapt_tensor **given)
{
    rapt_tensor *outputs[RAPT_MAX_SAVED];
    uint32_t is_given = 0;
    int count = 0;
    if (of->edge_count + of->output_count > RAPT_MAX_SAVED)
        return rapt_fail(RAPT_ERROR_UNSUPPORTED, of->op->name, "a definition has %d inputs and outputs at most, not %d",
                         RAPT_MAX_SAVED, of->edge_count + of->output_count);
    for (int i = 0; i < of->edge_count; i++) {
        if (!given[i]) continue;
        given[i] = outputs[count++] = rapt_new_alias(given[i], false);
        if (!given[i]) return false;
        is_given |= UINT32_C(1) << i;
    }
    if (count == 0) return true;
    rapt_node *node = new_vjp_node(of, is_given);
    if (node) rapt_node_attach(node, outputs);
    return node != NULL;
}

/* --- its derivative --- */

/* What a definition is made of, as the results of one op: whatever is behind them was recorded before it. */
static rapt_tensor *begin_forward(rapt_call *call)
{
    for (int i = 1; i < rapt_call_count(call); i++)
        rapt_call_set_output(call, i, rapt_new_alias(rapt_call_input(call, i), false));
    return rapt_new_alias(rapt_call_input(call, 0), false);
}

static bool begin_vjp(rapt_call *call)
{
    for (int i = 0; i < rapt_call_count(call); i++)
        if (rapt_call_gradient(call, i) && !rapt_call_give(call, i, rapt_call_gradient(call, i))) return false;
    return true;
}

static const rapt_op begin_op = {.name = "definition", .forward = begin_forward, .vjp = begin_vjp};

/* Tensors with their numbers. */
typedef struct numbered {
    int count;
    rapt_tensor *tensors[RAPT_MAX_SAVED];
    int numbers[RAPT_MAX_SAVED];
} numbered;

static void append(numbered *list, rapt_tensor *tensor, int number)
{
    list->numbers[list->count] = number;
    list->tensors[list->count++] = tensor;
}

/* What the node saved from number `first` on, so many: in[i] is a constant or one of the variables, which are those
 * with an edge. */
static bool begin(rapt_call *call, int first, int count, rapt_tensor **in, numbered *variables)
{
    numbered linked = {0};
    for (int i = first; i < first + count; i++) {
        in[i] = rapt_call_saved(call, i);
        if (in[i] && call->node->edges[i].node)
            append(&linked, in[i], i);
        else if (in[i] && in[i]->link && !(in[i] = rapt_detach(in[i])))
            return false;
    }
    *variables = linked;
    if (linked.count == 0) return true;
    if (!rapt_apply_counted(&begin_op, NULL, linked.count, linked.tensors, linked.count, variables->tensors))
        return false;
    for (int j = 0; j < linked.count; j++) in[linked.numbers[j]] = variables->tensors[j];
    return true;
}

static bool check_output(const rapt_op *op, int output, const rapt_tensor *made, const rapt_tensor *gradient)
{
    char a[128], b[128];
    if (made && made->dtype == gradient->dtype && rapt_same_shape(made, gradient)) return true;
    return rapt_fail(RAPT_ERROR_SHAPE, op->name, "its definition gave %s as output %d, which is %s",
                     made ? rapt_describe(made, a, sizeof a) : "nothing", output, rapt_describe(gradient, b, sizeof b));
}

/* made[k]: output k, NULL where it has no gradient or depends on no variable. */
static bool define(rapt_call *of, rapt_tensor **in, rapt_tensor *made[RAPT_MAX_SAVED])
{
    const vjp_options *o = of->options;
    rapt_call call = {.op = o->op,
                      .options = o->options,
                      .count = o->inputs,
                      .inputs = in,
                      .output_count = o->outputs,
                      .outputs = made,
                      .scopes = rapt_open_scopes};
    memset(made, 0, RAPT_MAX_SAVED * sizeof *made);
    made[0] = o->op->definition(&call);
    if (!made[0] || call.failed)
        return rapt_fail(RAPT_ERROR_VALUE, o->op->name, "its definition failed without a reason");
    for (int k = 0; k < o->outputs; k++) {
        const rapt_tensor *gradient = rapt_call_saved(of, o->inputs + k);
        if (gradient && !check_output(o->op, k, made[k], gradient)) return false;
        if (!gradient || !made[k]->link) made[k] = NULL;
    }
    return true;
}

/* d = ∂<g, f(x)> / ∂x */
static bool differentiate(const vjp_options *o, rapt_tensor *const *made, rapt_tensor *const *in, const numbered *x,
                          rapt_tensor **d)
{
    numbered roots = {0};
    rapt_tensor *gradients[RAPT_MAX_SAVED];
    for (int k = 0; k < o->outputs; k++) {
        if (!made[k]) continue;
        gradients[roots.count] = in[o->inputs + k];
        append(&roots, made[k], k);
    }
    return rapt_gradients_for(o->op->name, roots.count, roots.tensors, gradients, x->count, x->tensors, d,
                              RAPT_CREATE_GRAPH);
}

/* The gradients of <u, d> by the variables that are wanted. */
static bool differentiate_again(rapt_call *call, const numbered *x, rapt_tensor *const *d, const numbered *variables)
{
    const vjp_options *o = call->options;
    numbered roots = {0}, wanted = {0};
    rapt_tensor *gradients[RAPT_MAX_SAVED], *results[RAPT_MAX_SAVED];
    for (int j = 0; j < x->count; j++) {
        const int input = x->numbers[j];
        if (!d[j] || !d[j]->link || !(o->given >> input & 1)) continue;
        const uint32_t before = o->given & ((UINT32_C(1) << input) - 1);
        gradients[roots.count] = rapt_call_gradient(call, __builtin_popcount(before));
        if (gradients[roots.count]) append(&roots, d[j], input);
    }
    for (int j = 0; j < variables->count; j++)
        if (rapt_call_wants(call, variables->numbers[j])) append(&wanted, variables->tensors[j], variables->numbers[j]);
    if (!rapt_gradients_for(o->op->name, roots.count, roots.tensors, gradients, wanted.count, wanted.tensors, results,
                            call->walk->create_graph ? RAPT_CREATE_GRAPH : 0))
        return false;
    for (int j = 0; j < wanted.count; j++)
        if (results[j] && !rapt_call_give(call, wanted.numbers[j], results[j])) return false;
    return true;
}

/* What is wanted begins after all that was recorded elsewhere, and g after the definition: where only g's gradient is
 * wanted, that is not walked through again. */
static bool differentiate_twice(rapt_call *call)
{
    const vjp_options *o = call->options;
    rapt_tensor *in[RAPT_MAX_SAVED], *made[RAPT_MAX_SAVED], *d[RAPT_MAX_SAVED];
    numbered x, g;
    rapt_nodes_follow(call->node);
    if (!begin(call, 0, o->inputs, in, &x) || !define(call, in, made) || !begin(call, o->inputs, o->outputs, in, &g) ||
        !differentiate(o, made, in, &x, d))
        return false;
    numbered variables = x;
    for (int j = 0; j < g.count; j++) append(&variables, g.tensors[j], g.numbers[j]);
    return differentiate_again(call, &x, d, &variables);
}

static bool vjp_vjp(rapt_call *call)
{
    const bool before = rapt_set_recording(true), good = differentiate_twice(call);
    rapt_set_recording(before);
    return good;
}
