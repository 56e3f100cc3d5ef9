/* gradcheck: the analytic Jacobian, row by row, against differences, column by column, and whether backward is linear;
 * or one random projection of both. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "gradcheck_function.h"
#include "gradcheck_graph.h"
#include "gradcheck_walks.h"
#include "node.h"

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
static bool add_outputs(rapt_checker *c, double weight, double *values)
{
    RAPT_SCOPE;
    if (!rapt_checker_evaluate(c)) return false;
    for (int i = 0; i < c->output_count; i++)
        for (int64_t k = 0; k < c->outputs[i]->count; k++) *values++ += weight * *element(c->outputs[i], k);
    return true;
}

/* −0 + 0 is 0. */
static double moved(double value, double distance)
{
    return distance == 0 ? value : value + distance;
}

/* Moves element j of every variable by distance · direction (direction NULL: only element `only`, by distance). */
static void move(rapt_checker *c, const double *saved, const double *direction, int64_t only, double distance)
{
    int64_t j = 0;
    for (int i = 0; i < c->variable_count; i++) {
        rapt_data_for_writing(c->variables[i]);
        for (int64_t k = 0; k < c->variables[i]->count; k++, j++)
            *element(c->variables[i], k) = moved(saved[j], distance * (direction ? direction[j] : j == only));
    }
}

/* f'(x) ≈ Σ weight · f(x + place · h) / (divisor · h) */
typedef struct stencil {
    int count;
    double places[4], weights[4], divisor;
} stencil;

/* With an error of order h⁴; of equal numbers exactly 0. */
static const stencil around = {4, {1, -1, 2, -2}, {8, -8, -1, 1}, 12};
/* From one side, with errors of order h². */
static const stencil sides[] = {{3, {0, 1, 2}, {-3, 4, -1}, 2}, {3, {0, -1, -2}, {3, -4, 1}, 2}};

static bool differences(rapt_checker *c, const stencil *s, const double *saved, const double *direction, int64_t only,
                        double step, double *column)
{
    bool good = true;
    for (int64_t k = 0; k < c->height; k++) column[k] = 0;
    for (int i = 0; i < s->count && good; i++) {
        move(c, saved, direction, only, s->places[i] * step);
        good = add_outputs(c, s->weights[i], column);
    }
    for (int64_t k = 0; k < c->height; k++) column[k] /= s->divisor * step;
    move(c, saved, NULL, -1, 0);
    return good;
}

/* row = cotangent · Jacobian, for a cotangent over all elements of the outputs. */
static bool analytic_row(rapt_checker *c, const double *cotangent, double *row)
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

static double tolerance_of(const rapt_checker *c, double numeric)
{
    return c->options.absolute_tolerance + c->options.relative_tolerance * fabs(numeric);
}

