/* The layouts that gradcheck of first order starts from. What lies between the elements is NaN, so much of it that who
 * reads the gradient as if it were contiguous reads nothing else's memory. */
#include "gradcheck_layout.h"

#include <math.h>
#include <stdlib.h>

#include <rapt/ops.h>

#include "node.h"

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

/* Gradients that are not finite are for the differences. */
static bool is_same(const rapt_tensor *dense, const rapt_tensor *other, const rapt_gradcheck_options *options)
{
    const double *expected = rapt_data(dense), *found = rapt_data(other);
    double largest = 0;
    for (int64_t k = 0; k < rapt_count(dense); k++) {
        if (!isfinite(expected[k])) return true;
        largest = fmax(largest, fabs(expected[k]));
    }
    const double allowed = options->absolute_tolerance + options->relative_tolerance * largest;
    for (int64_t k = 0; k < rapt_count(dense); k++)
        if (!(fabs(found[k] - expected[k]) <= allowed)) return false;
    return true;
}

static bool check_start(const char *name, rapt_tensor *output, int count, rapt_tensor *const *variables,
                        rapt_tensor *start, rapt_tensor **gradients, const rapt_gradcheck_options *options)
{
    rapt_tensor *dense = rapt_contiguous(start), **others = gradients + count;
    if (!dense || !rapt_gradients(1, &output, &dense, count, variables, gradients, RAPT_RETAIN_GRAPH) ||
        !rapt_gradients(1, &output, &start, count, variables, others, RAPT_RETAIN_GRAPH))
        return false;
    for (int i = 0; i < count; i++) {
        if (!gradients[i] || !others[i]) continue;
        const rapt_tensor *expected = rapt_contiguous(gradients[i]), *found = rapt_contiguous(others[i]);
        if (!expected || !found) return false;
        if (!is_same(expected, found, options))
            return rapt_fail(RAPT_ERROR_GRAPH, "gradcheck",
                             "%s: backward gives something else where the same starting gradient has other strides: a "
                             "vjp reads the gradient as if it were contiguous (rapt_contiguous of rapt_call_gradient "
                             "makes it so)",
                             name);
    }
    return true;
}

bool rapt_gradcheck_layout(const char *name, rapt_tensor *output, int count, rapt_tensor *const *variables,
                           const rapt_gradcheck_options *options)
{
    if (!output->link || output->rank == 0 || output->count < 2) return true;
    RAPT_SCOPE;
    RAPT_NO_GRADIENT;
    rapt_tensor *starts[] = {strided(output), expanded(output)};
    if (!starts[0] || !starts[1]) return false;
    rapt_tensor **gradients = calloc(2 * (size_t)count, sizeof(rapt_tensor *));
    if (!gradients) return rapt_fail(RAPT_ERROR_MEMORY, "gradcheck", "%s: no memory for %d inputs", name, count);
    bool good = true;
    for (int i = 0; i < 2 && good; i++)
        good = check_start(name, output, count, variables, starts[i], gradients, options);
    free(gradients);
    return good;
}
