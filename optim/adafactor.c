/* Adafactor (Shazeer & Stern 2018): of a matrix' second moments only means of rows and of columns are kept. */
#include <float.h>
#include <math.h>

#include "core.h"
#include "tensor/core.h"

enum { row_state, column_state, variance_state };

typedef struct adafactor {
    rapt_optimizer base;
    double decay_exponent, epsilon1, epsilon2, clip;
} adafactor;

static bool is_factored(const rapt_slot *slot)
{
    return slot->parameter->rank >= 2;
}

static bool has_state(const rapt_slot *slot, int state, int64_t *shape)
{
    if (!is_factored(slot)) return state == variance_state;
    if (state == variance_state) return false;
    shape[slot->parameter->rank - (state == row_state ? 1 : 2)] = 1;
    return true;
}

/* v̂ = R C / mean(R) with R = β₂R + (1 − β₂) mean over columns of g², C likewise over rows; of a vector v̂ = β₂v +
 * (1 − β₂) g² */
static rapt_tensor *estimate(const rapt_slot *slot, rapt_tensor *g, double share, double least, rapt_prepared *prepared)
{
    RAPT_SCOPE;
    rapt_tensor *squares = rapt_mul(g, g);
    if (!is_factored(slot)) {
        rapt_tensor *variance = rapt_towards(slot->states[variance_state], squares, share);
        prepared->states[variance_state] = rapt_keep(variance);
        return variance;
    }
    rapt_tensor *rows = rapt_towards(slot->states[row_state], rapt_mean(squares, RAPT_AXES(-1), true), share);
    rapt_tensor *columns = rapt_towards(slot->states[column_state], rapt_mean(squares, RAPT_AXES(-2), true), share);
    prepared->states[row_state] = rapt_keep(rows);
    prepared->states[column_state] = rapt_keep(columns);
    rapt_tensor *mean = rapt_maximum_scalar(rapt_mean(rows, RAPT_AXES(-2), true), least);
    return rapt_keep(rapt_mul(rapt_div(rows, mean), columns));
}

/* √(Σx² / n); false after an error */
static bool root_mean_square(const rapt_tensor *x, double *result)
{
    double squares = 0;
    if (!rapt_add_squares("Adafactor", x, &squares)) return false;
    *result = sqrt(squares / (double)x->count);
    return true;
}

/* 1 − β₂ = t^−κ; u = g / max(√v̂, ε₁); p = (1 − ηλ)p − max(ε₂, rms p) · min(η, 1/√t) / max(1, rms(u)/d) · u */
static bool prepare(const rapt_optimizer *optimizer, const rapt_update *step, rapt_prepared *prepared)
{
    const adafactor *a = (const adafactor *)optimizer;
    rapt_tensor *p = step->slot->parameter, *g = rapt_gradient(p);
    if (p->count == 0) return true;
    const double t = (double)step->step, share = pow(t, -a->decay_exponent);
    const double precision = p->dtype == RAPT_FLOAT64 ? DBL_EPSILON : FLT_EPSILON;
    const double epsilon1 = rapt_or_default(a->epsilon1, precision);
    const double least = rapt_least_normal(p->dtype); /* where v̂ is below, it may be 0 though g is not */
    double size, length;
    RAPT_SCOPE;
    rapt_tensor *variance = estimate(step->slot, g, share, fmax(epsilon1, least), prepared);
    rapt_tensor *u = rapt_div(g, rapt_maximum_scalar(rapt_sqrt(variance), fmax(epsilon1, sqrt(least))));
    if (!u || !root_mean_square(p, &size) || !root_mean_square(u, &length)) return false;
    if (!isfinite(size) || !isfinite(length))
        return rapt_fail(RAPT_ERROR_VALUE, optimizer->kind->name,
                         "the root mean square of '%s' is %g, that of its step %g; finite ones expected "
                         "(rapt_hunt_not_finite finds the op, rapt_optimizer_clear_gradients skips the batch)",
                         step->slot->name, size, length);
    for (int k = 0; k < RAPT_MAX_STATES; k++) rapt_keep(prepared->states[k]);
    prepared->keep = 1 - step->learning_rate * step->weight_decay;
    prepared->rate = fmax(a->epsilon2, size) * fmin(step->learning_rate, 1 / sqrt(t)) / fmax(1, length / a->clip);
    prepared->direction = rapt_keep(u);
    return true;
}

static bool check(const rapt_optimizer *optimizer, const rapt_update *step)
{
    const double epsilon1 = rapt_or_default(((const adafactor *)optimizer)->epsilon1, 0);
    return rapt_check_step_number(optimizer, step, "epsilon1", epsilon1, true) &&
           rapt_check_decay(optimizer, step, step->learning_rate, step->weight_decay);
}

static const rapt_optimizer_class adafactor_class = {
    .name = "Adafactor",
    .check = check,
    .prepare = prepare,
    .has_state = has_state,
};

rapt_optimizer *rapt_adafactor_new(rapt_module *module, const rapt_adafactor_config *config)
{
    const rapt_adafactor_config c = config ? *config : (rapt_adafactor_config){0};
    const char *op = adafactor_class.name;
    adafactor *a = rapt_optimizer_new(sizeof *a, &adafactor_class);
    if (!a) return NULL;
    double checked;
    bool good = rapt_take_number(op, "learning_rate", c.learning_rate, 0.01, INFINITY, &a->base.learning_rate) &&
                rapt_take_number(op, "beta2_decay", c.beta2_decay, 0.8, INFINITY, &a->decay_exponent) &&
                rapt_take_number(op, "epsilon1", c.epsilon1, 0, INFINITY, &checked) &&
                rapt_take_number(op, "epsilon2", c.epsilon2, 1e-3, INFINITY, &a->epsilon2) &&
                rapt_take_number(op, "clip", c.clip, 1, INFINITY, &a->clip) &&
                rapt_take_number(op, "weight_decay", c.weight_decay, 0, INFINITY, &a->base.weight_decay);
    a->epsilon1 = c.epsilon1;
    if (good && a->clip == 0) good = rapt_fail(RAPT_ERROR_VALUE, op, "clip is 0; a number above 0 expected");
    rapt_optimizer_add_state(&a->base, "row_var");
    rapt_optimizer_add_state(&a->base, "col_var");
    rapt_optimizer_add_state(&a->base, "variance");
    return rapt_optimizer_finish(&a->base, good, module);
}