static void compare(rapt_checker *c, int64_t output, int64_t j, double analytic, double numeric, double tolerance)
{
    rapt_gradcheck_result *r = c->result;
    double error = fabs(analytic - numeric) / tolerance;
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

static void compare_derivative(rapt_checker *c, int64_t output, int64_t j, double analytic, double numeric)
{
    c->result->checked++;
    compare(c, output, j, analytic, numeric, tolerance_of(c, numeric));
}

/* What steps are measured in. */
static double size_of(double value)
{
    return fmax(1, fabs(value));
}

static bool fill_random(double *values, int64_t count)
{
    rapt_tensor *random = rapt_randn(RAPT_FLOAT64, 1, &count);
    for (int64_t k = 0; random && k < count; k++) values[k] = ((const double *)rapt_data(random))[k];
    return random != NULL;
}

/* Rows start from 1, which a vjp need not tell from its square or its size: once more from random numbers of both
 * signs, above 1 and below, and from their opposites. What is allowed of a sum is what its terms are allowed together,
 * so that where all rows are right only a vjp that is not linear fails. */
static bool check_linear(rapt_checker *c, double *row, double *cotangent, const double *jacobian)
{
    if (!fill_random(cotangent, c->height)) return false;
    for (int64_t i = 0; i < c->height; i += 2) cotangent[i] += copysign(1, cotangent[i]);
    for (int sign = 0; sign < 2; sign++) {
        for (int64_t i = 0; i < c->height; i++) cotangent[i] = -cotangent[i];
        if (!analytic_row(c, cotangent, row)) return false;
        for (int64_t j = 0; j < c->width; j++) {
            double numeric = 0, tolerance = c->options.absolute_tolerance;
            for (int64_t i = 0; i < c->height; i++) {
                const double derivative = jacobian[i * c->width + j];
                numeric += cotangent[i] * derivative;
                tolerance += fabs(cotangent[i]) * tolerance_of(c, derivative);
            }
            compare(c, -1, j, row[j], numeric, tolerance);
        }
    }
    return true;
}

/* work: saved values and a row (width each), a column and a cotangent (height each), the Jacobian (height · width). */
static bool check_all(rapt_checker *c, double *saved, double *row, double *column, double *cotangent, double *jacobian)
{
    for (int64_t j = 0; j < c->width; j++) {
        if (!differences(c, &around, saved, NULL, j, c->options.step * size_of(saved[j]), column)) return false;
        for (int64_t i = 0; i < c->height; i++) jacobian[i * c->width + j] = column[i];
    }
    RAPT_SCOPE;
    if (!rapt_checker_evaluate(c)) return false;
    for (int64_t i = 0; i < c->height; i++) {
        for (int64_t k = 0; k < c->height; k++) cotangent[k] = k == i;
        if (!analytic_row(c, cotangent, row)) return false;
        for (int64_t j = 0; j < c->width; j++) compare_derivative(c, i, j, row[j], jacobian[i * c->width + j]);
    }
    return !c->result->passed || check_linear(c, row, cotangent, jacobian);
}

/* <v, J u> both ways, for random u, in steps of its size for each element, and v. */
static bool check_projection(rapt_checker *c, double *saved, double *row, double *column, double *cotangent,
                             double *direction)
{
    RAPT_SCOPE;
    if (!fill_random(direction, c->width) || !fill_random(cotangent, c->height)) return false;
    for (int64_t j = 0; j < c->width; j++) direction[j] *= size_of(saved[j]);
    if (!rapt_checker_evaluate(c) || !analytic_row(c, cotangent, row)) return false;
    if (!differences(c, &around, saved, direction, -1, c->options.step, column)) return false;
    double analytic = 0, numeric = 0;
    for (int64_t j = 0; j < c->width; j++) analytic += row[j] * direction[j];
    for (int64_t i = 0; i < c->height; i++) numeric += column[i] * cotangent[i];
    compare_derivative(c, -1, -1, analytic, numeric);
    return true;
}

/* Of the worst derivative, which is wrong: much smaller steps, from both sides, see a kink at the input as two numbers
 * that differ, and one beside it not at all. */
static bool look_for_kink(rapt_checker *c, const double *saved, double *column)
{
    const rapt_gradcheck_result *r = c->result;
    const double error = fabs(r->analytic - r->numeric);
    if (r->passed || r->input < 0 || r->output < 0 || !isfinite(error)) return true;
    int64_t j = r->index;
    for (int v = 0; v < c->worst; v++) j += c->variables[v]->count;
    double derivative[2];
    for (int side = 0; side < 2; side++) {
        if (!differences(c, &sides[side], saved, NULL, j, c->options.step / 100 * size_of(saved[j]), column))
            return false;
        derivative[side] = column[r->output];
    }
    c->is_kink = !(fabs(derivative[0] - derivative[1]) <= error / 2) ||
                 fabs((derivative[0] + derivative[1]) / 2 - r->analytic) < error / 10;
    return true;
}

static bool check(rapt_checker *c)
{
    RAPT_SCOPE;
    if (c->options.second_order && !rapt_checker_add_cotangent(c)) return false;
    if (!rapt_checker_evaluate(c)) return false;
    /* where the result is not finite, differences say so */
    if (!c->options.second_order && rapt_checker_is_finite(c->outputs[0]) &&
        !(rapt_gradcheck_graph(c->name, c->outputs[0], c->variable_count, c->variables, c->gradients, &c->options) &&
          rapt_gradcheck_walks(c)))
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
    const bool good =
        (project ? check_projection : check_all)(c, saved, row, column, cotangent, cotangent + c->height) &&
        look_for_kink(c, saved, column);
    free(work);
    return good;
}

static double or_default(double value, double otherwise)
{
    return value == 0 ? otherwise : value;
}

static const char kink[] = ". From one side, or in smaller steps, differences are others: a kink of the function, as "
                           "relu has at 0, or the end of its domain is there, or it is rounded to float32; check it at "
                           "other inputs";

static void explain(const rapt_checker *c)
{
    rapt_gradcheck_result *r = c->result;
    char text[32];
    const char *input =
        c->worst < c->differentiated ? rapt_checker_input_name(c, c->which[c->worst], text) : "starting gradient";
    int used =
        snprintf(r->message, sizeof r->message, "%s: %s", c->name, c->options.second_order ? "second order: " : "");
    if (used < 0 || (size_t)used >= sizeof r->message) return;
    char *end = r->message + used;
    const size_t room = sizeof r->message - (size_t)used;
    if (r->input < 0)
        used = snprintf(end, room, "a random projection");
    else if (r->output < 0)
        used = snprintf(end, room,
                        "a vjp is not linear in rapt_call_gradient: from a starting gradient of mixed sign and size, "
                        "d / d %s[%lld]",
                        input, (long long)r->index);
    else
        used = snprintf(end, room, "d output[%lld] / d %s[%lld]", (long long)r->output, input, (long long)r->index);
    if (used < 0 || (size_t)used >= room) return;
    end += used;
    if (isfinite(r->numeric))
        snprintf(end, room - (size_t)used,
                 " is %.12g by backward, %.12g by differences; they differ by %.3g, %.3g allowed%s", r->analytic,
                 r->numeric, fabs(r->analytic - r->numeric), r->tolerance, c->is_kink ? kink : "");
    else
        snprintf(end, room - (size_t)used,
                 " is %.12g by backward, and there is no difference: within two steps of %g the function is not "
                 "finite; inputs farther from the end of its domain, or a smaller step, expected",
                 r->analytic, c->options.step);
}

rapt_gradcheck_result rapt_gradcheck(const char *name, rapt_gradcheck_function *function, int count,
                                     rapt_tensor *const *inputs, const rapt_gradcheck_options *options)
{
    rapt_gradcheck_result result = {.passed = true};
    rapt_checker c = {.name = name ? name : "function",
                      .function = function,
                      .inputs = inputs,
                      .count = count,
                      .result = &result};
    if (options) c.options = *options;
    c.options.step = or_default(c.options.step, 1e-4);
    c.options.relative_tolerance = or_default(c.options.relative_tolerance, 1e-6);
    c.options.absolute_tolerance = or_default(c.options.absolute_tolerance, 1e-9);
    const rapt_standing_error standing = rapt_error_put_aside();
    rapt_random_state random = rapt_random_get_state();
    rapt_seed(c.options.seed);
    bool recording = rapt_set_recording(true);
    bool ran = (function && (inputs || count == 0)) ? rapt_checker_prepare(&c) && check(&c)
                                                    : rapt_fail_null("gradcheck", "function or inputs");
    rapt_set_recording(recording);
    rapt_random_set_state(random);
    if (!ran) {
        result.passed = false;
        snprintf(result.message, sizeof result.message, "%s", rapt_error() ? rapt_error() : "gradcheck failed");
    } else if (!result.passed) {
        explain(&c);
    }
    rapt_checker_end(&c);
    rapt_error_put_back(standing);
    return result;
}
