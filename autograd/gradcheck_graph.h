/* What gradcheck of first order asks of the graph of gradients. */
#ifndef RAPT_AUTOGRAD_GRADCHECK_GRAPH_H
#define RAPT_AUTOGRAD_GRADCHECK_GRAPH_H

#include <rapt/gradcheck.h>

/* Can the gradients of the output by the variables be differentiated themselves, as the graph has it, and as the
 * functions that they are of? gradients: room for one of each variable. False after an error that names what is wrong,
 * true also for an op that says that it has no second derivative. */
bool rapt_gradcheck_graph(const char *name, rapt_tensor *output, int count, rapt_tensor *const *variables,
                          rapt_tensor **gradients, const rapt_gradcheck_options *options);

#endif
