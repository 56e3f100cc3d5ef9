/* How an op is made: one function that computes and one that differentiates. The built-in ops use the same call. */
#ifndef RAPT_OP_H
#define RAPT_OP_H

#include <rapt/graph.h>

RAPT_BEGIN_DECLS

/* One application of an op, handed to its two functions. */
typedef struct rapt_call rapt_call;

/* What all calls of one op share: a constant of the program, which must outlive every graph with such a call. Its
 * functions return: what they throw in C++ they catch, and give NULL or false, for the reason rapt_on_error has. */
typedef struct rapt_op {
    const char *name;

    /* Computes and returns output 0 (further ones by rapt_call_set_output). The inputs are never NULL unless marked
     * optional. Ops called here are not recorded. Returns NULL after rapt_fail, or when an op it called gave NULL. */
    rapt_tensor *(*forward)(rapt_call *call);

    /* Gives the gradient of each input that is wanted (rapt_call_wants) by rapt_call_give, from the gradient of the
     * outputs and what forward saved: the vector-Jacobian product. A gradient may still have the broadcast shape; the
     * engine sums it. Written with recorded ops, it can be differentiated itself. NULL: the op has no gradient, and
     * backward through it is an error. */
    bool (*vjp)(rapt_call *call);

    size_t options_size;     /* bytes of the options that rapt_apply copies for the vjp; 0: none */
    uint32_t optional;       /* bit i set: input i may be NULL */
    int outputs;             /* 0 means 1 */
    const char *no_gradient; /* where vjp is NULL: why, and what has a gradient instead, for the error message */
    /* Where the vjp cannot be differentiated (it loops over numbers itself, say): the op once more, made of recorded
     * ops, whose derivatives then stand for those of the vjp. It is called as forward is, which it may even be. What
     * is not an input it must find in the options, random numbers too; outputs without a gradient it need not set.
     * Forward saves the inputs first, all of them and in order; inputs and outputs are then RAPT_MAX_SAVED at most. */
    rapt_tensor *(*definition)(rapt_call *call);

    /* Without a definition: why there is no second derivative, and what has one. Under RAPT_CREATE_GRAPH that is then
     * an error. NULL: the vjp is made of recorded ops, which rapt_gradcheck checks. A backward notices that it is not
     * only where the gradients of the outputs are part of a graph: behind a sum alone, second derivatives would be
     * wrong. */
    const char *no_second_gradient;
} rapt_op;

/* An op of a language whose functions an exception may leave before they have a result, as Python's called by ctypes:
 * they set it through a pointer, behind which is NULL or false until then. Its `op` has rapt_foreign_forward and
 * rapt_foreign_vjp as functions, which call those, and is for no other struct. */
typedef struct rapt_foreign_op {
    rapt_op op;
    void (*forward)(rapt_call *call, rapt_tensor **output);
    void (*vjp)(rapt_call *call, bool *is_good);
} rapt_foreign_op;

RAPT_API rapt_tensor *rapt_foreign_forward(rapt_call *call); /* NULL where forward was left before it had one */
RAPT_API bool rapt_foreign_vjp(rapt_call *call);             /* false where vjp was left before it was done */

/* Runs an op and records it if gradients are wanted. A NULL op, a NULL list, and NULL inputs that are not optional
 * give NULL (and an error, if none stands). options points to options_size bytes that may go after the call. Returns
 * output 0 of the innermost scope, NULL after an error. */
RAPT_API rapt_tensor *rapt_apply(const rapt_op *op, const void *options, int count, rapt_tensor *const *inputs);

/* The same for an op of several outputs, which it writes to outputs[0 … op->outputs − 1]. False after an error; the
 * outputs are then NULL. */
RAPT_API bool rapt_apply_many(const rapt_op *op, const void *options, int count, rapt_tensor *const *inputs,
                              rapt_tensor **outputs);

/* The same for an op whose number of outputs is the caller's choice, 1 or more: op->outputs says nothing. */
RAPT_API bool rapt_apply_counted(const rapt_op *op, const void *options, int count, rapt_tensor *const *inputs,
                                 int output_count, rapt_tensor **outputs);

/* rapt_apply with the inputs written out: RAPT_APPLY(&op, NULL, a, b). */
#define RAPT_APPLY(op, options, ...)                                                                                   \
    rapt_apply((op), (options), RAPT_LENGTH_OF(rapt_tensor *, __VA_ARGS__), RAPT_ARRAY_OF(rapt_tensor *, __VA_ARGS__))

