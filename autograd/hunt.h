/* What the engine asks while the hunt for what is not finite is on. */
#ifndef RAPT_AUTOGRAD_ENGINE_HUNT_H
#define RAPT_AUTOGRAD_ENGINE_HUNT_H

#include "autograd/hunt.h"
#include "walk.h"

/* False and an error when an output of the call is not finite though all its inputs are. */
bool rapt_hunt_forward(const rapt_call *call);

/* Before a vjp: a gradient that is not finite already is nobody's fault from here on. */
void rapt_hunt_arrived(rapt_walk *walk, const rapt_node *node);

/* After it: false and an error when the gradient of an input is not finite though those of the outputs were. */
bool rapt_hunt_backward(const rapt_walk *walk, const rapt_node *node);

#endif
