/* What all optimizers share: their parameters, groups and learning rate, and the step around each kind's formula. */
#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "autograd/observe.h"
#include "core.h"
#include "tensor/map.h"

double rapt_or_default(double number, double otherwise)
{
    return number == RAPT_ZERO ? 0 : number != 0 ? number : otherwise;
}

bool rapt_take_number(const char *op, const char *name, double number, double otherwise, double limit, double *result)
{
    *result = rapt_or_default(number, otherwise);
    if (*result >= 0 && *result < limit) return true;
    if (isinf(limit))
        return rapt_fail(RAPT_ERROR_VALUE, op, "%s is %g; a finite number from 0 on expected", name, *result);
    return rapt_fail(RAPT_ERROR_VALUE, op, "%s is %g; a number from 0 to below %g expected", name, *result, limit);
}

void *rapt_optimizer_new(size_t size, const rapt_optimizer_class *kind)
{
    rapt_optimizer *optimizer = calloc(1, size);
    if (optimizer)
        optimizer->kind = kind;
    else
        rapt_fail(RAPT_ERROR_MEMORY, kind->name, "no memory for the optimizer");
    return optimizer;
}

void rapt_optimizer_add_state(rapt_optimizer *optimizer, const char *name)
{
    optimizer->state_names[optimizer->state_count++] = name;
}

static const rapt_slot *find_parameter(const rapt_optimizer *optimizer, const rapt_tensor *parameter)
{
    for (int i = 0; i < optimizer->count; i++)
        if (optimizer->slots[i].parameter == parameter) return &optimizer->slots[i];
    return NULL;
}

static bool add_slot(rapt_optimizer *optimizer, const char *name, rapt_tensor *parameter);

/* A module's parameters may be frozen, to be trained later. */
static bool add(const char *name, rapt_tensor *parameter, void *context)
{
    return add_slot(context, name, parameter);
}

rapt_optimizer *rapt_optimizer_finish(rapt_optimizer *optimizer, bool good, rapt_module *module)
{
    optimizer->first_learning_rate = optimizer->learning_rate;
    if (good && (!module || rapt_module_visit(module, RAPT_PARAMETERS, add, optimizer))) return optimizer;
    rapt_optimizer_free(optimizer);
    return NULL;
}

void rapt_optimizer_free(rapt_optimizer *optimizer)
{
    if (!optimizer) return;
    for (int i = 0; i < optimizer->count; i++) {
        rapt_slot *slot = &optimizer->slots[i];
        for (int k = 0; k < RAPT_MAX_STATES; k++) rapt_release(slot->states[k]);
        rapt_release(slot->parameter);
        free(slot->name);
    }
    free(optimizer->slots);
    free(optimizer->groups);
    free(optimizer);
}

static bool check_name(const rapt_optimizer *optimizer, const char *name)
{
    const char *op = optimizer->kind->name;
    if (!name) return rapt_fail_null(op, "the name of a parameter");
    size_t length = strlen(name);
    if (length == 0 || length >= RAPT_PARAMETER_NAME_SIZE)
        return rapt_fail(RAPT_ERROR_VALUE, op, "a parameter's name has %zu bytes; 1 to %d expected", length,
                         RAPT_PARAMETER_NAME_SIZE - 1);
    for (int i = 0; i < optimizer->count; i++)
        if (strcmp(optimizer->slots[i].name, name) == 0)
            return rapt_fail(RAPT_ERROR_VALUE, op, "the name '%s' is in use", name);
    return true;
}

static bool check_parameter(const rapt_optimizer *optimizer, const char *name, const rapt_tensor *parameter)
{
    const char *op = optimizer->kind->name;
    if (!parameter) return rapt_fail(RAPT_ERROR_NULL, op, "parameter '%s' is NULL", name);
    for (int axis = 0; axis < parameter->rank; axis++)
        if (parameter->strides[axis] == 0 && parameter->shape[axis] > 1)
            return rapt_fail(RAPT_ERROR_SHAPE, op, "'%s' is expanded: several elements are one number", name);
    const rapt_slot *same = find_parameter(optimizer, parameter);
    return !same || rapt_fail(RAPT_ERROR_VALUE, op, "'%s' is there already, as '%s'", name, same->name);
}

