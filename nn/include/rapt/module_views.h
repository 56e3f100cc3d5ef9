/* Looking at a module: what runs in it on an input, and the graph of what it computed. */
#ifndef RAPT_MODULE_VIEWS_H
#define RAPT_MODULE_VIEWS_H

#include <rapt/module.h>

RAPT_BEGIN_DECLS

/* What a summary runs: the module, in the context, on the inputs. NULL after an error. */
typedef rapt_tensor *rapt_summary_function(rapt_tensor *const *inputs, void *context);

/* Runs the function once (NULL: rapt_module_forward of one input), without a graph, and prints the tree of modules:
 * kind and sizes, parameters, bytes of parameters and buffers, and what came out: what rapt_module_forward returned; of
 * a forward that was called by itself, what the last op gave until it was over; "its input" where none had run; "it did
 * not run" where no forward was called, as of layers whose weights an op of the module above takes (c_attn, c_fc).
 *     Sequential()  337 parameters, 1348 bytes -> float32 [4, 1]
 *       0: Linear(2 -> 16, bias)  48 parameters, 192 bytes -> float32 [4, 16]
 * The module's buffers (running statistics), the modes of all its modules and the random generator are afterwards as
 * they were, after an error too; what a layer keeps of its last call is that of this one. Modules are told apart by
 * RAPT_ENTER, which all of the library have, and those of one's own whose forward is called through
 * rapt_module_forward. False after an error. */
RAPT_API bool rapt_module_summarize(rapt_module *module, FILE *stream, rapt_summary_function *function, int count,
                                    rapt_tensor *const *inputs, void *context);

/* rapt_print_graph, in which leaves that are the module's parameters have their full names. */
RAPT_API bool rapt_module_print_graph(const rapt_module *module, FILE *stream, const rapt_tensor *tensor, bool dot);

RAPT_END_DECLS

#endif
