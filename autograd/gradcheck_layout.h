/* What gradcheck asks of gradients that lie in memory in another way. */
#ifndef RAPT_AUTOGRAD_GRADCHECK_LAYOUT_H
#define RAPT_AUTOGRAD_GRADCHECK_LAYOUT_H

#include <rapt/gradcheck.h>

/* Does backward give the same from a gradient whatever its strides are? The output's graph is retained. False after an
 * error that names what is wrong. */
bool rapt_gradcheck_layout(const char *name, rapt_tensor *output, int count, rapt_tensor *const *variables,
                           const rapt_gradcheck_options *options);

#endif
