/* The one function through which all ops go: checks for NULL, computes, records. */
#include <stdio.h>
#include <string.h>

#include "node.h"
#include "observe.h"
#include "recording.h"
#include "tensor/debug.h"
#include "tensor/memory.h"
#include "tensor/random.h"

static __attribute__((noinline, cold)) bool fail_op(const rapt_op *op, const void *options, int count)
{
    if (!op) return rapt_fail_null("apply", "the op");
    const char *name = op->name ? op->name : "apply";
    if (!op->forward) return rapt_fail_null(name, "the op's forward");
    if (!op->name) return rapt_fail_null(name, "the op's name");
    if (count < 0) return rapt_fail(RAPT_ERROR_VALUE, name, "%d inputs; 0 or more expected", count);
    if (op->options_size && !options)
        return rapt_fail(RAPT_ERROR_NULL, name, "it has options of %zu bytes, and NULL was given", op->options_size);
    return rapt_fail_null(name, "the list of inputs");
}

static inline bool check_op(const rapt_op *op, const void *options, int count, rapt_tensor *const *inputs)
{
    return (op && op->name && op->forward && (count == 0 || (count > 0 && inputs)) &&
            (options || op->options_size == 0)) ||
           fail_op(op, options, count);
}

static __attribute__((noinline, cold)) bool check_alive(const rapt_op *op, const char *role, int count,
                                                        rapt_tensor *const *tensors)
{
    for (int i = 0; i < count; i++) {
        char what[32];
        snprintf(what, sizeof what, "%s %d", role, i);
        if (!rapt_check_alive(op->name, what, tensors[i])) return false;
    }
    return true;
}

/* May that input be NULL? */
static __attribute__((noinline)) bool check_missing(const rapt_op *op, int input)
{
    return (input < 32 && (op->optional >> input & 1)) ||
           rapt_fail(RAPT_ERROR_NULL, op->name, "input %d is NULL", input);
}

/* *linked: does one of them want a gradient? */
static inline bool check_inputs(const rapt_op *op, int count, rapt_tensor *const *inputs, bool *linked)
{
    *linked = false;
    for (int i = 0; i < count; i++) {
        if (inputs[i])
            *linked |= inputs[i]->link != NULL;
        else if (!check_missing(op, i))
            return false;
    }
    return !rapt_debugging || check_alive(op, "input", count, inputs);
}

static bool is_input(const rapt_call *call, const rapt_tensor *tensor)
{
    for (int i = 0; i < call->count; i++)
        if (call->inputs[i] == tensor) return true;
    return false;
}

static int output_index(const rapt_call *call, const rapt_tensor *tensor)
{
    for (int k = 0; k < call->output_count; k++)
        if (call->outputs[k] == tensor) return k;
    return -1;
}

/* Outputs are saved as unlinked views, or the node would hold itself; leaves likewise, or the graph would hold them. */
static bool save(rapt_node *node, rapt_call *call)
{
    for (int k = 0; k < call->saved_count; k++) {
        rapt_tensor *tensor = call->saved[k];
        rapt_saved_tensor *saved = &node->saved[k];
        const bool is_named = call->saved_output[k] >= 0;
        if (!tensor && !is_named) continue;
        saved->output = is_named ? call->saved_output[k] : output_index(call, tensor);
        saved->is_lost =
            saved->output < 0 && !is_input(call, tensor) && rapt_is_floating(tensor) && !(call->constants >> k & 1);
        if (saved->output >= 0 || (tensor->link && tensor->link->kind->is_leaf)) {
            tensor = rapt_alias_share(tensor ? tensor : call->outputs[saved->output], saved->output < 0);
            if (!tensor) return false;
            rapt_release(call->saved[k]);
        }
        call->saved[k] = NULL; /* its share is the node's */
        saved->tensor = tensor;
        saved->version = rapt_version_of(tensor);
    }
    return true;
}

/* False for an input or another output that forward returned as it is, or a tensor that somebody else holds. */
static bool is_new(const rapt_call *call, int index)
{
    const rapt_tensor *output = call->outputs[index];
    int64_t shares = 1; /* the scope's, and one for each time it is saved */
    if (output->link || is_input(call, output)) return false;
    for (int k = 0; k < index; k++)
        if (call->outputs[k] == output) return false;
    for (int k = 0; k < call->saved_count; k++) shares += call->saved[k] == output;
    return atomic_load_explicit(&output->references, memory_order_relaxed) == shares;
}

/* Replaces what is not new by a view of it, so that linking it changes nothing for its other holders. What of it was
 * saved is the output, unless it is an input. */
static bool make_new(rapt_call *call, int output)
{
    if (is_new(call, output)) return true;
    const rapt_tensor *tensor = call->outputs[output];
    for (int k = 0; k < call->saved_count; k++)
        if (call->saved[k] == tensor && !is_input(call, tensor)) call->saved_output[k] = output;
    call->outputs[output] = rapt_new_alias(tensor, false);
    return call->outputs[output] != NULL;
}

/* Where nothing is recorded: replaces an input that is an output by a view of it, which the innermost scope owns; but
 * not the spare gradient, whose place an output may take. */
static inline bool disown_input(rapt_call *call, int output, const rapt_tensor *spare)
{
    const rapt_tensor *tensor = call->outputs[output];
    const bool took_its_place = tensor == spare && rapt_spare_gradient != spare;
    return !is_input(call, tensor) || took_its_place || (call->outputs[output] = rapt_new_alias(tensor, false));
}

