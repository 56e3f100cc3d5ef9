/* What the engine tells those who observe, and what they do with it. */
#ifndef RAPT_AUTOGRAD_ENGINE_OBSERVE_H
#define RAPT_AUTOGRAD_ENGINE_OBSERVE_H

#include "autograd/observe.h"
#include "walk.h"

/* Around an op that runs; end returns false and an error where the hunt found something. */
void rapt_observe_op(rapt_observation *o, const rapt_call *call);
bool rapt_observe_op_done(rapt_observation *o, const rapt_call *call, bool good);

/* Around a vjp. */
void rapt_observe_vjp(rapt_observation *o, rapt_walk *walk, const rapt_node *node);
bool rapt_observe_vjp_done(rapt_observation *o, const rapt_walk *walk, const rapt_node *node, bool good);

/* Is it an op that runs in another's forward or in a vjp, which nobody observes by itself? */
bool rapt_is_inside(void);

/* --- the hunt --- */

/* False and an error when an output of the call is not finite though all its inputs are. */
bool rapt_hunt_forward(const rapt_call *call);

/* Before a vjp: a gradient that is not finite already is nobody's fault from here on. */
void rapt_hunt_arrived(rapt_walk *walk, const rapt_node *node);

/* After it: false and an error when the gradient of an input is not finite though those of the outputs were. */
bool rapt_hunt_backward(const rapt_walk *walk, const rapt_node *node);

/* --- shapes as text --- */

enum { rapt_shapes_size = RAPT_LAST_OUTPUTS_SIZE };

/* "float32 [2, 3], -, float32 [3]" of what comes in and of what goes out; where there is no room for all, how many more
 * there are. */
typedef struct rapt_shapes {
    char in[rapt_shapes_size], out[rapt_shapes_size];
} rapt_shapes;

/* Of a call after its forward (outputs where that was good), or of a vjp: gradients in and gradients out. */
void rapt_shapes_of_call(rapt_shapes *shapes, const rapt_call *call, bool good);
void rapt_shapes_of_vjp(rapt_shapes *shapes, const rapt_walk *walk, const rapt_node *node);

/* --- the trace --- */

void rapt_trace_line(const rapt_observation *o, const rapt_shapes *shapes, bool good);

/* --- the profile --- */

/* The number of the profile that runs. */
uint64_t rapt_profile_number(void);

/* Adds an observation that has ended. shapes may be NULL. */
void rapt_profile_add(const rapt_observation *o, const rapt_shapes *shapes);

/* Adds what observing took, in nanoseconds. */
void rapt_profile_add_own(int64_t duration);

/* Does the profile that runs write a file, which wants shapes? */
bool rapt_profile_wants_shapes(void);

#endif
