/* Products with Jacobians and Hessians, through any graph. */
#ifndef RAPT_DERIVATIVES_H
#define RAPT_DERIVATIVES_H

#include <rapt/graph.h>

RAPT_BEGIN_DECLS

/* All of them take a graph as rapt_gradients does, and are exact. Inputs are leaves or results of recorded ops, none
 * computed from another (of such ones, second derivatives depend on what the op between them saved). Neither
 * the graph of the roots nor the gradients of leaves change. flags: 0, or RAPT_CREATE_GRAPH for results that can be
 * differentiated themselves, by the vectors too. Results are tensors of the innermost scope, and their list may be that
 * of the vectors. False or NULL after an error, and NULL in each place of the results: a root that depends on no leaf,
 * say, an input that requires no gradient (rapt_requires_gradient), or a vector that is not of its input's dtype and
 * shape. */

/* Forward mode: results[i] = Σ over inputs of (d roots[i] / d inputs[j]) tangents[j], how the roots change where the
 * inputs move along the tangents; of the root's shape, NULL where it does not depend on them. A NULL tangent is zeros.
 * It costs two backward passes, whatever the number of inputs. */
RAPT_API bool rapt_jvp(int count, rapt_tensor *const *roots, int input_count, rapt_tensor *const *inputs,
                       rapt_tensor *const *tangents, rapt_tensor **results, int flags);

/* The Hessian of a root of one element times a vector: results[i] = Σ over j of (d² root / d inputs[i] d inputs[j])
 * vectors[j], of the input's shape, NULL where that is zeros because nothing depends on anything. A NULL vector is
 * zeros. No matrix is stored. */
RAPT_API bool rapt_hvp(rapt_tensor *root, int count, rapt_tensor *const *inputs, rapt_tensor *const *vectors,
                       rapt_tensor **results, int flags);

/* d root / d input, all of it, in the shape (root's…, input's…), 8 axes at most, and the input's dtype: one backward
 * pass for each element of the root. Zeros where the root does not depend on the input. Of a gradient that was made
 * with RAPT_CREATE_GRAPH it is the Hessian. */
RAPT_API rapt_tensor *rapt_jacobian(rapt_tensor *root, rapt_tensor *input, int flags);

RAPT_END_DECLS

#endif