static bool add_slot(rapt_optimizer *optimizer, const char *name, rapt_tensor *parameter)
{
    if (!check_name(optimizer, name) || !check_parameter(optimizer, name, parameter)) return false;
    if (optimizer->count == optimizer->capacity) {
        int capacity = optimizer->capacity ? 2 * optimizer->capacity : 16;
        rapt_slot *slots = realloc(optimizer->slots, (size_t)capacity * sizeof *slots);
        if (!slots) return rapt_fail(RAPT_ERROR_MEMORY, optimizer->kind->name, "no memory for '%s'", name);
        optimizer->slots = slots;
        optimizer->capacity = capacity;
    }
    char *copy = strdup(name);
    if (!copy) return rapt_fail(RAPT_ERROR_MEMORY, optimizer->kind->name, "no memory for '%s'", name);
    optimizer->slots[optimizer->count++] = (rapt_slot){.name = copy, .parameter = rapt_retain(parameter), .group = -1};
    return true;
}

bool rapt_optimizer_add(rapt_optimizer *optimizer, const char *name, rapt_tensor *parameter)
{
    if (!optimizer) return rapt_fail_null("optimizer_add", "optimizer");
    if (name && parameter && (!parameter->link || !parameter->link->kind->is_leaf))
        return rapt_fail(RAPT_ERROR_GRAPH, optimizer->kind->name,
                         "'%s' is no leaf; a tensor after rapt_require_gradient expected", name);
    return add_slot(optimizer, name, parameter);
}

/* By itself, or by its group. */
static bool is_frozen(const rapt_optimizer *optimizer, const rapt_slot *slot)
{
    return !slot->parameter->link || (slot->group >= 0 && optimizer->groups[slot->group].learning_rate == RAPT_ZERO);
}

bool rapt_optimizer_group(rapt_optimizer *optimizer, const char *pattern, const rapt_group_config *config)
{
    const char *op = "optimizer_group";
    if (!optimizer || !pattern || !config)
        return rapt_fail_null(op, !optimizer ? "optimizer" : !pattern ? "pattern" : "config");
    double checked;
    if (!rapt_take_number(op, "learning_rate", config->learning_rate, 0, INFINITY, &checked) ||
        !rapt_take_number(op, "weight_decay", config->weight_decay, 0, INFINITY, &checked))
        return false;
    bool any = false;
    for (int i = 0; i < optimizer->count; i++) any = any || fnmatch(pattern, optimizer->slots[i].name, 0) == 0;
    if (!any)
        return rapt_fail(RAPT_ERROR_VALUE, op, "no name of the %d parameters matches '%s'", optimizer->count, pattern);
    size_t bytes = ((size_t)optimizer->group_count + 1) * sizeof *optimizer->groups;
    rapt_group_config *groups = realloc(optimizer->groups, bytes);
    if (!groups) return rapt_fail(RAPT_ERROR_MEMORY, op, "no memory for the group '%s'", pattern);
    optimizer->groups = groups;
    groups[optimizer->group_count] = *config;
    for (int i = 0; i < optimizer->count; i++)
        if (fnmatch(pattern, optimizer->slots[i].name, 0) == 0) optimizer->slots[i].group = optimizer->group_count;
    optimizer->group_count++;
    return true;
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
        if (slot->states[k]->dtype != slot->parameter->dtype)
            return rapt_fail(RAPT_ERROR_DTYPE, optimizer->kind->name,
                             "'%s' is %s now, its %s is %s; an optimizer made after the cast expected", slot->name,
                             rapt_dtype_name(slot->parameter->dtype), optimizer->state_names[k],
                             rapt_dtype_name(slot->states[k]->dtype));
    }
    return true;
}

