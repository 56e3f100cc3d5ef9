/* Runs a case of a fixture and compares it with what PyTorch gave. */
#include "parity.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { name_size = 256 };

/* The folder of results in the fixture. */
static const char *typed(const parity *p)
{
    return p->dtype == RAPT_FLOAT64 ? "float64/" : "float32/";
}

/* "CASE/" + folder + "what/NAME" of the fixture; NULL when there is none. */
static rapt_tensor *find_in(const parity *p, const char *folder, const char *what, const char *name)
{
    char full[name_size];
    snprintf(full, sizeof full, "%s/%s%s/%s", p->name, folder, what, name);
    return rapt_archive_find(p->fixture, full);
}

/* Calls the visitor with what follows in every name of the fixture that begins so. */
static void visit_names(const parity *p, const char *folder, const char *what,
                        void (*visitor)(const char *name, void *context), void *context)
{
    char prefix[name_size];
    const size_t length = (size_t)snprintf(prefix, sizeof prefix, "%s/%s%s/", p->name, folder, what);
    for (int64_t i = 0; i < rapt_archive_count(p->fixture); i++) {
        const char *name = rapt_archive_name(p->fixture, i);
        if (strncmp(name, prefix, length) == 0) visitor(name + length, context);
    }
}

static rapt_tensor *named(int count, const parity_named *list, const char *name)
{
    for (int i = 0; i < count; i++)
        if (strcmp(list[i].name, name) == 0) return list[i].tensor;
    return NULL;
}

rapt_tensor *parity_input(parity *p, const char *name)
{
    rapt_tensor *tensor = find_in(p, "", "inputs", name);
    if (!tensor) {
        rapt_fail(RAPT_ERROR_VALUE, p->name, "the fixture has no input %s", name);
        return NULL;
    }
    if (rapt_dtype_is_floating(rapt_get_dtype(tensor))) tensor = rapt_clone(rapt_cast(tensor, p->dtype));
    if (find_in(p, typed(p), "gradients", name)) tensor = rapt_require_gradient(tensor);
    p->inputs[p->input_count++] = (parity_named){name, tensor};
    return tensor;
}

static void check_weight(const char *name, void *context)
{
    const parity *p = context;
    if (!rapt_module_find(p->module, name)) rapt_fail(RAPT_ERROR_VALUE, p->name, "the module has no %s", name);
}

/* Random weights, but a single number (a width, a temperature) keeps its first value. */
static bool randomize(const char *name, rapt_tensor *tensor, void *context)
{
    (void)name, (void)context;
    return rapt_count(tensor) == 1 || rapt_fill_uniform(tensor, -0.7, 0.7);
}

static bool give_weights(parity *p)
{
    if (p->weights) return rapt_module_visit(p->module, RAPT_PARAMETERS, randomize, NULL);
    char prefix[name_size];
    snprintf(prefix, sizeof prefix, "%s/weights/", p->name);
    visit_names(p, "", "weights", check_weight, p);
    return rapt_module_from_archive(p->module, prefix, p->fixture);
}

void *parity_module(parity *p, void *module)
{
    p->module = module;
    if (!module || !give_weights(p) || !rapt_module_cast(module, p->dtype)) return NULL;
    const bool is_saved = p->weights && rapt_module_parameter_count(module) > 0;
    return !is_saved || rapt_module_save(module, p->weights) ? module : NULL;
}

void parity_output(parity *p, const char *name, rapt_tensor *output)
{
    p->outputs[p->output_count++] = (parity_named){name, output};
}

bool parity_run(parity *p, const parity_case *of)
{
    rapt_tensor *roots[16], *seeds[16];
    int count = 0;
    p->name = of->name;
    p->option = of->option;
    of->run(p);
    for (int i = 0; i < p->output_count; i++) {
        rapt_tensor *seed = find_in(p, "", "seeds", p->outputs[i].name);
        if (!p->outputs[i].tensor || !seed) continue;
        roots[count] = p->outputs[i].tensor;
        seeds[count++] = rapt_cast(seed, p->dtype);
    }
    if (count > 0) rapt_backward_from(count, roots, seeds, 0);
    return !rapt_error();
}

/* max |actual − expected| / max |expected| */
static double deviation(const rapt_tensor *actual, const rapt_tensor *expected)
{
    if (!actual || !expected || !rapt_same_shape(actual, expected) ||
        rapt_get_dtype(actual) != rapt_get_dtype(expected))
        return INFINITY;
    RAPT_NO_GRADIENT;
    const rapt_tensor *a = rapt_clone(rapt_cast((rapt_tensor *)actual, RAPT_FLOAT64));
    const rapt_tensor *e = rapt_clone(rapt_cast((rapt_tensor *)expected, RAPT_FLOAT64));
    if (!a || !e) return INFINITY;
    const double *found = rapt_data(a), *wanted = rapt_data(e);
    double difference = 0, largest = 0;
    for (int64_t i = 0; i < rapt_count(a); i++) {
        if (!isfinite(found[i]) || !isfinite(wanted[i])) return INFINITY;
        difference = fmax(difference, fabs(found[i] - wanted[i]));
        largest = fmax(largest, fabs(wanted[i]));
    }
    return difference > 0 ? difference / largest : 0;
}

typedef struct comparison {
    const parity *p;
    const char *what; /* "outputs" or "gradients" */
    parity_visitor *visitor;
    void *context;
} comparison;

/* What the run has under that name. */
static const rapt_tensor *result(const parity *p, const char *what, const char *name)
{
    if (strcmp(what, "outputs") == 0) return named(p->output_count, p->outputs, name);
    rapt_tensor *leaf = named(p->input_count, p->inputs, name);
    if (!leaf && p->module) leaf = rapt_module_find(p->module, name);
    return leaf ? rapt_gradient(leaf) : NULL;
}

static void compare(const char *name, void *context)
{
    const comparison *c = context;
    char full[name_size];
    snprintf(full, sizeof full, "%s/%s%s/%s", c->p->name, typed(c->p), c->what, name);
    const rapt_tensor *expected = find_in(c->p, typed(c->p), c->what, name);
    c->visitor(c->p, full, deviation(result(c->p, c->what, name), expected), c->context);
}

/* What only the run has. */
static bool compare_unexpected_gradient(const char *name, rapt_tensor *parameter, void *context)
{
    const comparison *c = context;
    if (rapt_gradient(parameter) && !find_in(c->p, typed(c->p), "gradients", name)) compare(name, context);
    return true;
}

void parity_compare(const parity *p, parity_visitor *visitor, void *context)
{
    comparison outputs = {p, "outputs", visitor, context}, gradients = {p, "gradients", visitor, context};
    visit_names(p, typed(p), "outputs", compare, &outputs);
    visit_names(p, typed(p), "gradients", compare, &gradients);
    for (int i = 0; i < p->output_count; i++)
        if (!find_in(p, typed(p), "outputs", p->outputs[i].name)) compare(p->outputs[i].name, &outputs);
    if (p->module) rapt_module_visit(p->module, RAPT_PARAMETERS, compare_unexpected_gradient, &gradients);
}

void parity_end(parity *p)
{
    rapt_module_free(p->module);
    *p = (parity){0};
}
