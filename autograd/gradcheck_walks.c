/* Walks that must give what one gives that retains the graph and starts from a dense gradient: from other layouts, and
 * as training has it. What lies between the elements of a layout is NaN, so much of it that who reads the gradient as
 * if it were contiguous reads nothing else's memory. */
#include "gradcheck_walks.h"

#include <math.h>

#include <rapt/ops.h>

#include "node.h"
#include "segment.h"

/* Random numbers, axes in the opposite order and every other element of the last one in memory. */
static rapt_tensor *strided(const rapt_tensor *like)
{
    int64_t shape[RAPT_MAX_RANK];
    int axes[RAPT_MAX_RANK];
    const int last = like->rank - 1;
    for (int i = 0; i <= last; i++) {
        axes[i] = last - i;
        shape[i] = like->shape[last - i];
    }
    shape[last] *= 2;
    rapt_tensor *wide = rapt_full(RAPT_FLOAT64, like->rank, shape, NAN);
    rapt_tensor *view = rapt_permute(rapt_slice(wide, last, 0, shape[last], 2), like->rank, axes);
    return view && rapt_copy(view, rapt_randn(RAPT_FLOAT64, like->rank, like->shape)) ? view : NULL;
}

/* One number for all elements, as backward of a sum has it. */
static rapt_tensor *expanded(const rapt_tensor *like)
{
    const int64_t ones[] = {1, 1, 1, 1, 1, 1, 1, 1};
    _Static_assert(sizeof ones / sizeof *ones == RAPT_MAX_RANK, "an axis of size 1 for each");
    rapt_tensor *one = rapt_slice(rapt_full(RAPT_FLOAT64, 1, &like->count, NAN), 0, 0, 1, 1);
    if (!one || !rapt_copy(one, rapt_scalar(RAPT_FLOAT64, 1.5))) return NULL;
    return rapt_expand(rapt_reshape(one, like->rank, ones), like->rank, like->shape);
}

/* False and an error where the other walk gives something else for that variable. Gradients that are not finite are
 * for the differences. */
static bool is_same(const rapt_checker *c, int variable, const char *where)
{
    if (!c->gradients[variable] || !c->others[variable]) return true;
    const rapt_tensor *dense = rapt_contiguous(c->gradients[variable]), *other = rapt_contiguous(c->others[variable]);
    if (!dense || !other) return false;
    const double *expected = rapt_data(dense), *found = rapt_data(other);
    double largest = 0;
    for (int64_t k = 0; k < dense->count; k++) {
        if (!isfinite(expected[k])) return true;
        largest = fmax(largest, fabs(expected[k]));
    }
    const double allowed = c->options.absolute_tolerance + c->options.relative_tolerance * largest;
    char text[32];
    for (int64_t k = 0; k < dense->count; k++)
        if (!(fabs(found[k] - expected[k]) <= allowed))
            return rapt_fail(RAPT_ERROR_GRAPH, "gradcheck",
                             "%s: backward gives something else, %.12g for %s[%lld] and not %.12g, where %s", c->name,
                             found[k], rapt_checker_input_name(c, c->which[variable], text), (long long)k, expected[k],
                             where);
    return true;
}

static bool are_same(const rapt_checker *c, const char *where)
{
    bool good = true;
    for (int i = 0; i < c->variable_count && good; i++) good = is_same(c, i, where);
    return good;
}

static bool walk(rapt_checker *c, rapt_tensor *start, rapt_tensor **gradients)
{
    return rapt_gradients(1, c->outputs, &start, c->variable_count, c->variables, gradients, RAPT_RETAIN_GRAPH);
}

static bool check_start(rapt_checker *c, rapt_tensor *start)
{
    rapt_tensor *dense = rapt_contiguous(start);
    return dense && walk(c, dense, c->gradients) && walk(c, start, c->others) &&
           are_same(c, "the same starting gradient has other strides: a vjp reads the gradient as if it were "
                       "contiguous (rapt_contiguous of rapt_call_gradient makes it so)");
}

/* The function once more, in whose graph a gradient that nobody else holds comes to it when zeros have come to all
 * variables already. */
static rapt_tensor *call_behind_others(rapt_checker *c)
{
    rapt_tensor *root = rapt_mul_scalar(rapt_checker_call(c), 1);
    for (int i = 0; i < c->variable_count; i++)
        root = rapt_add(root, rapt_sum(rapt_mul_scalar(c->variables[i], 0), RAPT_ALL_AXES, false));
    return root;
}

/* Gives the graph up as far as it was recorded since: to this walk the variables are as old as that, so that what the
 * function found recorded stays as it is. */
static bool walk_once(rapt_checker *c, rapt_tensor *root, rapt_tensor *start, uint64_t since)
{
    for (int i = 0; i < c->variable_count; i++) {
        c->sequences[i] = rapt_node_of(c->variables[i])->sequence;
        rapt_node_of(c->variables[i])->sequence = since;
    }
    const bool good = rapt_gradients(1, &root, &start, c->variable_count, c->variables, c->others, 0);
    for (int i = 0; i < c->variable_count; i++) rapt_node_of(c->variables[i])->sequence = c->sequences[i];
    return good;
}

/* From the same gradient twice: a vjp that changes it changes the second walk. In that no scope holds what was saved,
 * so that it may be taken, unless functions of rapt_recompute may read what was made before them. */
static bool check_in_place(rapt_checker *c)
{
    rapt_tensor *start = rapt_randn(RAPT_FLOAT64, c->outputs[0]->rank, c->outputs[0]->shape);
    if (!start || !walk(c, start, c->gradients)) return false;
    const uint64_t since = rapt_nodes_last(), segments = rapt_count_segments();
    const rapt_scope scope = rapt_scope_begin();
    rapt_tensor *root = rapt_keep(call_behind_others(c));
    const bool is_read_again = rapt_count_segments() != segments;
    if (!is_read_again) rapt_scope_end(scope);
    const bool good =
        root && walk_once(c, root, start, since) &&
        are_same(c, "the graph is given up and other gradients came before, as in training: a vjp changes "
                    "rapt_call_gradient, reads what rapt_call_last_gradient or rapt_call_take_saved gave "
                    "after it was changed, or adds something else to rapt_call_gradient_so_far");
    if (is_read_again) rapt_scope_end(scope);
    return good;
}

bool rapt_gradcheck_walks(rapt_checker *c)
{
    const rapt_tensor *output = c->outputs[0];
    if (!output->link) return true;
    RAPT_SCOPE;
    if (output->rank > 0 && output->count > 1) {
        rapt_tensor *starts[] = {strided(output), expanded(output)};
        for (int i = 0; i < 2; i++)
            if (!starts[i] || !check_start(c, starts[i])) return false;
    }
    return check_in_place(c);
}