static rapt_update update_of(const rapt_optimizer *optimizer, const rapt_slot *slot)
{
    const double first = optimizer->first_learning_rate;
    rapt_update update = {
        .slot = slot,
        .learning_rate = optimizer->learning_rate,
        .weight_decay = optimizer->weight_decay,
        .ratio = first > 0 ? optimizer->learning_rate / first : 1,
        .group = slot->group < 0 ? NULL : &optimizer->groups[slot->group],
        .step = slot->steps + 1,
        .operand_count = 2 + optimizer->state_count,
        .operands = {slot->parameter, rapt_gradient(slot->parameter)},
    };
    for (int k = 0; k < optimizer->state_count; k++) update.operands[2 + k] = slot->states[k];
    if (!update.group) return update;
    if (update.group->learning_rate > 0) update.learning_rate = update.group->learning_rate * update.ratio;
    update.weight_decay = rapt_or_default(update.group->weight_decay, optimizer->weight_decay);
    return update;
}

void rapt_update_run(const rapt_update *update, const rapt_loops loops, const void *numbers)
{
    enum { cost = 4 };
    rapt_map(loops[update->operands[0]->dtype], numbers, cost, update->operand_count, update->operands);
}

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
    if (missing > 0 && missing == trained)
        rapt_warn(op, "no parameter has a gradient at the first step; rapt_backward of a loss that depends on them "
                      "comes before it");
    else if (missing > 0)
        rapt_warn(op,
                  "%d of %d parameters got no gradient by the first step: %.*s%s; freeze those that are not to be "
                  "trained (rapt_module_freeze)",
                  missing, trained, used, names, named < missing ? " and others" : "");
}

/* Everything of a parameter's step that can fail. */
static bool prepare(const rapt_optimizer *optimizer, rapt_slot *slot)
{
    slot->prepared = (rapt_prepared){.keep = 1};
    if (!takes_part(optimizer, slot)) return true;
    if (!make_states(optimizer, slot) || !rapt_own_gradient(slot->parameter) ||
        !rapt_check_writable(optimizer->kind->name, slot->parameter))
        return false;
    if (!optimizer->kind->prepare) return true;
    const rapt_update update = update_of(optimizer, slot);
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

bool rapt_optimizer_step(rapt_optimizer *optimizer)
{
    if (!optimizer) return rapt_fail_null("optimizer_step", "optimizer");
    RAPT_REGION(RAPT_DOING_STEP, optimizer->kind->name);
    RAPT_SCOPE;
    RAPT_NO_GRADIENT;
    for (int i = 0; i < optimizer->count; i++)
        if (!prepare(optimizer, &optimizer->slots[i])) return false;
    if (optimizer->steps == 0) warn_of_missing(optimizer);
    for (int i = 0; i < optimizer->count; i++) {
        rapt_slot *slot = &optimizer->slots[i];
        if (!takes_part(optimizer, slot) || !rapt_begin_writing(optimizer->kind->name, slot->parameter)) continue;
        const rapt_update update = update_of(optimizer, slot);
        if (slot->prepared.direction)
            take_prepared(slot);
        else
            optimizer->kind->update(optimizer, &update);
        slot->steps++;
    }
    optimizer->steps++;
    rapt_optimizer_clear_gradients(optimizer);
    return true;
}

void rapt_optimizer_clear_gradients(rapt_optimizer *optimizer)
{
    for (int i = 0; optimizer && i < optimizer->count; i++) rapt_clear_gradient(optimizer->slots[i].parameter);
}

double rapt_optimizer_get_learning_rate(const rapt_optimizer *optimizer)
{
    if (optimizer) return optimizer->learning_rate;
    rapt_fail_null("optimizer_get_learning_rate", "optimizer");
    return NAN;
}

bool rapt_optimizer_set_learning_rate(rapt_optimizer *optimizer, double learning_rate)
{
    const char *op = "optimizer_set_learning_rate";
    if (!optimizer) return rapt_fail_null(op, "optimizer");
    double checked;
    if (!rapt_take_number(op, "learning_rate", learning_rate, 0, INFINITY, &checked)) return false;
    optimizer->learning_rate = checked;
    return true;
}

int64_t rapt_optimizer_get_steps(const rapt_optimizer *optimizer)
{
    if (optimizer) return optimizer->steps;
    rapt_fail_null("optimizer_get_steps", "optimizer");
    return 0;
}
