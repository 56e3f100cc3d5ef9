/* The one place where those who observe ops and vjps come in: the hunt, the trace and the profile. */
#include "observe.h"

#include <stdlib.h>
#include <string.h>

#include "tensor/debug.h"
#include "tensor/flops.h"
#include "tensor/lock.h"
#include "tensor/random.h"

atomic_uint rapt_observers;
RAPT_THREAD_LOCAL char *rapt_last_outputs;
static RAPT_THREAD_LOCAL rapt_observation *innermost;

bool rapt_set_observer(unsigned observer, bool observes)
{
    const unsigned before =
        observes ? atomic_fetch_or(&rapt_observers, observer) : atomic_fetch_and(&rapt_observers, ~observer);
    return (before & observer) != 0;
}

RAPT_LOCK(texts_lock, TEXTS)

const char *rapt_lasting_text(const char *text)
{
    enum { buckets = 256 };
    static struct lasting {
        struct lasting *next;
        char text[];
    } * all[buckets]; /* as many as there are modules and ops */
    unsigned hash = 0;
    for (const char *at = text; *at; at++) hash = 31 * hash + (unsigned char)*at;
    struct lasting **bucket = &all[hash % buckets];
    const size_t size = strlen(text) + 1;
    texts_lock_take();
    struct lasting *lasting = *bucket;
    while (lasting && strcmp(lasting->text, text) != 0) lasting = lasting->next;
    if (!lasting && (lasting = malloc(sizeof *lasting + size))) {
        memcpy(lasting->text, text, size);
        lasting->next = *bucket;
        *bucket = lasting;
    }
    texts_lock_give();
    return lasting ? lasting->text : NULL;
}

/* --- an observation --- */

static void begin(rapt_observation *o, unsigned observers, rapt_doing doing, const char *name, const char *path)
{
    *o = (rapt_observation){.observers = observers,
                            .doing = doing,
                            .name = name,
                            .path = path,
                            .around = innermost,
                            .op_around = rapt_running_op,
                            .flops_around = rapt_flops};
    innermost = o;
}

/* All is ready for what is observed. */
static void start_clock(rapt_observation *o)
{
    if (!(o->observers & RAPT_PROFILES)) return;
    o->profile = rapt_profile_number();
    rapt_flops = &o->flops;
    o->begin = rapt_profile_clock();
}

static void stop_clock(rapt_observation *o)
{
    if (o->observers & RAPT_PROFILES) o->end = rapt_profile_clock();
}

static void end(rapt_observation *o, const rapt_shapes *shapes)
{
    innermost = o->around;
    rapt_flops = o->flops_around;
    if (!(o->observers & RAPT_PROFILES)) return;
    rapt_profile_add(o, shapes);
    const int64_t now = rapt_profile_clock();
    rapt_profile_add_own(now - o->end);
    if (o->around) o->around->inside += now - o->begin;
}

static bool wants_shapes(const rapt_observation *o)
{
    return (o->observers & (RAPT_TRACES | RAPT_SUMMARIZES)) ||
           ((o->observers & RAPT_PROFILES) && rapt_profile_wants_shapes());
}

void rapt_region_begin_now(rapt_observation *region, unsigned observers, rapt_doing doing, const char *name)
{
    begin(region, observers, doing, name, rapt_running_place.path);
    start_clock(region);
}

void rapt_region_end_now(rapt_observation *region)
{
    stop_clock(region);
    end(region, NULL);
}

/* --- bytes --- */

static double bytes_of(const rapt_tensor *tensor)
{
    double elements = 1;
    if (!tensor) return 0;
    for (int axis = 0; axis < tensor->rank; axis++)
        if (tensor->strides[axis] != 0 || tensor->shape[axis] == 0) elements *= (double)tensor->shape[axis];
    return elements * (double)rapt_dtype_size(tensor->dtype);
}

