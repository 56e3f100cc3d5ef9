/* backward and gradients: where a walk starts and what becomes of what it finds. */
#include <rapt/graph.h>

#include "autograd/meeting.h"
#include "autograd/observe.h"
#include "node.h"
#include "tensor/debug.h"
#include "tensor/memory.h"
#include "walk.h"

static bool check_root(const char *op, const rapt_tensor *root, const rapt_tensor *gradient)
{
    if (!root) return rapt_fail_null(op, "root");
    if (!rapt_check_alive(op, "the root", root) || !rapt_check_alive(op, "the gradient of the root", gradient))
        return false;
    char a[RAPT_SHAPE_TEXT], b[RAPT_SHAPE_TEXT];
    rapt_shape_text(root->rank, root->shape, a);
    if (!root->link)
        return rapt_fail(
            RAPT_ERROR_GRAPH, op,
            "the root (shape %s) does not depend on a tensor that requires a gradient (rapt_require_gradient), or was "
            "made while nothing was recorded (RAPT_NO_GRADIENT, rapt_detach)",
            a);
    if (!gradient && root->count != 1)
        return rapt_fail(
            RAPT_ERROR_SHAPE, op,
            "a root of shape %s needs a gradient given; only one element (rapt_mean, rapt_sum) starts from 1", a);
    if (gradient && (gradient->dtype != root->dtype || !rapt_same_shape(root, gradient)))
        return rapt_fail(RAPT_ERROR_SHAPE, op, "the gradient is %s %s, its root %s %s",
                         rapt_dtype_name(gradient->dtype), rapt_shape_text(gradient->rank, gradient->shape, b),
                         rapt_dtype_name(root->dtype), a);
    return true;
}

static bool reach(rapt_walk *walk, int count, rapt_tensor *const *roots, rapt_tensor *const *gradients)
{
    if (count < 0) return rapt_fail(RAPT_ERROR_VALUE, walk->op, "%d roots; 0 or more expected", count);
    if (count > 0 && !roots) return rapt_fail_null(walk->op, "roots");
    for (int i = 0; i < count; i++)
        if (!check_root(walk->op, roots[i], gradients ? gradients[i] : NULL)) return false;
    for (int i = 0; i < count; i++)
        if (!rapt_walk_add_root(walk, rapt_node_of(roots[i]), roots[i]->output)) return false;
    return rapt_walk_reach(walk) && rapt_walk_check(walk);
}

static bool start(rapt_walk *walk, int count, rapt_tensor *const *roots, rapt_tensor *const *gradients)
{
    for (int i = 0; i < count; i++) {
        rapt_tensor *gradient = gradients ? gradients[i] : NULL;
        if (!gradient) gradient = rapt_ones(roots[i]->dtype, roots[i]->rank, roots[i]->shape);
        if (!gradient || !rapt_walk_deliver(walk, rapt_node_of(roots[i]), roots[i]->output, gradient)) return false;
    }
    return true;
}

/* --- the end of a walk that goes across processes --- */

RAPT_THREAD_LOCAL int64_t rapt_failed_meetings;

static rapt_others_agree *_Atomic others_agree;

void rapt_result_meets(rapt_tensor *result, rapt_others_agree *meet, void *others)
{
    if (!result || !result->link) return;
    atomic_store_explicit(&others_agree, meet, memory_order_relaxed);
    rapt_node_of(result)->meets = true;
    rapt_node_of(result)->others = others;
}

void rapt_tell_others(void *others, const char *op, int64_t failed_meetings)
{
    if (others && failed_meetings == rapt_failed_meetings)
        atomic_load_explicit(&others_agree, memory_order_relaxed)(others, op, false);
}

/* Who waits where the walk would come to next. */
static void *next_others(const rapt_walk *walk)
{
    for (int64_t i = walk->done; i < walk->order.count; i++)
        if (walk->order.nodes[i]->meets) return walk->order.nodes[i]->others;
    return NULL;
}

/* Found before the walk, in which the last share of a root may go. */
static void *find_others(const rapt_walk *walk, int count, rapt_tensor *const *roots)
{
    for (int i = 0; roots && i < count; i++) {
        const rapt_tensor *root = roots[i];
        if (!rapt_check_alive(walk->op, "the root", root) || !root || !root->link) continue;
        if (rapt_node_of(root)->others) return rapt_node_of(root)->others;
    }
    return NULL;
}

bool rapt_walk_agree(const rapt_walk *walk, int64_t failed_meetings, void *others_of_roots, bool good)
{
    if (failed_meetings < rapt_failed_meetings) return good; /* all know */
    void *others = good ? NULL : next_others(walk);
    if (!others && !rapt_walk_is_under_way()) others = others_of_roots;
    return others ? atomic_load_explicit(&others_agree, memory_order_relaxed)(others, walk->op, good) : good;
}

typedef struct ending {
    const rapt_walk *walk;
    void *others_of_roots;
    int64_t failed_meetings; /* before it began */
} ending;

static bool agree(void *context, bool good)
{
    const ending *e = context;
    return rapt_walk_agree(e->walk, e->failed_meetings, e->others_of_roots, good);
}

/* --- the calls --- */

bool rapt_check_walk_flags(const char *op, int flags)
{
    return (flags & ~(RAPT_RETAIN_GRAPH | RAPT_CREATE_GRAPH)) == 0 ||
           rapt_fail(RAPT_ERROR_VALUE, op, "flags %d; RAPT_RETAIN_GRAPH, RAPT_CREATE_GRAPH, both or 0 expected", flags);
}

static rapt_walk walk_with(const char *op, int flags)
{
    return (rapt_walk){
        .op = op,
        .retain_graph = flags & (RAPT_RETAIN_GRAPH | RAPT_CREATE_GRAPH),
        .create_graph = flags & RAPT_CREATE_GRAPH,
    };
}