/* A definition reads the inputs. */
static bool check_definition(const rapt_call *call)
{
    for (int i = 0; call->op->definition && i < call->count; i++)
        if (i >= call->saved_count || call->saved[i] != call->inputs[i])
            return rapt_fail(RAPT_ERROR_GRAPH, call->op->name,
                             "it has a definition, so that its forward must save its inputs first, all of them and in "
                             "order; saved tensor %d is not input %d",
                             i, i);
    return true;
}

static __attribute__((noinline)) bool record(rapt_call *call)
{
    if (!check_definition(call)) return false;
    const size_t options_size = call->op->options_size;
    rapt_node *node = rapt_node_new(call->op, call->count, call->saved_count, call->output_count, options_size);
    if (!node) return false;
    if (options_size) memcpy(node->options, call->options, options_size);
    bool good = true;
    for (int k = 0; k < call->output_count && good; k++) good = make_new(call, k);
    if (!good || !save(node, call)) {
        rapt_node_release(node);
        return false;
    }
    for (int i = 0; i < call->count; i++)
        if (call->inputs[i] && call->inputs[i]->link) rapt_node_connect(node, i, call->inputs[i]);
    rapt_node_attach(node, call->outputs);
    return true;
}

static inline bool any_floating(const rapt_call *call, int outputs)
{
    for (int k = 0; k < outputs; k++)
        if (rapt_is_floating(call->outputs[k])) return true;
    return false;
}

static inline __attribute__((always_inline)) bool run(const rapt_op *op, rapt_call *call, int outputs)
{
    bool linked;
    if (!check_inputs(op, call->count, call->inputs, &linked)) return false;
    const rapt_random_state random = rapt_generator;
    const bool off_before = rapt_recording_is_off;
    const char *op_before = rapt_running_op;
    if (op_before) rapt_spare_gradient = NULL; /* the forward around may read its input again */
    const rapt_tensor *spare = rapt_spare_gradient;
    call->recording = linked && !off_before;
    rapt_recording_is_off = true;
    rapt_running_op = op->name;
    if (outputs > 1) call->scopes = rapt_open_scopes;
    rapt_tensor *first = op->forward(call);
    rapt_running_op = op_before;
    rapt_recording_is_off = off_before;
    bool good = first && !call->failed;
    if (!good) rapt_fail(RAPT_ERROR_VALUE, op->name, "its forward failed without a reason");
    call->outputs[0] = first;
    for (int k = 1; k < outputs && good; k++)
        good = call->outputs[k] || rapt_fail(RAPT_ERROR_NULL, op->name, "its forward set no output %d", k);
    if (rapt_debugging) good = good && check_alive(op, "output", outputs, call->outputs);
    if (good && call->recording && any_floating(call, outputs))
        good = record(call);
    else
        for (int k = 0; k < outputs && good; k++) good = disown_input(call, k, spare);
    for (int k = 0; k < call->saved_count; k++)
        if (call->saved[k]) rapt_release(call->saved[k]);
    if (!good) rapt_generator = random;
    return good;
}

static __attribute__((noinline)) bool run_any(rapt_call *call)
{
    return run(call->op, call, call->output_count);
}

static __attribute__((noinline, cold)) bool run_observed(rapt_call *call)
{
    const rapt_random_state random = rapt_generator;
    rapt_observation observation;
    if (rapt_is_inside()) return run_any(call);
    rapt_observe_op(&observation, call);
    if (rapt_observe_op_done(&observation, call, run_any(call))) return true;
    rapt_generator = random;
    return false;
}

/* Computes and records, and is observed where somebody wants to. Once for every number of outputs that the compiler
 * knows. */
static inline __attribute__((always_inline)) bool apply(const rapt_op *op, const void *options, int count,
                                                        rapt_tensor *const *inputs, int output_count,
                                                        rapt_tensor **outputs)
{
    rapt_call call;
    call.op = op;
    call.options = options;
    call.count = count;
    call.inputs = inputs;
    call.failed = false;
    call.saved_count = 0;
    call.constants = 0;
    call.node = NULL;
    call.output_count = output_count;
    call.outputs = outputs;
    return rapt_observed() ? run_observed(&call) : run(op, &call, output_count);
}

static __attribute__((noinline, cold)) bool fail_outputs(const rapt_op *op)
{
    return rapt_fail(RAPT_ERROR_VALUE, op->name, "it has %d outputs: rapt_apply_many gives them, rapt_apply one alone",
                     op->outputs);
}

rapt_tensor *rapt_apply(const rapt_op *op, const void *options, int count, rapt_tensor *const *inputs)
{
    rapt_tensor *output = NULL;
    const bool good = check_op(op, options, count, inputs) && (op->outputs <= 1 || fail_outputs(op)) &&
                      apply(op, options, count, inputs, 1, &output);
    return good ? output : NULL;
}

bool rapt_apply_many(const rapt_op *op, const void *options, int count, rapt_tensor *const *inputs,
                     rapt_tensor **outputs)
{
    return rapt_apply_counted(op, options, count, inputs, op && op->outputs ? op->outputs : 1, outputs);
}

bool rapt_apply_counted(const rapt_op *op, const void *options, int count, rapt_tensor *const *inputs, int output_count,
                        rapt_tensor **outputs)
{
    if (outputs && output_count > 0) memset(outputs, 0, (size_t)output_count * sizeof *outputs);
    if (!check_op(op, options, count, inputs)) return false;
    if (output_count < 1) return rapt_fail(RAPT_ERROR_VALUE, op->name, "%d outputs; 1 or more expected", output_count);
    if (!outputs) return rapt_fail_null(op->name, "the list of outputs");
    if (apply(op, options, count, inputs, output_count, outputs)) return true;
    memset(outputs, 0, (size_t)output_count * sizeof *outputs);
    return false;
}
