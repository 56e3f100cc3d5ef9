/* gradcheck: the analytic Jacobian, row by row, against differences, column by column; or one random projection of
 * both. */
#include <rapt/gradcheck.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "gradcheck_graph.h"
#include "node.h"

/* The function whose Jacobian is checked. First order: the user's. Second order: the gradients of <function,
 * cotangent>. */
typedef struct checker {
    const char *name;
    rapt_gradcheck_function *function;
    rapt_tensor *const *inputs;
    int count;
    rapt_gradcheck_options options;
    rapt_tensor **variables; /* what is perturbed */
    int *which;              /* its number among the inputs */
    int variable_count;
    int differentiated; /* of the variables, those that second order takes the gradient of: all but the cotangent */
    rapt_tensor **outputs;
    int output_count;
    rapt_tensor **gradients; /* of the variables, in one walk */
    int64_t width, height;   /* elements of all variables and of all outputs */
    rapt_gradcheck_result *result;
    int worst; /* the variable where the result's worst error is */
} checker;

/* What messages call an input. */
static const char *input_name(const checker *c, int input, char text[32])
{
    if (c->options.names) return c->options.names[input];
    snprintf(text, 32, "input %d", input);
    return text;
}

static bool fail(rapt_error_code code, const checker *c, const char *what, int input)
{
    char text[32];
    return rapt_fail(code, "gradcheck", "%s: %s %s", c->name, input_name(c, input, text), what);
}

/* Room for one variable more than there are inputs: the cotangent. */
static bool make_room(checker *c)
{
    const size_t room = (size_t)(c->count < 0 ? 0 : c->count) + 1;
    c->variables = calloc(3 * room, sizeof(rapt_tensor *));
    c->which = calloc(room, sizeof *c->which);
    if (!c->variables || !c->which)
        return rapt_fail(RAPT_ERROR_MEMORY, "gradcheck", "%s: no memory for %d inputs", c->name, c->count);
    c->outputs = c->variables + room;
    c->gradients = c->outputs + room;
    return true;
}

static bool overlaps_itself(const rapt_tensor *tensor)
{
    for (int axis = 0; axis < tensor->rank; axis++)
        if (tensor->strides[axis] == 0 && tensor->shape[axis] > 1) return true;
    return false;
}

static bool find_variables(checker *c)
{
    for (int i = 0; i < c->count; i++) {
        rapt_tensor *input = c->inputs[i];
        if (!input) return fail(RAPT_ERROR_NULL, c, "is NULL", i);
        if (!input->link) continue;
        if (!input->link->kind->is_leaf) return fail(RAPT_ERROR_GRAPH, c, "is the result of an op; a leaf expected", i);
        if (input->dtype != RAPT_FLOAT64) return fail(RAPT_ERROR_DTYPE, c, "is float32; differences need float64", i);
        if (overlaps_itself(input))
            return fail(RAPT_ERROR_SHAPE, c, "repeats elements; expand it inside the function", i);
        c->which[c->variable_count] = i;
        c->variables[c->variable_count++] = input;
    }
    c->differentiated = c->variable_count;
    if (c->variable_count == 0)
        return rapt_fail(RAPT_ERROR_VALUE, "gradcheck", "%s: no input requires a gradient", c->name);
    return true;
}

/* Far from where the checker's own numbers come from. The function finds the generator there at every call, so that
 * dropout drops the same. */
static const uint64_t offset_of_function = UINT64_C(1) << 62;

static rapt_tensor *call_function(const checker *c)
{
    const rapt_random_state before = rapt_random_get_state();
    rapt_random_set_state((rapt_random_state){.seed = c->options.seed, .offset = offset_of_function});
    rapt_tensor *output = c->function(c->inputs, c->options.context);
    rapt_random_set_state(before);
    if (!output)
        rapt_fail(RAPT_ERROR_VALUE, "gradcheck", "%s: the function returned NULL", c->name);
    else if (output->dtype != RAPT_FLOAT64)
        rapt_fail(RAPT_ERROR_DTYPE, "gradcheck", "%s: the function returned %s; float64 expected", c->name,
                  rapt_dtype_name(output->dtype));
    else
        return output;
    return NULL;
}

