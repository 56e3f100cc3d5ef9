/* What the two functions of an op can ask of the call they are handed. */
#include "recording.h"
#include "tensor/debug.h"
#include "tensor/memory.h"
#include "walk.h"

const rapt_op *rapt_call_op(const rapt_call *call)
{
    return call->op;
}

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

/* What its function returns no longer counts. The engine makes all calls and none of them constant. */
static __attribute__((noinline, cold)) bool fail(const rapt_call *call)
{
    ((rapt_call *)(uintptr_t)call)->failed = true;
    return false;
}

static __attribute__((noinline, cold)) void fail_index(const rapt_call *call, const char *what, int index, int count)
{
    rapt_fail(RAPT_ERROR_VALUE, call->op->name, "%s %d asked for in its %s; there are %d", what, index,
              call->node ? "vjp" : "forward", count);
    fail(call);
}

/* False and an error, so that the call fails, for an index that is not there. */
static inline bool check_index(const rapt_call *call, const char *what, int index, int count)
{
    if ((unsigned)index < (unsigned)count) return true; /* count is never negative */
    fail_index(call, what, index, count);
    return false;
}

bool rapt_call_wants(const rapt_call *call, int input)
{
    if (!check_index(call, "input", input, call->count)) return false;
    if (call->node) return rapt_walk_wants(call->walk, &call->node->edges[input]);
    return call->recording && call->inputs[input] && call->inputs[input]->link;
}

rapt_tensor *rapt_call_input(const rapt_call *call, int input)
{
    if (!call->node) return check_index(call, "input", input, call->count) ? call->inputs[input] : NULL;
    rapt_fail(RAPT_ERROR_GRAPH, call->op->name, "its vjp asked for input %d, which only forward has; save it there",
              input);
    fail(call);
    return NULL;
}

rapt_tensor *const *rapt_call_inputs(const rapt_call *call)
{
    if (!call->node) return call->inputs;
    rapt_fail(RAPT_ERROR_GRAPH, call->op->name,
              "its vjp asked for the inputs, which only forward has; save them there");
    fail(call);
    return NULL;
}

/* What the function hands to the engine outlives the scopes that it has opened. */
static inline void hand_out(const rapt_call *call, rapt_tensor *tensor)
{
    if (rapt_open_scopes > call->scopes) rapt_scope_hand_out(call->scopes, tensor);
}

void rapt_call_set_output(rapt_call *call, int output, rapt_tensor *tensor)
{
    bool good = tensor && check_index(call, "output", output, call->output_count);
    if (good && call->node)
        good = rapt_fail(RAPT_ERROR_GRAPH, call->op->name, "its vjp set output %d, which only forward can", output);
    if (good) {
        if (output > 0) hand_out(call, tensor); /* 0 is what forward returns */
        call->outputs[output] = tensor;
    } else {
        call->failed = true;
    }
}

/* Is there a place to save something in? An error where that is not so, but for calls that nobody records. */
static bool check_saving(rapt_call *call)
{
    if (!call->node && !call->recording) return false;
    if (!call->node && call->saved_count < RAPT_MAX_SAVED) return true;
    call->failed = true;
    return call->node ? rapt_fail(RAPT_ERROR_GRAPH, call->op->name, "its vjp saved a tensor, which only forward can")
                      : rapt_fail(RAPT_ERROR_VALUE, call->op->name, "more than %d tensors saved", RAPT_MAX_SAVED);
}

static void save(rapt_call *call, rapt_tensor *tensor, int output)
{
    if (!rapt_check_alive(call->op->name, "what it saves", tensor)) call->failed = true;
    call->saved_output[call->saved_count] = output;
    call->saved[call->saved_count++] = call->failed ? NULL : rapt_retain(tensor);
}

void rapt_call_save(rapt_call *call, rapt_tensor *tensor)
{
    if (check_saving(call)) save(call, tensor, -1);
}

void rapt_call_save_constant(rapt_call *call, rapt_tensor *tensor)
{
    if (!check_saving(call)) return;
    call->constants |= (uint32_t)1 << call->saved_count;
    save(call, tensor, -1);
}

void rapt_call_save_output(rapt_call *call, int output)
{
    if (!check_saving(call)) return;
    if (check_index(call, "output", output, call->output_count)) save(call, NULL, output);
}

