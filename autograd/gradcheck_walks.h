/* What gradcheck of first order asks of backward's walks. */
#ifndef RAPT_AUTOGRAD_GRADCHECK_WALKS_H
#define RAPT_AUTOGRAD_GRADCHECK_WALKS_H

#include "gradcheck_function.h"

/* Does backward give the same from a gradient whatever its strides are, and where vjps may work in place? The graph of
 * c->outputs is retained, but the function is called once more, which may change what that graph needs. False after an
 * error that names what is wrong. */
bool rapt_gradcheck_walks(rapt_checker *c);

#endif
