/* Activation checkpointing: time for memory. What a function computes on its way is not kept for backward, but computed
 * again there. */
#ifndef RAPT_RECOMPUTE_H
#define RAPT_RECOMPUTE_H

#include <rapt/graph.h>

RAPT_BEGIN_DECLS

/* The inputs to one tensor, made of ops. */
typedef rapt_tensor *rapt_recompute_function(rapt_tensor *const *inputs, void *context);

/* The same to several, of which it sets all. False after an error. */
typedef bool rapt_recompute_many_function(rapt_tensor *const *inputs, rapt_tensor **outputs, void *context);

/* function(inputs, context), with the same bits, those of first derivatives included, but that the graph keeps the
 * inputs and the results alone: backward runs the function once more and differentiates that. Peak memory is then that
 * of the largest such segment, and all of their inputs, for about a third more time. Gradients reach the inputs (at
 * most RAPT_MAX_SAVED, none NULL) and whatever else the function reads: parameters, or results of this thread that it
 * finds in its context.
 *
 * The second run, in the thread that calls backward, begins with the random numbers of the first, so that dropout
 * repeats; the thread's generator is as before when it ends. All else must be the same, too: an input or a tensor of
 * the graph that was changed in place since, sources that differ, or other numbers than the first time are errors. A
 * function may recompute parts of itself. It may ask for derivatives (rapt_gradients and its like) by one input, where
 * all else that it reads are leaves or were made before it; by several, or by parameters, only where all that it reads
 * are leaves: else they go through the graph outside, which backward has, an error. Under RAPT_CREATE_GRAPH the second
 * run stays in the graph. Tensors that the function hands out by another way are not part of the graph.
 *
 * context is the function's until the graph is freed, that is until backward used it or its last result is gone;
 * free_context (NULL: the caller keeps it alive) is then called with it once, at once where nothing was recorded or
 * something failed. Where nothing is recorded this is just the call. NULL after an error. */
RAPT_API rapt_tensor *rapt_recompute(rapt_recompute_function *function, int count, rapt_tensor *const *inputs,
                                     void *context, void (*free_context)(void *context));

/* The same with 1 to RAPT_MAX_SAVED outputs; NULL all after an error. The outputs count as made side by side: the
 * derivative of one by another that it was made from is not seen outside the function (NULL, as of what does not depend
 * on it). Ask for it inside, or recompute up to the one and go on from it. */
RAPT_API bool rapt_recompute_many(rapt_recompute_many_function *function, int count, rapt_tensor *const *inputs,
                                  int output_count, rapt_tensor **outputs, void *context,
                                  void (*free_context)(void *context));

/* True while backward runs such a function again, for layers that count calls or keep what they have seen. */
RAPT_API bool rapt_is_recomputing(void);

RAPT_END_DECLS

#endif