rapt_tensor *rapt_call_saved(rapt_call *call, int index)
{
    if (call->node)
        return check_index(call, "saved tensor", index, call->node->saved_count) ? call->saved[index] : NULL;
    rapt_fail(RAPT_ERROR_GRAPH, call->op->name, "its forward asked for saved tensor %d, which only a vjp has", index);
    fail(call);
    return NULL;
}

rapt_tensor *rapt_call_take_saved(rapt_call *call, int index)
{
    rapt_tensor *tensor = rapt_call_saved(call, index);
    if (!tensor) return NULL;
    if (call->walk->retain_graph || !rapt_is_unique(tensor)) return rapt_clone(tensor);
    call->saved[index] = call->node->saved[index].tensor = NULL;
    return rapt_scope_own(tensor);
}

/* False and an error, so that the call fails, in forward. */
static bool check_gradients(const rapt_call *call)
{
    if (call->node) return true;
    rapt_fail(RAPT_ERROR_GRAPH, call->op->name, "its forward asked for a gradient, which only a vjp has");
    return fail(call);
}

rapt_tensor *rapt_call_gradient(rapt_call *call, int output)
{
    const bool good = check_gradients(call) && check_index(call, "the gradient of output", output, call->output_count);
    return good ? call->node->outputs[output].gradient : NULL;
}

static bool was_given(const rapt_call *call, const rapt_tensor *gradient)
{
    for (int i = 0; i < call->count; i++)
        if (call->given[i] == gradient) return true;
    return false;
}

rapt_tensor *rapt_call_last_gradient(rapt_call *call, int output)
{
    rapt_tensor *gradient = rapt_call_gradient(call, output);
    if (gradient && rapt_recording_is_off && rapt_grows_in_place(gradient, call->walk->create_graph) &&
        !was_given(call, gradient))
        rapt_spare_gradient = gradient;
    return gradient;
}

rapt_tensor *rapt_call_gradient_or_zeros(rapt_call *call, int output)
{
    rapt_tensor *gradient = rapt_call_gradient(call, output);
    if (gradient || call->failed) return gradient;
    const rapt_output *o = &call->node->outputs[output];
    if (rapt_dtype_is_floating(o->dtype)) return rapt_zeros(o->dtype, o->rank, o->shape);
    call->failed = true;
    rapt_fail(RAPT_ERROR_DTYPE, call->op->name, "its vjp asked for the gradient of output %d, which is %s", output,
              rapt_dtype_name(o->dtype));
    return NULL;
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
static rapt_tensor **sum_of(const rapt_call *call, int input)
{
    if (!rapt_walk_wants(call->walk, &call->node->edges[input])) return NULL;
    return rapt_places_sum(&call->walk->places, call->node->edges[input].node, call->node->edges[input].output);
}

rapt_tensor *rapt_call_gradient_so_far(const rapt_call *call, int input)
{
    if (!check_gradients(call) || !check_index(call, "the gradient so far of input", input, call->count)) return NULL;
    rapt_tensor **sum = sum_of(call, input);
    for (int earlier = 0; sum && earlier < input; earlier++)
        if (sum_of(call, earlier) == sum) return NULL;
    return sum && *sum && rapt_grows_in_place(*sum, call->walk->create_graph) ? *sum : NULL;
}

static __attribute__((noinline, cold)) bool fail_given(rapt_call *call, int input, const rapt_tensor *gradient)
{
    call->failed = true;
    if (!check_index(call, "input", input, call->count)) return false;
    if (!gradient) return rapt_fail(RAPT_ERROR_NULL, call->op->name, "its vjp gave input %d a NULL gradient", input);
    if (!call->node)
        return rapt_fail(RAPT_ERROR_GRAPH, call->op->name, "its forward gave a gradient, which only a vjp can");
    return rapt_fail(RAPT_ERROR_GRAPH, call->op->name,
                     "its vjp gave input %d a gradient twice; one that is their sum expected", input);
}

bool rapt_call_give(rapt_call *call, int input, rapt_tensor *gradient)
{
    if (!gradient || input < 0 || input >= call->count || !call->node || call->given[input])
        return fail_given(call, input, gradient);
    if (!rapt_walk_wants(call->walk, &call->node->edges[input])) return true;
    hand_out(call, gradient);
    if (gradient == rapt_spare_gradient) rapt_spare_gradient = NULL; /* it is still to be read */
    call->given[input] = gradient;
    return true;
}
