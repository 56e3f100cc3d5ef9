/* Derivatives that are made of gradients: products with Jacobians and Hessians, and the whole Jacobian. */
#include <rapt/derivatives.h>

#include <limits.h>
#include <string.h>

#include <rapt/ops.h>

#include "node.h"
#include "tensor/debug.h"
#include "tensor/memory.h"
#include "tensor/scratch.h"

static bool check_vector(const char *op, const char *what, int i, const rapt_tensor *vector, const rapt_tensor *input)
{
    char a[128], b[128];
    if (!rapt_check_input(op, i, input) || !rapt_check_alive(op, "a vector", vector)) return false;
    return !vector || (vector->dtype == input->dtype && rapt_same_shape(vector, input)) ||
           rapt_fail(RAPT_ERROR_SHAPE, op, "%s %d is %s, its input %s", what, i, rapt_describe(vector, a, sizeof a),
                     rapt_describe(input, b, sizeof b));
}

static bool check_lists(const char *op, const char *what, int count, rapt_tensor *const *inputs,
                        rapt_tensor *const *vectors)
{
    if (count < 0) return rapt_fail(RAPT_ERROR_VALUE, op, "%d inputs; 0 or more expected", count);
    if (count > 0 && (!inputs || !vectors)) return rapt_fail_null(op, inputs ? what : "inputs");
    for (int i = 0; i < count; i++)
        if (!check_vector(op, what, i, vectors[i], inputs[i])) return false;
    return true;
}

/* Those of `count` tensors that are part of a graph, each with its vector that is not NULL; returns how many. */
static int choose(int count, rapt_tensor *const *tensors, rapt_tensor *const *vectors, rapt_tensor **chosen,
                  rapt_tensor **chosen_vectors)
{
    int n = 0;
    for (int i = 0; i < count; i++) {
        if (!tensors[i] || !tensors[i]->link || !vectors[i]) continue;
        chosen[n] = tensors[i];
        chosen_vectors[n++] = vectors[i];
    }
    return n;
}

/* <u, root> for u = 1, of which only the derivative by u matters: leaves that are younger than the roots. */
static bool make_cotangents(int count, rapt_tensor *const *roots, rapt_tensor **cotangents)
{
    for (int i = 0; i < count; i++) {
        if (!roots[i]) return rapt_fail(RAPT_ERROR_NULL, "jvp", "root %d is NULL", i);
        if (!rapt_check_alive("jvp", "a root", roots[i])) return false;
        if (!rapt_is_floating(roots[i]))
            return rapt_fail(RAPT_ERROR_DTYPE, "jvp", "root %d is %s, which has no derivative", i,
                             rapt_dtype_name(roots[i]->dtype));
        if (roots[i]->link) rapt_nodes_follow(rapt_node_of(roots[i]));
    }
    for (int i = 0; i < count; i++) {
        cotangents[i] = rapt_ones(roots[i]->dtype, roots[i]->rank, roots[i]->shape);
        if (!cotangents[i] || !rapt_require_gradient(cotangents[i])) return false;
    }
    return true;
}

/* J t = d <uᵀ J, t> / du */
static bool jvp(int count, rapt_tensor *const *roots, int input_count, rapt_tensor *const *inputs,
                rapt_tensor *const *tangents, rapt_tensor **results, int flags)
{
    rapt_tensor **lists = rapt_scratch_list("jvp", count + 4 * (int64_t)input_count + 1, sizeof *lists);
    if (!lists) return false;
    rapt_tensor **cotangents = lists, **chosen = lists + count, **along = chosen + input_count,
                **rows = along + input_count;
    if (!make_cotangents(count, roots, cotangents)) return false;
    int n = choose(input_count, inputs, tangents, chosen, along);
    if (!rapt_gradients_for("jvp", count, roots, cotangents, n, chosen, rows, RAPT_CREATE_GRAPH)) return false;
    n = choose(n, rows, along, rows, along);
    return rapt_gradients_for("jvp", n, rows, along, count, cotangents, results, flags & RAPT_CREATE_GRAPH);
}

/* Ends the scope, out of which the results go: each by a share of its own, since rapt_keep looks for it. Until here the
 * list may be that of the roots or of the vectors. */
static bool hand_out(rapt_scope scope, bool good, int count, rapt_tensor **results)
{
    for (int i = 0; i < count; i++) results[i] = good ? rapt_retain(results[i]) : NULL;
    rapt_scope_end(scope);
    for (int i = 0; i < count; i++)
        if (results[i]) good = (results[i] = rapt_scope_own(results[i])) && good;
    for (int i = 0; i < count && !good; i++) results[i] = NULL;
    return good;
}