static double bytes_of_output(const rapt_output *output)
{
    double elements = rapt_dtype_is_floating(output->dtype) ? 1 : 0;
    for (int axis = 0; axis < output->rank && elements > 0; axis++) elements *= (double)output->shape[axis];
    return elements * (double)rapt_dtype_size(output->dtype);
}

/* An output that looks at the memory of an input was not written, and that input not read. */
static double bytes_of_call(const rapt_call *call)
{
    double bytes = 0;
    for (int i = 0; i < call->count; i++) {
        bool is_read = call->inputs[i] != NULL;
        for (int k = 0; k < call->output_count && is_read; k++)
            is_read = !call->outputs[k] || call->outputs[k]->storage != call->inputs[i]->storage;
        if (is_read) bytes += bytes_of(call->inputs[i]);
    }
    for (int k = 0; k < call->output_count; k++) {
        bool is_written = call->outputs[k] != NULL;
        for (int i = 0; i < call->count && is_written; i++)
            is_written = !call->inputs[i] || call->outputs[k]->storage != call->inputs[i]->storage;
        if (is_written) bytes += bytes_of(call->outputs[k]);
    }
    return bytes;
}

/* What a vjp may read, the gradients of the outputs and what was saved, and the gradients that it gives. */
static double bytes_of_vjp(const rapt_walk *walk, const rapt_node *node)
{
    double bytes = 0;
    for (int k = 0; k < node->output_count; k++) bytes += bytes_of(node->outputs[k].gradient);
    for (int k = 0; k < node->saved_count; k++) bytes += bytes_of(node->saved[k].tensor);
    for (int i = 0; i < node->edge_count; i++) {
        const rapt_edge *edge = &node->edges[i];
        if (rapt_walk_wants(walk, edge)) bytes += bytes_of_output(&edge->node->outputs[edge->output]);
    }
    return bytes;
}

/* --- ops and vjps --- */

bool rapt_is_inside(void)
{
    return rapt_running_op != NULL;
}

void rapt_observe_op(rapt_observation *o, const rapt_call *call)
{
    begin(o, rapt_observed(), RAPT_DOING_FORWARD, call->op->name, rapt_running_place.path);
    start_clock(o);
}

bool rapt_observe_op_done(rapt_observation *o, const rapt_call *call, bool good)
{
    rapt_shapes shapes;
    const bool wanted = wants_shapes(o);
    stop_clock(o);
    if (good && (o->observers & RAPT_PROFILES)) o->bytes = bytes_of_call(call);
    if (wanted) rapt_shapes_of_call(&shapes, call, good);
    end(o, wanted ? &shapes : NULL);
    if (wanted && (o->observers & RAPT_TRACES)) rapt_trace_line(o, &shapes, good);
    if (good && wanted && rapt_last_outputs) memcpy(rapt_last_outputs, shapes.out, sizeof shapes.out);
    return good && (!(o->observers & RAPT_HUNTS) || rapt_hunt_forward(call));
}

void rapt_observe_vjp(rapt_observation *o, rapt_walk *walk, const rapt_node *node)
{
    begin(o, rapt_observed(), RAPT_DOING_BACKWARD, node->op->name, node->path);
    rapt_running_op = node->op->name;
    if (o->observers & RAPT_PROFILES) o->bytes = bytes_of_vjp(walk, node);
    if (o->observers & RAPT_HUNTS) rapt_hunt_arrived(walk, node);
    start_clock(o);
}

bool rapt_observe_vjp_done(rapt_observation *o, const rapt_walk *walk, const rapt_node *node, bool good)
{
    rapt_shapes shapes;
    const bool wanted = wants_shapes(o);
    stop_clock(o);
    if (wanted) rapt_shapes_of_vjp(&shapes, walk, node);
    end(o, wanted ? &shapes : NULL);
    rapt_running_op = o->op_around;
    if (wanted && (o->observers & RAPT_TRACES)) rapt_trace_line(o, &shapes, good);
    return good && (!(o->observers & RAPT_HUNTS) || rapt_hunt_backward(walk, node));
}
