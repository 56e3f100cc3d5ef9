/* The step of all optimizers, around each kind's formula. */
#include <float.h>
#include <stdio.h>
#include <string.h>

#include "autograd/observe.h"
#include "core.h"
#include "tensor/debug.h"
#include "tensor/map.h"

/* By itself, or by its group. */
static bool is_frozen(const rapt_optimizer *optimizer, const rapt_slot *slot)
{
    return !slot->parameter->link ||
           (slot->group >= 0 && optimizer->groups[slot->group].config.learning_rate == RAPT_ZERO);
}

static bool takes_part(const rapt_optimizer *optimizer, const rapt_slot *slot)
{
    return rapt_gradient(slot->parameter) && !is_frozen(optimizer, slot);
}

bool rapt_slot_has_state(const rapt_optimizer *optimizer, const rapt_slot *slot, int state, int64_t *shape)
{
    memcpy(shape, slot->parameter->shape, sizeof slot->parameter->shape);
    return !optimizer->kind->has_state || optimizer->kind->has_state(slot, state, shape);
}

bool rapt_check_state(const rapt_optimizer *optimizer, const rapt_slot *slot, int number)
{
    const rapt_tensor *state = slot->states[number];
    return state->dtype == slot->parameter->dtype ||
           rapt_fail(RAPT_ERROR_DTYPE, optimizer->kind->name,
                     "'%s' is %s now, its %s is %s; an optimizer made after the cast expected", slot->name,
                     rapt_dtype_name(slot->parameter->dtype), optimizer->state_names[number],
                     rapt_dtype_name(state->dtype));
}

/* Makes the states that a parameter does not have yet. */
static bool make_states(const rapt_optimizer *optimizer, rapt_slot *slot)
{
    int64_t shape[RAPT_MAX_RANK];
    for (int k = 0; k < optimizer->state_count; k++) {
        if (!rapt_slot_has_state(optimizer, slot, k, shape)) continue;
        if (!slot->states[k]) {
            RAPT_SCOPE;
            rapt_tensor *state = rapt_empty(slot->parameter->dtype, slot->parameter->rank, shape);
            if (!state || !rapt_fill(state, optimizer->first_state)) return false;
            slot->states[k] = rapt_retain(state);
        }
        if (!rapt_check_state(optimizer, slot, k)) return false;
    }
    return true;
}

static rapt_update update_of(const rapt_optimizer *optimizer, const rapt_slot *slot, double gradient_factor)
{
    const double first = optimizer->first_learning_rate;
    rapt_update update = {
        .slot = slot,
        .learning_rate = optimizer->learning_rate,
        .weight_decay = optimizer->weight_decay,
        .ratio = first > 0 ? optimizer->learning_rate / first : 1,
        .group = slot->group < 0 ? NULL : &optimizer->groups[slot->group].config,
        .step = slot->steps + 1,
        .gradient_factor = gradient_factor,
        .operand_count = 2 + optimizer->state_count,
        .operands = {slot->parameter, rapt_gradient(slot->parameter)},
    };
    for (int k = 0; k < optimizer->state_count; k++) update.operands[2 + k] = slot->states[k];
    if (!update.group) return update;
    if (update.group->learning_rate > 0) update.learning_rate = update.group->learning_rate * update.ratio;
    update.weight_decay = rapt_or_default(update.group->weight_decay, optimizer->weight_decay);
    return update;
}

bool rapt_check_step_number(const rapt_optimizer *optimizer, const rapt_update *update, const char *name, double number,
                            bool may_vanish)
{
    const rapt_dtype dtype = update->slot->parameter->dtype;
    const bool is_double = dtype == RAPT_FLOAT64;
    const double most = is_double ? DBL_MAX : (double)FLT_MAX;
    const double least = number == 0 || may_vanish ? 0 : is_double ? DBL_TRUE_MIN : (double)FLT_TRUE_MIN;
    return (number >= least && number <= most) ||
           rapt_fail(RAPT_ERROR_VALUE, optimizer->kind->name, "the %s of '%s' is %g; %g to %g expected in %s", name,
                     update->slot->name, number, least, most, rapt_dtype_name(dtype));
}

bool rapt_check_decay(const rapt_optimizer *optimizer, const rapt_update *update, double learning_rate,
                      double weight_decay)
{
    return rapt_check_step_number(optimizer, update, "weight decay", weight_decay, true) &&
           rapt_check_step_number(optimizer, update, "learning rate * weight decay", learning_rate * weight_decay,
                                  true);
}