/* For all functions of a call, the one that forward or vjp was given, never NULL: an index that is not there is
 * an error, and so is asking forward for what only a vjp has or the other way round. The call has failed then, whatever
 * its function returns. */

/* In forward and vjp. */
/* The op itself. Its name is for rapt_fail; ops of one kind can share their functions as the first member of a
 * larger struct. */
RAPT_API const rapt_op *rapt_call_op(const rapt_call *call);
RAPT_API const void *rapt_call_options(const rapt_call *call);
RAPT_API int rapt_call_count(const rapt_call *call); /* number of inputs */
RAPT_API int rapt_call_output_count(const rapt_call *call);
RAPT_API bool rapt_call_wants(const rapt_call *call, int input); /* does that input want a gradient? */

/* In forward. An input; NULL for an absent optional one. All of them, as rapt_apply takes them. An output beside the
 * one that forward returns: the scopes that forward has opened hand it out (what it returns, rapt_keep does). */
RAPT_API rapt_tensor *rapt_call_input(const rapt_call *call, int input);
RAPT_API rapt_tensor *const *rapt_call_inputs(const rapt_call *call);
RAPT_API void rapt_call_set_output(rapt_call *call, int output, rapt_tensor *tensor);

/* So many tensors a call can keep for its vjp. */
#define RAPT_MAX_SAVED 32

/* In forward: keeps an input or an output for the vjp, in the order of the calls. NULL is kept as NULL. Costs
 * nothing when no gradient is wanted. Another floating tensor, an intermediate result, can be kept too, but the
 * graph does not know where that comes from: to differentiate the vjp itself is then an error. Keep the inputs and
 * compute it again. */
RAPT_API void rapt_call_save(rapt_call *call, rapt_tensor *tensor);

/* The same for output `output`, whatever forward makes that: at less cost, and before it is there. */
RAPT_API void rapt_call_save_output(rapt_call *call, int output);

/* The same for a tensor that counts as a constant where the vjp is differentiated: because it is one, or because the
 * vjp hands it to an op whose own vjp accounts for what it depends on. */
RAPT_API void rapt_call_save_constant(rapt_call *call, rapt_tensor *tensor);

/* In vjp. What was saved (never changed in place since: that is an error before the vjp runs), the gradient of an
 * output (NULL if nothing depends on that output), and the shape that an input had (NULL if it wants no gradient). The
 * strides of both tensors may be anything, 0 too, as from a sum: to read their numbers, take rapt_contiguous first.
 * Both are only read: others may hold them. */
RAPT_API rapt_tensor *rapt_call_saved(rapt_call *call, int index);
RAPT_API rapt_tensor *rapt_call_gradient(rapt_call *call, int output);
RAPT_API const int64_t *rapt_call_input_shape(const rapt_call *call, int input, int *rank);

/* In vjp: a saved tensor for the vjp to change in place or to give as a gradient. It is the saved one itself where
 * this is its last use, so that nothing is copied, otherwise a copy: where the graph is retained or somebody else holds
 * the tensor. NULL after an error, and where it was taken already, by an earlier walk that failed after that. */
RAPT_API rapt_tensor *rapt_call_take_saved(rapt_call *call, int index);

/* In vjp: the gradient of an output for the last op that reads it, once: where nobody else holds it and nothing is
 * recorded, an elementwise op whose first input it is writes its result in its place, so that it costs no memory. It
 * does not where somebody keeps a share or a view, where it was given to an input, or within another op. */
RAPT_API rapt_tensor *rapt_call_last_gradient(rapt_call *call, int output);

/* In vjp: the gradient of an output, zeros where nothing depends on it: for an op of several outputs that needs all
 * of them. NULL after an error; an output that is not floating has no gradient. */
RAPT_API rapt_tensor *rapt_call_gradient_or_zeros(rapt_call *call, int output);

/* In vjp: the gradient of an input, once for each. One that is not wanted is ignored; the others are handed out of the
 * scopes that the vjp has opened. False, and the vjp has failed, when it is NULL or the second for that input. */
RAPT_API bool rapt_call_give(rapt_call *call, int input, rapt_tensor *gradient);

/* In vjp: what has arrived for an input so far, dense and of the input's shape, to which the vjp may add its own in
 * place; it then gives none for that input. It saves a tensor and the engine's addition where many ops share a large
 * input. NULL where nothing has arrived yet or may not be changed (others see it, or gradients are to have a graph),
 * and for all but the first of several inputs that are one tensor: there the gradient is given as always. */
RAPT_API rapt_tensor *rapt_call_gradient_so_far(const rapt_call *call, int input);

RAPT_END_DECLS

#endif
