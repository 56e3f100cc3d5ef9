/* The function whose Jacobian gradcheck computes: its variables, and what it gives at their values. */
#include "gradcheck_function.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <rapt/ops.h>

#include "node.h"

const char *rapt_checker_input_name(const rapt_checker *c, int input, char text[32])
{
    if (c->options.names) return c->options.names[input];
    snprintf(text, 32, "input %d", input);
    return text;
}

static bool fail(rapt_error_code code, const rapt_checker *c, const char *what, int input)
{
    char text[32];
    return rapt_fail(code, "gradcheck", "%s: %s %s", c->name, rapt_checker_input_name(c, input, text), what);
}

/* Room for one variable more than there are inputs: the cotangent. */
static bool make_room(rapt_checker *c)
{
    const size_t room = (size_t)c->count + 1;
    c->variables = calloc(4 * room, sizeof(rapt_tensor *));
    c->which = calloc(room, sizeof *c->which);
    c->versions = calloc(2 * room, sizeof *c->versions);
    if (!c->variables || !c->which || !c->versions)
        return rapt_fail(RAPT_ERROR_MEMORY, "gradcheck", "%s: no memory for %d inputs", c->name, c->count);
    c->outputs = c->variables + room;
    c->gradients = c->outputs + room;
    c->others = c->gradients + room;
    c->sequences = c->versions + room;
    return true;
}

/* The same leaf may come twice: it is one variable. */
static bool is_variable(const rapt_checker *c, const rapt_tensor *input)
{
    for (int k = 0; k < c->variable_count; k++)
        if (c->variables[k] == input) return true;
    return false;
}

static bool check_options(const rapt_checker *c)
{
    const rapt_gradcheck_options *o = &c->options;
    if (c->count < 0)
        return rapt_fail(RAPT_ERROR_VALUE, "gradcheck", "%s: %d inputs; 0 or more expected", c->name, c->count);
    const double numbers[] = {o->step, o->relative_tolerance, o->absolute_tolerance};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (!(numbers[i] > 0 && isfinite(numbers[i])))
            return rapt_fail(RAPT_ERROR_VALUE, "gradcheck",
                             "%s: step %g, relative tolerance %g and absolute tolerance %g; finite numbers above 0 "
                             "expected",
                             c->name, o->step, o->relative_tolerance, o->absolute_tolerance);
    return true;
}

bool rapt_checker_is_finite(rapt_tensor *tensor)
{
    RAPT_SCOPE;
    RAPT_NO_GRADIENT;
    return rapt_item(rapt_all(rapt_isfinite(tensor), RAPT_ALL_AXES, false)) == 1;
}

static bool find_variables(rapt_checker *c)
{
    for (int i = 0; i < c->count; i++) {
        rapt_tensor *input = c->inputs[i];
        if (!input) return fail(RAPT_ERROR_NULL, c, "is NULL", i);
        if (!input->link || is_variable(c, input)) continue;
        if (!input->link->kind->is_leaf) return fail(RAPT_ERROR_GRAPH, c, "is the result of an op; a leaf expected", i);
        if (input->dtype != RAPT_FLOAT64) return fail(RAPT_ERROR_DTYPE, c, "is float32; differences need float64", i);
        if (rapt_repeated_axis(input) >= 0)
            return fail(RAPT_ERROR_SHAPE, c, "repeats elements; expand it inside the function", i);
        if (input->storage->is_read_only)
            return fail(RAPT_ERROR_VALUE, c, "lies in memory that may only be read; differences need a clone", i);
        if (!rapt_checker_is_finite(input))
            return fail(RAPT_ERROR_VALUE, c, "has NaN or infinities; differences need numbers", i);
        c->which[c->variable_count] = i;
        c->versions[c->variable_count] = rapt_version_of(input);
        c->variables[c->variable_count++] = input;
    }
    c->differentiated = c->variable_count;
    if (c->variable_count == 0)
        return rapt_fail(RAPT_ERROR_VALUE, "gradcheck", "%s: no input requires a gradient", c->name);
    return true;
}

bool rapt_checker_prepare(rapt_checker *c)
{
    return check_options(c) && make_room(c) && find_variables(c);
}

void rapt_checker_end(rapt_checker *c)
{
    for (int i = 0; i < c->differentiated; i++) c->variables[i]->storage->version = c->versions[i];
    free(c->variables);
    free(c->which);
    free(c->versions);
}

/* Far from where the checker's own numbers come from. The function finds the generator there at every call, so that
 * dropout drops the same. */
static const uint64_t offset_of_function = UINT64_C(1) << 62;

rapt_tensor *rapt_checker_call(const rapt_checker *c)
{
    const rapt_random_state before = rapt_random_get_state();
    rapt_random_set_state((rapt_random_state){.seed = c->options.seed, .offset = offset_of_function});
    rapt_tensor *output = c->function(c->inputs, c->options.context);
    rapt_random_set_state(before);
    if (!output)
        rapt_fail(RAPT_ERROR_VALUE, "gradcheck", "%s: the function returned NULL", c->name);
    else if (output->dtype != RAPT_FLOAT64)
        rapt_fail(RAPT_ERROR_DTYPE, "gradcheck", "%s: the function returned %s; float64 expected " RAPT_CAST_CURE,
                  c->name, rapt_dtype_name(output->dtype));
    else
        return output;
    return NULL;
}

bool rapt_checker_evaluate(rapt_checker *c)
{
    rapt_tensor *output = rapt_checker_call(c);
    if (!output) return false;
    if (!c->options.second_order) {
        c->outputs[0] = output;
        c->output_count = 1;
        return true;
    }
    c->output_count = c->differentiated;
    for (int i = 0; i < c->differentiated; i++) c->outputs[i] = NULL;
    if (output->link && !rapt_gradients(1, &output, &c->variables[c->differentiated], c->differentiated, c->variables,
                                        c->outputs, RAPT_CREATE_GRAPH))
        return false;
    for (int i = 0; i < c->output_count; i++)
        if (!c->outputs[i] &&
            !(c->outputs[i] = rapt_zeros(RAPT_FLOAT64, c->variables[i]->rank, c->variables[i]->shape)))
            return false;
    return true;
}

bool rapt_checker_add_cotangent(rapt_checker *c)
{
    rapt_tensor *output = rapt_checker_call(c);
    if (!output) return false;
    rapt_tensor *cotangent = rapt_randn(RAPT_FLOAT64, output->rank, output->shape);
    if (!cotangent || !rapt_require_gradient(cotangent)) return false;
    c->which[c->variable_count] = c->count;
    c->variables[c->variable_count++] = cotangent;
    return true;
}