/* Kernels compute in the dtype of the parameter. */
static bool check_numbers(const rapt_optimizer *optimizer, const rapt_slot *slot)
{
    const rapt_update update = update_of(optimizer, slot, 1);
    if (slot->parameter->count == 0) return true;
    if (optimizer->kind->check) return optimizer->kind->check(optimizer, &update);
    return rapt_check_step_number(optimizer, &update, "learning rate", update.learning_rate, true) &&
           rapt_check_step_number(optimizer, &update, "epsilon", optimizer->epsilon, false) &&
           rapt_check_step_number(optimizer, &update, "initial_accumulator", optimizer->first_state, true) &&
           rapt_check_decay(optimizer, &update, update.learning_rate, update.weight_decay);
}

/* An optimizer's loop whose gradient is multiplied first. */
typedef struct scaled_loop {
    rapt_loop *loop, *scale;
    const void *numbers;
    double factor;
    int operand_count;
    int64_t element; /* bytes */
} scaled_loop;

/* The products stay in the nearest cache: the gradient is read once and not written. */
static void run_scaled(int64_t count, char *const *data, const int64_t *strides, const void *options)
{
    enum { at_once = 512, gradient = 1 };
    const scaled_loop *s = options;
    double products[at_once]; /* or as many floats */
    char *at[RAPT_MAX_OPERANDS];
    int64_t steps[RAPT_MAX_OPERANDS];
    for (int k = 0; k < s->operand_count; k++) at[k] = data[k], steps[k] = strides[k];
    at[gradient] = (char *)products, steps[gradient] = s->element;
    for (int64_t first = 0; first < count; first += at_once) {
        const int64_t length = count - first < at_once ? count - first : at_once;
        char *const scaled[] = {(char *)products, data[gradient] + first * strides[gradient]};
        s->scale(length, scaled, (int64_t[]){s->element, strides[gradient]}, &s->factor);
        s->loop(length, at, steps, s->numbers);
        for (int k = 0; k < s->operand_count; k++)
            if (k != gradient) at[k] += length * strides[k];
    }
}

void rapt_update_run(const rapt_update *update, const rapt_loops loops, const void *numbers)
{
    enum { cost = 4 };
    const rapt_dtype dtype = update->operands[0]->dtype;
    const scaled_loop scaled = {.loop = loops[dtype],
                                .scale = rapt_kernel.elementwise.scale[dtype],
                                .numbers = numbers,
                                .factor = update->gradient_factor,
                                .operand_count = update->operand_count,
                                .element = (int64_t)rapt_dtype_size(dtype)};
    if (scaled.factor == 1)
        rapt_map(scaled.loop, numbers, cost, update->operand_count, update->operands);
    else
        rapt_map(run_scaled, &scaled, cost, update->operand_count, update->operands);
}

#define SHARED_PARAMETERS "; the step of another optimizer drops the gradients of parameters that both have"

/* Names the parameters that the loss most likely does not reach. */
static void warn_of_missing(const rapt_optimizer *optimizer)
{
    char names[800];
    int used = 0, missing = 0, named = 0, trained = 0;
    for (int i = 0; i < optimizer->count; i++) {
        const rapt_slot *slot = &optimizer->slots[i];
        if (is_frozen(optimizer, slot)) continue;
        trained++;
        if (rapt_gradient(slot->parameter)) continue;
        missing++;
        const int size = (int)strlen(slot->name) + 2;
        if (named + 1 < missing || used + size >= (int)sizeof names) continue;
        used += snprintf(names + used, sizeof names - (size_t)used, "%s%s", named ? ", " : "", slot->name);
        named++;
    }
    const char *op = optimizer->kind->name;
    if (optimizer->count == 0)
        rapt_warn(op, "there is no parameter at the first step; a module has those of the layers that were added to it "
                      "(rapt_module_add_child)");
    else if (missing > 0 && missing == trained)
        rapt_warn(op, "no parameter has a gradient at the first step; rapt_backward of a loss that depends on them "
                      "comes before it" SHARED_PARAMETERS);
    else if (missing > 0)
        rapt_warn(op,
                  "%d of %d parameters got no gradient by the first step: %.*s%s; freeze those that are not to be "
                  "trained (rapt_module_freeze)" SHARED_PARAMETERS,
                  missing, trained, used, names, named < missing ? " and others" : "");
}

