/* What the two functions of an op can ask of the call they are handed. */
#include "autograd/node.h"

const void *rapt_call_options(const rapt_call *call)
{
    return call->options;
}

int rapt_call_count(const rapt_call *call)
{
    return call->count;
}

int rapt_call_output_count(const rapt_call *call)
{
    return call->output_count;
}

bool rapt_call_wants(const rapt_call *call, int input)
{
    if (input < 0 || input >= call->count) return false;
    if (call->node) return call->node->edges[input].node != NULL;
    return call->recording && call->inputs[input] && call->inputs[input]->link;
}

rapt_tensor *rapt_call_input(const rapt_call *call, int input)
{
    return call->node || input < 0 || input >= call->count ? NULL : call->inputs[input];
}

void rapt_call_set_output(rapt_call *call, int output, rapt_tensor *tensor)
{
    if (!call->node && output >= 0 && output < call->output_count) call->outputs[output] = tensor;
    if (!tensor) call->failed = true;
}

void rapt_call_save(rapt_call *call, rapt_tensor *tensor)
{
    if (!call->recording) return;
    if (call->saved_count == RAPT_MAX_SAVED) {
        call->failed = true;
        rapt_fail(RAPT_ERROR_VALUE, call->op->name, "more than %d tensors saved", RAPT_MAX_SAVED);
        return;
    }
    call->saved[call->saved_count++] = rapt_retain(tensor);
}

rapt_tensor *rapt_call_saved(rapt_call *call, int index)
{
    rapt_node *node = call->node;
    if (!node || index < 0 || index >= node->saved_count) return NULL;
    rapt_saved_tensor *saved = &node->saved[index];
    if (!saved->tensor) return NULL;
    if (atomic_load_explicit(&saved->tensor->storage->version, memory_order_relaxed) != saved->version) {
        call->failed = true;
        rapt_fail(RAPT_ERROR_GRAPH, node->op->name,
                  "a tensor that its gradient needs was changed in place after the op ran (version %llu, now %llu)",
                  (unsigned long long)saved->version, (unsigned long long)saved->tensor->storage->version);
        return NULL;
    }
    if (saved->output < 0 || !rapt_is_recording()) return saved->tensor;
    rapt_tensor *linked = rapt_new_alias(saved->tensor, false);
    if (!linked) return NULL;
    linked->link = &rapt_node_retain(node)->link;
    linked->output = saved->output;
    return linked;
}

rapt_tensor *rapt_call_gradient(rapt_call *call, int output)
{
    return call->node && output >= 0 && output < call->node->output_count ? call->node->outputs[output].gradient : NULL;
}

const int64_t *rapt_call_input_shape(const rapt_call *call, int input, int *rank)
{
    if (!rapt_call_wants(call, input)) return NULL;
    if (!call->node) {
        *rank = call->inputs[input]->rank;
        return call->inputs[input]->shape;
    }
    const rapt_edge *edge = &call->node->edges[input];
    *rank = edge->node->outputs[edge->output].rank;
    return edge->node->outputs[edge->output].shape;
}

/* Where the gradient of an input is summed up; NULL where none is wanted. */
static rapt_output *maker_of(const rapt_call *call, int input)
{
    if (!call->node || !rapt_call_wants(call, input)) return NULL;
    const rapt_edge *edge = &call->node->edges[input];
    return &edge->node->outputs[edge->output];
}

rapt_tensor *rapt_call_gradient_so_far(const rapt_call *call, int input)
{
    const rapt_output *maker = maker_of(call, input);
    for (int earlier = 0; maker && earlier < input; earlier++)
        if (maker_of(call, earlier) == maker) return NULL;
    return maker && maker->gradient && rapt_grows_in_place(maker->gradient, call->create_graph) ? maker->gradient
                                                                                                : NULL;
}

bool rapt_call_give(rapt_call *call, int input, rapt_tensor *gradient)
{
    if (!gradient) {
        call->failed = true;
        return false;
    }
    const rapt_output *maker = maker_of(call, input);
    if (!maker) return true;
    if (gradient == maker->gradient && rapt_grows_in_place(gradient, call->create_graph)) {
        call->failed = true;
        return rapt_fail(RAPT_ERROR_GRAPH, call->op->name,
                         "its vjp gave the gradient so far of input %d, which is only to be added to", input);
    }
    call->given[input] = gradient;
    return true;
}
