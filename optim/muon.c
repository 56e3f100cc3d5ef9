/* Muon (Jordan et al. 2024): momentum of matrices, made nearly orthogonal; what is no matrix is stepped by AdamW. */
#include <math.h>

#include "core.h"
#include "tensor/core.h"
#include "tensor/debug.h"
#include "tensor/system.h"

enum { momentum_state, adam_states, default_iterations = 5 };

typedef struct muon {
    rapt_optimizer base;
    double momentum, epsilon;
    int iterations;
    bool heavy_ball, match_rms;
    rapt_adam_terms adamw;
} muon;

static bool is_orthogonalized(const rapt_slot *slot)
{
    return slot->parameter->rank == 2 && !slot->by_adamw;
}

static bool has_state(const rapt_slot *slot, int state, int64_t *shape)
{
    (void)shape;
    return is_orthogonalized(slot) == (state == momentum_state);
}

/* X Xᵀ = A; B = bA + cA²; X = aX + BX: singular values below 1 come near 1 (Newton and Schulz's iteration, with
 * Jordan's coefficients). In place, of a tall matrix from the other side, where the products are the smaller ones. */
static bool iterate(rapt_tensor *x, bool is_tall)
{
    static const double a = 3.4445, b = -4.7750, c = 2.0315;
    RAPT_SCOPE;
    rapt_tensor *turned = rapt_transpose(x, 0, 1);
    rapt_tensor *factor = is_tall ? rapt_matmul(turned, x) : rapt_matmul(x, turned);
    rapt_tensor *square = rapt_matmul(factor, factor);
    if (!square || !rapt_scale_in_place(factor, b) || !rapt_scale_in_place(square, c) ||
        !rapt_add_in_place(factor, square, 1))
        return false;
    rapt_tensor *product = is_tall ? rapt_matmul(x, factor) : rapt_matmul(factor, x);
    return product && rapt_scale_in_place(x, a) && rapt_add_in_place(x, product, 1);
}

/* g + μ(v − g), or v of a heavy ball, with the norm 1 */
static rapt_tensor *look_ahead(const muon *m, rapt_tensor *g, rapt_tensor *v)
{
    RAPT_SCOPE;
    rapt_tensor *ahead = m->heavy_ball ? v : rapt_add(g, rapt_mul_scalar(rapt_sub(v, g), m->momentum));
    double squares = 0;
    if (!ahead || !rapt_add_squares("Muon", ahead, &squares)) return NULL;
    const double least = rapt_least_normal(g->dtype); /* whose reciprocal is finite */
    return rapt_keep(rapt_mul_scalar(ahead, 1 / fmax(sqrt(squares), fmax(m->epsilon, least))));
}

static double rate_of(const muon *m, const rapt_update *step)
{
    const double rows = (double)step->slot->parameter->shape[0], columns = (double)step->slot->parameter->shape[1];
    return step->learning_rate * (m->match_rms ? 0.2 * sqrt(fmax(rows, columns)) : sqrt(fmax(1, rows / columns)));
}

/* v = μv + (1 − μ)g; direction = orthogonal(g + μ(v − g)), or orthogonal(v) of a heavy ball: with its singular values
 * near 1 */
static bool prepare(const rapt_optimizer *optimizer, const rapt_update *step, rapt_prepared *prepared)
{
    const muon *m = (const muon *)optimizer;
    rapt_tensor *p = step->slot->parameter, *g = rapt_gradient(p);
    if (!is_orthogonalized(step->slot) || p->count == 0) return true;
    RAPT_SCOPE;
    rapt_tensor *v = rapt_towards(step->slot->states[momentum_state], g, 1 - m->momentum), *x = look_ahead(m, g, v);
    for (int i = 0; i < m->iterations; i++)
        if (!x || !iterate(x, p->shape[0] > p->shape[1])) return false;
    prepared->keep = 1 - step->learning_rate * step->weight_decay;
    prepared->rate = rate_of(m, step);
    prepared->states[momentum_state] = rapt_keep(v);
    prepared->direction = rapt_keep(x);
    return true;
}

