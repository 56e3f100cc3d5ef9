/* The gradients of a run, by each way to them: into leaves, into results, and once more differentiated. */
#include <string.h>

#include "judge.h"

enum { most_roots = 64 };

/* The records of that kind and the values that they name; how many there are. */
static int find_records(const run *r, const char *kind, const char *what, const record **records, rapt_tensor **values)
{
    int count = 0;
    for (int i = 0; i < r->program->count; i++) {
        const record *found = &r->program->records[i];
        if (!record_is(found, kind) || (what && !record_says(found, "what", what))) continue;
        values[count] = r->values[record_integer(found, "value")];
        records[count++] = found;
    }
    return count;
}

static void tensors_of(const run *r, int count, const record *const *records, rapt_tensor **tensors)
{
    for (int i = 0; i < count; i++) tensors[i] = run_tensor(r, records[i]);
}

/* Where a program changes tensors in place, that a gradient needs one of them is an answer too. */
static bool is_refused(const run *r)
{
    return record_integer(&r->program->records[0], "writes") && rapt_error_get_code() == RAPT_ERROR_GRAPH &&
           strstr(rapt_error(), "changed in place");
}

static outcome failed(run *r)
{
    if (is_refused(r)) {
        rapt_clear_error();
        return refused;
    }
    r->step = &r->program->records[0];
    report(r, rapt_error());
    return wrong;
}

bool run_backward(run *r, int flags)
{
    const record *roots[most_roots];
    rapt_tensor *values[most_roots] = {0}, *seeds[most_roots] = {0};
    int count = find_records(r, "root", NULL, roots, values);
    tensors_of(r, count, roots, seeds);
    return rapt_backward_from(count, values, seeds, flags);
}

outcome differentiate_into_leaves(run *r)
{
    const record *expected[most_values];
    rapt_tensor *leaves[most_values];
    int count = find_records(r, "expect", "gradient", expected, leaves);
    const bool twice = record_integer(&r->program->records[0], "twice");
    if (!run_backward(r, twice ? RAPT_RETAIN_GRAPH : 0) || (twice && !run_backward(r, 0))) return failed(r);
    for (int i = 0; i < count; i++) {
        rapt_tensor *gradient = rapt_gradient(leaves[i]);
        if (record_integer(expected[i], "inner")) continue;
        if (gradient && twice) rapt_scale_in_place(gradient, 0.5);
        judge(r, expected[i], gradient);
    }
    return agreed;
}

outcome differentiate(run *r)
{
    const record *roots[most_roots], *expected[most_values];
    rapt_tensor *root_values[most_roots] = {0}, *seeds[most_roots] = {0}, *inputs[most_values] = {0};
    rapt_tensor *gradients[most_values];
    int root_count = find_records(r, "root", NULL, roots, root_values);
    int count = find_records(r, "expect", "gradient", expected, inputs);
    tensors_of(r, root_count, roots, seeds);
    if (!rapt_gradients(root_count, root_values, seeds, count, inputs, gradients, 0)) return failed(r);
    for (int i = 0; i < count; i++) judge(r, expected[i], gradients[i]);
    return agreed;
}

/* The gradients as part of a graph, and the gradients of their product with the program's directions. */
outcome differentiate_twice(run *r)
{
    const record *roots[most_roots], *expected[most_values], *directions[most_values];
    rapt_tensor *root_values[most_roots] = {0}, *seeds[most_roots] = {0}, *inputs[most_values] = {0};
    rapt_tensor *gradients[most_values];
    rapt_tensor *along[most_values] = {0}, *leaves[most_values] = {0}, *seconds[most_values];
    int root_count = find_records(r, "root", NULL, roots, root_values);
    int count = find_records(r, "direction", NULL, directions, inputs), graph_count = 0;
    tensors_of(r, root_count, roots, seeds);
    for (int i = 0; i < root_count; i++) rapt_require_gradient(seeds[i]);
    if (!rapt_gradients(root_count, root_values, seeds, count, inputs, gradients, RAPT_CREATE_GRAPH)) return failed(r);
    for (int i = 0; i < count; i++) {
        if (!gradients[i] || !rapt_requires_gradient(gradients[i])) continue;
        along[graph_count] = run_tensor(r, directions[i]);
        gradients[graph_count++] = gradients[i];
    }
    count = find_records(r, "expect", "second", expected, leaves);
    for (int i = 0; i < count; i++)
        if (record_text(expected[i], "root")) leaves[i] = seeds[record_integer(expected[i], "root")];
    if (!rapt_gradients(graph_count, gradients, along, count, leaves, seconds, 0)) return failed(r);
    for (int i = 0; i < count; i++) judge(r, expected[i], seconds[i]);
    return agreed;
}