bool rapt_jvp(int count, rapt_tensor *const *roots, int input_count, rapt_tensor *const *inputs,
              rapt_tensor *const *tangents, rapt_tensor **results, int flags)
{
    if (count < 0) return rapt_fail(RAPT_ERROR_VALUE, "jvp", "%d roots; 0 or more expected", count);
    if (count > 0 && (!roots || !results)) {
        for (int i = 0; results && i < count; i++) results[i] = NULL;
        return rapt_fail_null("jvp", roots ? "results" : "roots");
    }
    const rapt_scope scope = rapt_scope_begin();
    const bool good = rapt_check_walk_flags("jvp", flags) &&
                      check_lists("jvp", "tangents", input_count, inputs, tangents) &&
                      jvp(count, roots, input_count, inputs, tangents, results, flags);
    return hand_out(scope, good, count, results);
}

/* H v = d <d root, v> */
static bool hvp(rapt_tensor *root, int count, rapt_tensor *const *inputs, rapt_tensor *const *vectors,
                rapt_tensor **results, int flags)
{
    rapt_tensor **slopes = rapt_scratch_list("hvp", 2 * (int64_t)count + 1, sizeof *slopes), **along = slopes + count;
    if (!slopes || !rapt_gradients_for("hvp", 1, &root, NULL, count, inputs, slopes, RAPT_CREATE_GRAPH)) return false;
    const int n = choose(count, slopes, vectors, slopes, along);
    return rapt_gradients_for("hvp", n, slopes, along, count, inputs, results,
                              RAPT_RETAIN_GRAPH | (flags & RAPT_CREATE_GRAPH));
}

bool rapt_hvp(rapt_tensor *root, int count, rapt_tensor *const *inputs, rapt_tensor *const *vectors,
              rapt_tensor **results, int flags)
{
    if (count > 0 && !results) return rapt_fail_null("hvp", "results");
    const rapt_scope scope = rapt_scope_begin();
    const bool good = rapt_check_walk_flags("hvp", flags) && (root || rapt_fail_null("hvp", "root")) &&
                      check_lists("hvp", "vectors", count, inputs, vectors) &&
                      hvp(root, count, inputs, vectors, results, flags);
    return hand_out(scope, good, count, results);
}

/* The gradient of one element of the root. */
static rapt_tensor *jacobian_row(rapt_tensor *root, rapt_tensor *input, int64_t element, int flags)
{
    RAPT_SCOPE;
    rapt_tensor *row, *one = rapt_zeros(root->dtype, RAPT_SHAPE(root->count));
    if (!one || !rapt_fill(rapt_slice(one, 0, element, element + 1, 1), 1)) return NULL;
    one = rapt_reshape(one, root->rank, root->shape);
    if (!one || !rapt_gradients_for("jacobian", 1, &root, &one, 1, &input, &row,
                                    RAPT_RETAIN_GRAPH | (flags & RAPT_CREATE_GRAPH)))
        return NULL;
    return rapt_keep(row ? row : rapt_zeros(input->dtype, input->rank, input->shape));
}

static bool check_jacobian(const rapt_tensor *root, const rapt_tensor *input)
{
    const char *op = "jacobian";
    if (!root || !input) return rapt_fail_null(op, root ? "input" : "root");
    if (!rapt_check_alive(op, "the root", root) || !rapt_check_input(op, 0, input)) return false;
    if (root->rank + input->rank > RAPT_MAX_RANK || root->count > INT_MAX)
        return rapt_fail(RAPT_ERROR_SHAPE, op,
                         "%d axes and %lld elements of the root, %d axes of the input; together "
                         "%d axes at most expected, and %d elements",
                         root->rank, (long long)root->count, input->rank, RAPT_MAX_RANK, INT_MAX);
    return true;
}

rapt_tensor *rapt_jacobian(rapt_tensor *root, rapt_tensor *input, int flags)
{
    int64_t shape[RAPT_MAX_RANK];
    if (!rapt_check_walk_flags("jacobian", flags) || !check_jacobian(root, input)) return NULL;
    memcpy(shape, root->shape, root->rank * sizeof *shape);
    memcpy(shape + root->rank, input->shape, input->rank * sizeof *shape);
    const int rank = root->rank + input->rank;
    RAPT_SCOPE;
    if (root->count == 0) { /* no rows, but the errors of one */
        rapt_tensor *none = rapt_zeros(root->dtype, root->rank, root->shape), *unused;
        if (!none || !rapt_gradients_for("jacobian", 1, &root, &none, 1, &input, &unused, RAPT_RETAIN_GRAPH))
            return NULL;
        return rapt_keep(rapt_zeros(input->dtype, rank, shape));
    }
    rapt_tensor **rows = rapt_scratch_list("jacobian", root->count, sizeof *rows);
    if (!rows) return NULL;
    for (int64_t i = 0; i < root->count; i++)
        if (!(rows[i] = jacobian_row(root, input, i, flags))) return NULL;
    const bool before = rapt_set_recording(flags & RAPT_CREATE_GRAPH);
    rapt_tensor *all = rapt_reshape(rapt_stack((int)root->count, rows, 0), rank, shape);
    rapt_set_recording(before);
    return rapt_keep(all);
}