/* AdamW's own rates where the group has none. */
static rapt_adam_terms terms_of(const rapt_optimizer *optimizer, const rapt_update *step)
{
    const rapt_group_config group = step->group ? *step->group : (rapt_group_config){0};
    rapt_adam_terms terms = ((const muon *)optimizer)->adamw;
    terms.learning_rate = group.learning_rate > 0 ? step->learning_rate : terms.learning_rate * step->ratio;
    terms.weight_decay = rapt_or_default(group.weight_decay, terms.weight_decay);
    return terms;
}

static bool check(const rapt_optimizer *optimizer, const rapt_update *step)
{
    const rapt_adam_terms terms = terms_of(optimizer, step);
    if (!is_orthogonalized(step->slot)) return rapt_adam_check(&terms, optimizer, step);
    return rapt_check_step_number(optimizer, step, "learning rate", rate_of((const muon *)optimizer, step), true) &&
           rapt_check_decay(optimizer, step, step->learning_rate, step->weight_decay);
}

/* What Muon does not step: AdamW's formula. */
static void update(const rapt_optimizer *optimizer, const rapt_update *step)
{
    if (is_orthogonalized(step->slot)) return; /* an empty matrix */
    const rapt_adam_terms terms = terms_of(optimizer, step);
    rapt_update by_adamw = *step;
    by_adamw.operand_count = 4;
    for (int k = 0; k < 2; k++) by_adamw.operands[2 + k] = step->operands[2 + adam_states + k];
    rapt_adam_run(&terms, 0, 1 - terms.learning_rate * terms.weight_decay, &by_adamw);
}

static const rapt_optimizer_class muon_class = {
    .name = "Muon",
    .check = check,
    .update = update,
    .prepare = prepare,
    .has_state = has_state,
};

rapt_optimizer *rapt_muon_new(rapt_module *module, const rapt_muon_config *config)
{
    const rapt_muon_config c = config ? *config : (rapt_muon_config){0};
    const char *op = muon_class.name;
    muon *m = rapt_optimizer_new(sizeof *m, &muon_class);
    if (!m) return NULL;
    bool good = rapt_take_number(op, "learning_rate", c.learning_rate, 0.001, INFINITY, &m->base.learning_rate) &&
                rapt_take_number(op, "momentum", c.momentum, 0.95, 1, &m->momentum) &&
                rapt_take_number(op, "epsilon", c.epsilon, 1e-7, INFINITY, &m->epsilon) &&
                rapt_take_number(op, "weight_decay", c.weight_decay, 0.1, INFINITY, &m->base.weight_decay) &&
                rapt_adam_take_config("Muon's AdamW", &c.adamw, 0.01, &m->adamw) &&
                rapt_check_can_follow("Muon's AdamW", m->adamw.learning_rate, m->base.learning_rate);
    m->iterations = c.iterations == 0 ? default_iterations : c.iterations;
    if (good && m->iterations < 0)
        good = rapt_fail(RAPT_ERROR_VALUE, op, "%d iterations; 1 or more expected", m->iterations);
    m->heavy_ball = c.heavy_ball;
    m->match_rms = c.match_rms;
    rapt_optimizer_add_state(&m->base, "momentum_buffer");
    rapt_optimizer_add_state(&m->base, "exp_avg");
    rapt_optimizer_add_state(&m->base, "exp_avg_sq");
    return rapt_optimizer_finish(&m->base, good, module);
}

bool rapt_muon_by_adamw(rapt_optimizer *optimizer, const char *pattern)
{
    const char *op = "muon_by_adamw";
    if (!optimizer || !pattern) return rapt_fail_null(op, optimizer ? "pattern" : "optimizer");
    if (rapt_was_freed(op, optimizer)) return false;
    if (optimizer->kind != &muon_class)
        return rapt_fail(RAPT_ERROR_VALUE, op, "the optimizer is %s; Muon expected", optimizer->kind->name);
    if (optimizer->steps > 0)
        return rapt_fail(RAPT_ERROR_VALUE, op, "after %lld steps; to be called before the first",
                         (long long)optimizer->steps);
    bool any = false;
    for (int i = 0; i < optimizer->count; i++) {
        rapt_slot *slot = &optimizer->slots[i];
        if (rapt_system_matches(pattern, slot->name)) any = slot->by_adamw = true;
    }
    return any ||
           rapt_fail(RAPT_ERROR_VALUE, op, "no name of the %d parameters matches '%s'", optimizer->count, pattern);
}