/* Computes c->outputs at the present values of the variables. */
static bool evaluate(checker *c)
{
    rapt_tensor *output = call_function(c);
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

/* Second order starts from a random gradient, which is a variable too: backward is linear in it. */
static bool add_cotangent(checker *c)
{
    rapt_tensor *output = call_function(c);
    if (!output) return false;
    rapt_tensor *cotangent = rapt_randn(RAPT_FLOAT64, output->rank, output->shape);
    if (!cotangent || !rapt_require_gradient(cotangent)) return false;
    c->which[c->variable_count] = c->count;
    c->variables[c->variable_count++] = cotangent;
    return true;
}

static double *element(const rapt_tensor *tensor, int64_t index)
{
    int64_t offset = 0;
    for (int axis = tensor->rank - 1; axis >= 0; axis--) {
        offset += index % tensor->shape[axis] * tensor->strides[axis];
        index /= tensor->shape[axis];
    }
    return (double *)(void *)tensor->data + offset;
}

static int64_t total(int count, rapt_tensor *const *tensors)
{
    int64_t sum = 0;
    for (int i = 0; i < count; i++) sum += tensors[i]->count;
    return sum;
}

/* values += weight · all elements of the outputs. */
static bool add_outputs(checker *c, double weight, double *values)
{
    RAPT_SCOPE;
    if (!evaluate(c)) return false;
    for (int i = 0; i < c->output_count; i++)
        for (int64_t k = 0; k < c->outputs[i]->count; k++) *values++ += weight * *element(c->outputs[i], k);
    return true;
}

/* Moves element j of every variable by distance · direction (direction NULL: only element `only`, by distance). */
static void move(checker *c, const double *saved, const double *direction, int64_t only, double distance)
{
    int64_t j = 0;
    for (int i = 0; i < c->variable_count; i++) {
        rapt_data_for_writing(c->variables[i]);
        for (int64_t k = 0; k < c->variables[i]->count; k++, j++)
            *element(c->variables[i], k) = saved[j] + distance * (direction ? direction[j] : j == only);
    }
}

/* f'(x) ≈ (f(x − 2h) − 8 f(x − h) + 8 f(x + h) − f(x + 2h)) / 12h, with an error of order h⁴. */
static bool differences(checker *c, const double *saved, const double *direction, int64_t only, double step,
                        double *column)
{
    static const double places[] = {-2, -1, 1, 2}, weights[] = {1, -8, 8, -1};
    bool good = true;
    for (int64_t k = 0; k < c->height; k++) column[k] = 0;
    for (int i = 0; i < 4 && good; i++) {
        move(c, saved, direction, only, places[i] * step);
        good = add_outputs(c, weights[i] / (12 * step), column);
    }
    move(c, saved, NULL, -1, 0);
    return good;
}

/* row = cotangent · Jacobian, for a cotangent over all elements of the outputs. */
static bool analytic_row(checker *c, const double *cotangent, double *row)
{
    RAPT_SCOPE;
    for (int64_t j = 0; j < c->width; j++) row[j] = 0;
    for (int i = 0; i < c->output_count; cotangent += c->outputs[i++]->count) {
        rapt_tensor *output = c->outputs[i];
        if (!output->link) continue;
        rapt_tensor *start = rapt_from(RAPT_FLOAT64, output->rank, output->shape, cotangent);
        if (!rapt_gradients(1, &output, &start, c->variable_count, c->variables, c->gradients, RAPT_RETAIN_GRAPH))
            return false;
        int64_t j = 0;
        for (int v = 0; v < c->variable_count; j += c->variables[v++]->count)
            for (int64_t k = 0; c->gradients[v] && k < c->variables[v]->count; k++)
                row[j + k] += *element(c->gradients[v], k);
    }
    return true;
}

static void compare(checker *c, int64_t output, int64_t j, double analytic, double numeric)
{
    rapt_gradcheck_result *r = c->result;
    double tolerance = c->options.absolute_tolerance + c->options.relative_tolerance * fabs(numeric);
    double error = fabs(analytic - numeric) / tolerance;
    r->checked++;
    bool right = fabs(analytic - numeric) <= tolerance; /* false for NaN */
    if (error > r->worst_error || (!right && r->passed)) {
        r->worst_error = error;
        int variable = 0;
        while (j >= 0 && j >= c->variables[variable]->count) j -= c->variables[variable++]->count;
        c->worst = variable;
        r->input = j < 0 ? -1 : c->which[variable];
        r->index = j;
        r->output = output;
        r->analytic = analytic;
        r->numeric = numeric;
        r->tolerance = tolerance;
    }
    if (!right) r->passed = false;
}

static double step_at(const checker *c, double value)
{
    return c->options.step * fmax(1, fabs(value));
}

/* work: saved values and a row (width each), a column and a cotangent (height each), the Jacobian (height · width). */
static bool check_all(checker *c, double *saved, double *row, double *column, double *cotangent, double *jacobian)
{
    for (int64_t j = 0; j < c->width; j++) {
        if (!differences(c, saved, NULL, j, step_at(c, saved[j]), column)) return false;
        for (int64_t i = 0; i < c->height; i++) jacobian[i * c->width + j] = column[i];
    }
    RAPT_SCOPE;
    if (!evaluate(c)) return false;
    for (int64_t i = 0; i < c->height; i++) {
        for (int64_t k = 0; k < c->height; k++) cotangent[k] = k == i;
        if (!analytic_row(c, cotangent, row)) return false;
        for (int64_t j = 0; j < c->width; j++) compare(c, i, j, row[j], jacobian[i * c->width + j]);
    }
    return true;
}

static bool fill_random(double *values, int64_t count)
{
    rapt_tensor *random = rapt_randn(RAPT_FLOAT64, 1, &count);
    for (int64_t k = 0; random && k < count; k++) values[k] = ((const double *)rapt_data(random))[k];
    return random != NULL;
}

/* <v, J u> both ways, for random u and v. */
static bool check_projection(checker *c, double *saved, double *row, double *column, double *cotangent,
                             double *direction)
{
    RAPT_SCOPE;
    if (!fill_random(direction, c->width) || !fill_random(cotangent, c->height)) return false;
    if (!evaluate(c) || !analytic_row(c, cotangent, row)) return false;
    if (!differences(c, saved, direction, -1, c->options.step, column)) return false;
    double analytic = 0, numeric = 0;
    for (int64_t j = 0; j < c->width; j++) analytic += row[j] * direction[j];
    for (int64_t i = 0; i < c->height; i++) numeric += column[i] * cotangent[i];
    compare(c, -1, -1, analytic, numeric);
    return true;
}

static bool check(checker *c)
{
    RAPT_SCOPE;
    if (c->options.second_order && !add_cotangent(c)) return false;
    if (!evaluate(c)) return false;
    if (!c->options.second_order &&
        !rapt_gradcheck_graph(c->name, c->outputs[0], c->variable_count, c->variables, c->gradients, &c->options))
        return false;
    c->width = total(c->variable_count, c->variables);
    c->height = total(c->output_count, c->outputs);
    bool project = c->options.random_projection;
    int64_t matrix = project ? c->width : 0;
    if (!project && __builtin_mul_overflow(c->width, c->height, &matrix))
        return rapt_fail(RAPT_ERROR_MEMORY, "gradcheck", "%s: the Jacobian is too large", c->name);
    double *work = calloc((size_t)(2 * c->width + 2 * c->height + matrix + 1), sizeof *work);
    if (!work) return rapt_fail(RAPT_ERROR_MEMORY, "gradcheck", "%s: no memory for the Jacobian", c->name);
    double *saved = work, *row = saved + c->width, *column = row + c->width, *cotangent = column + c->height;
    for (int64_t i = 0, j = 0; i < c->variable_count; i++)
        for (int64_t k = 0; k < c->variables[i]->count; k++) saved[j++] = *element(c->variables[i], k);
    bool good = (project ? check_projection : check_all)(c, saved, row, column, cotangent, cotangent + c->height);
    free(work);
    return good;
}

static double or_default(double value, double otherwise)
{
    return value == 0 ? otherwise : value;
}

static void explain(const checker *c)
{
    rapt_gradcheck_result *r = c->result;
    char text[32];
    const char *input = c->worst < c->differentiated ? input_name(c, c->which[c->worst], text) : "starting gradient";
    int used =
        snprintf(r->message, sizeof r->message, "%s: %s", c->name, c->options.second_order ? "second order: " : "");
    if (used < 0 || (size_t)used >= sizeof r->message) return;
    char *end = r->message + used;
    const size_t room = sizeof r->message - (size_t)used;
    if (r->input < 0)
        used = snprintf(end, room, "a random projection");
    else
        used = snprintf(end, room, "d output[%lld] / d %s[%lld]", (long long)r->output, input, (long long)r->index);
    if (used < 0 || (size_t)used >= room) return;
    snprintf(end + used, room - (size_t)used,
             " is %.12g by backward, %.12g by differences; they differ by %.3g, %.3g allowed", r->analytic, r->numeric,
             fabs(r->analytic - r->numeric), r->tolerance);
}

rapt_gradcheck_result rapt_gradcheck(const char *name, rapt_gradcheck_function *function, int count,
                                     rapt_tensor *const *inputs, const rapt_gradcheck_options *options)
{
    rapt_gradcheck_result result = {.passed = true};
    checker c = {.name = name ? name : "function",
                 .function = function,
                 .inputs = inputs,
                 .count = count,
                 .result = &result};
    if (options) c.options = *options;
    c.options.step = or_default(c.options.step, 1e-4);
    c.options.relative_tolerance = or_default(c.options.relative_tolerance, 1e-6);
    c.options.absolute_tolerance = or_default(c.options.absolute_tolerance, 1e-9);
    rapt_random_state random = rapt_random_get_state();
    rapt_seed(c.options.seed);
    bool recording = rapt_set_recording(true);
    bool ran = (function && inputs) ? make_room(&c) && find_variables(&c) && check(&c)
                                    : rapt_fail_null("gradcheck", "function or inputs");
    rapt_set_recording(recording);
    rapt_random_set_state(random);
    if (!ran) {
        result.passed = false;
        snprintf(result.message, sizeof result.message, "%s", rapt_error() ? rapt_error() : "gradcheck failed");
    } else if (!result.passed) {
        explain(&c);
    }
    free(c.variables);
    free(c.which);
    return result;
}