static bool go_backward(rapt_walk *walk, int flags, int count, rapt_tensor *const *roots, rapt_tensor *const *gradients)
{
    RAPT_REGION(RAPT_DOING_WALK, walk->op);
    RAPT_SCOPE;
    ending e = {walk, find_others(walk, count, roots), rapt_failed_meetings};
    bool good = rapt_check_walk_flags(walk->op, flags) && reach(walk, count, roots, gradients) &&
                start(walk, count, roots, gradients) && rapt_walk_run(walk);
    good = good ? rapt_leaves_add(&walk->places, walk->create_graph, agree, &e) : agree(&e, false);
    rapt_walk_end(walk);
    return good;
}

bool rapt_backward_from(int count, rapt_tensor *const *roots, rapt_tensor *const *gradients, int flags)
{
    rapt_walk walk = walk_with("backward", flags);
    return go_backward(&walk, flags, count, roots, gradients);
}

bool rapt_backward_to(int count, rapt_tensor *const *roots, rapt_tensor *const *gradients, int flags,
                      rapt_gradient_function *take, void *context)
{
    rapt_walk walk = walk_with("backward_to", flags);
    if (!take) return rapt_fail_null(walk.op, "the function that takes gradients");
    walk.take = take;
    walk.take_context = context;
    return go_backward(&walk, flags, count, roots, gradients);
}

bool rapt_backward(rapt_tensor *root)
{
    return rapt_backward_from(1, &root, NULL, 0);
}

bool rapt_check_input(const char *op, int i, const rapt_tensor *input)
{
    char text[128];
    if (!input) return rapt_fail(RAPT_ERROR_NULL, op, "input %d is NULL", i);
    if (!rapt_check_alive(op, "an input", input)) return false;
    if (!rapt_is_floating(input))
        return rapt_fail(RAPT_ERROR_DTYPE, op, "input %d is %s; nothing has a derivative by integers", i,
                         rapt_dtype_name(input->dtype));
    return input->link ||
           rapt_fail(RAPT_ERROR_GRAPH, op,
                     "input %d, %s, requires no gradient, so nothing that was computed from it is known; "
                     "call rapt_require_gradient before the root is computed",
                     i, rapt_describe(input, text, sizeof text));
}

/* Makes places for the outputs that gradients are wanted of. What was recorded before all of them does not depend on
 * them, and the oldest itself is not entered: another walk may be visiting it, or a node behind it, and call this. */
static bool request(rapt_walk *walk, int count, rapt_tensor *const *inputs)
{
    walk->oldest = UINT64_MAX;
    if (count < 0) return rapt_fail(RAPT_ERROR_VALUE, walk->op, "%d inputs; 0 or more expected", count);
    for (int i = 0; i < count; i++) {
        bool is_new;
        if (!rapt_check_input(walk->op, i, inputs[i])) return false;
        const int64_t place = rapt_places_add(&walk->places, rapt_node_of(inputs[i]), inputs[i]->output, &is_new);
        if (place < 0) return false;
        if (is_new) walk->places.list[place].input = i;
        if (rapt_node_of(inputs[i])->sequence < walk->oldest) walk->oldest = rapt_node_of(inputs[i])->sequence;
        walk->has_requests = walk->has_requests || !inputs[i]->link->kind->is_leaf;
    }
    walk->places.outside = walk->oldest;
    return true;
}

/* Hands the gradients to the caller, whose list may be another of its lists; an input named twice gets the same tensor
 * twice. False after an error (no memory). */
static bool take_requested(rapt_walk *walk, int count, rapt_tensor *const *inputs, rapt_tensor **results)
{
    for (int i = 0; i < count; i++) {
        const int64_t index = rapt_places_find(&walk->places, rapt_node_of(inputs[i]), inputs[i]->output);
        rapt_place *place = &walk->places.list[index];
        rapt_tensor *gradient = place->gradient;
        place->gradient = NULL;
        if (gradient && !walk->create_graph && !rapt_is_unique(gradient)) { /* a leaf, say, or another input's */
            rapt_tensor *copy = rapt_retain(rapt_clone(gradient));
            rapt_release(gradient);
            if (!(gradient = copy)) return false;
        }
        results[i] = place->input != i ? results[place->input] : gradient ? rapt_scope_own(gradient) : NULL;
        if (gradient && !results[i]) return false;
    }
    return true;
}

bool rapt_gradients_for(const char *op, int count, rapt_tensor *const *roots, rapt_tensor *const *gradients,
                        int input_count, rapt_tensor *const *inputs, rapt_tensor **results, int flags)
{
    RAPT_REGION(RAPT_DOING_WALK, op);
    rapt_walk walk = walk_with(op, flags);
    ending e = {&walk, find_others(&walk, count, roots), rapt_failed_meetings};
    rapt_scope scope = rapt_scope_begin();
    bool good = input_count <= 0 || (inputs && results) || rapt_fail_null(op, inputs ? "results" : "inputs");
    good = good && rapt_check_walk_flags(op, flags) && request(&walk, input_count, inputs) &&
           reach(&walk, count, roots, gradients) && start(&walk, count, roots, gradients) && rapt_walk_run(&walk);
    rapt_scope_end(scope);
    good = agree(&e, good && take_requested(&walk, input_count, inputs, results));
    for (int i = 0; results && i < input_count && !good; i++) results[i] = NULL;
    rapt_walk_end(&walk);
    return good;
}

bool rapt_gradients(int count, rapt_tensor *const *roots, rapt_tensor *const *gradients, int input_count,
                    rapt_tensor *const *inputs, rapt_tensor **results, int flags)
{
    return rapt_gradients_for("gradients", count, roots, gradients, input_count, inputs, results, flags);
}