/* What does not depend on the gradient's numbers. */
static bool make_ready(const rapt_optimizer *optimizer, rapt_slot *slot)
{
    return !takes_part(optimizer, slot) ||
           (check_numbers(optimizer, slot) && make_states(optimizer, slot) && rapt_own_gradient(slot->parameter) &&
            rapt_check_writable(optimizer->kind->name, slot->parameter));
}

bool rapt_optimizer_prepare(rapt_optimizer *optimizer)
{
    const char *op = "optimizer_prepare";
    if (!optimizer) return rapt_fail_null(op, "optimizer");
    if (rapt_was_freed(op, optimizer)) return false;
    RAPT_REGION(RAPT_DOING_STEP, optimizer->kind->name);
    RAPT_NO_GRADIENT;
    for (int i = 0; i < optimizer->count; i++)
        if (!make_ready(optimizer, &optimizer->slots[i])) return false;
    return true;
}

/* Everything of a parameter's step that can fail. */
static bool prepare(const rapt_optimizer *optimizer, rapt_slot *slot)
{
    slot->prepared = (rapt_prepared){.keep = 1};
    if (!make_ready(optimizer, slot)) return false;
    if (!takes_part(optimizer, slot) || !optimizer->kind->prepare) return true;
    const rapt_update update = update_of(optimizer, slot, 1);
    return optimizer->kind->prepare(optimizer, &update, &slot->prepared);
}

/* p = keep·p − rate·direction; new states become the states */
static void take_prepared(rapt_slot *slot)
{
    enum { cost = 2, operand_count = 2 };
    const rapt_prepared *prepared = &slot->prepared;
    const rapt_tensor *operands[operand_count] = {slot->parameter, prepared->direction};
    const rapt_move_numbers numbers = {.keep = prepared->keep, .rate = prepared->rate};
    rapt_map(rapt_kernel.optimizer.move[slot->parameter->dtype], &numbers, cost, operand_count, operands);
    for (int k = 0; k < RAPT_MAX_STATES; k++) {
        if (!prepared->states[k]) continue;
        rapt_release(slot->states[k]);
        slot->states[k] = rapt_retain(prepared->states[k]);
    }
}

/* With gradients that are multiplied by the factor, which changes no parameter where something fails. */
static bool step(rapt_optimizer *optimizer, double gradient_factor)
{
    RAPT_REGION(RAPT_DOING_STEP, optimizer->kind->name);
    RAPT_SCOPE;
    RAPT_NO_GRADIENT;
    for (int i = 0; i < optimizer->count; i++)
        if (!prepare(optimizer, &optimizer->slots[i])) return false;
    if (optimizer->steps == 0) warn_of_missing(optimizer);
    for (int i = 0; i < optimizer->count; i++) {
        rapt_slot *slot = &optimizer->slots[i];
        if (!takes_part(optimizer, slot) || !rapt_begin_writing(optimizer->kind->name, slot->parameter)) continue;
        const rapt_update update = update_of(optimizer, slot, gradient_factor);
        if (slot->prepared.direction)
            take_prepared(slot);
        else if (optimizer->kind->update)
            optimizer->kind->update(optimizer, &update);
        slot->steps++;
    }
    optimizer->steps++;
    rapt_optimizer_clear_gradients(optimizer);
    return true;
}

bool rapt_optimizer_step(rapt_optimizer *optimizer)
{
    const char *op = "optimizer_step";
    if (!optimizer) return rapt_fail_null(op, "optimizer");
    return !rapt_was_freed(op, optimizer) && step(optimizer, 1);
}

/* What is made of the gradients by ops reads them often, and so they are multiplied first; as by a factor that float32
 * has not with all digits. All that can fail before the ops has then been done. */
bool rapt_optimizer_step_clipped(rapt_optimizer *optimizer, double limit, double *norm)
{
    const char *op = "optimizer_step_clipped";
    double length;
    if (!rapt_check_clipping(op, optimizer, limit)) return false;
    RAPT_REGION(RAPT_DOING_STEP, op);
    if (!rapt_gradient_norm(op, optimizer, &length)) return false;
    double factor = length > limit ? limit / length : 1;
    if (factor < (double)FLT_MIN || (factor != 1 && optimizer->kind->prepare)) {
        if (!rapt_optimizer_prepare(optimizer) || !rapt_scale_gradients(optimizer, factor)) return false;
        factor = 1;
    }
    if (!step(optimizer, factor)) return false;
    if (norm) *norm = length;
    return true;
}
