/* Gradients: leaves, backward, modes. The graph is recorded as ops run and freed as backward walks it. */
#ifndef RAPT_GRAPH_H
#define RAPT_GRAPH_H

#include <stdio.h>

#include <rapt/tensor.h>

RAPT_BEGIN_DECLS

/* Makes a floating tensor a leaf whose gradient backward computes, and returns it. NULL after an error (not floating,
 * or the result of a recorded op). Doing it twice is harmless. */
RAPT_API rapt_tensor *rapt_require_gradient(rapt_tensor *tensor);

/* The opposite: a leaf becomes a constant, its gradient is dropped, and what is recorded from now on computes none for
 * it: it is frozen. What was recorded before gives it none either, also where rapt_require_gradient makes it a leaf
 * again, which is a new one. A tensor that is no leaf stays as it is. NULL after an error (the result of a recorded
 * op). */
RAPT_API rapt_tensor *rapt_refuse_gradient(rapt_tensor *tensor);

/* True for such a leaf and for everything that was computed from one. */
RAPT_API bool rapt_requires_gradient(const rapt_tensor *tensor);

/* The accumulated gradient of a leaf, owned by the leaf; NULL when it has none (yet). */
RAPT_API rapt_tensor *rapt_gradient(const rapt_tensor *leaf);

/* Drops a leaf's gradient, so that the next backward starts from nothing. */
RAPT_API void rapt_clear_gradient(rapt_tensor *leaf);

/* Makes a leaf's gradient, where there is one, safe to change in place: a tensor that nobody else sees, outside any
 * graph. False after an error; the gradient is then as before. */
RAPT_API bool rapt_own_gradient(rapt_tensor *leaf);

/* The same values (the same memory) outside any graph. */
RAPT_API rapt_tensor *rapt_detach(rapt_tensor *tensor);

/* What one round of a loop hands to the next, beyond its scope: *state (NULL at first) gives its share back and
 * takes one in the values of next, outside the graph. After the loop rapt_release(state) ends it. False after an
 * error; *state is then as before. */
RAPT_API bool rapt_carry(rapt_tensor **state, rapt_tensor *next);

/* What may be asked of backward and gradients besides; several are joined by |. */
enum rapt_backward_flags {
    RAPT_RETAIN_GRAPH = 1, /* the graph can be walked again */
    RAPT_CREATE_GRAPH = 2, /* the gradients are part of a graph themselves; implies RAPT_RETAIN_GRAPH */
};

/* Adds d root / d leaf to the gradient of every leaf that the root, a tensor of one element, was computed from, and
 * frees the graph. False after an error: no leaf's gradient has changed, but what was walked by then is freed, so that
 * forward is run again where memory was short (RAPT_RETAIN_GRAPH keeps the graph). */
RAPT_API bool rapt_backward(rapt_tensor *root);

/* The same for several roots, with the gradient of each (NULL, or a NULL entry for a root of one element: 1) and
 * flags. */
RAPT_API bool rapt_backward_from(int count, rapt_tensor *const *roots, rapt_tensor *const *gradients, int flags);

/* What takes the gradient of a leaf, to read: several leaves may be handed one tensor, so that who changes it changes a
 * copy. It may keep a share (rapt_retain). False after rapt_fail. */
typedef bool rapt_gradient_function(void *context, rapt_tensor *leaf, rapt_tensor *gradient);

/* rapt_backward_from, which hands the gradient of each leaf to the function instead of adding it to the leaf's: as soon
 * as it is complete, while those of others are still to be computed: to send it on meanwhile, say. Each leaf comes once
 * at most, and those that no gradient reaches never. The function changes nothing that the graph was computed from,
 * and no other thread frees a leaf meanwhile. After an error, which ends the walk, what was handed over stays so. */
RAPT_API bool rapt_backward_to(int count, rapt_tensor *const *roots, rapt_tensor *const *gradients, int flags,
                               rapt_gradient_function *take, void *context);

/* Computes d roots / d inputs into results (tensors of the innermost scope; NULL where the roots do not depend on the
 * input) and leaves the gradients of the leaves alone. Inputs are leaves or results of recorded ops. What was recorded
 * before all of the inputs, which one thread made as well, is not walked through, nor freed; so a vjp may ask for
 * derivatives by one tensor that it saved, where the others are leaves or were made before it. Without
 * RAPT_CREATE_GRAPH who changes a result changes nothing else, but that of an input which is named twice; with it
 * results are to be read: several may be one tensor, or a gradient that was given, or a leaf. False after an error,
 * and the results are NULL: an input that requires no gradient (rapt_requires_gradient), say, since what was computed
 * from it is not known. */
RAPT_API bool rapt_gradients(int count, rapt_tensor *const *roots, rapt_tensor *const *gradients, int input_count,
                             rapt_tensor *const *inputs, rapt_tensor **results, int flags);

/* Whether the calling thread records a graph (true at first). Set returns what it was. */
RAPT_API bool rapt_is_recording(void);
RAPT_API bool rapt_set_recording(bool recording);
RAPT_API void rapt_restore_recording(const bool *before);

/* `RAPT_NO_GRADIENT;` at the top of a block: nothing is recorded in this thread until the block is left. */
#define RAPT_NO_GRADIENT                                                                                               \
    bool RAPT_JOIN(rapt_recording_, __COUNTER__) __attribute__((cleanup(rapt_restore_recording), unused)) =            \
        rapt_set_recording(false)

/* The hunt for NaN and infinities: while it is on, every result of an op and every gradient is looked at, and the first
 * that is not finite though all that it was made of is becomes an error (RAPT_ERROR_NOT_FINITE), which names the op,
 * forward or backward, the path of the module whose forward ran it, and the first such element. An infinity that comes
 * in as an input, as a mask's bias or the value of rapt_pad for instance, is no error. Of a gradient only the gradients
 * that it was made of are looked at, so that one made infinite by an infinite factor is an error. For all threads, and
 * slow: for debugging. RAPT_HUNT=1 in the environment starts it. Returns whether it was on. */
RAPT_API bool rapt_hunt_not_finite(bool hunting);

/* Writes the graph behind a tensor, one line an op (its name, output shape, inputs), or as Graphviz when dot is
 * true: then with the path of the module too where that was known when the op ran, as while rapt_trace or the profile
 * is on. rapt_module_print_graph knows the names of parameters. */
RAPT_API bool rapt_print_graph(FILE *stream, const rapt_tensor *tensor, bool dot);

RAPT_END_DECLS

#endif
